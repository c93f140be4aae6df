//! A UDP socket: connected to one peer (client) or bound and open to all (server).

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{self, AddressFamily, Shutdown, SocketType};

use crate::packet_stamps::{FollowedPackets, PacketStamps};
use crate::socket::{Ready, ReceiveMode, family};
use crate::stream::first_that_works;
use crate::system::{DeadlineSocket, SegmentationOffload};
use crate::train::{PacketTrain, ReceivedTrain};
use crate::{Address, Host, Transport, Until};

/// A UDP socket. One thread at a time receives with a deadline.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: DeadlineSocket,
    segments: SegmentationOffload,
}

impl DatagramSocket {
    /// Most bytes that a datagram over IPv4 carries: 65,535 less the headers of IP and UDP.
    pub const SIZE_MAX: usize = 65_507;

    /// Room that any datagram fits in, whatever carries it.
    pub const RECEIVE_MAX: usize = 65_535;

    /// Opens a socket that sends to and receives from `address` alone. Nothing is sent yet.
    ///
    /// # Errors
    /// `InvalidInput` for an address without a port or of another transport.
    pub fn connect(address: &Address, deadline: Instant) -> io::Result<Self> {
        first_that_works(udp_host(address)?, |peer| Self::connect_to(peer, deadline))
    }

