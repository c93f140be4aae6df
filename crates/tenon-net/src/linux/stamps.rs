//! Time stamps of packets (SO_TIMESTAMPING): those of packets that were sent come through the error queue of the socket,
//! those of packets that were received beside their data.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::libc::{sock_extended_err, sockaddr_in6};
use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, Timestamps, recvmsg,
    setsockopt,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use rustix::net::{bind, getsockname};

use crate::packet_stamps::{FollowedPackets, PacketCosts, PacketStamps};
use crate::socket::{ReceiveMode, family};
use crate::system::{DeadlineSocket, SegmentationOffload};

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

fn nanos(time: TimeSpec) -> u64 {
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

/// As [`PacketCosts::measure`].
pub(crate) fn measure_packet_costs(bytes: usize) -> io::Result<PacketCosts> {
    let system_call = system_call();
    let socket = own_socket()?;
    let segments = SegmentationOffload::default();
    segments.follow(&socket, FollowedPackets::Received)?;
    let (packet, mut room) = (vec![0; bytes], vec![0; bytes + 1]);
    let mut times = Vec::new();
    // The kernel begins to stamp in its own time.
    let until = Instant::now() + PATIENCE;
    while times.len() < SAMPLES && Instant::now() < until {
        socket.try_send(&packet)?;
        let sent = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos);
        segments.receive(&socket, &mut room, ReceiveMode::NonBlocking)?;
        if let Some(received) = segments.received_stamp() {
            // The way back out of the system call is not a part of it.
            times.push(
                sent.saturating_sub(received)
                    .saturating_sub(system_call / 2),
            );
        }
    }
    Ok(PacketCosts {
        system_call,
        kernel_in: median(times),
    })
}

/// How often each is measured.
const SAMPLES: usize = 200;

/// Time after which what was not measured is not known.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the nanoseconds of a system call that does nothing.
fn system_call() -> u64 {
    const CALLS: u32 = 50;
    let times = (0..SAMPLES).map(|_| {
        let begin = Instant::now();
        for _ in 0..CALLS {
            std::hint::black_box(rustix::process::getppid());
        }
        begin.elapsed().as_nanos() as u64 / u64::from(CALLS)
    });
    median(times.collect())
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// Returns a socket for datagrams that is connected to itself.
fn own_socket() -> io::Result<DeadlineSocket> {
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let socket = DeadlineSocket::open(family(here), rustix::net::SocketType::DGRAM)?;
    bind(&socket, &here)?;
    let own = std::net::SocketAddr::try_from(getsockname(&socket)?)?;
    rustix::net::connect(&socket, &own)?;
    Ok(socket)
}
