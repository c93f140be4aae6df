//! The stubs of `greeter.x`.

#![allow(missing_docs)] // the interface documents what it wants to

include!(concat!(env!("OUT_DIR"), "/greeter.rs"));
