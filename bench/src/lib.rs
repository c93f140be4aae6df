//! What the sections share: statistics and the files of results; and what the contestants of the
//! section `rpc` share: how a client measures, what the operations are, and the stubs for them.

pub mod address;
pub mod machine;
pub mod measure;
pub mod operation;
pub mod results;
pub mod spinning;
pub mod stats;
pub mod task;
pub mod tenon_options;

/// The stubs of the section `rpc`.
#[allow(missing_docs)]
pub mod stubs {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}
