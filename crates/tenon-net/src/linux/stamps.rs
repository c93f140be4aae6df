//! Time stamps of packets (SO_TIMESTAMPING): those of packets that were sent come through the error queue of the socket,
//! those of packets that were received beside their data.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::cmsg_space;
use nix::libc::{sock_extended_err, sockaddr_in6};
use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, Timestamps, recvmsg,
    setsockopt,
};
use nix::sys::time::TimeSpec;

use super::socket::DeadlineSocket;
use crate::packet_stamps::{FollowedPackets, PacketStamps};

/// SOF_TIMESTAMPING_TX_SCHED, which the crate has no name for.
const TX_SCHED: u32 = 1 << 8;

/// The origin of messages in the error queue that are time stamps (SO_EE_ORIGIN_TIMESTAMPING).
const ORIGIN: u8 = 4;

/// Kinds of stamps of packets that were sent (SCM_TSTAMP_SND, SCM_TSTAMP_SCHED).
const TRANSMITTED: u32 = 0;
const SCHEDULED: u32 = 1;

/// Has the kernel stamp these packets of `socket`.
pub(super) fn set_stamping(socket: &DeadlineSocket, followed: FollowedPackets) -> io::Result<()> {
    let received = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    let sent = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::from_bits_retain(TX_SCHED);
    let flags = match followed {
        FollowedPackets::None => TimestampingFlag::empty(),
        FollowedPackets::Received => received,
        FollowedPackets::All => received | sent,
    };
    Ok(setsockopt(socket, Timestamping, &flags)?)
}

/// Returns the nanoseconds of a stamp by software, if it is one.
pub(super) fn software_nanos(stamps: &Timestamps) -> Option<u64> {
    Some(nanos(stamps.system)).filter(|nanos| *nanos > 0)
}

/// Returns the nanoseconds of a time.
pub(super) fn nanos(time: TimeSpec) -> u64 {
    // Behind 1970, neither is negative.
    (time.tv_sec() as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec() as u64)
}

/// Takes the stamps out of the error queue of `socket`; returns those of the packet that was sent last, but not behind
/// `until`.
pub(super) fn take_sent(socket: BorrowedFd<'_>, until: Option<u64>) -> PacketStamps {
    let mut taken = PacketStamps::default();
    while let Some((kind, nanos)) = next_sent(socket) {
        if until.is_some_and(|until| nanos > until) {
            continue;
        }
        match kind {
            SCHEDULED => taken.scheduled = Some(nanos),
            TRANSMITTED => taken.transmitted = Some(nanos),
            _ => {}
        }
    }
    taken
}

/// Takes the next message out of the error queue; returns the kind of stamp that it is, and its nanoseconds. An error
/// that is no stamp has none, and counts as a kind that does not exist.
fn next_sent(socket: BorrowedFd<'_>) -> Option<(u32, u64)> {
    const NO_STAMP: u32 = u32::MAX;
    let mut control = cmsg_space!(Timestamps, sock_extended_err, sockaddr_in6, i32);
    control.resize(control.capacity(), 0);
    let mut nothing = [0; 0];
    let mut pieces = [IoSliceMut::new(&mut nothing)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let received =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut pieces, Some(&mut control), flags);
    let received = received.ok()?;
    let (mut kind, mut nanos) = (NO_STAMP, 0);
    for message in received.cmsgs().ok()? {
        match message {
            ControlMessageOwned::ScmTimestampsns(stamps) => {
                nanos = software_nanos(&stamps).unwrap_or(0);
            }
            ControlMessageOwned::Ipv4RecvErr(error, _)
            | ControlMessageOwned::Ipv6RecvErr(error, _)
                if error.ee_origin == ORIGIN =>
            {
                kind = error.ee_info;
            }
            _ => {}
        }
    }
    Some((kind, nanos))
}
