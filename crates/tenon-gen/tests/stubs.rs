//! The generated stubs in use: they compile without a warning, and what they put on the wire is
//! what the interpreter puts there.
#![deny(warnings)]
#![allow(missing_docs, dead_code)]

mod common;

#[path = "golden/arrays.rs"]
mod arrays;
#[path = "golden/constants.rs"]
mod constants;
#[path = "golden/demo.rs"]
mod demo;
#[path = "golden/external.rs"]
mod external;
#[path = "golden/hprpc.rs"]
mod hprpc;
#[path = "golden/lists.rs"]
mod lists;
#[path = "golden/mount3.rs"]
mod mount3;
#[path = "golden/names.rs"]
mod names;
#[path = "golden/nfs3.rs"]
mod nfs3;
#[path = "golden/recursion.rs"]
mod recursion;
#[path = "golden/service.rs"]
mod service;
#[path = "golden/torture.rs"]
mod torture;
#[path = "golden/unions.rs"]
mod unions;

/// What the interface `external.x` leaves to the module around its stubs.
pub type ElsewhereT = arrays::Point;