    /// Opens a socket that sends to and receives from `peer` alone. Nothing is sent yet.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn connect_to(peer: SocketAddr, deadline: Instant) -> io::Result<Self> {
        let socket = open(family(peer))?;
        socket.connect(&peer, deadline)?;
        Ok(Self::of(socket))
    }

    /// Takes over a socket that is connected to `peer`.
    ///
    /// # Errors
    /// None but where there is no UDP.
    pub(crate) fn over(socket: DeadlineSocket, _peer: SocketAddr) -> io::Result<Self> {
        Ok(Self::of(socket))
    }

    fn of(socket: DeadlineSocket) -> Self {
        Self {
            socket,
            segments: SegmentationOffload::default(),
        }
    }

    /// Opens a socket that receives from everybody at `address`; port 0 takes any free port.
    ///
    /// # Errors
    /// `InvalidInput` for an address without a port or of another transport, `AddrInUse`.
    pub fn bind(address: &Address) -> io::Result<Self> {
        first_that_works(udp_host(address)?, |at| {
            let socket = open(family(at))?;
            net::bind(&socket, &at)?;
            Ok(Self::of(socket))
        })
    }

    /// Returns the address of this socket, its real port included.
    ///
    /// # Errors
    /// Errors that the system reports.
    pub fn address(&self) -> io::Result<Address> {
        let at = SocketAddr::try_from(net::getsockname(&self.socket)?)?;
        Ok(Address::of_socket(crate::Transport::Udp, at))
    }

    /// Returns whether it is connected to an address that only this machine has.
    pub fn is_here(&self) -> bool {
        let peer = net::getpeername(&self.socket).ok().flatten();
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback())
    }

    /// Sends one datagram to the connected peer.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room; `ConnectionRefused` when an earlier datagram met a
    /// closed port; EMSGSIZE when the datagram is too large for the path.
    #[inline]
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<()> {
        self.socket.try_send(bytes).map(|_| ())
    }

    /// Sends one datagram to `to`.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    pub fn try_send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.try_send_to(bytes, to)
    }

    /// Sends a train to the connected peer, or to `to`, with one system call if the system knows how; the
    /// bytes of the packets that were sent.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send), if not even the first was sent.
    pub(crate) fn try_send_train(
        &self,
        train: PacketTrain<'_>,
        to: Option<SocketAddr>,
    ) -> io::Result<usize> {
        if train.bytes.len() <= Self::SIZE_MAX
            && self.segments.may_cut()
            && let Some(sent) = self.segments.send(&self.socket, train, to)
        {
            return sent;
        }
        let mut sent = 0;
        for packet in train.packets() {
            let step = match to {
                None => self.try_send(packet),
                Some(to) => self.try_send_to(packet, to),
            };
            match step {
                Ok(()) => sent += packet.len(),
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Datagrams of so many bytes are about to come one behind the other.
    pub(crate) fn expect_train(&self, size: usize) {
        if size * 2 <= Self::RECEIVE_MAX {
            self.segments.expect(&self.socket);
        }
    }

    /// Receives one datagram that is there, and its sender. The length is the datagram's own: if
    /// it is greater than `room`, the rest is lost.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there.
    #[inline]
    pub fn try_recv_from(&self, room: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.socket
            .recv_datagram_from(room, ReceiveMode::NonBlocking)
    }

    /// Receives one datagram and its sender as [`try_recv_from`](Self::try_recv_from) does, waiting
    /// no longer than `limit`. One system call, as long as the limit stays the same.
    ///
    /// # Errors
    /// `WouldBlock` when nothing came.
    #[inline]
    pub fn recv_from_within(
        &self,
        room: &mut [u8],
        limit: Duration,
    ) -> io::Result<(usize, SocketAddr)> {
        self.socket.give_up_after(limit)?;
        self.socket.recv_datagram_from(room, ReceiveMode::Blocking)
    }

    /// Receives one datagram that is there. The length is the datagram's own: if it is greater than
    /// `room`, the rest is lost.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; `ConnectionRefused` when a datagram met a closed port.
    #[inline]
    pub fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        self.socket.recv_datagram(room, ReceiveMode::NonBlocking)
    }

    /// Receives one datagram, waiting `until` a deadline. The length is the datagram's own: if it
    /// is greater than `room`, the rest is lost.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; `ConnectionRefused` when a datagram met a closed port.
    #[inline]
    pub fn recv_until(&self, room: &mut [u8], until: impl Into<Until>) -> io::Result<usize> {
        let receive = |mode| self.socket.recv_datagram(room, mode);
        self.socket.receive_until(until.into(), receive)
    }

    /// Has the kernel stamp these datagrams from now on.
    ///
    /// # Errors
    /// `Unsupported` on other systems than Linux; what the system reports.
    pub fn follow_packets(&self, followed: FollowedPackets) -> io::Result<()> {
        self.segments.follow(&self.socket, followed)
    }

    /// Returns the times of the datagram that was received last, and of the one that was sent last before it. Of those
    /// that were sent, each is returned once.
    pub fn take_stamps(&self) -> PacketStamps {
        self.segments.take_stamps(&self.socket)
    }

    /// Returns the times of the datagram that was sent last, once.
    pub fn take_sent_stamps(&self) -> PacketStamps {
        self.segments.take_sent(&self.socket)
    }

    /// Returns when the datagram that was received last came, as [`PacketStamps::received`].
    pub fn received_stamp(&self) -> Option<u64> {
        self.segments.received_stamp()
    }

    /// Returns whether several datagrams may be there together, or with their times: they are received by those of the methods below that
    /// know [`ReceivedTrain`].
    #[inline]
    pub(crate) fn expects_train(&self) -> bool {
        self.segments.is_expecting()
    }

    /// As [`try_recv_from`](Self::try_recv_from), several datagrams at a time; of a connected socket the
    /// sender may not be known.
    pub(crate) fn try_recv_train(
        &self,
        room: &mut [u8],
    ) -> io::Result<(ReceivedTrain, Option<SocketAddr>)> {
        self.segments
            .receive(&self.socket, room, ReceiveMode::NonBlocking)
    }

    /// As [`recv_until`](Self::recv_until), several datagrams at a time.
    pub(crate) fn recv_train_until(
        &self,
        room: &mut [u8],
        until: Until,
    ) -> io::Result<ReceivedTrain> {
        let received = self.socket.receive_until(until, |mode| {
            self.segments.receive(&self.socket, room, mode)
        });
        received.map(|(came, _)| came)
    }

    /// As [`recv_from_within`](Self::recv_from_within), several datagrams at a time.
    pub(crate) fn recv_train_within(
        &self,
        room: &mut [u8],
        limit: Duration,
    ) -> io::Result<(ReceivedTrain, Option<SocketAddr>)> {
        self.socket.give_up_after(limit)?;
        self.segments
            .receive(&self.socket, room, ReceiveMode::Blocking)
    }

    /// Waits until the socket is ready for something that is `wanted`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        self.socket.wait(wanted, deadline)
    }

    /// Wakes the thread that waits in a receive: it receives an empty datagram.
    ///
    /// # Errors
    /// `NotConnected` for a socket that was not connected.
    pub fn shutdown(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Both)
    }
}

impl_as_fd!(DatagramSocket, self => self.socket.as_fd());

/// Bytes of received datagrams that the system keeps until they are read. Where it may not be so much it is less.
const KEPT: usize = 1 << 20;

fn open(family: AddressFamily) -> io::Result<DeadlineSocket> {
    let socket = DeadlineSocket::open(family, SocketType::DGRAM)?;
    set_socket_recv_buffer_size(&socket, KEPT)?;
    Ok(socket)
}

fn udp_host(address: &Address) -> io::Result<&Host> {
    match (address.transport(), address.host()) {
        (Transport::Udp, Some(host)) => Ok(host),
        _ => {
            let message =
                format!("{address} does not lead to a datagram socket: use udp:// or lean+udp://");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}
