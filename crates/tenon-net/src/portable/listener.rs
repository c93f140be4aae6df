//! Where streams come in: a listening TCP socket that never blocks.

use std::io;
use std::net::SocketAddr;

use rustix::net::{self, SocketType};
use socket2::SockRef;

use super::socket::DeadlineSocket;
use crate::absent::lacking;
use crate::accepted::{Accepted, BACKLOG};
use crate::socket::{Ready, family};
use crate::stream::{first_that_works, not_a_stream, serves_both};
use crate::{Address, Endpoint, Stream, Transport};

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: DeadlineSocket,
    address: Address,
}

impl Listener {
    /// Bytes of a ring in shared memory, which this system does not have.
    pub const RING_USUAL: usize = 0;

    /// Listens at `address`, TCP; port 0 takes any free port.
    ///
    /// # Errors
    /// `AddrInUse` when another process listens there; `Unsupported` for a Unix socket and for shared memory;
    /// `InvalidInput` for an address without a port, of another transport, or that names a protocol: which one a client
    /// speaks is found out when it connects.
    pub fn bind(address: &Address) -> io::Result<Self> {
        if address.chooses_lean() {
            return Err(serves_both(address));
        }
        match (address.transport(), address.endpoint()) {
            (Transport::Tcp, Endpoint::Host(host)) => first_that_works(host, Self::bind_tcp),
            (Transport::Unix | Transport::Shm, _) => Err(lacking("shm", address)),
            _ => Err(not_a_stream(address)),
        }
    }

    /// Listens as [`bind`](Self::bind) does: only files of Unix sockets have a mode.
    ///
    /// # Errors
    /// As of [`bind`](Self::bind).
    pub fn bind_with_mode(address: &Address, _: Option<u32>) -> io::Result<Self> {
        Self::bind(address)
    }

    fn bind_tcp(at: SocketAddr) -> io::Result<Self> {
        let socket = DeadlineSocket::open(family(at), SocketType::STREAM)?;
        // On Windows that would let another process take the port over.
        #[cfg(unix)]
        net::sockopt::set_socket_reuseaddr(&socket, true)?;
        net::bind(&socket, &at)?;
        net::listen(&socket, BACKLOG)?;
        let at = SocketAddr::try_from(net::getsockname(&socket)?)?;
        let address = Address::of_socket(Transport::Tcp, at);
        Ok(Self { socket, address })
    }

    /// Changes nothing: over TCP the user of a process is not known, and all are taken.
    #[must_use]
    pub fn only_users(self, _: &[u32], _: &[u8]) -> Self {
        self
    }

    /// Changes nothing: this system has no shared memory.
    #[must_use]
    pub fn with_rings_of(self, _: usize) -> Self {
        self
    }

    /// Returns the address of this listener, its real port included.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Changes nothing: over TCP the system would reset the connections that wait.
    pub fn stop_listening(&self) {}

    /// Takes a connection that waits; none if there is none.
    ///
    /// # Errors
    /// The system is out of memory, or of descriptors. The connection still waits then.
    pub fn try_accept(&self) -> io::Result<Option<Accepted>> {
        loop {
            let accepted = SockRef::from(&self.socket).accept();
            self.socket.note_use(Ready::READABLE);
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    // The peer is gone before it was accepted; another may wait behind it.
                    io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::Interrupted => continue,
                    _ => return Err(error),
                },
            };
            let peer = peer.as_socket().ok_or(io::ErrorKind::NotConnected)?;
            let socket = DeadlineSocket::adopt(socket.into())?;
            return Stream::tcp(socket, peer).map(|stream| Some(Accepted::Stream(stream)));
        }
    }
}

impl_as_fd!(Listener, self => self.socket.as_fd());
