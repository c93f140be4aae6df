//! Messages as bytes: what each protocol writes and reads, without any state of a connection.

pub mod lean;
pub mod onc;
pub mod sniff;
