//! What a channel receives: the reader of its protocol, whatever hands it the bytes.

use std::io;

use tenon_net::{Address, Datagram, is_deadline};
use tenon_proto::exchange::PACKET_HEADER;
use tenon_proto::exchange::client::Whole;
use tenon_proto::lean::{Header, Incoming, Message, MessageReader, Stamps};
use tenon_proto::onc::record::RecordReader;

use super::broken::Broken;
use super::engine::preamble;
use super::exchange::exchange_preamble;
use crate::account::Note;
use crate::error::Misbehavior;
use crate::options::ChannelOptions;

/// Storage that a connection keeps while there is nothing to receive.
const KEPT_MAX: usize = 4 << 20;

/// What has been received.
#[derive(Debug)]
pub struct Inbox(Reader);

#[derive(Debug)]
enum Reader {
    Records(RecordReader),
    Messages(MessageReader),
    Datagram(LastDatagram),
    Packets(Box<Packets>),
}

/// What has been received whole.
#[derive(Debug)]
pub enum Received<'m> {
    /// A message of ONC RPC.
    Record(&'m [u8]),
    /// What has come by the lean protocol.
    Lean(Incoming<'m>),
    /// A packet of the exchange, and where an answer of several is put together.
    Packet(&'m [u8], &'m mut Whole),
}

/// What has come of the packet exchange.
#[derive(Debug)]
struct Packets {
    last: LastDatagram,
    whole: Whole,
}

/// Room for the largest datagram there is, and how much of it the last one filled.
#[derive(Debug)]
struct LastDatagram {
    room: Box<[u8]>,
    length: usize,
    is_new: bool,
}

impl Default for LastDatagram {
    fn default() -> Self {
        Self {
            room: vec![0; Datagram::RECEIVE_MAX].into(),
            length: 0,
            is_new: false,
        }
    }
}

impl LastDatagram {
    #[inline]
    fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        self.length = receive(&mut self.room)?;
        self.is_new = true;
        Ok(())
    }

    #[inline]
    fn datagram(&self) -> &[u8] {
        &self.room[..self.length]
    }
}

impl Inbox {
    /// An inbox for what comes from `address`.
    pub fn new(address: &Address, options: &ChannelOptions) -> Self {
        Self(match address {
            Address::LeanTcp(_) | Address::LeanUnix(_) | Address::Shm(_) => {
                let limit = preamble(options).message_max as usize;
                Reader::Messages(MessageReader::new(limit))
            }
            Address::LeanUdp(_) => Reader::Packets(Box::new(Packets {
                last: LastDatagram::default(),
                whole: Whole::new(&exchange_preamble(options)),
            })),
            Address::Tcp(_) | Address::Unix(_) => {
                Reader::Records(RecordReader::new(options.receive_max))
            }
            Address::Udp(_) => Reader::Datagram(LastDatagram::default()),
        })
    }

