//! What sockets of every system have in common: what they are ready for, waiting for that, and deadlines.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::AddressFamily;

use crate::fd::AsFd;

/// The operations that a socket is ready for. An error or the peer's end makes it ready for both, so that the next
/// operation reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready {
    /// A receive returns at once.
    pub readable: bool,
    /// A send takes at least one byte.
    pub writable: bool,
}

impl Ready {
    /// For sending.
    pub const WRITABLE: Self = Self {
        readable: false,
        writable: true,
    };

    /// For receiving.
    pub const READABLE: Self = Self {
        readable: true,
        writable: false,
    };

    /// For sending or receiving.
    pub const EITHER: Self = Self {
        readable: true,
        writable: true,
    };
}

/// Whether a receive waits for something to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiveMode {
    /// It returns at once: `WouldBlock` if nothing is there.
    NonBlocking,
    /// It waits until the limit that the socket was given is over.
    Blocking,
}

/// Waits until one of `polled` is what it is polled for: `TimedOut` at the deadline.
pub(crate) fn poll_until(polled: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    loop {
        // Rounded up, so that the last turn does not spin.
        let left = time_left(deadline)? + Duration::from_micros(1);
        let limit = Timespec::try_from(left).ok();
        match poll(polled, limit.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

impl From<PollFlags> for Ready {
    fn from(flags: PollFlags) -> Self {
        let broken = flags.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        Self {
            readable: broken || flags.contains(PollFlags::IN),
            writable: broken || flags.contains(PollFlags::OUT),
        }
    }
}

/// Waits until `socket` is ready for something that is wanted.
///
/// # Errors
/// `TimedOut` at the deadline.
pub(crate) fn wait_for(socket: &impl AsFd, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, wanted.readable);
    flags.set(PollFlags::OUT, wanted.writable);
    let mut polled = [PollFd::new(socket, flags)];
    poll_until(&mut polled, deadline)?;
    Ok(Ready::from(polled[0].revents()))
}

/// Returns whether the connection of `socket` has ended in both directions, or failed.
pub(crate) fn is_hung_up(socket: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::empty())];
    let now = Timespec::default();
    match poll(&mut polled, Some(&now)) {
        Ok(_) => (polled[0].revents()).intersects(PollFlags::HUP | PollFlags::ERR),
        Err(_) => false,
    }
}

/// Returns the error that a failed receive reports. To one that a signal has interrupted nothing came, and the waiting
/// caller looks whether there is time left: to wait on here would begin the kernel's limit anew with every signal.
#[cold]
pub(crate) fn of_receiving(error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    match error.kind() {
        io::ErrorKind::Interrupted => io::ErrorKind::WouldBlock.into(),
        _ => error,
    }
}

pub(crate) fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

pub(crate) fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(timed_out());
    }
    Ok(left)
}

/// Returns whether `error` says that a deadline passed. A connection that the kernel gave up, because the peer
/// acknowledged nothing, reports `TimedOut` as well, but has broken.
pub fn is_deadline(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}

pub(crate) fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
