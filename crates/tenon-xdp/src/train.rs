//! Datagrams that go out together, and those that came together.

use std::net::SocketAddr;

/// Datagrams for one peer, one behind the other.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingDatagrams<'d> {
    /// The datagrams.
    pub bytes: &'d [u8],
    /// Bytes of each but the last, which has at most as many; not 0.
    pub size: usize,
    /// Datagrams of the longest message that one of them is a part of. All of a message go the same way, so that they
    /// arrive in order.
    pub message_datagrams: u32,
}

/// Datagrams of one sender that came together, in the room that was given for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedDatagrams {
    /// Bytes of all together: a single one's own length, of which the rest is lost if it is greater than the room.
    pub length: usize,
    /// Bytes of each but the last.
    pub size: usize,
    /// The sender.
    pub from: SocketAddr,
}

impl ReceivedDatagrams {
    /// Returns a single one.
    #[inline]
    pub fn one(length: usize, from: SocketAddr) -> Self {
        let size = length;
        Self { length, size, from }
    }
}
