//! The socket of a channel, by what its address says.

use std::io::{self, IoSlice};
use std::time::Instant;

use tenon_net::fd::OwnedFd;
use tenon_net::{
    Address, Carrier, ConnectedSocket, FollowedPackets, PacketStamps, PacketTrain, Protocol, Ready,
    ReceivedTrain, Stream, Transport, Until, impl_as_fd,
};
use tenon_proto::connection::TransmitBatch;
use tenon_proto::endpoint::exchange::{DATAGRAM_DEFAULT, DATAGRAM_HERE};

use crate::built::check_client;
use crate::error::ConnectError;

/// A socket that is connected to one peer.
#[derive(Debug)]
pub enum ClientSocket {
    /// Carries a stream of bytes.
    Stream(Stream),
    /// Carries datagrams.
    Datagram(Carrier),
}

impl ClientSocket {
    /// Takes over a socket that the program has connected, and returns it with the address of its peer, to which
    /// `protocol` is spoken.
    ///
    /// # Errors
    /// As [`ConnectedSocket::new`].
    pub fn over(fd: OwnedFd, protocol: Protocol) -> Result<(Self, Address), ConnectError> {
        let (socket, address) = ConnectedSocket::new(fd)
            .map_err(|error| ConnectError::unreachable(&Address::unnamed(), error))?;
        let address = match protocol {
            Protocol::Onc => address,
            Protocol::Lean => address.over_lean(),
        };
        check_client(&address)?;
        let socket = match socket {
            ConnectedSocket::Stream(stream) => Self::Stream(stream),
            ConnectedSocket::Datagram(carrier) => Self::Datagram(carrier),
        };
        Ok((socket, address))
    }

    /// Receives, waiting `until` a deadline. Of a stream 0 bytes are the end.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; `ConnectionRefused` if nothing listens where datagrams went and none has come.
    #[inline]
    pub fn recv_until(&self, room: &mut [u8], until: Until) -> io::Result<ReceivedTrain> {
        match self {
            Self::Stream(stream) => stream.recv_until(room, until).map(ReceivedTrain::one),
            Self::Datagram(carrier) => match carrier.recv_until(room, until) {
                Err(refused) if is_refusal(&refused) => receive_behind(refused, carrier, room),
                received => received,
            },
        }
    }

    /// Receives what is there. Of a stream 0 bytes are the end.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; as [`recv_until`](Self::recv_until).
    #[inline]
    pub fn try_recv(&self, room: &mut [u8]) -> io::Result<ReceivedTrain> {
        match self {
            Self::Stream(stream) => stream.try_recv(room).map(ReceivedTrain::one),
            Self::Datagram(carrier) => match carrier.try_recv(room) {
                Err(refused) if is_refusal(&refused) => receive_behind(refused, carrier, room),
                received => received,
            },
        }
    }

    /// As [`Stream::look`] and [`Carrier::look`].
    #[inline]
    pub fn look(&self, times: u32) {
        match self {
            Self::Stream(stream) => stream.look(times),
            Self::Datagram(carrier) => carrier.look(times),
        }
    }

    /// Sends as many of `bytes` as find room in the stream at once.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; `InvalidInput` if this is no stream.
    #[inline]
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stream(stream) => stream.try_send(bytes),
            Self::Datagram(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Sends as much of `batch` as finds room in the stream at once.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    #[inline]
    pub fn try_send_batch(&self, batch: &TransmitBatch) -> io::Result<usize> {
        match (self, batch.single_slice()) {
            (Self::Stream(stream), Some(bytes)) => stream.try_send(bytes),
            (Self::Stream(stream), None) => {
                stream.try_send_pieces(&batch.slices().map(IoSlice::new))
            }
            (Self::Datagram(_), _) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Sends datagrams; returns the bytes of those that were sent, which are one datagram at least.
    ///
    /// # Errors
    /// As [`Carrier::try_send`]; `InvalidInput` if this is a stream.
    #[inline]
    pub fn try_send_train(&self, train: PacketTrain<'_>) -> io::Result<usize> {
        match self {
            Self::Stream(_) => Err(io::ErrorKind::InvalidInput.into()),
            Self::Datagram(carrier) => carrier.try_send(train),
        }
    }

    /// As [`Carrier::expect_train`].
    pub fn expect_train(&self, size: usize) {
        if let Self::Datagram(carrier) = self {
            carrier.expect_train(size);
        }
    }

    /// As [`Carrier::follow_packets`].
    ///
    /// # Errors
    /// As there; `Unsupported` of a stream.
    pub fn follow_packets(&self, followed: FollowedPackets) -> io::Result<()> {
        match self {
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Datagram(carrier) => carrier.follow_packets(followed),
        }
    }

    /// As [`Carrier::take_stamps`]; of a stream none are known.
    pub fn take_stamps(&self) -> PacketStamps {
        match self {
            Self::Stream(_) => PacketStamps::default(),
            Self::Datagram(carrier) => carrier.take_stamps(),
        }
    }

    /// Waits until the socket is ready for something that is `wanted`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        match self {
            Self::Stream(stream) => stream.wait(wanted, deadline),
            Self::Datagram(carrier) => carrier.wait(wanted, deadline),
        }
    }

    /// Returns the stream, if it is one.
    pub fn stream(&self) -> Option<&Stream> {
        match self {
            Self::Stream(stream) => Some(stream),
            Self::Datagram(_) => None,
        }
    }

    /// Returns the transport that its bytes come through.
    pub fn transport(&self) -> Transport {
        match self {
            Self::Stream(stream) => stream.transport(),
            Self::Datagram(carrier) => carrier.transport(),
        }
    }

    /// Returns whether datagrams go to another process of this machine.
    pub fn is_here(&self) -> bool {
        match self {
            Self::Stream(_) => false,
            Self::Datagram(carrier) => carrier.is_here(),
        }
    }

    /// As [`Stream::refresh`].
    pub fn refresh(&self) {
        if let Self::Stream(stream) = self {
            stream.refresh();
        }
    }

    /// Wakes a thread that still uses the connection. The connection may be gone already, which is the aim.
    pub fn shutdown(&self) {
        let _ = match self {
            Self::Stream(stream) => stream.shutdown(),
            Self::Datagram(carrier) => carrier.shutdown(),
        };
    }
}

impl_as_fd!(ClientSocket, self => match self {
    Self::Stream(stream) => stream.as_fd(),
    Self::Datagram(carrier) => carrier.as_fd(),
});

/// Returns the bytes of the datagrams in which packets of the exchange are sent with least effort.
pub(crate) fn exchange_datagram_max(is_here: bool) -> usize {
    match is_here {
        true => DATAGRAM_HERE,
        false => DATAGRAM_DEFAULT,
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// Receives the datagram that is there. That an earlier one of ours met a closed port is reported before what has
/// come, but counts only if nothing has.
#[cold]
fn receive_behind(
    refused: io::Error,
    carrier: &Carrier,
    room: &mut [u8],
) -> io::Result<ReceivedTrain> {
    carrier.try_recv(room).map_err(|_| refused)
}