    /// Has `receive` put in what comes next, and says how much it was: of a stream 0 bytes are its
    /// end.
    ///
    /// # Errors
    /// That of `receive`; the end of the stream.
    #[inline]
    pub fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        match &mut self.0 {
            Reader::Records(records) => match receive(records.room())? {
                0 => return Err(end_of_stream(records.is_between_records())),
                bytes => records.filled(bytes),
            },
            Reader::Messages(messages) => match receive(messages.room()) {
                Ok(0) => return Err(end_of_messages(messages)),
                Ok(bytes) => messages.filled(bytes),
                Err(error) if is_for_now(&error) => {
                    return Err(error);
                }
                Err(error) => return Err(may_not_be_lean(messages, error)),
            },
            Reader::Datagram(last) => last.fill(receive)?,
            Reader::Packets(packets) => packets.last.fill(receive)?,
        }
        Ok(())
    }

    /// The next that has been received whole.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn next_received(&mut self) -> Result<Option<Received<'_>>, Broken> {
        match &mut self.0 {
            Reader::Records(records) => records
                .next_record()
                .map(|record| record.map(Received::Record))
                .map_err(|error| Broken::Misbehaved(Misbehavior::Record(error))),
            Reader::Messages(messages) => Ok(messages.next_message()?.map(Received::Lean)),
            Reader::Datagram(last) => {
                let is_new = std::mem::take(&mut last.is_new);
                Ok(is_new.then(|| Received::Record(last.datagram())))
            }
            Reader::Packets(packets) => {
                let Packets { last, whole } = &mut **packets;
                let is_new = std::mem::take(&mut last.is_new);
                whole.clear();
                Ok(is_new.then(|| Received::Packet(last.datagram(), whole)))
            }
        }
    }

    /// Whether a part of a message has come, and not the rest.
    #[inline]
    pub fn has_begun(&self) -> bool {
        match &self.0 {
            Reader::Records(records) => !records.is_between_records(),
            Reader::Messages(messages) => !messages.is_between_messages(),
            // Every packet is taken in for itself.
            Reader::Datagram(_) | Reader::Packets(_) => false,
        }
    }

    /// The header of what has been received next, if it is a lean message of the commonest form. It stays the
    /// next until it is [taken](Self::take_common).
    #[inline]
    pub fn find_common(&self) -> Option<Header> {
        match &self.0 {
            Reader::Messages(messages) => messages.find_common(),
            Reader::Records(_) | Reader::Datagram(_) | Reader::Packets(_) => None,
        }
    }

    /// The next message, whose header was [found](Self::find_common) to be this; none if it was not.
    #[inline]
    pub fn take_common(&mut self, header: Header) -> Option<Message<'_>> {
        match &mut self.0 {
            Reader::Messages(messages) => Some(messages.take_common(header)),
            Reader::Records(_) | Reader::Datagram(_) | Reader::Packets(_) => None,
        }
    }

    /// The message that [`next_received`](Self::next_received) returned last; of a lean one its body, of a
    /// packet the answer that it made whole.
    pub fn message(&self) -> &[u8] {
        match &self.0 {
            Reader::Records(records) => records.record(),
            Reader::Messages(messages) => {
                let parts = messages.message().and_then(|message| message.parts().ok());
                parts.map_or(&[], |parts| parts.body)
            }
            Reader::Datagram(last) => last.datagram(),
            Reader::Packets(packets) => match packets.whole.answer() {
                [] => packets
                    .last
                    .datagram()
                    .get(PACKET_HEADER..)
                    .unwrap_or_default(),
                whole => whole,
            },
        }
    }

    /// What the message that [`next_received`](Self::next_received) returned last says of the way of
    /// its call.
    pub fn stamps(&self) -> Option<Stamps> {
        match &self.0 {
            Reader::Records(_) | Reader::Datagram(_) | Reader::Packets(_) => None,
            Reader::Messages(messages) => {
                let parts = messages.message()?.parts().ok()?;
                Stamps::find(parts.extensions)
            }
        }
    }

    /// The same for the owner of the call, to whom the reply is brought.
    #[cold]
    pub fn note(&self) -> Option<Box<Note>> {
        self.stamps().map(Note::now)
    }

    /// Gives memory back that only an unusually large reply needed.
    pub fn shrink(&mut self) {
        match &mut self.0 {
            Reader::Records(records) => records.shrink_to(KEPT_MAX),
            Reader::Messages(messages) => messages.shrink_to(KEPT_MAX),
            Reader::Datagram(_) => {}
            Reader::Packets(packets) => packets.whole.shrink_to(KEPT_MAX),
        }
    }
}

fn end_of_messages(messages: &MessageReader) -> io::Error {
    may_not_be_lean(messages, end_of_stream(messages.is_between_messages()))
}

/// A peer that breaks a connection off without a word may never have heard of the protocol.
fn may_not_be_lean(messages: &MessageReader, error: io::Error) -> io::Error {
    const HINT: &str = "the peer has not said that it speaks the lean protocol; \
                        if it speaks ONC RPC, connect to tcp:// or unix://";
    match messages.received() {
        0 => io::Error::new(error.kind(), format!("{error}; {HINT}")),
        _ => error,
    }
}

fn end_of_stream(is_between_messages: bool) -> io::Error {
    let message = match is_between_messages {
        true => "the peer closed it",
        false => "the peer closed it in the middle of a reply",
    };
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

/// Whether nothing has come, which says nothing of the connection.
fn is_for_now(error: &io::Error) -> bool {
    is_deadline(error) || error.kind() == io::ErrorKind::WouldBlock
}
