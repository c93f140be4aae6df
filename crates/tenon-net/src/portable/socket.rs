//! What a connected stream and a datagram socket have in common: sending and receiving bytes, either at once or until a
//! deadline.
//!
//! These sockets never block; a receive that may wait polls first. That is a system call more than on Linux, where a
//! flag or a limit of the socket says how long a call waits.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{socket_error, socket_type};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketType};
use socket2::{Domain, SockRef, Socket, Type};

use crate::fd::OwnedFd;
use crate::socket::{Ready, ReceiveMode, of_receiving, timed_out, wait_for};
use crate::until::Until;

/// Longest wait of a receive, a day in nanoseconds; its caller goes on waiting.
const LIMIT_MAX: u64 = 24 * 3600 * 1_000_000_000;

/// Interval at which a receive of datagrams looks whether the socket was shut down.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A socket that does not block.
#[derive(Debug)]
pub(crate) struct DeadlineSocket {
    fd: OwnedFd,
    /// Time that a receive waits, in nanoseconds.
    limit: AtomicU64,
    is_datagram: bool,
    /// Nothing more is received.
    is_shut: AtomicBool,
}

impl DeadlineSocket {
    pub(crate) fn open(family: AddressFamily, kind: SocketType) -> io::Result<Self> {
        let domain = match family {
            AddressFamily::INET6 => Domain::IPV6,
            _ => Domain::IPV4,
        };
        let kind = match kind {
            SocketType::DGRAM => Type::DGRAM,
            _ => Type::STREAM,
        };
        Self::adopt(Socket::new(domain, kind, None)?.into())
    }

