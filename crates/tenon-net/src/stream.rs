//! A connection that carries a stream of bytes: TCP or a Unix domain socket.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{self, AddressFamily, RecvFlags, Shutdown, SocketAddrUnix, SocketType};

use crate::socket::{Ready, Socket};
use crate::{Address, Host, Transport};

/// When a message is too long to be sent in one piece: a sleeping peer takes longer to wake up than
/// a second system call does. The limits are those from where on `bench/run rpc block` is faster.
#[derive(Debug, Clone, Copy)]
struct Long {
    /// A longer message is a long one.
    than: usize,
    /// What goes first of it: enough for the peer to begin with.
    head: usize,
}

impl Long {
    const TCP: Self = Self {
        than: 8 << 10,
        head: 4 << 10,
    };

    /// A system call takes less time here.
    const UNIX: Self = Self {
        than: 4000,
        head: 2 << 10,
    };
}

/// A connected stream socket. Threads may send and receive at the same time; one thread at a
/// time receives with a deadline.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    peer: Option<SocketAddr>,
}

impl Stream {
    /// Connects to `address`, TCP or Unix, and tries every address of a host in turn. Names are
    /// resolved first, in the resolver's own time.
    ///
    /// # Errors
    /// `InvalidInput` for an address without a port or of another transport, `TimedOut` at the
    /// deadline, otherwise what the last attempt reported.
    pub fn connect(address: &Address, deadline: Instant) -> io::Result<Self> {
        match address {
            Address::Tcp(host) | Address::LeanTcp(host) => Self::connect_host(host, deadline),
            Address::Unix(path) | Address::LeanUnix(path) => Self::connect_path(path, deadline),
            Address::Udp(_) => Err(not_a_stream(address)),
        }
    }

    fn connect_host(host: &Host, deadline: Instant) -> io::Result<Self> {
        first_that_works(host, |peer| {
            let socket = Socket::open(family(peer), SocketType::STREAM)?;
            socket.connect(&peer, deadline)?;
            refuse_self(&socket, peer)?;
            Self::tcp(socket, peer)
        })
    }

    fn connect_path(path: &Path, deadline: Instant) -> io::Result<Self> {
        let socket = Socket::open(AddressFamily::UNIX, SocketType::STREAM)?;
        socket.connect(&SocketAddrUnix::new(path)?, deadline)?;
        Ok(Self { socket, peer: None })
    }

    fn tcp(socket: Socket, peer: SocketAddr) -> io::Result<Self> {
        // A reply must not wait for the acknowledgement of the one before it.
        set_tcp_nodelay(&socket, true)?;
        Ok(Self {
            socket,
            peer: Some(peer),
        })
    }

    /// A connection that a listener accepted; `peer` is none on a Unix socket.
    pub(crate) fn accepted(fd: OwnedFd, peer: Option<SocketAddr>) -> io::Result<Self> {
        let socket = Socket::from(fd);
        match peer {
            Some(peer) => Self::tcp(socket, peer),
            None => Ok(Self { socket, peer }),
        }
    }

    /// What carries the bytes.
    pub fn transport(&self) -> Transport {
        match self.peer {
            Some(_) => Transport::Tcp,
            None => Transport::Unix,
        }
    }

    /// Where the peer is; none on a Unix socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Sends as many of `bytes` as fit at once and returns their number.
    ///
    /// # Errors
    /// `WouldBlock` when nothing fits; `BrokenPipe` or `ConnectionReset` when the peer is gone.
    /// No signal is raised.
    #[inline]
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.try_send(bytes)
    }

    /// Sends as much as fits at once of what is left of `message`, of which `sent` bytes are sent,
    /// and returns the number of bytes. A long message begins with a short piece: it wakes the
    /// peer, on another core, while this one still copies the rest.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    ///
    /// # Panics
    /// If `message` has less than `sent` bytes.
    #[inline]
    pub fn try_send_from(&self, message: &[u8], sent: usize) -> io::Result<usize> {
        let long = match self.peer {
            Some(_) => Long::TCP,
            None => Long::UNIX,
        };
        match sent == 0 && message.len() > long.than {
            true => self.try_send(&message[..long.head]),
            false => self.try_send(&message[sent..]),
        }
    }

    /// Sends as much as fits at once of `pieces`, one behind the other, and returns the number of
    /// bytes.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    #[inline]
    pub fn try_send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.try_send_pieces(pieces)
    }

    /// Receives what is there; 0 is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there.
    #[inline]
    pub fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        self.socket.try_recv(room, RecvFlags::empty())
    }

    /// Receives, waiting until `deadline` for the first byte; 0 is the end of the stream.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    #[inline]
    pub fn recv_until(&self, room: &mut [u8], deadline: Instant) -> io::Result<usize> {
        self.socket.recv_until(room, RecvFlags::empty(), deadline)
    }

    /// Receives, waiting for the first byte no longer than `limit`, or a little less when a signal
    /// comes; 0 is the end of the stream. One system call, as long as the limit stays the same.
    ///
    /// # Errors
    /// `WouldBlock` when nothing came.
    #[inline]
    pub fn recv_within(&self, room: &mut [u8], limit: Duration) -> io::Result<usize> {
        self.socket.give_up_after(limit)?;
        self.socket.recv(room, RecvFlags::empty())
    }

    /// Waits until the socket is ready for something that is `wanted`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        self.socket.wait(wanted, deadline)
    }

    /// Tells the peer that nothing more will be sent.
    ///
    /// # Errors
    /// `NotConnected` when the connection is gone.
    pub fn shutdown_send(&self) -> io::Result<()> {
        Ok(net::shutdown(&self.socket, Shutdown::Write)?)
    }

    /// Receives nothing more but what is already there; whoever waits in a receive wakes up.
    ///
    /// # Errors
    /// `NotConnected` when the connection is gone.
    pub fn shutdown_recv(&self) -> io::Result<()> {
        Ok(net::shutdown(&self.socket, Shutdown::Read)?)
    }

    /// Ends the connection in both directions; whoever waits in a receive wakes up.
    ///
    /// # Errors
    /// `NotConnected` when the connection is gone.
    pub fn shutdown(&self) -> io::Result<()> {
        Ok(net::shutdown(&self.socket, Shutdown::Both)?)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// A port of this machine that nobody listens on may be the very one that the kernel lends to the
/// connecting socket, which then is connected to itself and occupies the server's port.
fn refuse_self(socket: &Socket, peer: SocketAddr) -> io::Result<()> {
    match SocketAddr::try_from(net::getsockname(socket)?) {
        Ok(own) if own == peer => Err(io::ErrorKind::ConnectionRefused.into()),
        _ => Ok(()),
    }
}

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

pub(crate) fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

pub(crate) fn not_a_stream(address: &Address) -> io::Error {
    let message = format!("{address} does not lead to a stream: use tcp:// or unix://");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
