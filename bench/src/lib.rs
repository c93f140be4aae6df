//! What the contestants of the sections share: how a client measures, what the operations are, and
//! the stubs for them.

pub mod address;
pub mod measure;
pub mod operation;

/// The stubs of the section `rpc`.
#[allow(missing_docs)]
pub mod stubs {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}
