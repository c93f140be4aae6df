//! A connection that carries a stream of bytes: TCP, a Unix domain socket or shared memory.

mod sending;

use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::Shutdown;
use rustix::net::sockopt::set_tcp_nodelay;

use crate::fd::{AsFd, OwnedFd};
use crate::happy_eyeballs::{connect_first, interleave_families};
use crate::socket::{Ready, is_hung_up};
use crate::system::{DeadlineSocket, ShmConnection, ShmStream, User, connect_path};
use crate::unix_wait::UnixWait;
use crate::{Address, Endpoint, Host, Liveness, PairedSocket, Transport, Until};

/// A connected stream. Threads may send and receive at the same time; one thread at a time receives,
/// and one at a time sends.
#[derive(Debug)]
pub struct Stream(StreamKind);

#[derive(Debug)]
enum StreamKind {
    Socket {
        socket: DeadlineSocket,
        family: SocketFamily,
    },
    Shm(ShmConnection),
}

/// State that depends on the address family of a socket.
#[derive(Debug)]
enum SocketFamily {
    Tcp {
        peer: SocketAddr,
    },
    Unix {
        wait: UnixWait,
        /// The user of the peer's process, once the kernel was asked.
        user: OnceLock<Option<User>>,
    },
    /// One of a pair of sockets, through which this process relays what goes another way.
    Relayed {
        transport: Transport,
        peer: SocketAddr,
        thread: RelayThread,
    },
}

/// The thread that relays a stream, if there is one for it alone. It ends behind the socket, which is dropped before.
#[derive(Debug, Default)]
struct RelayThread(Option<JoinHandle<()>>);

impl Drop for RelayThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // One that has panicked relays nothing any more, either.
            let _ = thread.join();
        }
    }
}

impl SocketFamily {
    /// Passes on what a send or a receive returns, the number of bytes.
    #[inline]
    fn note(&self, moved: io::Result<usize>) -> io::Result<usize> {
        if let (Self::Unix { wait, .. }, Ok(bytes)) = (self, &moved) {
            wait.moved(*bytes);
        }
        moved
    }

    /// Returns whether a receiver that is about to sleep should poll first.
    #[inline]
    fn polls(&self) -> bool {
        match self {
            Self::Tcp { .. } | Self::Relayed { .. } => false,
            Self::Unix { wait, .. } => wait.polls(),
        }
    }
}

impl Stream {
    /// Connects to `address`, TCP, Unix or shared memory, and tries the addresses of a host side by side, as RFC 8305
    /// says. Names are resolved first, in the resolver's own time.
    ///
    /// # Errors
    /// `InvalidInput` for an address without a port or of another transport, `TimedOut` at the
    /// deadline, otherwise what the attempts reported, all of them if there were several: of shared memory
    /// `PermissionDenied` if the server refuses, and `InvalidData` if what it hands over cannot be used.
    pub fn connect(address: &Address, deadline: Instant) -> io::Result<Self> {
        match (address.transport(), address.endpoint()) {
            (Transport::Tcp, Endpoint::Host(host)) => Self::connect_host(host, deadline),
            (Transport::Unix, Endpoint::Path(path)) => connect_path(path, deadline).map(Self::unix),
            (Transport::Shm, Endpoint::Path(path)) => {
                ShmStream::connect(path, deadline).map(Self::shm)
            }
            _ => Err(not_a_stream(address)),
        }
    }

    fn connect_host(host: &Host, deadline: Instant) -> io::Result<Self> {
        Self::connect_first(&interleave_families(host.resolve()?), deadline)
    }

