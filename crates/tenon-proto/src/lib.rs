//! Protocol engines without input or output: no socket, no clock, no thread. Bytes and the time
//! are handed in (`handle_*`), what is to be done next is asked for (`poll_*`, `next_*`).
//!
//! [`onc`] is ONC RPC version 2 (RFC 5531); [`lean`] is the protocol between two ends that are both
//! Tenon, over a stream, and [`exchange`] carries its messages in datagrams. [`sniff`] tells the one
//! from the other by the first bytes of a connection.

pub mod codec;
pub mod config;
pub mod connection;
pub mod exchange;
mod in_flight;

pub use codec::{lean, onc, sniff};
pub use connection::framing::ROOM_FIRST;
