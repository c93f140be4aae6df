//! A message: what stands behind its header, read and written.

use std::time::Duration;

use tenon_wire::Buffer;

use super::extension::{self, Extension, Extensions};
use super::fault::{Fault, Violation};
use super::header::{CallStreams, Flags, HEADER, Header};
use super::kind::Kind;
use super::order::{ByteOrder, FieldReader, pad, padding_of};

/// A message as it was received.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    /// Its header.
    pub header: Header,
    /// The position in the stream at which it begins.
    pub at: u64,
    /// The order of its bytes.
    pub order: ByteOrder,
    /// True if it came in pieces.
    pub in_pieces: bool,
    pub(super) content: &'m [u8],
}

/// The parts of a message.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'m> {
    /// The time that a call has from when it was received, if it has an end.
    pub time_left: Option<Duration>,
    /// The extensions that it carries.
    pub extensions: Extensions<'m>,
    /// The first extension that its receiver must understand and does not.
    pub unknown_extension: Option<u16>,
    /// The body.
    pub body: &'m [u8],
}

impl<'m> Message<'m> {
    /// Makes a message with this header. The header's first byte stands `at` in the stream; `content` is what follows
    /// the header.
    #[inline]
    pub(crate) fn new(header: Header, at: u64, order: ByteOrder, content: &'m [u8]) -> Self {
        Self {
            header,
            at,
            order,
            in_pieces: false,
            content,
        }
    }

    /// Returns the same message, which came in pieces.
    pub(crate) fn joined(self) -> Self {
        Self {
            in_pieces: true,
            ..self
        }
    }

    /// The message that `bytes` begin with, `at` bytes into what was received without a stream, and what stands
    /// behind it. Flags that only streams have are faults.
    #[inline]
    pub(crate) fn split(
        bytes: &'m [u8],
        at: u64,
        order: ByteOrder,
    ) -> Result<(Self, &'m [u8]), Violation> {
        let is_short = |expected: u64, got: usize, at: u64| {
            let got = got as u64;
            Fault::Short { expected, got }.at(at)
        };
        let Some((header, rest)) = bytes.split_first_chunk() else {
            return Err(is_short(HEADER as u64, bytes.len(), at));
        };
        let header = Header::decode(header, order)
            .map_err(|(fault, offset)| fault.at(at + offset as u64))?;
        let of_streams = Flags::ARGUMENT_STREAM | Flags::RESULT_STREAM;
        if header.flags.has(Flags::MORE | Flags::REVERSE | of_streams) {
            let (kind, flags) = (header.kind, header.flags.0);
            return Err(Fault::Flags { kind, flags }.at(at));
        }
        let length = header.message_length() - HEADER as u64;
        let parts = usize::try_from(length).ok();
        let Some((content, behind)) = parts.and_then(|length| rest.split_at_checked(length)) else {
            return Err(is_short(length, rest.len(), at + HEADER as u64));
        };
        let message = Self {
            header,
            at,
            order,
            in_pieces: false,
            content: &content[..header.length as usize],
        };
        Ok((message, behind))
    }

