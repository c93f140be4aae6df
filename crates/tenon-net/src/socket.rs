//! What a connected stream and a datagram socket have in common: sending and receiving bytes,
//! either at once or until a deadline.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType,
    addr::SocketAddrArg,
};

use crate::timeout::ReceiveTimeout;
use crate::until::Until;

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

/// Waits that are shorter sleep in `ppoll`. `SO_RCVTIMEO` counts in ticks of the kernel, of up to 10 ms, and wakes a
/// tick or two late, which is too much for them; for longer ones the last of their time goes that way.
const PRECISE_BELOW: Duration = Duration::from_millis(32);

#[derive(Debug)]
pub(crate) struct DeadlineSocket {
    fd: OwnedFd,
    receive_timeout: ReceiveTimeout,
}

impl From<OwnedFd> for DeadlineSocket {
    fn from(fd: OwnedFd) -> Self {
        Self {
            fd,
            receive_timeout: ReceiveTimeout::unset(),
        }
    }
}

impl DeadlineSocket {
    pub(crate) fn open(family: AddressFamily, kind: SocketType) -> io::Result<Self> {
        let fd = net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok(Self::from(fd))
    }

    /// Connects a blocking socket; the kernel's send limit bounds the wait.
    pub(crate) fn connect(&self, to: &impl SocketAddrArg, deadline: Instant) -> io::Result<()> {
        let mut was_interrupted = false;
        loop {
            let left = time_left(deadline)?.max(Duration::from_millis(1));
            set_socket_timeout(&self.fd, Timeout::Send, Some(left))?;
            match net::connect(&self.fd, to) {
                // A limit that runs out reads EINPROGRESS on TCP, EALREADY if it was asked again, and EAGAIN on a
                // Unix socket.
                Err(Errno::INPROGRESS | Errno::ALREADY | Errno::AGAIN) => return Err(timed_out()),
                // Over TCP a signal ends the wait and not the connecting, of a Unix socket both. To ask again goes
                // on with the one and begins the other anew.
                Err(Errno::INTR) => was_interrupted = true,
                Err(Errno::ISCONN) if was_interrupted => return Ok(()),
                other => return Ok(other?),
            }
        }
    }

    #[inline]
    pub(crate) fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(retry_on_intr(|| net::send(&self.fd, bytes, flags))?)
    }

    pub(crate) fn try_send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut nothing_beside = SendAncillaryBuffer::default();
        Ok(retry_on_intr(|| {
            net::sendmsg(&self.fd, pieces, &mut nothing_beside, flags)
        })?)
    }

    pub(crate) fn try_recv(&self, room: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        self.recv(room, flags | RecvFlags::DONTWAIT)
    }

    /// Receives, waiting `until` the deadline: `TimedOut` then. What is already there is returned
    /// even behind the deadline.
    #[inline]
    pub(crate) fn recv_until(
        &self,
        room: &mut [u8],
        flags: RecvFlags,
        until: Until,
    ) -> io::Result<usize> {
        self.receive_until(until, |waiting| self.recv(room, flags | waiting))
    }

    /// The same with an end that is kept to less than a millisecond. Waits for datagrams are short mostly, as they end
    /// when something is to be sent again, and need not be that precise.
    #[inline]
    pub(crate) fn recv_until_precisely(
        &self,
        room: &mut [u8],
        flags: RecvFlags,
        until: Until,
    ) -> io::Result<usize> {
        if until.left < PRECISE_BELOW {
            return self.receive_precisely(until, |waiting| self.recv(room, flags | waiting));
        }
        self.recv_until(room, flags, until)
    }

    /// The same for any way to receive, which is told by flags whether it may wait.
    #[inline(always)]
    pub(crate) fn receive_until<T>(
        &self,
        until: Until,
        mut receive: impl FnMut(RecvFlags) -> io::Result<T>,
    ) -> io::Result<T> {
        let left = until.left;
        if left.is_zero() {
            return receive(RecvFlags::DONTWAIT).map_err(late);
        }
        self.receive_timeout.lower(self.fd.as_fd(), left)?;
        match receive(RecvFlags::empty()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.receive_on(until.deadline, receive)
            }
            done => done,
        }
    }

    /// The same when the kernel has woken this thread for nothing.
    #[cold]
    fn receive_on<T>(
        &self,
        deadline: Instant,
        mut receive: impl FnMut(RecvFlags) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            let left = time_left(deadline)?;
            if left < PRECISE_BELOW {
                return self.receive_precisely(Until { deadline, left }, receive);
            }
            self.receive_timeout.set_to(self.fd.as_fd(), left)?;
            match receive(RecvFlags::empty()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    /// The same for a wait that is short: by a call that takes nanoseconds.
    #[cold]
    fn receive_precisely<T>(
        &self,
        until: Until,
        mut receive: impl FnMut(RecvFlags) -> io::Result<T>,
    ) -> io::Result<T> {
        if until.left.is_zero() {
            return receive(RecvFlags::DONTWAIT).map_err(late);
        }
        loop {
            // An error is reported by the receive.
            let is_late = self.wait(Ready::READABLE, until.deadline).is_err();
            match receive(RecvFlags::DONTWAIT) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !is_late => {}
                received => return received.map_err(late),
            }
        }
    }

    /// Makes every receive that blocks give up after `limit` exactly; the kernel is told when it
    /// does not know yet.
    #[inline]
    pub(crate) fn give_up_after(&self, limit: Duration) -> io::Result<()> {
        Ok(self.receive_timeout.set_exactly(self.fd.as_fd(), limit)?)
    }

    /// Receives once; `WouldBlock` when nothing came.
    #[inline]
    pub(crate) fn recv(&self, room: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        let received = net::recv(&self.fd, &mut *room, flags);
        received.map(|(_, bytes)| bytes).map_err(of_receiving)
    }

    /// Sleeps until a receive has something to return, `limit` is over or a signal comes; says whether it is the
    /// first. What may have failed, the receive reports.
    pub(crate) fn sleep(&self, limit: Duration) -> bool {
        let mut polled = [PollFd::new(&self.fd, PollFlags::IN)];
        let limit = Timespec::try_from(limit).ok();
        poll(&mut polled, limit.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Waits until the socket is ready for something that is wanted.
    pub(crate) fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wanted.readable);
        flags.set(PollFlags::OUT, wanted.writable);
        let mut polled = [PollFd::new(&self.fd, flags)];
        poll_until(&mut polled, deadline)?;
        Ok(Ready::from(polled[0].revents()))
    }
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

impl AsFd for DeadlineSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for DeadlineSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
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

/// Returns whether the process or the system has no descriptors left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

pub(crate) fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(timed_out());
    }
    Ok(left)
}

fn late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => timed_out(),
        _ => error,
    }
}

/// Returns whether `error` says that a deadline passed. A connection that the kernel gave up, because the peer
/// acknowledged nothing, reports `TimedOut` as well, but has broken.
pub fn is_deadline(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}

fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
