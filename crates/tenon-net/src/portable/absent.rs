//! Stand-ins for clocks and calls that only Linux has, so that the code above is the same for every system.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::socket::DeadlineSocket;
use crate::absent::lacking;
use crate::fd::BorrowedFd;
use crate::packet_stamps::{FollowedPackets, PacketStamps, not_followed};
use crate::socket::ReceiveMode;
use crate::train::{PacketTrain, ReceivedTrain};

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

/// A coarse clock, which this system does not have.
#[derive(Debug)]
pub enum Ticks {}

/// The place of segmentation offload, which this system does not have: datagrams are sent and received one by one.
#[derive(Debug, Default)]
pub(crate) struct SegmentationOffload;

/// Fails, as this system is not offered Unix sockets.
pub(crate) fn connect_path(path: &Path, _: Instant) -> io::Result<DeadlineSocket> {
    Err(lacking("unix", &path.display()))
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