    /// Takes the message apart.
    ///
    /// # Errors
    /// It ends inside of what stands in front of its body.
    #[inline]
    pub fn parts(&self) -> Result<Parts<'m>, Violation> {
        match self.header.flags.0 & Flags::IN_FRONT {
            0 => Ok(Parts {
                time_left: None,
                extensions: Extensions::none(self.order),
                unknown_extension: None,
                body: self.content,
            }),
            _ => self.parts_behind_flags(),
        }
    }

    #[cold]
    fn parts_behind_flags(&self) -> Result<Parts<'m>, Violation> {
        let mut input = FieldReader::new(self.content, self.order);
        let flags = self.header.flags;
        let time_left = match flags.has(Flags::DEADLINE) {
            true => Some(input.u64().map_err(|fault| self.violation(fault, 0))?),
            false => None,
        };
        let mut parts = Parts {
            time_left: time_left.map(Duration::from_micros),
            extensions: Extensions::none(self.order),
            unknown_extension: None,
            body: input.rest,
        };
        if flags.has(Flags::EXTENSIONS) {
            let before = input.position();
            let found = Extensions::parse(input.rest, self.order)
                .map_err(|(fault, offset)| self.violation(fault, before + offset))?;
            parts.extensions = found.extensions;
            parts.unknown_extension = found.unknown;
            parts.body = found.body;
        }
        Ok(parts)
    }

    /// Returns the body of a message that the receiver must understand in full.
    #[inline]
    pub(crate) fn understood(&self) -> Result<Parts<'m>, Violation> {
        let parts = self.parts()?;
        match parts.unknown_extension {
            None => Ok(parts),
            Some(kind) => Err(self.violation(Fault::Extension(kind), 0)),
        }
    }

    /// Reads all of the body, which is no stub's, by `read`.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&mut FieldReader<'m>) -> Result<T, Fault>,
    ) -> Result<T, Violation> {
        let mut fields = self.fields()?;
        match read(&mut fields) {
            Ok(value) => self.check_end(&fields).map(|()| value),
            Err(fault) => Err(self.fault_behind(&fields, fault)),
        }
    }

    /// Returns the fields of the body.
    fn fields(&self) -> Result<FieldReader<'m>, Violation> {
        Ok(FieldReader::new(self.understood()?.body, self.order))
    }

    /// Checks that all of the body was read, which ends the message.
    fn check_end(&self, fields: &FieldReader<'_>) -> Result<(), Violation> {
        match fields.rest.len() {
            0 => Ok(()),
            more => Err(self.fault_behind(fields, Fault::Long(more as u64))),
        }
    }

    /// A fault behind the fields of the body that were read.
    fn fault_behind(&self, fields: &FieldReader<'_>, fault: Fault) -> Violation {
        self.violation(fault, self.content.len() - fields.rest.len())
    }

    /// Returns what stands behind the header, without padding.
    #[inline]
    pub fn content(&self) -> &'m [u8] {
        self.content
    }

    /// A fault so many bytes behind the header.
    pub(super) fn violation(&self, fault: Fault, offset: usize) -> Violation {
        fault.at(self.at + (HEADER + offset) as u64)
    }

    /// A fault of the header itself, so many bytes into it.
    pub(crate) fn header_violation(&self, fault: Fault, offset: u64) -> Violation {
        fault.at(self.at + offset)
    }
}

/// The optional fields in front of the arguments of a call, or of the result of a reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'e> {
    /// The time that the call has; only calls have one.
    pub time_left: Option<Duration>,
    /// Extensions.
    pub extensions: &'e [Extension<'e>],
    /// True if the call that the message belongs to is made by the end that accepted the connection.
    pub reverse: bool,
    /// The streams of a call.
    pub streams: CallStreams,
}

/// A message that is being written at the end of a buffer. Its body follows what is there once it
/// was begun, and is 8-byte aligned if the message is.
#[derive(Debug, Clone, Copy)]
pub struct MessageDraft {
    start: usize,
    /// As far as it is known when the message is begun.
    header: Header,
    order: ByteOrder,
    has_time: bool,
}

impl MessageDraft {
    /// Begins a call: header, time and extensions. Its number and its service are
    /// [stamped](Self::stamp) when they are known.
    #[inline]
    pub fn call(
        buffer: &mut Buffer,
        order: ByteOrder,
        procedure: u16,
        extras: &Extras<'_>,
    ) -> Self {
        let header = Header {
            kind: Kind::Call,
            flags: flags(extras),
            id: 0,
            service: 0,
            procedure,
            length: 0,
        };
        Self::begin(buffer, order, header, extras)
    }

