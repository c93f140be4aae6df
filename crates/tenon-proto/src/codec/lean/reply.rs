//! Answers: written by the callee, with no more than what the call said of its caller.

use tenon_wire::Buffer;

use super::exception::{Exception, Status};
use super::extension::Extension;
use super::header::{CommonHeader, Flags, HEADER, Header};
use super::kind::Kind;
use super::message::{Extras, MessageDraft, flags};
use super::metadata::Metadata;
use super::order::ByteOrder;
use super::packet_times::PacketTimes;
use super::stamps::{Stamps, put_packet_times};

/// The facts about a call that its answer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The number of the call.
    pub id: u32,
    service: u16,
    pub(super) procedure: u16,
    /// The order of the answer.
    order: ByteOrder,
    /// Bytes of the largest message that the client takes in.
    message_max: u32,
    /// True if the answering end has begun the connection.
    reverse: bool,
}

/// An answer that is being written at the end of a buffer, which holds whole messages before it. In
/// the end it is [sealed](Self::seal).
#[derive(Debug, Clone, Copy)]
pub struct ReplyDraft {
    draft: MessageDraft,
    caller: Caller,
    /// True if there is room for stamps in it.
    is_stamped: bool,
}

impl ReplyDraft {
    /// Appends the header of a result, which is encoded right behind.
    #[inline]
    pub fn begin(buffer: &mut Buffer, caller: Caller) -> Self {
        Self::begin_with(buffer, caller, &Extras::default())
    }

    /// Appends the header of a result and extensions.
    #[inline]
    pub fn begin_with(buffer: &mut Buffer, caller: Caller, extras: &Extras<'_>) -> Self {
        let extras = Extras {
            time_left: None,
            reverse: caller.reverse,
            ..*extras
        };
        let header = caller.header(Kind::Reply, flags(&extras));
        let draft = MessageDraft::begin(buffer, caller.order, header, &extras);
        Self {
            draft,
            caller,
            is_stamped: false,
        }
    }

    /// Appends the header of a result and room for the stamps that its client asks for, which are
    /// known when it is [sealed](Self::seal_stamped).
    pub fn begin_stamped(buffer: &mut Buffer, caller: Caller) -> Self {
        let extras = Extras {
            extensions: &[Stamps::RESERVED],
            ..Extras::default()
        };
        Self {
            is_stamped: true,
            ..Self::begin_with(buffer, caller, &extras)
        }
    }

    /// Drops whatever was written of the result and refuses the call instead.
    #[must_use]
    pub fn refuse(self, buffer: &mut Buffer, exception: &Exception<'_>) -> Self {
        buffer.truncate(self.draft.start());
        let caller = self.caller;
        let extras = Extras {
            reverse: caller.reverse,
            ..Extras::default()
        };
        let header = caller.header(Kind::Exception, flags(&extras));
        let draft = MessageDraft::begin(buffer, caller.order, header, &extras);
        exception.encode(buffer, caller.order);
        Self {
            draft,
            caller,
            is_stamped: false,
        }
    }

    /// Puts metadata in front of what was written of the answer, a result or an exception, which is moved; once for an
    /// answer.
    #[cold]
    #[must_use]
    pub fn with_metadata(self, buffer: &mut Buffer, metadata: &Metadata) -> Self {
        let order = self.caller.order;
        let start = self.draft.start() + HEADER;
        let place = match self.is_stamped {
            true => {
                // The time stamps are followed by another extension.
                let bytes = &mut buffer.as_mut_slice()[start + 2..start + 4];
                bytes.copy_from_slice(&order.bytes_of_u16(1));
                start + Stamps::EXTENSION
            }
            false => start,
        };
        let (end, size) = (buffer.len(), Extension::HEADER + metadata.padded_size());
        buffer.room(size);
        let bytes = buffer.as_mut_slice();
        bytes.copy_within(place..end, place + size);
        let (front, content) = bytes[place..place + size].split_at_mut(Extension::HEADER);
        front[..2].copy_from_slice(&order.bytes_of_u16(Extension::METADATA));
        front[2..4].fill(0);
        front[4..].copy_from_slice(&order.bytes_of_u32(metadata.size() as u32));
        metadata.put(content, order);
        Self {
            draft: self.draft.with_extensions(buffer),
            ..self
        }
    }

    /// Ends the answer. One that is larger than the client takes in becomes an exception.
    #[inline]
    pub fn seal(self, buffer: &mut Buffer) {
        let size = self.draft.seal(buffer);
        if size as u64 > u64::from(self.caller.message_max) {
            self.refuse_for_size(buffer, size);
        }
    }

    /// Ends the answer and says in it when the call passed which place, as far as the client asked for that: an
    /// exception carries no stamps. When it is sent is [said anew](super::stamp_sent) by the sending code.
    pub fn seal_stamped(self, buffer: &mut Buffer, stamps: &Stamps) {
        if self.is_stamped {
            stamps.put(buffer, self.draft.start(), self.caller.order);
        }
        self.seal(buffer);
    }

    #[cold]
    fn refuse_for_size(self, buffer: &mut Buffer, size: usize) {
        let limit = self.caller.message_max;
        let message = format!("{size} bytes, where {limit} are the most");
        let exception = Exception::new(Status::TOO_LARGE, &message);
        self.refuse(buffer, &exception).draft.seal(buffer);
    }
}

impl Caller {
    /// Makes the caller of a call with this header, an end that takes in messages of at most `message_max` bytes. The
    /// answer is in `order`.
    #[inline]
    pub(crate) fn new(header: &Header, order: ByteOrder, message_max: u32) -> Self {
        Self {
            id: header.id,
            service: header.service,
            procedure: header.procedure,
            order,
            message_max,
            reverse: header.flags.has(Flags::REVERSE),
        }
    }

    /// Does the same for a call with a header of the commonest form.
    #[inline]
    pub(crate) fn common(header: CommonHeader, order: ByteOrder, message_max: u32) -> Self {
        Self {
            id: header.id(),
            service: header.service(),
            procedure: header.procedure(),
            order,
            message_max,
            reverse: false,
        }
    }

    /// The number of the procedure.
    #[inline]
    pub fn procedure(&self) -> u16 {
        self.procedure
    }

    /// Puts the times of packets into a sealed reply, which is all that is in `reply`, behind its other extensions;
    /// returns the time of sending in its time stamps. A message without time stamps, an exception for example, stays as
    /// it is, as does one that would be larger than the client takes in.
    #[cold]
    pub fn put_packet_times(self, reply: &mut Buffer, times: &PacketTimes) -> Option<u64> {
        put_packet_times(times, reply, self.order, self.message_max)
    }

    /// Appends an answer with a result of no bytes.
    #[inline]
    pub(crate) fn put_empty(self, buffer: &mut Buffer) {
        let header = self
            .header(Kind::Reply, Flags::default())
            .reversed(self.reverse);
        *buffer.chunk() = header.encode(self.order);
    }

    #[inline]
    fn header(self, kind: Kind, flags: Flags) -> Header {
        Header {
            kind,
            flags,
            id: self.id,
            service: self.service,
            procedure: self.procedure,
            length: 0,
        }
    }
}
