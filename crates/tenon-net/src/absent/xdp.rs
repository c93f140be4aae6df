//! Datagrams past the kernel's stack where there are none.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::lacking;
use crate::socket::Ready;
use crate::train::{PacketTrain, ReceivedTrain};
use crate::{Address, Protocol};

/// A socket for datagrams that go past the kernel's stack, of which there are none.
#[derive(Debug)]
pub enum XdpDatagramSocket {}

/// A socket in the place where its owner has it.
pub type XdpCarrier = XdpDatagramSocket;

/// Counts of datagrams by their path, past the kernel's stack or through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct XdpCounters {
    /// Went out past the kernel's stack.
    pub sent: u64,
    /// Went out by the kernel's socket.
    pub sent_by_kernel: u64,
    /// Came in past the kernel's stack.
    pub received: u64,
    /// Came in by the kernel's socket.
    pub received_by_kernel: u64,
    /// Frames that came in and were not believed, or not from the peer.
    pub dropped: u64,
}

absent!(XdpDatagramSocket {
    pub fn address() -> Address;
    pub fn counters() -> XdpCounters;
    pub fn protocol() -> Protocol;
    pub fn frame_data_max() -> usize;
    pub fn try_send(PacketTrain<'_>) -> io::Result<usize>;
    pub fn try_send_to(PacketTrain<'_>, SocketAddr) -> io::Result<usize>;
    pub fn expect_train();
    pub fn look(u32);
    pub fn try_recv_from(&mut [u8]) -> io::Result<(ReceivedTrain, SocketAddr)>;
    pub fn try_recv_ready_from(&mut [u8]) -> io::Result<(ReceivedTrain, SocketAddr)>;
    pub fn recv_from_within(&mut [u8], Duration) -> io::Result<(ReceivedTrain, SocketAddr)>;
    pub fn recv_from_until(&mut [u8], Instant) -> io::Result<(ReceivedTrain, SocketAddr)>;
    pub fn wait(Ready, Instant) -> io::Result<Ready>;
    pub fn shutdown() -> io::Result<()>;
});

impl XdpDatagramSocket {
    /// Fails.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn connect(address: &Address) -> io::Result<Self> {
        Err(lacking("xdp", address))
    }

    /// Fails.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn bind(address: &Address) -> io::Result<Self> {
        Err(lacking("xdp", address))
    }

    pub(crate) fn connect_to(peer: SocketAddr, _: Protocol) -> io::Result<Self> {
        Err(lacking("xdp", &peer))
    }
}

impl_as_fd!(XdpDatagramSocket, self => match *self {});
