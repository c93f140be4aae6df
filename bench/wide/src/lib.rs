//! The stubs of an interface whose record has 8192 distinct members, and nothing else: how long
//! this crate takes to compile is how long they take.
#![allow(missing_docs)]

include!(concat!(env!("OUT_DIR"), "/bench.rs"));
