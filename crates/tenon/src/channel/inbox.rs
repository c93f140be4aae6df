//! What a channel receives: the reader of its protocol, whatever hands it the bytes.

use std::io;
use std::ops::Range;

use tenon_net::{Address, Came, Carrier, is_deadline};
use tenon_proto::exchange::{PACKET_HEADER, Whole, is_one_of_many};
use tenon_proto::lean::{ByteOrder, Incoming, MessageReader, Stamps};
use tenon_proto::onc::message::ReplyHeader;
use tenon_proto::onc::record::RecordReader;

use super::broken::Broken;
use super::engine::preamble;
use super::exchange::exchange_preamble;
use super::form::Started;
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
    Datagram(LastCame),
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
    Packet(&'m [u8], &'m mut Taken),
}

impl Received<'_> {
    /// The bytes of a packet of which several are likely to come together.
    #[inline]
    pub fn train(&self) -> Option<usize> {
        match self {
            Self::Packet(packet, _) => is_one_of_many(packet).then_some(packet.len()),
            Self::Record(_) | Self::Lean(_) => None,
        }
    }
}

/// What has come of the packet exchange.
#[derive(Debug)]
struct Packets {
    came: LastCame,
    taken: Taken,
}

/// What the packets that have come have made whole.
#[derive(Debug)]
pub struct Taken {
    /// The answer, if it came in several.
    pub(super) whole: Whole,
    /// What the last answer that had more than others has said of the way of its call.
    pub(super) stamps: Option<Stamps>,
}

/// Room for the largest datagram there is, or for packets that come together, and what of it is filled.
#[derive(Debug)]
struct LastCame {
    room: Box<[u8]>,
    length: usize,
    /// Bytes of each packet but the last.
    size: usize,
    /// The packet that was handed out last.
    packet: Range<usize>,
    /// Whether there is another behind it.
    has_next: bool,
}

impl Default for LastCame {
    fn default() -> Self {
        Self {
            room: vec![0; Carrier::RECEIVE_MAX].into(),
            length: 0,
            size: 0,
            packet: 0..0,
            has_next: false,
        }
    }
}

