//! What the contestants of the sections `rpc` and `stream` share: what the operations are, what a client is told to
//! do, and how it measures.

pub mod address;
pub mod measure;
pub mod operation;
pub mod protocol;
pub mod task;
pub mod transfer;
