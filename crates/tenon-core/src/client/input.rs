//! The input of a channel: what was received from its peer.

use std::io;
use std::ops::Range;

use tenon_net::{ReceivedTrain, Transport};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::{Detached, Receiver};
use tenon_proto::lean::{ByteOrder, Extensions, Metadata, Stamps};

use super::datagram_input::DatagramInput;
use crate::datagrams::{IfDatagrams, if_datagrams};

/// Input of a channel that has been received.
#[derive(Debug)]
pub enum Input {
    /// Bytes of a stream.
    Stream(Receiver),
    /// Datagrams.
    Datagram(IfDatagrams<Box<DatagramInput>>),
}

/// A reply where it was received.
#[derive(Debug, Clone)]
pub struct ReplyPlace {
    /// Place of the results in the message.
    pub place: Range<usize>,
    /// The order of their bytes.
    pub order: ByteOrder,
    /// What the server says beside the results.
    pub extensions: Option<Box<ReplyExtensions>>,
}

/// What a server says in a reply beside the results.
#[derive(Debug, Clone)]
pub struct ReplyExtensions {
    /// Times at which the call passed the server.
    pub stamps: Option<Stamps>,
    /// The metadata of the reply.
    pub metadata: Metadata,
}

impl ReplyExtensions {
    /// Those that are known here.
    #[cold]
    pub fn of(extensions: Extensions<'_>) -> Box<Self> {
        Box::new(Self {
            stamps: Stamps::find(extensions),
            metadata: extensions.answer_metadata().to_owned(),
        })
    }
}

impl Default for ReplyPlace {
    fn default() -> Self {
        Self {
            place: 0..0,
            order: ByteOrder::NATIVE,
            extensions: None,
        }
    }
}

impl Input {
    /// Nothing yet, of a stream with its `receiver` or of datagrams.
    pub fn new(receiver: Option<Receiver>, config: &ConnectionConfig) -> Self {
        match receiver {
            Some(receiver) => Self::Stream(receiver),
            None => Self::Datagram(if_datagrams(Box::new(DatagramInput::new(config)))),
        }
    }

    /// Returns whether it is of a stream.
    #[inline]
    pub fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Returns whether everything that has come was taken out.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Stream(receiver) => receiver.is_between_frames(),
            Self::Datagram(input) => !input.has_next(),
        }
    }

    /// Returns whether a part of a message has come, and not the rest.
    #[inline]
    pub fn has_begun(&self) -> bool {
        match self {
            Self::Stream(receiver) => !receiver.is_between_frames(),
            Self::Datagram(_) => false,
        }
    }

    /// Returns the memory to receive into.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        match self {
            Self::Stream(receiver) => receiver.room(),
            Self::Datagram(input) => input.room(),
        }
    }

    /// Takes in what a receive into the [room](Self::room) has reported.
    ///
    /// # Errors
    /// Nothing was received; the end of the stream; the peer speaks another protocol.
    #[inline]
    pub fn handle_received(&mut self, came: io::Result<ReceivedTrain>) -> io::Result<()> {
        match self {
            Self::Stream(receiver) => handle_stream(receiver, came),
            Self::Datagram(input) => input.handle_received(came),
        }
    }

    /// Returns a part of the message that was taken out last.
    #[inline]
    pub fn results(&mut self, place: &Range<usize>) -> &[u8] {
        let message = match self {
            Self::Stream(receiver) => receiver.last_content(),
            Self::Datagram(input) => input.message(),
        };
        message.get(place.clone()).unwrap_or_default()
    }

    /// Takes the message with its memory that was taken out last of a stream.
    pub fn detach(&mut self) -> Option<Detached> {
        match self {
            Self::Stream(receiver) => receiver.detach(),
            Self::Datagram(_) => None,
        }
    }

    /// Returns the bytes of the datagram that was taken out last, if several of that length are likely to come
    /// together.
    pub fn likely_train(&self) -> Option<usize> {
        match self {
            Self::Stream(_) => None,
            Self::Datagram(input) => input.likely_train(),
        }
    }
}

/// Returns whether there may be more to receive than was received into a room of so many bytes, through `transport`: a
/// socket says so by filling it.
pub fn may_have_more(transport: Transport, received: usize, room: usize) -> bool {
    match transport {
        Transport::Tcp | Transport::Unix => received == room,
        Transport::Shm | Transport::Udp | Transport::Xdp => true,
    }
}

/// Takes in what a receive from a stream has reported.
///
/// # Errors
/// Nothing was received; the end of the stream; the peer speaks another protocol.
#[inline(always)]
pub fn handle_stream(receiver: &mut Receiver, came: io::Result<ReceivedTrain>) -> io::Result<()> {
    match came {
        Ok(came) if came.length > 0 => receiver
            .handle_received(came.length)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        Ok(_) if receiver.is_out_of_memory() => Err(io::ErrorKind::OutOfMemory.into()),
        Ok(_) => Err(end_of_stream(receiver)),
        Err(error) if is_for_now(&error) => Err(error),
        Err(error) => Err(may_not_be_lean(receiver, error)),
    }
}

#[cold]
fn end_of_stream(receiver: &mut Receiver) -> io::Error {
    let message = if receiver.is_between_frames() {
        "the peer closed it"
    } else {
        "the peer closed it in the middle of a reply"
    };
    may_not_be_lean(
        receiver,
        io::Error::new(io::ErrorKind::UnexpectedEof, message),
    )
}
/// A peer that breaks a connection off without a word may never have heard of the lean protocol.
#[cold]
fn may_not_be_lean(receiver: &mut Receiver, error: io::Error) -> io::Error {
    const HINT: &str = "the peer has not said that it speaks the lean protocol; \
                        if it speaks ONC RPC, connect to tcp:// or unix://";
    match receiver.lean_reader() {
        Some(reader) if reader.received() == 0 => {
            io::Error::new(error.kind(), format!("{error}; {HINT}"))
        }
        _ => error,
    }
}

/// Returns whether the error says that nothing has come, and nothing of the connection.
fn is_for_now(error: &io::Error) -> bool {
    tenon_net::is_deadline(error) || error.kind() == io::ErrorKind::WouldBlock
}
