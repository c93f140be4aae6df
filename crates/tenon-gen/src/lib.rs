//! Source back ends: an interface and its plans become the source text of stubs.
//!
//! Each language decides names and types first; bodies of marshalling code then come from an
//! exhaustive match over the operations of the plan, and printing decides nothing.
//!
//! A user's `build.rs` has `tenon-build` for this, a Makefile `tenon gen` and `tenon rpcgen`.

#[cfg(feature = "c")]
pub mod c;
pub mod rust;
#[cfg_attr(
    not(feature = "c"),
    allow(dead_code, reason = "some of it only C needs")
)]
mod writer;
