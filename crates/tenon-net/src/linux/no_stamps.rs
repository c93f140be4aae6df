//! The place of time stamps of packets where accounts are left out: the kernel is not asked for any.

use std::io;
use std::os::fd::BorrowedFd;

use nix::sys::socket::Timestamps;

use super::socket::DeadlineSocket;
use crate::packet_stamps::{FollowedPackets, PacketStamps, not_followed};

/// Fails, unless none are to be stamped.
pub(super) fn set_stamping(_: &DeadlineSocket, followed: FollowedPackets) -> io::Result<()> {
    match followed {
        FollowedPackets::None => Ok(()),
        FollowedPackets::Received | FollowedPackets::All => Err(not_followed()),
    }
}

/// Returns none.
pub(super) fn software_nanos(_: &Timestamps) -> Option<u64> {
    None
}

/// Returns none.
pub(super) fn take_sent(_: BorrowedFd<'_>, _: Option<u64>) -> PacketStamps {
    PacketStamps::default()
}