    /// Connects by TCP to the first of `addresses` that takes the connection, in the way of RFC 8305.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_first(addresses: &[SocketAddr], deadline: Instant) -> io::Result<Self> {
        let (socket, peer) = connect_first(addresses, deadline)?;
        Self::tcp(socket, peer)
    }

    /// Creates the stream of a socket that is connected to `peer` by TCP.
    pub(crate) fn tcp(socket: DeadlineSocket, peer: SocketAddr) -> io::Result<Self> {
        // A reply must not wait for the acknowledgement of the one before it.
        set_tcp_nodelay(&socket, true)?;
        Ok(Self(StreamKind::Socket {
            socket,
            family: SocketFamily::Tcp { peer },
        }))
    }

    /// Creates the stream of a connected Unix socket.
    pub(crate) fn unix(socket: DeadlineSocket) -> Self {
        Self(StreamKind::Socket {
            socket,
            family: SocketFamily::Unix {
                wait: UnixWait::default(),
                user: OnceLock::new(),
            },
        })
    }

    /// Creates the stream of one of a [pair](crate::socket_pair) of sockets, through which this process relays what goes
    /// to `peer` and comes from there by `transport`.
    ///
    /// # Errors
    /// What the system reports.
    pub fn relayed(
        socket: PairedSocket,
        transport: Transport,
        peer: SocketAddr,
    ) -> io::Result<Self> {
        Ok(Self(StreamKind::Socket {
            socket: DeadlineSocket::adopt(socket.into())?,
            family: SocketFamily::Relayed {
                transport,
                peer,
                thread: RelayThread::default(),
            },
        }))
    }

    /// Returns the same stream, which is relayed by `thread`: when the stream is dropped, that is waited for. The thread
    /// has to end as soon as the other of the pair is closed. Nothing changes of a stream that is not
    /// [relayed](Self::relayed).
    #[must_use]
    pub fn relayed_by(mut self, thread: JoinHandle<()>) -> Self {
        if let StreamKind::Socket {
            family: SocketFamily::Relayed { thread: place, .. },
            ..
        } = &mut self.0
        {
            place.0 = Some(thread);
        }
        self
    }

    /// Creates the stream of a connection in shared memory.
    pub(crate) fn shm(shm: ShmStream) -> Self {
        Self(StreamKind::Shm(shm.into()))
    }

    /// Returns the transport that carries the bytes.
    pub fn transport(&self) -> Transport {
        match &self.0 {
            StreamKind::Socket { family, .. } => match family {
                SocketFamily::Tcp { .. } => Transport::Tcp,
                SocketFamily::Unix { .. } => Transport::Unix,
                SocketFamily::Relayed { transport, .. } => *transport,
            },
            StreamKind::Shm(_) => Transport::Shm,
        }
    }

    /// Returns whether it is a socket, of which the system tells all that comes and when the peer is gone. Memory shows
    /// that only to an end that has [parked](Self::park), or looks.
    pub fn is_socket(&self) -> bool {
        match &self.0 {
            StreamKind::Socket { .. } => true,
            StreamKind::Shm(_) => false,
        }
    }

    /// Returns the address of the peer; none on a Unix socket and of shared memory.
    pub fn peer(&self) -> Option<SocketAddr> {
        match &self.0 {
            StreamKind::Socket {
                family: SocketFamily::Tcp { peer } | SocketFamily::Relayed { peer, .. },
                ..
            } => Some(*peer),
            StreamKind::Socket { .. } | StreamKind::Shm(_) => None,
        }
    }

    /// Returns the same stream, of which the user of the peer is not known: a process that relays another connection
    /// through a pair of sockets is not the peer.
    #[must_use]
    pub fn without_user(self) -> Self {
        if let StreamKind::Socket {
            family: SocketFamily::Unix { user, .. },
            ..
        } = &self.0
        {
            user.get_or_init(|| None);
        }
        self
    }

    /// Returns the user of the peer's process when it connected or listened; none over TCP.
    pub fn user(&self) -> Option<User> {
        match &self.0 {
            StreamKind::Socket { socket, family } => match family {
                SocketFamily::Tcp { .. } | SocketFamily::Relayed { .. } => None,
                SocketFamily::Unix { user, .. } => {
                    *user.get_or_init(|| User::at(socket.as_fd()).ok())
                }
            },
            StreamKind::Shm(shm) => Some(shm.user()),
        }
    }

    /// Receives what is there; 0 is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there.
    #[inline]
    pub fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            StreamKind::Socket { socket, family } => family.note(socket.try_recv(room)),
            StreamKind::Shm(shm) => shm.try_recv(room),
        }
    }

    /// Looks `times` times whether something comes, and ends when it does, if looking is no system call.
    /// Where it is one, a receive takes no longer, and this does nothing.
    #[inline]
    pub fn look(&self, times: u32) {
        match &self.0 {
            StreamKind::Socket { .. } => {}
            StreamKind::Shm(shm) => shm.look(times),
        }
    }

    /// Receives, waiting `until` a deadline for the first byte; 0 is the end of the stream.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    #[inline]
    pub fn recv_until(&self, room: &mut [u8], until: impl Into<Until>) -> io::Result<usize> {
        let until = until.into();
        match &self.0 {
            StreamKind::Socket { socket, family } => {
                let until = match family.polls() && !socket.sleep(until.left) {
                    true => Until::from(until.deadline()),
                    false => until,
                };
                family.note(socket.recv_until(room, until))
            }
            StreamKind::Shm(shm) => shm.recv_until(room, until.deadline()),
        }
    }

    /// Receives, waiting for the first byte no longer than `limit`, or a little less when a signal
    /// comes; 0 is the end of the stream. One system call, as long as the limit stays the same, and two on a Unix
    /// socket after long messages.
    ///
    /// # Errors
    /// `WouldBlock` when nothing came.
    #[inline]
    pub fn recv_within(&self, room: &mut [u8], limit: Duration) -> io::Result<usize> {
        match &self.0 {
            StreamKind::Socket { socket, family } => {
                if family.polls() {
                    socket.sleep(limit);
                    return family.note(socket.try_recv(room));
                }
                socket.give_up_after(limit)?;
                family.note(socket.recv(room))
            }
            StreamKind::Shm(shm) => shm.recv_within(room, limit),
        }
    }

    /// Waits until the stream is ready for something that is `wanted`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        match &self.0 {
            StreamKind::Socket { socket, .. } => socket.wait(wanted, deadline),
            StreamKind::Shm(shm) => shm.wait(wanted, deadline),
        }
    }

    /// Says that this end does not receive before the descriptor is readable, and returns whether it will be when
    /// something comes: not if something is there that the descriptor does not show. To be called before a poller waits
    /// for the descriptor.
    pub fn park(&self) -> bool {
        match &self.0 {
            StreamKind::Socket { .. } => true,
            StreamKind::Shm(shm) => shm.park(),
        }
    }

    /// Returns a descriptor that becomes readable when there is room to send and a sender [waits](Self::park_sender)
    /// for that. None if the stream's own descriptor becomes writable, as that of a socket does.
    ///
    /// # Errors
    /// The process has too many descriptors.
    pub fn room_notifier(&self) -> io::Result<Option<OwnedFd>> {
        match &self.0 {
            StreamKind::Socket { .. } => Ok(None),
            StreamKind::Shm(shm) => shm.room_notifier().map(Some),
        }
    }

    /// Says that this end does not send before the [notifier](Self::room_notifier) is readable, and returns whether it
    /// will be when there is room: not if there is.
    pub fn park_sender(&self) -> bool {
        match &self.0 {
            StreamKind::Socket { .. } => true,
            StreamKind::Shm(shm) => shm.park_sender(),
        }
    }

    /// Empties the [notifier](Self::room_notifier).
    pub fn take_in_room(&self) {
        match &self.0 {
            StreamKind::Socket { .. } => {}
            StreamKind::Shm(shm) => shm.take_in_room(),
        }
    }

    /// Makes sure that the next receive reports a peer that is gone. A socket's always does; memory shows a peer that
    /// was killed only to a thread that sleeps, or looks for long.
    pub fn refresh(&self) {
        match &self.0 {
            StreamKind::Socket { .. } => {}
            StreamKind::Shm(shm) => shm.refresh(),
        }
    }

    /// Returns whether the peer is known to be gone, and has not ended its sending side alone: its Unix socket is
    /// closed, the connection was reset, or its process ended that shared the memory. Over TCP a peer that has closed
    /// its socket looks like one that has ended its sending side, until something is sent to it.
    pub fn is_hung_up(&self) -> bool {
        is_hung_up(self)
    }

    /// Has the kernel find out when the peer is gone without a word. Only TCP needs that: the other streams end with
    /// the process at their other end.
    ///
    /// # Errors
    /// What the system reports.
    pub fn set_liveness(&self, liveness: Liveness) -> io::Result<()> {
        match &self.0 {
            StreamKind::Socket {
                socket,
                family: SocketFamily::Tcp { .. },
            } => liveness.apply(socket.as_fd()),
            StreamKind::Socket { .. } | StreamKind::Shm(_) => Ok(()),
        }
    }

    /// Tells the peer that nothing more will be sent.
    ///
    /// # Errors
    /// `NotConnected` when the connection is gone.
    pub fn shutdown_send(&self) -> io::Result<()> {
        match &self.0 {
            StreamKind::Socket { socket, .. } => socket.shutdown(Shutdown::Write),
            StreamKind::Shm(shm) => {
                shm.shutdown_send();
                Ok(())
            }
        }
    }

    /// Receives nothing more but what is already there; a thread that waits in a receive wakes up.
    ///
    /// # Errors
    /// `NotConnected` when the connection is gone.
    pub fn shutdown_recv(&self) -> io::Result<()> {
        match &self.0 {
            StreamKind::Socket { socket, .. } => socket.shutdown(Shutdown::Read),
            StreamKind::Shm(shm) => shm.shutdown_recv(),
        }
    }

    /// Ends the connection in both directions; a thread that waits in a receive wakes up.
    ///
    /// # Errors
    /// `NotConnected` when the connection is gone.
    pub fn shutdown(&self) -> io::Result<()> {
        match &self.0 {
            StreamKind::Socket { socket, .. } => socket.shutdown(Shutdown::Both),
            StreamKind::Shm(shm) => shm.shutdown(),
        }
    }
}

impl_as_fd!(Stream, self => match &self.0 {
    StreamKind::Socket { socket, .. } => socket.as_fd(),
    StreamKind::Shm(shm) => shm.as_fd(),
});

/// Tries the addresses of `host` in the resolver's order; the last failure is reported.
pub(crate) fn first_that_works<T>(
    host: &Host,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in host.resolve()? {
        match attempt(address) {
            Ok(done) => return Ok(done),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

pub(crate) fn not_a_stream(address: &Address) -> io::Error {
    let message = format!("{address} does not lead to a stream: use tcp://, unix:// or shm://");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Returns the error of a server that is to listen at an address of one protocol.
pub(crate) fn serves_both(address: &Address) -> io::Error {
    let onc = address.clone().over_onc();
    let hint = onc.map_or_else(String::new, |onc| format!(": listen at {onc}"));
    let message = format!("a server has one address for both protocols{hint}");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
