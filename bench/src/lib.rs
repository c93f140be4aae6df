//! What the sections share: statistics and the files of results; and what Tenon's contestants of the
//! section `rpc` share, the stubs above all.

pub mod contestant;
pub mod machine;
pub mod memory;
pub mod onc;
pub mod operations;
pub mod results;
pub mod ring;
pub mod spinning;
pub mod stats;
pub mod streams;
pub mod threads;

/// The stubs of the section `rpc`.
#[allow(missing_docs)]
pub mod stubs {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}

/// The stubs of the section `stream`.
#[allow(missing_docs)]
pub mod stream_stubs {
    include!(concat!(env!("OUT_DIR"), "/stream.rs"));
}
