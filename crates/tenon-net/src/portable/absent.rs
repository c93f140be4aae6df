//! Stand-ins for transports and clocks that only Linux has: types without values, so that the code above is the same
//! for every system.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::listener::unsupported;
use super::socket::DeadlineSocket;
use crate::fd::{BorrowedFd, OwnedFd};
use crate::packet_stamps::{FollowedPackets, PacketCosts, PacketStamps, not_followed};
use crate::socket::{Ready, ReceiveMode};
use crate::train::{PacketTrain, ReceivedTrain};
use crate::{Address, Protocol};

/// The process and the user of a peer when it connected, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The number of the process.
    pub process: i32,
    /// The effective user.
    pub user: u32,
    /// The effective group.
    pub group: u32,
}

impl User {
    /// Returns the user of the process at the other end of `socket`, which only Linux tells.
    ///
    /// # Errors
    /// `Unsupported`.
    pub(crate) fn at(_: BorrowedFd<'_>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

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

/// A coarse clock, which this system does not have.
#[derive(Debug)]
pub enum Ticks {}

/// A connection in shared memory, of which there are none.
#[derive(Debug)]
pub(crate) enum ShmStream {}

/// A socket for datagrams that go past the kernel's stack, of which there are none.
#[derive(Debug)]
pub enum XdpDatagramSocket {}

/// The place of segmentation offload, which this system does not have: datagrams are sent and received one by one.
#[derive(Debug, Default)]
pub(crate) struct SegmentationOffload;

/// Fails, as this system is not offered Unix sockets.
pub(crate) fn connect_path(path: &Path, _: Instant) -> io::Result<DeadlineSocket> {
    Err(unsupported(&path.display()))
}

impl PacketCosts {
    /// Fails, as this system has no time stamps of packets.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn measure(_: usize) -> io::Result<Self> {
        Err(not_followed())
    }
}

/// Methods of types without values: none is ever called.
macro_rules! absent {
    ($type:ty { $($visibility:vis fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        #[allow(missing_docs, reason = "the type of Linux has the same, with words")]
        impl $type {
            $($visibility fn $name(&self, $(_: $argument),*) $(-> $result)? { match *self {} })*
        }
    };
}

absent!(Ticks {
    pub fn tick() -> Duration;
    pub fn last() -> u64;
    pub fn time_of(u64) -> Instant;
});

impl Ticks {
    /// Returns none.
    pub fn get() -> Option<&'static Self> {
        None
    }
}

absent!(ShmStream {
    pub(crate) fn user() -> User;
    pub(crate) fn try_send(&[u8]) -> io::Result<usize>;
    pub(crate) fn try_send_pieces(&[IoSlice<'_>]) -> io::Result<usize>;
    pub(crate) fn try_recv(&mut [u8]) -> io::Result<usize>;
    pub(crate) fn look(u32);
    pub(crate) fn recv_until(&mut [u8], Instant) -> io::Result<usize>;
    pub(crate) fn recv_within(&mut [u8], Duration) -> io::Result<usize>;
    pub(crate) fn wait(Ready, Instant) -> io::Result<Ready>;
    pub(crate) fn park() -> bool;
    pub(crate) fn park_sender() -> bool;
    pub(crate) fn room_notifier() -> io::Result<OwnedFd>;
    pub(crate) fn take_in_room();
    pub(crate) fn refresh();
    pub(crate) fn shutdown_send();
    pub(crate) fn shutdown_recv() -> io::Result<()>;
    pub(crate) fn shutdown() -> io::Result<()>;
});

impl ShmStream {
    pub(crate) fn join(_: DeadlineSocket, _: Instant) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl_as_fd!(ShmStream, self => match *self {});

absent!(XdpDatagramSocket {
    pub fn address() -> Address;
    pub fn counters() -> XdpCounters;
    pub fn protocol() -> Protocol;
    pub fn frame_data_max() -> usize;
    pub fn try_send(PacketTrain<'_>) -> io::Result<usize>;
    pub fn try_send_to(PacketTrain<'_>, SocketAddr) -> io::Result<usize>;
    pub fn look(u32);
    pub fn try_recv_from(&mut [u8]) -> io::Result<(usize, SocketAddr)>;
    pub fn try_recv_ready_from(&mut [u8]) -> io::Result<(usize, SocketAddr)>;
    pub fn recv_from_within(&mut [u8], Duration) -> io::Result<(usize, SocketAddr)>;
    pub fn recv_from_until(&mut [u8], Instant) -> io::Result<(usize, SocketAddr)>;
    pub fn wait(Ready, Instant) -> io::Result<Ready>;
    pub fn shutdown() -> io::Result<()>;
});

impl XdpDatagramSocket {
    /// Fails.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn connect(address: &Address) -> io::Result<Self> {
        Err(unsupported(address))
    }

    /// Fails.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn bind(address: &Address) -> io::Result<Self> {
        Err(unsupported(address))
    }

    pub(crate) fn connect_to(_: SocketAddr, _: Protocol) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl_as_fd!(XdpDatagramSocket, self => match *self {});

impl SegmentationOffload {
    pub(crate) fn may_cut(&self) -> bool {
        false
    }

    pub(crate) fn send(
        &self,
        _: &DeadlineSocket,
        _: PacketTrain<'_>,
        _: Option<SocketAddr>,
    ) -> Option<io::Result<usize>> {
        None
    }

    pub(crate) fn follow(&self, _: &DeadlineSocket, _: FollowedPackets) -> io::Result<()> {
        Err(not_followed())
    }

    pub(crate) fn take_stamps(&self, _: &DeadlineSocket) -> PacketStamps {
        PacketStamps::default()
    }

    pub(crate) fn take_sent(&self, _: &DeadlineSocket) -> PacketStamps {
        PacketStamps::default()
    }

    pub(crate) fn received_stamp(&self) -> Option<u64> {
        None
    }

    pub(crate) fn is_expecting(&self) -> bool {
        false
    }

    pub(crate) fn expect(&self, _: &DeadlineSocket) {}

    pub(crate) fn receive(
        &self,
        socket: &DeadlineSocket,
        room: &mut [u8],
        mode: ReceiveMode,
    ) -> io::Result<(ReceivedTrain, Option<SocketAddr>)> {
        let (length, from) = socket.recv_datagram_from(room, mode)?;
        Ok((ReceivedTrain::one(length), Some(from)))
    }
}
