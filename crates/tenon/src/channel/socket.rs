//! The socket of a channel, by what its address says.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Instant;

use tenon_net::{Address, Came, Carrier, Ready, Stream, Train, Transport, Until};

use super::inbox::Inbox;

/// A socket that is connected to the peer.
#[derive(Debug)]
pub enum Socket {
    /// Of a stream of bytes.
    Stream(Stream),
    /// Of packets.
    Packets(Carrier),
}

impl Socket {
    /// Connects to `address`, waiting until `deadline`.
    ///
    /// # Errors
    /// As [`Stream::connect`] and [`Carrier::connect`].
    pub fn connect(address: &Address, deadline: Instant) -> io::Result<Self> {
        match address.transport() {
            Transport::Tcp | Transport::Unix | Transport::Shm => {
                Stream::connect(address, deadline).map(Self::Stream)
            }
            Transport::Udp | Transport::Xdp => {
                Carrier::connect(address, deadline).map(Self::Packets)
            }
        }
    }

    /// Receives into the inbox once, waiting until `deadline`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; the end of a stream.
    #[inline]
    pub fn receive(&self, inbox: &mut Inbox, deadline: Instant) -> io::Result<()> {
        inbox.fill(|room| self.recv_until(room, deadline.into()))
    }

    /// Receives into the inbox what is there, of what was found to be readable; says whether there may be more.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is; the end of a stream.
    #[inline]
    pub fn try_receive(&self, inbox: &mut Inbox) -> io::Result<bool> {
        let mut may_have_more = true;
        inbox.fill(|room| match self {
            Self::Stream(stream) => {
                let received = stream.try_recv(room)?;
                may_have_more = received == room.len();
                Ok(Came::one(received))
            }
            Self::Packets(socket) => match socket.try_recv_ready(room) {
                Err(refused) if is_refusal(&refused) => receive_behind(refused, socket, room),
                done => done,
            },
        })?;
        Ok(may_have_more)
    }

    /// Receives, waiting `until` a deadline; of a stream 0 bytes are the end.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    #[inline]
    pub(super) fn recv_until(&self, room: &mut [u8], until: Until) -> io::Result<Came> {
        match self {
            Self::Stream(stream) => stream.recv_until(room, until).map(Came::one),
            Self::Packets(socket) => match socket.recv_until(room, until) {
                Err(refused) if is_refusal(&refused) => receive_behind(refused, socket, room),
                done => done,
            },
        }
    }

    /// As [`Stream::look`].
    #[inline]
    pub(super) fn look(&self, times: u32) {
        match self {
            Self::Stream(stream) => stream.look(times),
            Self::Packets(socket) => socket.look(times),
        }
    }

    /// Receives what is there; of a stream 0 bytes are the end.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is.
    #[inline]
    pub(super) fn try_recv(&self, room: &mut [u8]) -> io::Result<Came> {
        match self {
            Self::Stream(stream) => stream.try_recv(room).map(Came::one),
            Self::Packets(socket) => match socket.try_recv(room) {
                Err(refused) if is_refusal(&refused) => receive_behind(refused, socket, room),
                done => done,
            },
        }
    }

    /// Sends as much as fits at once of what is left of a call, of which `sent` bytes are sent. A
    /// packet is sent whole.
    ///
    /// # Errors
    /// `WouldBlock` when nothing fits.
    #[inline]
    pub fn try_send(&self, call: &[u8], sent: usize) -> io::Result<usize> {
        match self {
            Self::Stream(stream) => stream.try_send(&call[sent..]),
            Self::Packets(socket) => socket.try_send(Train::one(call)),
        }
    }

    /// Sends as much as fits at once of `pieces`, one behind the other. Packets have one piece.
    ///
    /// # Errors
    /// `WouldBlock` when nothing fits.
    pub fn try_send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match (self, pieces) {
            (Self::Stream(stream), _) => stream.try_send_pieces(pieces),
            (Self::Packets(_), [piece]) => self.try_send(piece, 0),
            (Self::Packets(_), _) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Sends packets; the bytes of those that were sent, which are one packet at least.
    ///
    /// # Errors
    /// As [`Carrier::try_send`].
    #[inline]
    pub fn try_send_train(&self, train: Train<'_>) -> io::Result<usize> {
        match self {
            Self::Stream(_) => Err(io::ErrorKind::InvalidInput.into()),
            Self::Packets(carrier) => carrier.try_send(train),
        }
    }

    /// As [`Carrier::expect_train`].
    pub fn expect_train(&self, size: usize) {
        if let Self::Packets(carrier) = self {
            carrier.expect_train(size);
        }
    }

    /// Waits until the socket is ready for something that is `wanted`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline.
    pub fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        match self {
            Self::Stream(stream) => stream.wait(wanted, deadline),
            Self::Packets(socket) => socket.wait(wanted, deadline),
        }
    }

    /// The stream, if it is one.
    pub fn stream(&self) -> Option<&Stream> {
        match self {
            Self::Stream(stream) => Some(stream),
            Self::Packets(_) => None,
        }
    }

    /// What its bytes come through.
    pub(super) fn transport(&self) -> Transport {
        match self {
            Self::Stream(stream) => stream.transport(),
            Self::Packets(socket) => socket.transport(),
        }
    }

    /// Whether packets go to another process of this machine.
    pub fn is_here(&self) -> bool {
        match self {
            Self::Stream(_) => false,
            Self::Packets(socket) => socket.is_here(),
        }
    }

    /// As [`Stream::refresh`].
    pub fn refresh(&self) {
        match self {
            Self::Stream(stream) => stream.refresh(),
            Self::Packets(_) => {}
        }
    }

    /// Wakes whoever still uses the connection. It may be gone already, which is the aim.
    pub fn shutdown(&self) {
        let _ = match self {
            Self::Stream(stream) => stream.shutdown(),
            Self::Packets(socket) => socket.shutdown(),
        };
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Stream(stream) => stream.as_raw_fd(),
            Self::Packets(socket) => socket.as_raw_fd(),
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// Receives the packet that is there. That an earlier one of ours met a closed port is reported
/// before what has come, but counts only if nothing has.
#[cold]
fn receive_behind(refused: io::Error, socket: &Carrier, room: &mut [u8]) -> io::Result<Came> {
    socket.try_recv(room).map_err(|_| refused)
}