    /// Begins a call that has nothing in front of its arguments.
    #[inline]
    pub fn plain_call(buffer: &mut Buffer, order: ByteOrder, procedure: u16) -> Self {
        let header = Header {
            kind: Kind::Call,
            flags: Flags::default(),
            id: 0,
            service: 0,
            procedure,
            length: 0,
        };
        let start = buffer.len();
        *buffer.chunk() = header.encode(order);
        Self {
            start,
            header,
            order,
            has_time: false,
        }
    }

    #[inline]
    pub(super) fn begin(
        buffer: &mut Buffer,
        order: ByteOrder,
        header: Header,
        extras: &Extras<'_>,
    ) -> Self {
        let start = buffer.len();
        *buffer.chunk() = header.encode(order);
        if header.flags.0 & Flags::IN_FRONT != 0 {
            put_extras(buffer, order, extras);
        }
        Self {
            start,
            header,
            order,
            has_time: extras.time_left.is_some(),
        }
    }

    /// Returns the draft that a whole message at the beginning of a buffer was written as, to be
    /// [stamped](Self::stamp) again. `None` if it does not begin with a header.
    pub(crate) fn of_whole(buffer: &Buffer, order: ByteOrder) -> Option<Self> {
        let header = Header::decode(buffer.as_slice().first_chunk()?, order).ok()?;
        let has_time = header.flags.has(Flags::DEADLINE);
        Some(Self {
            start: 0,
            header,
            order,
            has_time,
        })
    }

    /// Writes anew how much time a call has, which may have waited since it was begun. One that was begun without a
    /// time keeps none.
    ///
    /// # Panics
    /// The message is no longer in `buffer`.
    pub fn set_time_left(self, buffer: &mut Buffer, time_left: Duration) {
        if self.has_time {
            let begin = self.start + HEADER;
            let time = self.order.bytes_of_u64(micros(time_left));
            buffer.as_mut_slice()[begin..begin + time.len()].copy_from_slice(&time);
        }
    }

    /// Gives a call its number and its service.
    ///
    /// # Panics
    /// The message is no longer in `buffer`.
    #[inline(always)]
    pub fn stamp(self, buffer: &mut Buffer, id: u32, service: u16) {
        let Some(bytes) = self.header_in(buffer) else {
            return;
        };
        let [.., a, b, c, d] = *bytes;
        let header = Header {
            id,
            service,
            ..self.header
        };
        let (first, second) = bytes.split_at_mut(HEADER / 2);
        first.copy_from_slice(&header.first_half(self.order));
        second.copy_from_slice(&header.second_half(self.order, [a, b, c, d]));
    }

    /// Whole halves of it are written, never parts: what reads it next as words would have to wait until
    /// parts have come together.
    #[inline]
    fn header_in(self, buffer: &mut Buffer) -> Option<&mut [u8; HEADER]> {
        buffer.as_mut_slice()[self.start..].first_chunk_mut()
    }

    /// Bytes that the message has if it ends where the buffer does.
    #[inline]
    pub fn size(self, buffer: &Buffer) -> usize {
        let length = buffer.len() - self.start - HEADER;
        HEADER + length + padding_of(length)
    }

    /// Ends a call as [`seal`](Self::seal) does, and gives it its number and its service as
    /// [`stamp`](Self::stamp) does.
    ///
    /// # Panics
    /// The message is no longer in `buffer`.
    #[inline(always)]
    pub fn finish(self, buffer: &mut Buffer, id: u32, service: u16) {
        let length = buffer.len() - self.start - HEADER;
        pad(buffer, length);
        let header = Header {
            id,
            service,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            ..self.header
        };
        if let Some(bytes) = self.header_in(buffer) {
            let (first, second) = bytes.split_at_mut(HEADER / 2);
            let field = self.order.bytes_of_u32(header.length);
            first.copy_from_slice(&header.first_half(self.order));
            second.copy_from_slice(&header.second_half(self.order, field));
        }
    }

