//! What is there in the place of `exchange` without that feature: as much as its users name. There is no client, and a
//! server finds no packets.

pub mod client;
#[path = "../exchange/failure.rs"]
mod failure;
pub mod server;

use crate::config::{ConnectionConfig, Role};

pub use failure::{Failure, Reason};

/// Bytes of a header, of which there are none.
pub const PACKET_HEADER: usize = 0;

/// Bytes of a datagram that passes an Ethernet.
pub const DATAGRAM_DEFAULT: usize = 1448;

/// Bytes of a datagram between processes of one machine.
pub const DATAGRAM_HERE: usize = 65_504;

/// The reason for dropping a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// It belongs to a call or to a conversation that is over.
    Stale,
}

/// Numbers of datagrams that were dropped: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DropCounters;

impl DropCounters {
    /// Returns 0.
    pub fn of(&self, _: DropReason) -> u64 {
        0
    }
}

/// A message that comes in several packets, which there are not.
#[derive(Debug)]
pub struct ReassembledMessage;

impl ReassembledMessage {
    /// Returns one without bytes.
    pub fn of(_: &ConnectionConfig, _: Role) -> Self {
        Self
    }

    /// Returns no bytes.
    pub fn message(&self) -> &[u8] {
        &[]
    }

    /// Changes nothing.
    #[inline]
    pub fn clear(&mut self) {}

    /// Changes nothing.
    pub fn shrink_to(&mut self, _: usize) {}
}

/// Returns false: packets are not known here.
#[inline]
pub fn is_packet(_: &[u8]) -> bool {
    false
}

/// Returns false: packets are not known here.
#[inline]
pub fn is_one_of_many(_: &[u8]) -> bool {
    false
}

/// Returns 1: packets are not known here.
#[inline]
pub fn packets_of_message(_: &[u8]) -> u32 {
    1
}

/// Returns false: streams of bytes are not known here.
#[inline]
pub fn is_of_byte_stream(_: &[u8]) -> bool {
    false
}
