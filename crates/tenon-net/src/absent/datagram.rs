//! Datagrams by the system's sockets where the feature `udp` is left out.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::lacking;
use crate::packet_stamps::{FollowedPackets, PacketStamps};
use crate::socket::Ready;
use crate::system::DeadlineSocket;
use crate::train::{PacketTrain, ReceivedTrain};
use crate::{Address, Until};

/// A UDP socket, of which there are none.
#[derive(Debug)]
pub enum DatagramSocket {}

absent!(DatagramSocket {
    pub fn address() -> io::Result<Address>;
    pub fn is_here() -> bool;
    pub fn try_send(&[u8]) -> io::Result<()>;
    pub fn try_send_to(&[u8], SocketAddr) -> io::Result<()>;
    pub(crate) fn try_send_train(PacketTrain<'_>, Option<SocketAddr>) -> io::Result<usize>;
    pub(crate) fn expect_train(usize);
    pub fn try_recv_from(&mut [u8]) -> io::Result<(usize, SocketAddr)>;
    pub fn recv_from_within(&mut [u8], Duration) -> io::Result<(usize, SocketAddr)>;
    pub fn try_recv(&mut [u8]) -> io::Result<usize>;
    pub fn recv_until(&mut [u8], impl Into<Until>) -> io::Result<usize>;
    pub(crate) fn expects_train() -> bool;
    pub(crate) fn try_recv_train(&mut [u8]) -> io::Result<(ReceivedTrain, Option<SocketAddr>)>;
    pub(crate) fn recv_train_until(&mut [u8], Until) -> io::Result<ReceivedTrain>;
    pub(crate) fn recv_train_within(&mut [u8], Duration) -> io::Result<(ReceivedTrain, Option<SocketAddr>)>;
    pub fn follow_packets(FollowedPackets) -> io::Result<()>;
    pub fn take_stamps() -> PacketStamps;
    pub fn take_sent_stamps() -> PacketStamps;
    pub fn received_stamp() -> Option<u64>;
    pub fn wait(Ready, Instant) -> io::Result<Ready>;
    pub fn shutdown() -> io::Result<()>;
});

impl DatagramSocket {
    /// Most bytes that a datagram over IPv4 carries: 65,535 less the headers of IP and UDP.
    pub const SIZE_MAX: usize = 65_507;

    /// Room that any datagram fits in, whatever carries it.
    pub const RECEIVE_MAX: usize = 65_535;

    /// Fails.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn connect(address: &Address, _: Instant) -> io::Result<Self> {
        Err(lacking("udp", address))
    }

    /// Fails.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn bind(address: &Address) -> io::Result<Self> {
        Err(lacking("udp", address))
    }

    pub(crate) fn connect_to(peer: SocketAddr, _: Instant) -> io::Result<Self> {
        Err(lacking("udp", &peer))
    }

    pub(crate) fn over(_: DeadlineSocket, peer: SocketAddr) -> io::Result<Self> {
        Err(lacking("udp", &peer))
    }
}

impl_as_fd!(DatagramSocket, self => match *self {});
