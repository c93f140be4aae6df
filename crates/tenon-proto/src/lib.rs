//! Protocol engines without input or output: no socket, no clock, no thread. Bytes and the time
//! are handed in (`handle_*`), what is to be done next is asked for (`poll_*`, `next_*`).
//!
//! [`onc`] is ONC RPC version 2 (RFC 5531).

mod in_flight;
pub mod onc;
