//! What passing a packet costs the kernel where it has no time stamps.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use rustix::net::{SocketType, bind, connect, getsockname};

use super::segments::SegmentationOffload;
use super::socket::DeadlineSocket;
use super::stamps::nanos;
use crate::packet_stamps::{FollowedPackets, PacketCosts};
use crate::socket::{ReceiveMode, family};

impl PacketCosts {
    /// Measures them: `getppid`, and datagrams with `bytes` of data that this process sends to itself. Takes a few
    /// milliseconds.
    ///
    /// # Errors
    /// `Unsupported` on other systems than Linux; what the system reports.
    pub fn measure(bytes: usize) -> io::Result<Self> {
        let system_call = system_call();
        Ok(Self {
            system_call,
            kernel_in: kernel_in(bytes, system_call)?,
        })
    }
}

/// Returns the nanoseconds of a datagram from the driver to its socket.
fn kernel_in(bytes: usize, system_call: u64) -> io::Result<u64> {
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
        // Mostly it is there, as the kernel receives it while it sends; a busy one does so later, and that does not count.
        socket.give_up_after(PATIENCE)?;
        segments.receive(&socket, &mut room, ReceiveMode::Blocking)?;
        let received = segments.received_stamp();
        if let Some(taken) = received.and_then(|received| sent.checked_sub(received)) {
            // The way back out of the system call is not a part of it.
            times.push(taken.saturating_sub(system_call / 2));
        }
    }
    Ok(median(times))
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
            std::hint::black_box(std::os::unix::process::parent_id());
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
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let socket = DeadlineSocket::open(family(here), SocketType::DGRAM)?;
    bind(&socket, &here)?;
    let own = SocketAddr::try_from(getsockname(&socket)?)?;
    connect(&socket, &own)?;
    Ok(socket)
}