    /// Ends the message where the buffer ends: writes its length and its padding. Returns its bytes.
    /// One of 4 GiB and more has no length; it is over every limit.
    ///
    /// # Panics
    /// The message is no longer in `buffer`.
    #[inline]
    pub fn seal(self, buffer: &mut Buffer) -> usize {
        let length = buffer.len() - self.start - HEADER;
        pad(buffer, length);
        let field = u32::try_from(length).unwrap_or(u32::MAX);
        if let Some(bytes) = self.header_in(buffer) {
            let half = (self.header).second_half(self.order, self.order.bytes_of_u32(field));
            bytes[HEADER / 2..].copy_from_slice(&half);
        }
        HEADER + length + padding_of(length)
    }

    /// Says in the header of a call which streams it has.
    ///
    /// # Panics
    /// The message is no longer in `buffer`.
    #[must_use]
    pub fn with_streams(self, buffer: &mut Buffer, streams: CallStreams) -> Self {
        let flags = Flags(self.header.flags.0 | streams.flags());
        let header = Header {
            flags,
            ..self.header
        };
        if let Some(bytes) = self.header_in(buffer) {
            bytes[..HEADER / 2].copy_from_slice(&header.first_half(self.order));
        }
        Self { header, ..self }
    }

    /// Says in the header that the call is one of the end that has accepted the connection.
    ///
    /// # Panics
    /// The message is no longer in `buffer`.
    #[must_use]
    pub fn with_reverse(self, buffer: &mut Buffer) -> Self {
        let header = self.header.reversed(true);
        if let Some(bytes) = self.header_in(buffer) {
            bytes[..HEADER / 2].copy_from_slice(&header.first_half(self.order));
        }
        Self { header, ..self }
    }

    /// Says in the header that extensions stand behind it.
    pub(super) fn with_extensions(self, buffer: &mut Buffer) -> Self {
        let flags = Flags(self.header.flags.0 | Flags::EXTENSIONS);
        let header = Header {
            flags,
            ..self.header
        };
        if let Some(bytes) = self.header_in(buffer) {
            bytes[..HEADER / 2].copy_from_slice(&header.first_half(self.order));
        }
        Self { header, ..self }
    }

    /// Returns the streams of a call.
    #[inline]
    pub fn streams(&self) -> CallStreams {
        CallStreams::of(self.header.flags)
    }

    /// Returns the index of the message's first byte in the buffer.
    pub(super) fn start(self) -> usize {
        self.start
    }
}

/// Appends a message with a short body of words.
pub(crate) fn put_message(
    buffer: &mut Buffer,
    order: ByteOrder,
    header: Header,
    body: impl FnOnce(&mut Buffer),
) {
    let draft = begin_message(buffer, order, header);
    body(buffer);
    end_message(draft, buffer);
}

/// Begins a message with a short body, apart from the code that is made for each body.
fn begin_message(buffer: &mut Buffer, order: ByteOrder, header: Header) -> MessageDraft {
    MessageDraft::begin(buffer, order, header, &Extras::default())
}

/// Ends what [`begin_message`] has begun.
fn end_message(draft: MessageDraft, buffer: &mut Buffer) {
    draft.seal(buffer);
}

/// Returns a header without flags, of a message of yet unknown length.
pub(crate) fn plain(kind: Kind, id: u32, service: u16) -> Header {
    Header {
        kind,
        flags: Flags::default(),
        id,
        service,
        procedure: 0,
        length: 0,
    }
}

pub(super) fn flags(extras: &Extras<'_>) -> Flags {
    let deadline = match extras.time_left {
        Some(_) => Flags::DEADLINE,
        None => 0,
    };
    let extensions = match extras.extensions {
        [] => 0,
        _ => Flags::EXTENSIONS,
    };
    let reverse = if extras.reverse { Flags::REVERSE } else { 0 };
    Flags(deadline | extensions | reverse | extras.streams.flags())
}

fn put_extras(buffer: &mut Buffer, order: ByteOrder, extras: &Extras<'_>) {
    if let Some(time_left) = extras.time_left {
        buffer.extend(&order.bytes_of_u64(micros(time_left)));
    }
    extension::encode(extras.extensions, buffer, order);
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
