//! Time stamps: when a call passed the places of its way through the server, which a client may ask
//! for and the reply then carries.

use tenon_wire::Buffer;

use super::extension::{Extension, Extensions};
use super::header::{Flags, HEADER, Header};
use super::kind::Kind;
use super::order::{ByteOrder, FieldReader};
use super::packet_times::PacketTimes;
use super::preamble::PREAMBLE;
use super::terms::MAGIC;

/// Bytes of the stamps of a reply.
const LENGTH: usize = 48;

/// Offset of the last stamp in a reply's extension: behind the extension's own 8 bytes.
const SENT: usize = 8 + LENGTH - 8;

/// Times at which a call passed the places of its way through the server, in ticks of the server's clock. Which clock
/// that is, and what it counts, is the server's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    /// Two ends that name the same number read the same clock; 0 is a clock that is not shared.
    pub clock: u64,
    /// Ticks of the clock in a second.
    pub rate: u64,
    /// The call was found among what was received.
    pub received: u64,
    /// It was handed to its service.
    pub dispatched: u64,
    /// The service was done, and the result encoded.
    pub done: u64,
    /// The reply was about to be sent.
    pub sent: u64,
    /// Times of packets, which are in an extension of their own.
    pub packets: Option<PacketTimes>,
}

impl Stamps {
    /// Bytes of the extension of a reply.
    pub(super) const EXTENSION: usize = 8 + LENGTH;

    /// The extension of a call that asks for stamps.
    pub const REQUEST: Extension<'static> = Extension {
        kind: Extension::STAMPS,
        content: &[],
    };

    /// Returns whether a call asks for stamps.
    pub(crate) fn are_asked_for(mut extensions: Extensions<'_>) -> bool {
        extensions.any(|extension| extension.kind == Extension::STAMPS)
    }

    /// The stamps that a reply carries, with the times of packets if it has them. Those that make no sense are none:
    /// nothing depends on them.
    pub fn find(extensions: Extensions<'_>) -> Option<Self> {
        let found = { extensions }.find(|extension| extension.kind == Extension::STAMPS)?;
        let stamps = Self::decode(found.content, extensions.order())?;
        Some(Self {
            packets: PacketTimes::find(extensions),
            ..stamps
        })
    }

    fn decode(content: &[u8], order: ByteOrder) -> Option<Self> {
        if content.len() != LENGTH {
            return None;
        }
        let mut input = FieldReader::new(content, order);
        let mut next = || input.u64().ok();
        let stamps = Self {
            clock: next()?,
            rate: next()?,
            received: next()?,
            dispatched: next()?,
            done: next()?,
            sent: next()?,
            packets: None,
        };
        stamps.make_sense().then_some(stamps)
    }

    fn make_sense(&self) -> bool {
        let times = [self.received, self.dispatched, self.done, self.sent];
        self.rate > 0 && times.is_sorted()
    }

    fn encode(&self, order: ByteOrder) -> [u8; LENGTH] {
        let numbers = [
            self.clock,
            self.rate,
            self.received,
            self.dispatched,
            self.done,
            self.sent,
        ];
        let mut bytes = [0; LENGTH];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&order.bytes_of_u64(number));
        }
        bytes
    }

    /// The extension of a reply until they are [put](Self::put) in.
    pub(super) const RESERVED: Extension<'static> = Extension {
        kind: Extension::STAMPS,
        content: &[0; LENGTH],
    };

    /// Puts them into the reply that begins at `start`, as its first extension.
    pub(super) fn put(&self, buffer: &mut Buffer, start: usize, order: ByteOrder) {
        let place = start + HEADER + 8;
        buffer.as_mut_slice()[place..place + LENGTH].copy_from_slice(&self.encode(order));
    }
}

/// Puts times of packets into `reply`, a whole message, as its last extension; returns the time of sending in the time
/// stamps of the reply. A message without time stamps stays as it is, as does one that would be larger than `message_max`
/// bytes.
pub(super) fn put_packet_times(
    times: &PacketTimes,
    reply: &mut Buffer,
    order: ByteOrder,
    message_max: u32,
) -> Option<u64> {
    let (header, content) = reply.as_slice().split_first_chunk::<HEADER>()?;
    let header = Header::decode(header, order).ok()?;
    if header.kind != Kind::Reply || !header.flags.has(Flags::EXTENSIONS) {
        return None;
    }
    let extensions = Extensions::parse(content, order).ok()?.extensions;
    let sent = Stamps::find(extensions)?.sent;
    let length = header.length + PacketTimes::EXTENSION as u32;
    let longer = Header { length, ..header };
    if longer.message_length() > u64::from(message_max) {
        return Some(sent);
    }
    let last = HEADER + extensions.offset_of_last();
    let (place, end) = (HEADER + extensions.size(), reply.len());
    reply.room(PacketTimes::EXTENSION);
    let bytes = reply.as_mut_slice();
    bytes[..HEADER].copy_from_slice(&longer.encode(order));
    bytes[last + 2..last + 4].copy_from_slice(&order.bytes_of_u16(1));
    bytes.copy_within(place..end, place + PacketTimes::EXTENSION);
    bytes[place..place + PacketTimes::EXTENSION].copy_from_slice(&times.encode(order));
    Some(sent)
}

/// Writes into every reply with stamps that it is sent now. `answers` is what a server is about to send,
/// whole and in its own order of bytes; its preamble may be in front.
pub fn stamp_sent(answers: &mut Buffer, order: ByteOrder, now: u64) {
    let bytes = answers.as_mut_slice();
    let mut start = match bytes.starts_with(&MAGIC) {
        true => PREAMBLE,
        false => 0,
    };
    while let Some(message) = bytes.get_mut(start..)
        && let Some(header) = message.first_chunk()
        && let Ok(header) = Header::decode(header, order)
    {
        let end = HEADER + header.length as usize;
        if header.kind == Kind::Reply
            && header.flags.has(Flags::EXTENSIONS)
            && let Some(content) = message.get_mut(HEADER..end)
        {
            stamp_reply(content, order, now);
        }
        start += header.message_length() as usize;
    }
}

/// `content` is what follows the header of a reply.
fn stamp_reply(content: &mut [u8], order: ByteOrder, now: u64) {
    let found = Extensions::parse(content, order).ok();
    let first = found.and_then(|mut found| found.extensions.next());
    let is_ours = first.is_some_and(|first| first.kind == Extension::STAMPS);
    if is_ours && let Some(place) = content.get_mut(SENT..SENT + 8) {
        place.copy_from_slice(&order.bytes_of_u64(now));
    }
}
