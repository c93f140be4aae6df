//! Sockets that a program has connected itself.

use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::PathBuf;

#[cfg(unix)]
use rustix::net::SocketAddrUnix;
use rustix::net::sockopt::socket_type;
use rustix::net::{self, SocketType};

use crate::fd::OwnedFd;
use crate::system::DeadlineSocket;
use crate::{Address, Carrier, DatagramSocket, Stream, Transport};

/// A socket that was connected elsewhere, by what it carries.
#[derive(Debug)]
pub enum ConnectedSocket {
    /// Carries a stream of bytes: TCP, or a Unix socket.
    Stream(Stream),
    /// Carries datagrams: UDP.
    Datagram(Carrier),
}

impl ConnectedSocket {
    /// Returns the stream.
    ///
    /// # Errors
    /// `InvalidInput` if it carries datagrams.
    pub fn into_stream(self) -> io::Result<Stream> {
        match self {
            Self::Stream(stream) => Ok(stream),
            Self::Datagram(_) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the socket carries datagrams, and no stream",
            )),
        }
    }

    /// Takes over a connected socket and returns it with the address of its peer, as one of ONC RPC. Reads and writes of
    /// the socket block from now on, and its receive timeout is unset.
    ///
    /// # Errors
    /// `NotConnected`; `InvalidInput` if it is neither TCP nor UDP nor a Unix stream socket, or no socket at all.
    pub fn new(fd: OwnedFd) -> io::Result<(Self, Address)> {
        let kind = socket_type(&fd)?;
        let peer = net::getpeername(&fd)?.ok_or(io::ErrorKind::NotConnected)?;
        let ip = SocketAddr::try_from(peer.clone()).ok();
        let socket = DeadlineSocket::adopt(fd)?;
        match (kind, ip) {
            (SocketType::STREAM, Some(peer)) => {
                let stream = Stream::tcp(socket, peer)?;
                let address = Address::of_socket(Transport::Tcp, peer);
                Ok((Self::Stream(stream), address))
            }
            #[cfg(unix)]
            (SocketType::STREAM, None) => {
                let address = Address::unix(path(SocketAddrUnix::try_from(peer)?));
                Ok((Self::Stream(Stream::unix(socket)), address))
            }
            (SocketType::DGRAM, Some(peer)) => {
                let carrier = Carrier::Udp(DatagramSocket::over(socket, peer)?);
                Ok((
                    Self::Datagram(carrier),
                    Address::of_socket(Transport::Udp, peer),
                ))
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the socket is neither TCP nor UDP nor a Unix stream socket",
            )),
        }
    }
}

/// Returns the path of a Unix socket; one that was never bound has an empty path.
#[cfg(unix)]
fn path(address: SocketAddrUnix) -> PathBuf {
    let path = address
        .path()
        .map(|path| path.to_string_lossy().into_owned());
    PathBuf::from(path.unwrap_or_default())
}