impl LastCame {
    #[inline]
    fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<Came>) -> io::Result<()> {
        let came = receive(&mut self.room)?;
        (self.length, self.size) = (came.length, came.size);
        self.packet = 0..0;
        self.has_next = true;
        Ok(())
    }

    /// Goes on to the next packet, if there is one. An empty one is one, too.
    #[inline]
    fn advance(&mut self) -> bool {
        if !self.has_next {
            return false;
        }
        self.packet = self.next();
        self.has_next = self.packet.end < self.length && self.size > 0;
        true
    }

    #[inline]
    fn next(&self) -> Range<usize> {
        let start = self.packet.end;
        start..self.length.min(start + self.size)
    }

    /// The packet that is the next, if there is one.
    #[inline]
    fn next_packet(&self) -> Option<&[u8]> {
        self.has_next.then(|| &self.room[self.next()])
    }

    #[inline]
    fn packet(&self) -> &[u8] {
        &self.room[self.packet.clone()]
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
            Address::LeanUdp(_) | Address::Xdp(_) => Reader::Packets(Box::new(Packets {
                came: LastCame::default(),
                taken: Taken {
                    whole: Whole::new(&exchange_preamble(options)),
                    stamps: None,
                },
            })),
            Address::Tcp(_) | Address::Unix(_) => {
                Reader::Records(RecordReader::new(options.receive_max))
            }
            Address::Udp(_) => Reader::Datagram(LastCame::default()),
        })
    }

    /// Has `receive` put in what comes next, and says how much it was: of a stream 0 bytes are its
    /// end.
    ///
    /// # Errors
    /// That of `receive`; the end of the stream.
    #[inline]
    pub fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<Came>) -> io::Result<()> {
        match &mut self.0 {
            Reader::Records(records) => match receive(records.room())?.length {
                0 => return Err(end_of_stream(records.is_between_records())),
                bytes => records.filled(bytes),
            },
            Reader::Messages(messages) => {
                let came = receive(messages.room());
                fill_messages(messages, came.map(|came| came.length))?;
            }
            Reader::Datagram(last) => last.fill(receive)?,
            Reader::Packets(packets) => packets.came.fill(receive)?,
        }
        Ok(())
    }

    /// The reader of the lean protocol over a stream, if that is what is received.
    #[inline]
    pub(super) fn messages(&mut self) -> Option<&mut MessageReader> {
        match &mut self.0 {
            Reader::Messages(messages) => Some(messages),
            Reader::Records(_) | Reader::Datagram(_) | Reader::Packets(_) => None,
        }
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
            Reader::Datagram(last) => Ok(last.advance().then(|| Received::Record(last.packet()))),
            Reader::Packets(packets) => {
                let Packets { came, taken } = &mut **packets;
                taken.whole.clear();
                Ok(came
                    .advance()
                    .then(|| Received::Packet(came.packet(), taken)))
            }
        }
    }

    /// The packet that has come next, unless it is one of many.
    #[inline]
    pub fn single_packet(&self) -> Option<&[u8]> {
        match &self.0 {
            Reader::Packets(packets) => {
                let packet = packets.came.next_packet()?;
                (!is_one_of_many(packet)).then_some(packet)
            }
            Reader::Records(_) | Reader::Messages(_) | Reader::Datagram(_) => None,
        }
    }

    /// Leaves that packet behind, in which an answer was found: it is the message that came last.
    #[inline]
    pub fn take_single_packet(&mut self) {
        if let Reader::Packets(packets) = &mut self.0 {
            packets.came.advance();
            packets.taken.whole.clear();
            packets.taken.stamps = None;
        }
    }

    /// Whether packets have come that are still to be handed out.
    #[inline]
    pub fn has_more_packets(&self) -> bool {
        match &self.0 {
            Reader::Packets(packets) => packets.came.has_next,
            Reader::Records(_) | Reader::Messages(_) | Reader::Datagram(_) => false,
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

    /// Whether nothing has come that was not handed out.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Reader::Records(records) => records.is_between_records(),
            Reader::Messages(messages) => messages.is_between_messages(),
            Reader::Datagram(last) => !last.has_next,
            Reader::Packets(packets) => !packets.came.has_next,
        }
    }

    /// Takes what has been received next, if it is the reply to this call and of the commonest form, and says
    /// where its results are in what [`message`](Self::message) returns. Otherwise it stays the next.
    #[inline]
    pub fn take_reply(&mut self, call: &Started) -> Option<(Range<usize>, ByteOrder)> {
        let results = match &mut self.0 {
            Reader::Messages(messages) => {
                return Some((take_lean_reply(messages, call)?, ByteOrder::NATIVE));
            }
            Reader::Records(records) => {
                let results = results_of(records.find_whole()?, call.id)?;
                records.take_whole(results.end);
                results
            }
            Reader::Datagram(last) => {
                let results = results_of(last.next_packet()?, call.id)?;
                last.advance();
                results
            }
            Reader::Packets(_) => return None,
        };
        Some((results, ByteOrder::Big))
    }

    /// The message that [`next_received`](Self::next_received) returned last; of a lean one its body, of a
    /// packet the answer that it made whole.
    #[inline]
    pub fn message(&self) -> &[u8] {
        match &self.0 {
            Reader::Records(records) => records.record(),
            Reader::Messages(messages) => messages.body(),
            Reader::Datagram(last) => last.packet(),
            Reader::Packets(packets) => match packets.taken.whole.message() {
                [] => packets
                    .came
                    .packet()
                    .get(PACKET_HEADER..)
                    .unwrap_or_default(),
                whole => whole,
            },
        }
    }

    /// What is at `place` in the [message](Self::message), where the results of a call are: of a lean one all of it.
    #[inline]
    pub fn results(&self, place: &Range<usize>) -> &[u8] {
        match &self.0 {
            Reader::Messages(messages) => messages.body(),
            Reader::Records(_) | Reader::Datagram(_) | Reader::Packets(_) => {
                self.message().get(place.clone()).unwrap_or_default()
            }
        }
    }

    /// What the message that [`next_received`](Self::next_received) returned last says of the way of
    /// its call.
    pub fn stamps(&self) -> Option<Stamps> {
        match &self.0 {
            Reader::Records(_) | Reader::Datagram(_) => None,
            Reader::Packets(packets) => packets.taken.stamps,
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
    #[inline]
    pub fn shrink(&mut self) {
        match &mut self.0 {
            Reader::Records(records) => records.shrink_to(KEPT_MAX),
            Reader::Messages(messages) => messages.shrink_to(KEPT_MAX),
            Reader::Datagram(_) => {}
            Reader::Packets(packets) => packets.taken.whole.shrink_to(KEPT_MAX),
        }
    }
}

/// Notes how much was received into the room of `messages`.
///
/// # Errors
/// Nothing was; the end of the stream.
#[inline]
pub(super) fn fill_messages(
    messages: &mut MessageReader,
    received: io::Result<usize>,
) -> io::Result<()> {
    match received {
        Ok(0) => Err(end_of_messages(messages)),
        Ok(bytes) => {
            messages.filled(bytes);
            Ok(())
        }
        Err(error) if is_for_now(&error) => Err(error),
        Err(error) => Err(may_not_be_lean(messages, error)),
    }
}

/// As [`Inbox::take_reply`], of the lean protocol.
#[inline]
pub(super) fn take_lean_reply(
    messages: &mut MessageReader,
    call: &Started,
) -> Option<Range<usize>> {
    let header = messages.find_common()?;
    let is_meant = header.is_reply_to(call.id, call.service, call.procedure);
    is_meant.then(|| 0..messages.take_common(header).len())
}

/// Where in a message of ONC RPC the results are, if it is a successful reply to this call: it ends with them.
#[inline]
fn results_of(message: &[u8], xid: u32) -> Option<Range<usize>> {
    let (replied, results) = ReplyHeader::split_plain_success(message)?;
    (replied == xid).then_some(message.len() - results.len()..message.len())
}

#[cold]
fn end_of_messages(messages: &MessageReader) -> io::Error {
    may_not_be_lean(messages, end_of_stream(messages.is_between_messages()))
}

/// A peer that breaks a connection off without a word may never have heard of the protocol.
#[cold]
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
