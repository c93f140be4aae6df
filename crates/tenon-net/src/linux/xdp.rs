//! Datagrams past the kernel's stack, by address, and waiting for them.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
pub use tenon_xdp::XdpCounters;
use tenon_xdp::{OutgoingDatagrams, ReceivedDatagrams, UdpChecksum, XdpSocket};

use crate::socket::{Ready, poll_until};
use crate::stream::first_that_works;
use crate::train::{PacketTrain, ReceivedTrain};
use crate::{Address, Host, Protocol, Transport};

/// Time that the kernel takes at most to send some of what is on its way out.
const A_MOMENT: Duration = Duration::from_micros(50);

/// A socket for datagrams that go past the kernel's stack: connected to one peer (client) or bound and open to
/// all (server). One thread at a time receives.
#[derive(Debug)]
pub struct XdpDatagramSocket {
    socket: XdpSocket,
    /// Of the address that it was opened by.
    protocol: Protocol,
}

/// A socket in the place where its owner has it.
pub type XdpCarrier = Box<XdpDatagramSocket>;

impl XdpDatagramSocket {
    /// Opens a socket that sends to and receives from `address` alone. Nothing is sent yet. What comes without a checksum
    /// of UDP is dropped where ONC RPC is spoken.
    ///
    /// # Errors
    /// `PermissionDenied`, with the capabilities that are lacking; `InvalidInput` for an address of IPv6 or of
    /// another transport, and if the way there is no Ethernet; `ResourceBusy` if another process has the interface.
    pub fn connect(address: &Address) -> io::Result<Self> {
        let protocol = address.protocol();
        first_that_works(xdp_host(address)?, |peer| Self::connect_to(peer, protocol))
    }

