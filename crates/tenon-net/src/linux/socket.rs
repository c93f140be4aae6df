//! What a connected stream and a datagram socket have in common: sending and receiving bytes,
//! either at once or until a deadline.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_error};
use rustix::net::{
    self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrUnix,
    SocketFlags, SocketType, addr::SocketAddrArg,
};

use super::timeout::ReceiveTimeout;
use crate::socket::{Ready, ReceiveMode, of_receiving, time_left, timed_out, wait_for};
use crate::until::Until;

/// Waits that are shorter sleep in `ppoll`. `SO_RCVTIMEO` is too coarse for them; for longer ones the last of their time
/// goes that way.
const PRECISE_BELOW: Duration = Duration::from_millis(32);

/// The time by which `SO_RCVTIMEO` may wake too late: it counts in ticks of the kernel, of up to 10 ms, and takes up to two.
const COARSE_LATENESS: Duration = Duration::from_millis(20);

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

    /// Takes over a socket that was opened elsewhere: its reads and writes block from now on, and without limit.
    pub(crate) fn adopt(fd: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&fd, false)?;
        set_socket_timeout(&fd, Timeout::Recv, None)?;
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

    /// Begins to connect by TCP. The socket does not block until that is [finished](Self::finish_connect).
    pub(crate) fn begin_connect(&self, to: SocketAddr) -> io::Result<()> {
        ioctl_fionbio(&self.fd, true)?;
        match net::connect(&self.fd, &to) {
            // A signal ends the call and not the connecting.
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in that an attempt to connect has ended.
    pub(crate) fn finish_connect(&self) -> io::Result<()> {
        socket_error(&self.fd)??;
        Ok(ioctl_fionbio(&self.fd, false)?)
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

    /// Receives what is there of a stream.
    #[inline]
    pub(crate) fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        self.recv_with(room, RecvFlags::DONTWAIT)
    }

    /// Receives, waiting `until` the deadline: `TimedOut` then, by less than a millisecond late unless the wait may be
    /// later. What is already there is returned even behind the deadline.
    #[inline]
    pub(crate) fn recv_until(&self, room: &mut [u8], until: Until) -> io::Result<usize> {
        self.receive_until(until, |mode| self.recv_with(room, flags(mode)))
    }

    /// The same for any way to receive, which is told whether it may wait.
    #[inline(always)]
    pub(crate) fn receive_until<T>(
        &self,
        until: Until,
        mut receive: impl FnMut(ReceiveMode) -> io::Result<T>,
    ) -> io::Result<T> {
        let left = until.left;
        if left.is_zero() {
            return receive(ReceiveMode::NonBlocking).map_err(late);
        }
        let Some(coarse) = coarse_part(until) else {
            return self.receive_precisely(until, receive);
        };
        self.receive_timeout.lower(self.fd.as_fd(), coarse)?;
        match receive(ReceiveMode::Blocking) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.receive_on(until, receive)
            }
            done => done,
        }
    }

    /// The same when the kernel has woken this thread for nothing.
    #[cold]
    fn receive_on<T>(
        &self,
        until: Until,
        mut receive: impl FnMut(ReceiveMode) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            let until = until.seen_now();
            if until.is_over() {
                return Err(timed_out());
            }
            let Some(coarse) = coarse_part(until) else {
                return self.receive_precisely(until, receive);
            };
            self.receive_timeout.set_to(self.fd.as_fd(), coarse)?;
            match receive(ReceiveMode::Blocking) {
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
        mut receive: impl FnMut(ReceiveMode) -> io::Result<T>,
    ) -> io::Result<T> {
        if until.left.is_zero() {
            return receive(ReceiveMode::NonBlocking).map_err(late);
        }
        loop {
            // An error is reported by the receive.
            let is_late = self.wait(Ready::READABLE, until.deadline()).is_err();
            match receive(ReceiveMode::NonBlocking) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !is_late => {}
                received => return received.map_err(late),
            }
        }
    }

    /// Ends a direction, or both. A thread that waits in a receive wakes up.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        Ok(net::shutdown(&self.fd, how)?)
    }

    /// Makes every receive that blocks give up after `limit` exactly; the kernel is told when it
    /// does not know yet.
    #[inline]
    pub(crate) fn give_up_after(&self, limit: Duration) -> io::Result<()> {
        Ok(self.receive_timeout.set_exactly(self.fd.as_fd(), limit)?)
    }

    /// Receives once of a stream; `WouldBlock` when nothing came within the limit.
    #[inline]
    pub(crate) fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        self.recv_with(room, RecvFlags::empty())
    }

    /// Receives once; `WouldBlock` when nothing came.
    #[inline]
    pub(crate) fn recv_with(&self, room: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
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
        wait_for(&self.fd, wanted, deadline)
    }
}

#[cfg(feature = "udp")]
impl DeadlineSocket {
    /// Sends one datagram.
    pub(crate) fn try_send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        retry_on_intr(|| net::sendto(&self.fd, bytes, flags, &to))?;
        Ok(())
    }

    /// Receives one datagram, and returns its own length even if it does not fit.
    #[inline]
    pub(crate) fn recv_datagram(&self, room: &mut [u8], mode: ReceiveMode) -> io::Result<usize> {
        self.recv_with(room, RecvFlags::TRUNC | flags(mode))
    }

    /// Receives one datagram, and returns its own length even if it does not fit, and its sender.
    pub(crate) fn recv_datagram_from(
        &self,
        room: &mut [u8],
        mode: ReceiveMode,
    ) -> io::Result<(usize, SocketAddr)> {
        let flags = RecvFlags::TRUNC | flags(mode);
        let received = net::recvfrom(&self.fd, &mut *room, flags);
        let (_, length, from) = received.map_err(of_receiving)?;
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        Ok((length, SocketAddr::try_from(from)?))
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

/// Returns the longest part of a wait that may be slept through by the kernel's own limit; `None` if it is to end
/// precisely, soon.
#[inline]
fn coarse_part(until: Until) -> Option<Duration> {
    match until.may_be_late() {
        true => Some(until.left),
        false if until.left < PRECISE_BELOW => None,
        false => Some(until.left - COARSE_LATENESS),
    }
}

fn late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => timed_out(),
        _ => error,
    }
}

/// Connects to the Unix socket at `path`.
pub(crate) fn connect_path(path: &Path, deadline: Instant) -> io::Result<DeadlineSocket> {
    let socket = DeadlineSocket::open(AddressFamily::UNIX, SocketType::STREAM)?;
    socket.connect(&SocketAddrUnix::new(path)?, deadline)?;
    Ok(socket)
}

/// Returns the flags of a receive that waits or does not.
#[inline]
pub(super) fn flags(mode: ReceiveMode) -> RecvFlags {
    match mode {
        ReceiveMode::NonBlocking => RecvFlags::DONTWAIT,
        ReceiveMode::Blocking => RecvFlags::empty(),
    }
}

/// Returns whether the process or the system has no descriptors left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}
