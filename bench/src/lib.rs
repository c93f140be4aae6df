//! What the contestants of the sections share: how a client measures, and what the operations are.

pub mod address;
pub mod measure;
pub mod operation;
