//! Sockets that carry packets: code that sends and receives messages that fit into packets uses a carrier, and does not
//! depend on what lies below.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::packet_stamps::{FollowedPackets, PacketStamps, not_followed};
use crate::socket::Ready;
use crate::system::XdpCarrier;
use crate::train::{PacketTrain, ReceivedTrain};
use crate::{Address, DatagramSocket, Protocol, Transport, Until, XdpDatagramSocket};

/// A socket that carries packets, of one peer (a client's) or of all (a server's).
#[derive(Debug)]
pub enum Carrier {
    /// UDP, by the system's sockets.
    Udp(DatagramSocket),
    /// UDP, past the kernel's stack.
    Xdp(XdpCarrier),
}

impl Carrier {
    /// Room that the packets of any one receive fit in.
    pub const RECEIVE_MAX: usize = DatagramSocket::RECEIVE_MAX;

    /// Opens a carrier that leads to `address` alone.
    ///
    /// # Errors
    /// As [`DatagramSocket::connect`], and [`XdpDatagramSocket::connect`] for an address that leads past the kernel.
    pub fn connect(address: &Address, deadline: Instant) -> io::Result<Self> {
        match address.transport() {
            Transport::Xdp => Ok(Self::Xdp(XdpDatagramSocket::connect(address)?.into())),
            Transport::Tcp | Transport::Unix | Transport::Udp | Transport::Shm => {
                DatagramSocket::connect(address, deadline).map(Self::Udp)
            }
        }
    }

