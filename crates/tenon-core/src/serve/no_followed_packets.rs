//! The place of the packets of followed calls where accounts, UDP or lean calls in datagrams are left out: no client is
//! told of any.

use std::net::SocketAddr;

use tenon_net::Carrier;
use tenon_wire::Buffer;

use super::port::FoundCall;

/// The state of a port whose clients ask when its kernel had packets, of which there are none.
#[derive(Debug)]
pub enum PacketFollower {}

impl PacketFollower {
    /// Changes nothing.
    #[inline]
    pub fn note_reply(_: &mut Option<Box<Self>>, _: &Carrier, _: &FoundCall, _: &mut Buffer) {}

    /// Returns none.
    #[inline]
    pub fn begin_send(_: &mut Option<Box<Self>>, _: &Carrier, _: SocketAddr) -> Option<u64> {
        None
    }

    /// Is never called.
    pub fn end_send(_: &mut Option<Box<Self>>, _: &Carrier, _began: u64) {}

    /// Changes nothing.
    #[inline]
    pub fn end_replies(_: &mut Option<Box<Self>>) {}
}