    /// Opens a socket that sends to and receives from `peer` alone, which `protocol` is spoken with. Nothing is sent yet.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub(crate) fn connect_to(peer: SocketAddr, protocol: Protocol) -> io::Result<Self> {
        let socket = XdpSocket::connect(ipv4(peer)?, checksum(protocol))?;
        Ok(Self { socket, protocol })
    }

    /// Opens a socket that receives from everybody at `address`, that of one interface; port 0 takes any free port. What
    /// comes without a checksum of UDP is dropped if the address is one of ONC RPC.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); `AddrInUse`; `AddrNotAvailable` if no interface has the address.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let protocol = address.protocol();
        first_that_works(xdp_host(address)?, |at| {
            let socket = XdpSocket::bind(ipv4(at)?, checksum(protocol))?;
            Ok(Self { socket, protocol })
        })
    }

    /// Returns the address of this socket, its real port included.
    pub fn address(&self) -> Address {
        let address = Address::of_socket(Transport::Xdp, self.socket.address().into());
        match self.protocol {
            Protocol::Onc => address.clone().over_onc().unwrap_or(address),
            Protocol::Lean => address,
        }
    }

    /// Returns the protocol of the address that it was opened by.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the bytes of the largest datagram that goes past the kernel; larger ones the kernel sends and cuts.
    pub fn frame_data_max(&self) -> usize {
        self.socket.frame_data_max()
    }

    /// Returns the counts of datagrams so far.
    pub fn counters(&self) -> XdpCounters {
        self.socket.counters()
    }

    /// Sends datagrams to the connected peer; the bytes of those that were sent, which are one at least.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room; what the system reports.
    #[inline]
    pub fn try_send(&self, train: PacketTrain<'_>) -> io::Result<usize> {
        match is_message(train) {
            true => {
                let sent = self.socket.try_send(train.bytes);
                sent.map(|()| train.bytes.len())
            }
            false => self.socket.try_send_all(datagrams(train)),
        }
    }

    /// The same to `to`, by a socket that is not connected.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    #[inline]
    pub fn try_send_to(&self, train: PacketTrain<'_>, to: SocketAddr) -> io::Result<usize> {
        match is_message(train) {
            true => {
                let sent = self.socket.try_send_to(train.bytes, to);
                sent.map(|()| train.bytes.len())
            }
            false => self.socket.try_send_all_to(datagrams(train), to),
        }
    }

    /// Packets are about to come one behind the other: what the kernel receives of them, it hands over together from now
    /// on, if it knows how.
    pub fn expect_train(&self) {
        self.socket.expect_many();
    }

    /// Looks up to so many times whether a frame has come, without asking the system.
    #[inline]
    pub fn look(&self, times: u32) {
        self.socket.look(times);
    }

    /// Receives one datagram that is there, or several that came together, and their sender. The length of a single one is
    /// its own: if it is greater than `room`, the rest is lost.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; `ConnectionRefused` when a datagram met a closed port.
    #[inline]
    pub fn try_recv_from(&self, room: &mut [u8]) -> io::Result<(ReceivedTrain, SocketAddr)> {
        self.socket.try_recv(room).map(received)
    }

    /// The same when this socket was found to be readable: the kernel's socket beside it is looked at each time.
    ///
    /// # Errors
    /// As [`try_recv_from`](Self::try_recv_from).
    #[inline]
    pub fn try_recv_ready_from(&self, room: &mut [u8]) -> io::Result<(ReceivedTrain, SocketAddr)> {
        self.socket.try_recv_ready(room).map(received)
    }

    /// As [`try_recv_from`](Self::try_recv_from), waiting no longer than `limit`.
    ///
    /// # Errors
    /// `WouldBlock` when nothing came.
    pub fn recv_from_within(
        &self,
        room: &mut [u8],
        limit: Duration,
    ) -> io::Result<(ReceivedTrain, SocketAddr)> {
        self.recv_from_until(room, Instant::now() + limit)
            .map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => io::ErrorKind::WouldBlock.into(),
                _ => error,
            })
    }

    /// The same, waiting until `deadline`. What is there is returned even behind the deadline.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; `ConnectionRefused` when a datagram met a closed port.
    pub fn recv_from_until(
        &self,
        room: &mut [u8],
        deadline: Instant,
    ) -> io::Result<(ReceivedTrain, SocketAddr)> {
        loop {
            match self.socket.try_recv_ready(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done.map(received),
            }
            self.wait_readable(deadline)?;
        }
    }

    fn wait_readable(&self, deadline: Instant) -> io::Result<()> {
        poll_until(&mut [PollFd::new(&self.socket, PollFlags::IN)], deadline)
    }

    /// Waits until the socket is ready for something that is `wanted`, or may be ready to send.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        if wanted.writable {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // The kernel says nothing when it has sent what was on its way; it takes no longer than this, unless
            // the interface does not send.
            thread::sleep(A_MOMENT.min(left));
            return Ok(Ready::WRITABLE);
        }
        self.wait_readable(deadline)?;
        Ok(Ready {
            readable: true,
            writable: false,
        })
    }

    /// Wakes the thread that waits in a receive: it receives an empty datagram.
    ///
    /// # Errors
    /// `NotConnected` for a socket that was not connected.
    pub fn shutdown(&self) -> io::Result<()> {
        self.socket.shutdown()
    }
}

impl AsFd for XdpDatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns whether a train is one packet, which is all of its message, as most are.
#[inline]
fn is_message(train: PacketTrain<'_>) -> bool {
    train.is_one() && train.message_packets == 1
}

fn datagrams(train: PacketTrain<'_>) -> OutgoingDatagrams<'_> {
    OutgoingDatagrams {
        bytes: train.bytes,
        size: train.size,
        message_datagrams: train.message_packets,
    }
}

#[inline]
fn received(came: ReceivedDatagrams) -> (ReceivedTrain, SocketAddr) {
    let ReceivedDatagrams { length, size, from } = came;
    (ReceivedTrain { length, size }, from)
}

/// A message of ONC RPC has no check of its own. A packet of the exchange has.
fn checksum(protocol: Protocol) -> UdpChecksum {
    match protocol {
        Protocol::Onc => UdpChecksum::Required,
        Protocol::Lean => UdpChecksum::Optional,
    }
}

fn ipv4(at: SocketAddr) -> io::Result<SocketAddrV4> {
    match at {
        SocketAddr::V4(at) => Ok(at),
        SocketAddr::V6(at) => {
            let message = format!("xdp:// goes over IPv4 only, and {at} is an address of IPv6");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}

fn xdp_host(address: &Address) -> io::Result<&Host> {
    match (address.transport(), address.host()) {
        (Transport::Xdp, Some(host)) => Ok(host),
        _ => {
            let message =
                format!("{address} does not lead past the kernel: use xdp:// or onc+xdp://");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}