    /// Opens a carrier that leads to `peer` alone, one of the addresses of the host of `address`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_to(address: &Address, peer: SocketAddr, deadline: Instant) -> io::Result<Self> {
        match address.transport() {
            Transport::Xdp => {
                let socket = XdpDatagramSocket::connect_to(peer, address.protocol())?;
                Ok(Self::Xdp(socket.into()))
            }
            Transport::Tcp | Transport::Unix | Transport::Udp | Transport::Shm => {
                DatagramSocket::connect_to(peer, deadline).map(Self::Udp)
            }
        }
    }

    /// Opens a carrier that receives from every peer at `address`.
    ///
    /// # Errors
    /// As [`DatagramSocket::bind`], and [`XdpDatagramSocket::bind`] for an address that leads past the kernel.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address.transport() {
            Transport::Xdp => Ok(Self::Xdp(XdpDatagramSocket::bind(address)?.into())),
            Transport::Tcp | Transport::Unix | Transport::Udp | Transport::Shm => {
                DatagramSocket::bind(address).map(Self::Udp)
            }
        }
    }

    /// Returns the transport that its packets come through.
    #[inline]
    pub fn transport(&self) -> Transport {
        match self {
            Self::Udp(_) => Transport::Udp,
            Self::Xdp(_) => Transport::Xdp,
        }
    }

    /// Returns its address, the real port included.
    ///
    /// # Errors
    /// Errors that the system reports.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Udp(socket) => socket.address(),
            Self::Xdp(socket) => Ok(socket.address()),
        }
    }

    /// Returns the bytes of the largest message of ONC RPC that it carries, which is one datagram: what UDP takes, or past
    /// the kernel what one frame takes. None where no ONC RPC goes: past the kernel by an address of the lean protocol,
    /// as datagrams may lack a checksum there, and messages have no check of their own.
    pub fn onc_message_max(&self) -> Option<usize> {
        match self {
            Self::Udp(_) => Some(DatagramSocket::SIZE_MAX),
            Self::Xdp(socket) => match socket.protocol() {
                Protocol::Onc => Some(socket.frame_data_max()),
                Protocol::Lean => None,
            },
        }
    }

    /// Returns whether it is connected to an address that only this machine has.
    pub fn is_here(&self) -> bool {
        match self {
            Self::Udp(socket) => socket.is_here(),
            // However near the peer is, a frame has the size of a frame.
            Self::Xdp(_) => false,
        }
    }

    /// Sends packets to the connected peer; the bytes of those that were sent, which are one packet at least.
    ///
    /// # Errors
    /// As [`DatagramSocket::try_send`], if not even the first was sent.
    #[inline]
    pub fn try_send(&self, train: PacketTrain<'_>) -> io::Result<usize> {
        match self {
            Self::Udp(socket) if train.is_one() => {
                socket.try_send(train.bytes).map(|()| train.bytes.len())
            }
            Self::Udp(socket) => socket.try_send_train(train, None),
            Self::Xdp(socket) => socket.try_send(train),
        }
    }

    /// The same to `to`, by a carrier that is not connected.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    #[inline]
    pub fn try_send_to(&self, train: PacketTrain<'_>, to: SocketAddr) -> io::Result<usize> {
        match self {
            Self::Udp(socket) if train.is_one() => {
                let sent = socket.try_send_to(train.bytes, to);
                sent.map(|()| train.bytes.len())
            }
            Self::Udp(socket) => socket.try_send_train(train, Some(to)),
            Self::Xdp(socket) => socket.try_send_to(train, to),
        }
    }

    /// Looks up to so many times whether a packet has come, where that takes no system call.
    #[inline]
    pub fn look(&self, times: u32) {
        match self {
            Self::Udp(_) => {}
            Self::Xdp(socket) => socket.look(times),
        }
    }

    /// Receives packets of the connected peer that are there. A packet that does not fit is cut off; if it
    /// is the only one, `length` is its own all the same.
    ///
    /// # Errors
    /// As [`DatagramSocket::try_recv`].
    #[inline]
    pub fn try_recv(&self, room: &mut [u8]) -> io::Result<ReceivedTrain> {
        match self {
            Self::Udp(socket) if socket.expects_train() => {
                socket.try_recv_train(room).map(|(came, _)| came)
            }
            Self::Udp(socket) => socket.try_recv(room).map(ReceivedTrain::one),
            Self::Xdp(socket) => unnamed(socket.try_recv_from(room)),
        }
    }

    /// The same when it was found to be readable: looks wherever something may have come.
    ///
    /// # Errors
    /// As [`DatagramSocket::try_recv`].
    #[inline]
    pub fn try_recv_ready(&self, room: &mut [u8]) -> io::Result<ReceivedTrain> {
        match self {
            Self::Udp(_) => self.try_recv(room),
            Self::Xdp(socket) => unnamed(socket.try_recv_ready_from(room)),
        }
    }

    /// As [`try_recv`](Self::try_recv), waiting `until` a deadline.
    ///
    /// # Errors
    /// As [`DatagramSocket::recv_until`].
    #[inline]
    pub fn recv_until(&self, room: &mut [u8], until: Until) -> io::Result<ReceivedTrain> {
        match self {
            Self::Udp(socket) if socket.expects_train() => socket.recv_train_until(room, until),
            Self::Udp(socket) => socket.recv_until(room, until).map(ReceivedTrain::one),
            Self::Xdp(socket) => unnamed(socket.recv_from_until(room, until.deadline())),
        }
    }

    /// Receives packets that are there, and returns the address of their sender.
    ///
    /// # Errors
    /// As [`DatagramSocket::try_recv_from`].
    #[inline]
    pub fn try_recv_from(&self, room: &mut [u8]) -> io::Result<(ReceivedTrain, SocketAddr)> {
        match self {
            Self::Udp(socket) if socket.expects_train() => named(socket.try_recv_train(room)?),
            Self::Udp(socket) => {
                let (length, from) = socket.try_recv_from(room)?;
                Ok((ReceivedTrain::one(length), from))
            }
            Self::Xdp(socket) => socket.try_recv_from(room),
        }
    }

    /// The same when it was found to be readable, as [`try_recv_ready`](Self::try_recv_ready).
    ///
    /// # Errors
    /// As [`DatagramSocket::try_recv_from`].
    pub fn try_recv_ready_from(&self, room: &mut [u8]) -> io::Result<(ReceivedTrain, SocketAddr)> {
        match self {
            Self::Udp(_) => self.try_recv_from(room),
            Self::Xdp(socket) => socket.try_recv_ready_from(room),
        }
    }

    /// As [`try_recv_from`](Self::try_recv_from), waiting no longer than `limit`.
    ///
    /// # Errors
    /// As [`DatagramSocket::recv_from_within`].
    #[inline]
    pub fn recv_from_within(
        &self,
        room: &mut [u8],
        limit: Duration,
    ) -> io::Result<(ReceivedTrain, SocketAddr)> {
        match self {
            Self::Udp(socket) if socket.expects_train() => {
                named(socket.recv_train_within(room, limit)?)
            }
            Self::Udp(socket) => {
                let (length, from) = socket.recv_from_within(room, limit)?;
                Ok((ReceivedTrain::one(length), from))
            }
            Self::Xdp(socket) => socket.recv_from_within(room, limit),
        }
    }

    /// Packets of so many bytes are about to come one behind the other: they are received together from now
    /// on, as long as such come, if the system knows how.
    pub fn expect_train(&self, size: usize) {
        match self {
            Self::Udp(socket) => socket.expect_train(size),
            Self::Xdp(socket) => socket.expect_train(),
        }
    }

    /// As [`DatagramSocket::follow_packets`].
    ///
    /// # Errors
    /// `Unsupported` past the kernel's stack, and on other systems than Linux.
    pub fn follow_packets(&self, followed: FollowedPackets) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.follow_packets(followed),
            Self::Xdp(_) => Err(not_followed()),
        }
    }

    /// As [`DatagramSocket::take_stamps`].
    pub fn take_stamps(&self) -> PacketStamps {
        match self {
            Self::Udp(socket) => socket.take_stamps(),
            Self::Xdp(_) => PacketStamps::default(),
        }
    }

    /// As [`DatagramSocket::take_sent_stamps`].
    pub fn take_sent_stamps(&self) -> PacketStamps {
        match self {
            Self::Udp(socket) => socket.take_sent_stamps(),
            Self::Xdp(_) => PacketStamps::default(),
        }
    }

    /// As [`DatagramSocket::received_stamp`].
    pub fn received_stamp(&self) -> Option<u64> {
        match self {
            Self::Udp(socket) => socket.received_stamp(),
            Self::Xdp(_) => None,
        }
    }

    /// Waits until it is ready for something that is `wanted`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        match self {
            Self::Udp(socket) => socket.wait(wanted, deadline),
            Self::Xdp(socket) => socket.wait(wanted, deadline),
        }
    }

    /// Wakes the thread that waits in a receive: it receives an empty packet.
    ///
    /// # Errors
    /// As [`DatagramSocket::shutdown`].
    pub fn shutdown(&self) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.shutdown(),
            Self::Xdp(socket) => socket.shutdown(),
        }
    }
}

impl_as_fd!(Carrier, self => match self {
    Self::Udp(socket) => socket.as_fd(),
    Self::Xdp(socket) => socket.as_fd(),
});

fn named(
    (came, from): (ReceivedTrain, Option<SocketAddr>),
) -> io::Result<(ReceivedTrain, SocketAddr)> {
    let from = from.ok_or(io::ErrorKind::InvalidData)?;
    Ok((came, from))
}

#[inline]
fn unnamed(received: io::Result<(ReceivedTrain, SocketAddr)>) -> io::Result<ReceivedTrain> {
    received.map(|(came, _)| came)
}
