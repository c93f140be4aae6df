//! The packet exchange protocol: calls between two ends that are both Tenon, over datagrams that may
//! be lost, doubled, delayed, reordered, damaged and forged. It is specified to the byte in
//! `docs/exchange.md`; what it carries are messages of the [lean](crate::lean) protocol.
//!
//! A call that fits a datagram costs a packet each way, and nothing else: the result acknowledges the
//! call, and the next call the result. Calls are carried out at most once, and a call that comes to
//! nothing says whether it [may have been](Failure::may_have_run).

mod ack;
pub mod byte_stream;
pub mod client;
mod congestion;
mod content;
mod cookie;
mod failure;
mod farewell;
mod opening;
mod packet;
mod reassembled;
mod reassembly;
mod sending;
mod sent_fragments;
pub mod server;
mod spare;
mod time;

pub use failure::{Failure, Reason};
pub use opening::DATAGRAM_MIN;
pub use packet::{
    DropCounters, DropReason, PACKET_HEADER, PACKET_MAGIC, PacketKind, is_of_byte_stream,
    is_one_of_many, is_packet, packets_of_message,
};
pub use reassembled::ReassembledMessage;
pub use time::RetransmitTimeouts;

/// Bytes of a datagram that passes an Ethernet, over IPv6 too: 1500 less 40 and 8, and a multiple of 8.
pub const DATAGRAM_DEFAULT: usize = 1448;

/// Bytes of a datagram between processes of one machine: the fewer there are, the less they cost.
pub const DATAGRAM_HERE: usize = DATAGRAM_MAX;

/// Bytes of the largest datagram of UDP over IPv4, as a multiple of 8.
const DATAGRAM_MAX: usize = 65_504;

/// Bytes that a request or an answer may have beside its message: what binds a service, or says that
/// it is bound.
const PREFIX_MAX: usize = 64;

/// Fragments of a message or of a stream of bytes, from the first that has not arrived, that may be under way.
const WINDOW: u32 = 1024;

/// Bytes of the datagrams between ends that take in so many: a multiple of 8.
fn datagram_max(ours: usize, theirs: usize) -> usize {
    ours.min(theirs).clamp(DATAGRAM_MIN, DATAGRAM_MAX) & !7
}
