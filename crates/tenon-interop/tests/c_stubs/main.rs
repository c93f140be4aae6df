//! What the C back ends write: stubs for programs on libtirpc, and for Tenon's own run time.

mod libtirpc;
mod names;
mod opened;
mod plain;
mod sizes;
mod type_names;