    /// Takes over a socket that was opened elsewhere: its own reads and writes do not block from now on.
    pub(crate) fn adopt(fd: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&fd, true)?;
        Ok(Self {
            is_datagram: socket_type(&fd)? == SocketType::DGRAM,
            fd,
            limit: AtomicU64::new(LIMIT_MAX),
            is_shut: AtomicBool::new(false),
        })
    }

    /// Connects, and waits for that until `deadline`.
    pub(crate) fn connect(&self, to: &SocketAddr, deadline: Instant) -> io::Result<()> {
        self.begin_connect(*to)?;
        self.wait(Ready::WRITABLE, deadline)?;
        self.finish_connect()
    }

    /// Begins to connect.
    pub(crate) fn begin_connect(&self, to: SocketAddr) -> io::Result<()> {
        match net::connect(&self.fd, &to) {
            // Windows says that it would block.
            Ok(()) | Err(Errno::INPROGRESS | Errno::WOULDBLOCK | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in that an attempt to connect has ended.
    pub(crate) fn finish_connect(&self) -> io::Result<()> {
        Ok(socket_error(&self.fd)??)
    }

    pub(crate) fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.sent(|| Ok(net::send(&self.fd, bytes, SendFlags::empty())?))
    }

    pub(crate) fn try_send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.sent(|| SockRef::from(&self.fd).send_vectored(pieces))
    }

    /// Sends one datagram.
    pub(crate) fn try_send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.sent(|| Ok(net::sendto(&self.fd, bytes, SendFlags::empty(), &to)?))?;
        Ok(())
    }

    fn sent(&self, mut send: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match send() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => {
                    if sent.is_err() {
                        self.note_use(Ready::WRITABLE);
                    }
                    return sent;
                }
            }
        }
    }

    /// Receives what is there of a stream.
    pub(crate) fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        let received = net::recv(&self.fd, &mut *room, RecvFlags::empty());
        self.note_use(Ready::READABLE);
        received.map(|(_, bytes)| bytes).map_err(of_receiving)
    }

    /// Receives once of a stream; `WouldBlock` when nothing came within the limit.
    pub(crate) fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        self.wait_for_limit(ReceiveMode::Blocking);
        self.try_recv(room)
    }

    /// Receives one datagram. Of one that does not fit the rest is lost.
    pub(crate) fn recv_datagram(&self, room: &mut [u8], mode: ReceiveMode) -> io::Result<usize> {
        self.wait_for_limit(mode);
        match self.try_recv(room) {
            Err(error) if self.is_shut(&error) => Ok(0),
            received => received.map_err(refused),
        }
    }

    /// Receives one datagram and its sender. Of one that does not fit the rest is lost.
    pub(crate) fn recv_datagram_from(
        &self,
        room: &mut [u8],
        mode: ReceiveMode,
    ) -> io::Result<(usize, SocketAddr)> {
        self.wait_for_limit(mode);
        let received = net::recvfrom(&self.fd, &mut *room, RecvFlags::empty());
        self.note_use(Ready::READABLE);
        let (_, length, from) = received.map_err(|error| refused(of_receiving(error)))?;
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        Ok((length, SocketAddr::try_from(from)?))
    }

    /// Receives of a stream, waiting `until` the deadline: `TimedOut` then. What is already there is returned even
    /// behind the deadline.
    pub(crate) fn recv_until(&self, room: &mut [u8], until: Until) -> io::Result<usize> {
        self.receive_until(until, |_| self.try_recv(room))
    }

    /// The same for any way to receive, which is told that it may not wait.
    pub(crate) fn receive_until<T>(
        &self,
        until: Until,
        mut receive: impl FnMut(ReceiveMode) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match receive(ReceiveMode::NonBlocking) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
            if Instant::now() >= until.deadline() {
                return Err(timed_out());
            }
            // An error is reported by the receive, and a deadline found behind it.
            let _ = self.wait(Ready::READABLE, until.deadline().min(self.next_look()));
        }
    }

    /// Returns when a receive that waits is to look whether the socket was shut down, which no poll tells of one for
    /// datagrams.
    fn next_look(&self) -> Instant {
        let limit = match self.is_datagram {
            true => LOOK_AGAIN,
            false => Duration::from_nanos(LIMIT_MAX),
        };
        Instant::now() + limit
    }

    /// Ends a direction, or both.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if !matches!(how, Shutdown::Write) {
            self.is_shut.store(true, Ordering::Relaxed);
        }
        Ok(net::shutdown(&self.fd, how)?)
    }

    /// Returns whether nothing is received because the socket was shut down.
    fn is_shut(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::WouldBlock && self.is_shut.load(Ordering::Relaxed)
    }

    /// Makes every receive that waits give up after `limit`.
    pub(crate) fn give_up_after(&self, limit: Duration) -> io::Result<()> {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(LIMIT_MAX);
        self.limit.store(limit.min(LIMIT_MAX), Ordering::Relaxed);
        Ok(())
    }

    fn wait_for_limit(&self, mode: ReceiveMode) {
        if mode == ReceiveMode::Blocking {
            self.sleep(Duration::from_nanos(self.limit.load(Ordering::Relaxed)));
        }
    }

    /// Sleeps until a receive has something to return or `limit` is over; says whether it is the first. What may have
    /// failed, the receive reports.
    pub(crate) fn sleep(&self, limit: Duration) -> bool {
        self.wait(Ready::READABLE, Instant::now() + limit).is_ok()
    }

    /// Waits until the socket is ready for something that is wanted.
    pub(crate) fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        wait_for(&self.fd, wanted, deadline)
    }

    /// Has a poller that is told of each event once tell of the next.
    pub(crate) fn note_use(&self, ready: Ready) {
        #[cfg(any(windows, tenon_portable))]
        super::poller::rearm(&self.fd, ready);
        #[cfg(not(any(windows, tenon_portable)))]
        let _ = ready;
    }
}

#[cfg(any(windows, tenon_portable))]
impl Drop for DeadlineSocket {
    fn drop(&mut self) {
        super::poller::forget(&self.fd);
    }
}

impl_as_fd!(DeadlineSocket, self => self.fd.as_fd());

/// Windows says that a connection was reset where a datagram met a closed port.
fn refused(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::ConnectionReset => io::ErrorKind::ConnectionRefused.into(),
        _ => error,
    }
}
