//! The receiving half of a connection: which protocol the peer speaks, and where its messages begin and end in the
//! bytes of the stream.
//!
//! A [`Receiver`] belongs to the thread or task that receives, which needs no lock for it: what it finds is handed to
//! the [`Connection`](super::Connection).

mod detached;
mod frame;
mod messages;
mod records;
mod storage;

use std::ops::Range;

use super::started_call::StartedCall;
use crate::codec::lean::{self, CommonHeader, MESSAGE_MIN};
use crate::codec::onc::message::{PlainCall, ReplyHeader};
use crate::codec::onc::record::{MARK, RecordError};
use crate::codec::sniff::{Sniffed, UnknownPeer, sniff};
use crate::left_out::{IfLean, IfOnc, if_lean, if_onc};

pub use detached::Detached;
pub use frame::Frame;
pub use messages::{MessageReader, PARTIAL_MESSAGES_MAX};
pub use records::RecordReader;
pub use storage::ROOM_FIRST;
pub(crate) use storage::{OutOfMemory, ReceiveBuffer};

/// Bytes that are received at once while the protocol is not known: the first storage of either reader holds them.
const FIRST_RECEIVE_MAX: usize = 8 << 10;

/// Memory that a connection receives into, and that may be lent from one to another.
#[derive(Debug, Default)]
pub struct ReceiveMemory {
    /// For what is received.
    room: Vec<u8>,
    /// For messages that are detached while others have been received behind them.
    spare: Vec<u8>,
}

impl ReceiveMemory {
    /// Returns whether all of it is lent.
    #[inline]
    fn is_empty(&self) -> bool {
        self.room.is_empty() && self.spare.is_empty()
    }
}

/// The reason for which a stream cannot be read on: the peer's fault, and the end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The peer speaks neither protocol.
    #[error(transparent)]
    UnknownPeer(#[from] UnknownPeer),
    /// The peer broke record marking, or a limit.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The peer broke the lean protocol.
    #[error(transparent)]
    Lean(#[from] lean::Violation),
    /// The peer speaks a protocol that this program was built without.
    #[error("the peer speaks {0}, which this program was built without")]
    LeftOut(&'static str),
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Receiver {
    reader: ProtocolReader,
    /// Bytes of the longest message that is accepted.
    limit: usize,
    /// Memory for messages that are [detached](Self::detach).
    spare: Option<ReceiveBuffer>,
    /// Bytes that a [layer](super::ByteLayer) below has to take in, and plain bytes that it has found.
    layered: Option<Box<LayerBuffers>>,
}

/// A successful reply of the commonest form, with nothing beside its results.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlainReply {
    /// By the lean protocol.
    Lean(CommonHeader),
    /// By ONC RPC: the number of the call, and the bytes of the record and of the results at its end.
    Onc {
        number: u32,
        length: usize,
        results: usize,
    },
}

/// The bytes on both sides of a layer.
#[derive(Debug)]
struct LayerBuffers {
    wire: ReceiveBuffer,
    /// Plain bytes for which the reader has had no room.
    plain: Vec<u8>,
    /// Of those, the first that the reader has not.
    next: usize,
}

#[derive(Debug)]
enum ProtocolReader {
    /// Too little has come to know the protocol.
    Unknown(RecordReader),
    Onc(IfOnc<RecordReader>),
    Lean(IfLean<Box<MessageReader>>),
}

/// Does the same with the present reader.
macro_rules! with_reader {
    ($reader:expr, $name:ident => $do:expr) => {
        match $reader {
            PresentReader::Messages($name) => $do,
            PresentReader::Records($name) => $do,
        }
    };
}

/// The present reader by what it reads: messages of the lean protocol, or records.
enum PresentReader<M, R> {
    Messages(M),
    Records(R),
}

impl ProtocolReader {
    #[inline(always)]
    fn present(&self) -> PresentReader<&MessageReader, &RecordReader> {
        match self {
            Self::Lean(reader) => PresentReader::Messages(reader),
            Self::Onc(reader) => PresentReader::Records(reader),
            Self::Unknown(reader) => PresentReader::Records(reader),
        }
    }

    #[inline(always)]
    fn present_mut(&mut self) -> PresentReader<&mut MessageReader, &mut RecordReader> {
        match self {
            Self::Lean(reader) => PresentReader::Messages(reader),
            Self::Onc(reader) => PresentReader::Records(reader),
            Self::Unknown(reader) => PresentReader::Records(reader),
        }
    }
}

impl LayerBuffers {
    fn room_within(&mut self, may_have: impl FnOnce(usize) -> bool) -> Option<&mut [u8]> {
        if self.wire.lacks(1) {
            let capacity = self.wire.capacity_with_room(self.wire.base());
            if !may_have(capacity + self.plain.capacity()) {
                return None;
            }
            self.wire.make_room(self.wire.base());
            if self.wire.lacks(1) {
                return None;
            }
        }
        Some(self.wire.room())
    }
}

impl Receiver {
    /// A receiver of records of ONC RPC of at most `limit` bytes.
    pub fn onc(limit: usize) -> Self {
        Self::with(ProtocolReader::Onc(if_onc(RecordReader::new(limit))), limit)
    }

    /// A receiver of messages of the lean protocol of at most `limit` bytes.
    pub fn lean(limit: usize) -> Self {
        Self::with(
            ProtocolReader::Lean(if_lean(Box::new(MessageReader::new(limit)))),
            limit,
        )
    }

    /// A receiver that finds out by the first bytes which protocol the peer speaks.
    pub fn sniffing(limit: usize) -> Self {
        Self::with(ProtocolReader::Unknown(RecordReader::new(limit)), limit)
    }

    fn with(reader: ProtocolReader, limit: usize) -> Self {
        Self {
            reader,
            limit,
            spare: None,
            layered: None,
        }
    }

    /// Returns where to put received bytes, if `may_have` agrees to the bytes of memory that the receiver has then, and
    /// the allocator has them.
    #[inline(always)]
    pub fn room_within(&mut self, may_have: impl FnOnce(usize) -> bool) -> Option<&mut [u8]> {
        if let Some(layered) = &mut self.layered {
            let has_run_out = with_reader!(self.reader.present(), reader => reader.has_run_out());
            return layered.room_within(|capacity| !has_run_out && may_have(capacity));
        }
        match &mut self.reader {
            ProtocolReader::Lean(reader) => reader.room_within(may_have),
            ProtocolReader::Onc(reader) => reader.room_within(may_have),
            ProtocolReader::Unknown(reader) => {
                let room = reader.room_within(may_have)?;
                let most = room.len().min(FIRST_RECEIVE_MAX);
                Some(&mut room[..most])
            }
        }
    }

    /// Returns where to put received bytes, however much memory that takes within the limit of a message. It is empty
    /// if the allocator has no memory.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        self.room_within(|_| true).unwrap_or_default()
    }

    /// Returns whether the last [room](Self::room) was empty: there was no memory, and the connection is over.
    #[cold]
    pub fn is_out_of_memory(&self) -> bool {
        match &self.layered {
            Some(layered) => {
                layered.wire.lacks(1)
                    || with_reader!(self.reader.present(), reader => reader.has_run_out())
            }
            None => with_reader!(self.reader.present(), reader => reader.lacks_room()),
        }
    }

    /// Reports that the first `bytes` of the [room](Self::room_within) have been received.
    ///
    /// # Errors
    /// The peer speaks neither protocol.
    ///
    /// # Panics
    /// There was less room.
    #[inline(always)]
    pub fn handle_received(&mut self, bytes: usize) -> Result<(), FramingError> {
        if let Some(layered) = &mut self.layered {
            layered.wire.fill(bytes);
            return Ok(());
        }
        self.fill(bytes)
    }

    #[inline(always)]
    fn fill(&mut self, bytes: usize) -> Result<(), FramingError> {
        match &mut self.reader {
            ProtocolReader::Lean(reader) => reader.handle_received(bytes),
            ProtocolReader::Onc(reader) => reader.handle_received(bytes),
            ProtocolReader::Unknown(_) => return self.identify(bytes),
        }
        Ok(())
    }

    #[cold]
    fn identify(&mut self, bytes: usize) -> Result<(), FramingError> {
        let ProtocolReader::Unknown(reader) = &mut self.reader else {
            return Ok(());
        };
        reader.handle_received(bytes);
        self.reader = match sniff(reader.unread(), self.limit)? {
            Sniffed::TooFew => return Ok(()),
            Sniffed::Onc if !cfg!(feature = "onc") => return Err(FramingError::LeftOut("ONC RPC")),
            Sniffed::Lean if !cfg!(feature = "lean") => {
                return Err(FramingError::LeftOut("the lean protocol"));
            }
            Sniffed::Onc => {
                let reader = std::mem::replace(reader, RecordReader::new(self.limit));
                ProtocolReader::Onc(if_onc(reader))
            }
            Sniffed::Lean => {
                // As the preamble of this end says.
                let mut messages = MessageReader::new(self.limit.max(MESSAGE_MIN as usize));
                messages.preload(reader.unread());
                ProtocolReader::Lean(if_lean(Box::new(messages)))
            }
        };
        Ok(())
    }

    /// Returns what is complete next. It stays where it is until the next call of this receiver.
    ///
    /// # Errors
    /// The stream cannot be read on; the same error comes again.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FramingError> {
        if self.layered.is_some() {
            return self.next_layered_frame();
        }
        match &mut self.reader {
            ProtocolReader::Lean(reader) => Ok(reader.next_frame()?),
            ProtocolReader::Onc(reader) => Ok(reader.next_record()?.map(Frame::Record)),
            ProtocolReader::Unknown(_) => Ok(None),
        }
    }

    // ---- A layer below ----

    /// Receives for a layer from now on: what was received and not handed out goes through it, too.
    pub(super) fn put_layer(&mut self) {
        let mut wire = ReceiveBuffer::new(1, ROOM_FIRST);
        with_reader!(self.reader.present_mut(), reader => reader.take_unread(|bytes| {
            wire = ReceiveBuffer::new(1, bytes.len());
            if wire.append(bytes).is_err() {
                wire.run_out();
            }
        }));
        self.layered = Some(Box::new(LayerBuffers {
            wire,
            plain: Vec::new(),
            next: 0,
        }));
    }

    /// Returns whether received bytes are to go through a layer:
    /// [`Connection::handle_layer_input`](super::Connection::handle_layer_input).
    #[inline]
    pub fn has_layer(&self) -> bool {
        self.layered.is_some()
    }

    /// Returns the bytes that the layer has to take in.
    pub(super) fn wire_bytes(&self) -> &[u8] {
        let layered = self.layered.as_ref();
        layered.map_or(&[], |layered| layered.wire.received(layered.wire.base()))
    }

    /// The layer has taken everything in.
    pub(super) fn clear_wire_bytes(&mut self) {
        if let Some(layered) = &mut self.layered {
            layered.wire.clear();
        }
    }

    /// Takes in plain bytes that the layer has found.
    pub(super) fn handle_plain(&mut self, bytes: &[u8]) -> Result<(), FramingError> {
        if let Some(layered) = &mut self.layered {
            layered.plain.extend_from_slice(bytes);
        }
        self.feed().map(drop)
    }

    /// Hands plain bytes to the reader, as many as it has room for; returns whether there were any.
    fn feed(&mut self) -> Result<bool, FramingError> {
        let Some(mut layered) = self.layered.take() else {
            return Ok(false);
        };
        let room = with_reader!(self.reader.present_mut(), reader => reader.room_within(|_| true));
        let room = room.unwrap_or_default();
        let rest = &layered.plain[layered.next..];
        let step = room.len().min(rest.len());
        room[..step].copy_from_slice(&rest[..step]);
        layered.next += step;
        if layered.next == layered.plain.len() {
            layered.plain.clear();
            layered.next = 0;
        }
        let filled = self.fill(step);
        self.layered = Some(layered);
        filled.map(|()| step > 0)
    }

    #[cold]
    fn next_layered_frame(&mut self) -> Result<Option<Frame<'_>>, FramingError> {
        loop {
            let found = match &mut self.reader {
                ProtocolReader::Lean(reader) => match reader.next_frame()? {
                    Some(Frame::Preamble(preamble)) => {
                        return Ok(Some(Frame::Preamble(preamble)));
                    }
                    found => found.is_some(),
                },
                ProtocolReader::Onc(reader) => reader.next_record()?.is_some(),
                ProtocolReader::Unknown(_) => false,
            };
            if found {
                return Ok(self.last_frame());
            }
            if !self.feed()? {
                return Ok(None);
            }
        }
    }

    /// Returns the reader of the lean protocol, if the peer speaks that.
    #[inline]
    pub fn lean_reader(&mut self) -> Option<&mut MessageReader> {
        match &mut self.reader {
            ProtocolReader::Lean(reader) => Some(reader),
            ProtocolReader::Onc(_) | ProtocolReader::Unknown(_) => None,
        }
    }

    /// Returns the reader of ONC RPC, if the peer speaks that.
    #[inline]
    pub fn onc_reader(&mut self) -> Option<&mut RecordReader> {
        match &mut self.reader {
            ProtocolReader::Onc(reader) => Some(reader),
            ProtocolReader::Lean(_) | ProtocolReader::Unknown(_) => None,
        }
    }

    /// Returns the header of the next message if that is a lean one, complete and of the commonest form.
    #[inline]
    pub fn find_common(&self) -> Option<CommonHeader> {
        match &self.reader {
            ProtocolReader::Lean(reader) => reader.find_common(),
            ProtocolReader::Onc(_) | ProtocolReader::Unknown(_) => None,
        }
    }

    /// Takes the next message, with the header that was [found](Self::find_common).
    #[inline]
    pub(super) fn take_common(&mut self, header: CommonHeader) {
        if let ProtocolReader::Lean(reader) = &mut self.reader {
            reader.take_common(header);
        }
    }

    /// Takes the next message if it is the successful reply to `call`, in its commonest form and without anything
    /// behind it. Returns where in [its content](Self::last_content) the results are.
    #[inline(always)]
    pub fn take_lone_reply(&mut self, call: &StartedCall) -> Option<Range<usize>> {
        match &mut self.reader {
            ProtocolReader::Lean(reader) => {
                let header = reader.find_common()?;
                let is_reply = header.is_reply_to(call.number, call.service, call.procedure);
                if !is_reply || header.message_length() != reader.unread() as u64 {
                    return None;
                }
                reader.take_common(header);
                Some(0..header.length() as usize)
            }
            ProtocolReader::Onc(reader) => {
                let record = reader.find_whole()?;
                let (number, results) = ReplyHeader::split_plain_success(record)?;
                let (length, results) = (record.len(), results.len());
                if number != call.number || MARK + length != reader.unread().len() {
                    return None;
                }
                reader.take_whole(length);
                Some(length - results..length)
            }
            ProtocolReader::Unknown(_) => None,
        }
    }

    /// Returns whether the peer is known to speak ONC RPC.
    #[inline]
    pub(super) fn is_onc(&self) -> bool {
        matches!(self.reader, ProtocolReader::Onc(_))
    }

    /// Returns the next call of ONC RPC if that is complete and of the commonest form, and the bytes of its record.
    #[inline(always)]
    pub(super) fn find_plain_call(&self) -> Option<(PlainCall, usize)> {
        let ProtocolReader::Onc(reader) = &self.reader else {
            return None;
        };
        let record = reader.find_whole()?;
        Some((PlainCall::find(record)?, record.len()))
    }

    /// Takes the next record, which was [found](Self::find_plain_call) to have so many bytes.
    #[inline]
    pub(super) fn take_record(&mut self, bytes: usize) {
        if let ProtocolReader::Onc(reader) = &mut self.reader {
            reader.take_whole(bytes);
        }
    }

    /// Returns what the next message is, if it is complete and a successful reply of the commonest form.
    #[inline(always)]
    pub(super) fn find_plain_reply(&self) -> Option<PlainReply> {
        match &self.reader {
            ProtocolReader::Lean(reader) => {
                let header = reader.find_common()?;
                header.is_reply().then_some(PlainReply::Lean(header))
            }
            ProtocolReader::Onc(reader) => {
                let record = reader.find_whole()?;
                let (number, results) = ReplyHeader::split_plain_success(record)?;
                Some(PlainReply::Onc {
                    number,
                    length: record.len(),
                    results: results.len(),
                })
            }
            ProtocolReader::Unknown(_) => None,
        }
    }

    /// Takes the next message, which was [found](Self::find_plain_reply) to be this reply. Returns where in
    /// [its content](Self::last_content) the results are.
    #[inline(always)]
    pub(super) fn take_plain_reply(&mut self, reply: &PlainReply) -> Range<usize> {
        match (&mut self.reader, *reply) {
            (ProtocolReader::Lean(reader), PlainReply::Lean(header)) => {
                reader.take_common(header);
                0..header.length() as usize
            }
            (
                ProtocolReader::Onc(reader),
                PlainReply::Onc {
                    length, results, ..
                },
            ) => {
                reader.take_whole(length);
                length - results..length
            }
            _ => 0..0,
        }
    }

    /// Returns the frame that was handed out last, as long as nothing was received since.
    pub fn last_frame(&self) -> Option<Frame<'_>> {
        match &self.reader {
            ProtocolReader::Lean(reader) => reader.last_message().map(Frame::Message),
            ProtocolReader::Onc(reader) => reader.last_record().map(Frame::Record),
            ProtocolReader::Unknown(_) => None,
        }
    }

    /// Returns what stands behind the header of the lean message that was handed out last, or the message of ONC RPC
    /// that was; nothing if there is none.
    #[inline]
    pub fn last_content(&self) -> &[u8] {
        match &self.reader {
            ProtocolReader::Lean(reader) => reader.last_content(),
            ProtocolReader::Onc(reader) => reader.last_record().unwrap_or_default(),
            ProtocolReader::Unknown(_) => &[],
        }
    }

    /// Takes the frame that was handed out last out of this receiver, which can receive further while the frame is
    /// used. Nothing is copied unless more has been received behind it; then the shorter of both is. `None` if no
    /// frame was handed out since something was received.
    #[inline]
    pub fn detach(&mut self) -> Option<Detached> {
        match &mut self.reader {
            ProtocolReader::Lean(reader) => reader.detach(&mut self.spare),
            ProtocolReader::Onc(reader) => reader.detach(&mut self.spare),
            ProtocolReader::Unknown(_) => None,
        }
    }

    /// Has a detached frame that is kept for long take no more memory than it needs, if it is short; what it was in
    /// is received into next.
    pub fn compact(&mut self, detached: &mut Detached) {
        if let Some(storage) = detached.compact() {
            self.reattach_storage(storage);
        }
    }

    /// Gives the memory of a detached frame back.
    #[inline]
    pub fn reattach(&mut self, detached: Detached) {
        self.reattach_storage(detached.into_storage());
    }

    #[inline]
    fn reattach_storage(&mut self, storage: ReceiveBuffer) {
        let rest = match &mut self.reader {
            ProtocolReader::Lean(reader) => reader.reattach(storage),
            ProtocolReader::Onc(reader) => reader.reattach(storage),
            ProtocolReader::Unknown(_) => None,
        };
        if let Some(storage) = rest
            && storage.capacity() <= ROOM_FIRST
        {
            self.spare = Some(storage);
        }
    }

    /// Receives into memory that belongs to the thread which receives, if this receiver has none.
    #[inline]
    pub fn lend(&mut self, memory: &mut ReceiveMemory) {
        if !memory.is_empty() {
            self.adopt(memory);
        }
    }

    fn adopt(&mut self, memory: &mut ReceiveMemory) {
        with_reader!(self.reader.present_mut(), reader => reader.adopt(&mut memory.room));
        if !memory.spare.is_empty() && self.spare.is_none() {
            let mut spare = with_reader!(self.reader.present(), reader => reader.fresh_storage());
            spare.adopt(std::mem::take(&mut memory.spare));
            self.spare = Some(spare);
        }
    }

    /// Gives lent memory back, unless something is in it or it has grown.
    #[inline]
    pub fn reclaim(&mut self, memory: &mut ReceiveMemory) {
        if memory.room.is_empty() && self.is_between_frames() && self.capacity() == ROOM_FIRST {
            memory.room = with_reader!(self.reader.present_mut(), reader => reader.release());
        }
        if let Some(mut spare) = self.spare.take()
            && memory.spare.is_empty()
        {
            memory.spare = spare.release();
        }
    }

    /// Returns whether nothing of a message has arrived that was not handed out: the stream may end here.
    #[inline]
    pub fn is_between_frames(&self) -> bool {
        let is_taken = self
            .layered
            .as_ref()
            .is_none_or(|layered| layered.plain.is_empty());
        is_taken && with_reader!(self.reader.present(), reader => reader.is_between_frames())
    }

    /// Bytes received that are kept.
    pub fn kept(&self) -> usize {
        with_reader!(self.reader.present(), reader => reader.kept())
    }

    /// Bytes of memory that the receiver has.
    pub fn capacity(&self) -> usize {
        with_reader!(self.reader.present(), reader => reader.capacity())
    }

    /// Gives memory back if nothing is in it and it has grown beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        with_reader!(self.reader.present_mut(), reader => reader.shrink_to(bytes));
        self.spare = self.spare.take().filter(|spare| spare.capacity() <= bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::detached::DetachedFrame;
    use super::*;

    /// What was lost between two messages would be taken for nothing: so nothing may come behind it, whatever memory
    /// there is again.
    #[test]
    fn a_receiver_that_has_lost_something_has_no_room_again() {
        for mut receiver in [
            Receiver::onc(1000),
            Receiver::lean(1000),
            Receiver::sniffing(1000),
        ] {
            assert!(!receiver.room().is_empty());
            assert!(!receiver.is_out_of_memory());
            with_reader!(receiver.reader.present_mut(), reader => reader.run_out());
            let mut lent = ReceiveMemory {
                room: vec![0; ROOM_FIRST],
                spare: Vec::new(),
            };
            receiver.lend(&mut lent);
            assert!(!lent.room.is_empty(), "it is not taken");
            receiver.reattach(Detached::new(
                ReceiveBuffer::new(1, ROOM_FIRST),
                DetachedFrame::Record(0..0),
            ));
            assert!(receiver.room_within(|_| true).is_none());
            assert!(receiver.is_out_of_memory());
            assert!(matches!(receiver.next_frame(), Ok(None)));
        }
    }

    #[test]
    fn storage_that_is_full_takes_no_more_and_keeps_what_it_has() {
        let mut storage = ReceiveBuffer::new(8, 2 * ROOM_FIRST);
        let bytes: Vec<u8> = (0..2 * ROOM_FIRST).map(|at| at as u8).collect();
        assert_eq!(storage.append(&bytes[..ROOM_FIRST + 1]), Ok(()));
        assert_eq!(storage.received(storage.base()), &bytes[..ROOM_FIRST + 1]);
        let rest = storage.append(&bytes);
        assert_eq!(rest, Err(OutOfMemory));
        let kept = storage.received(storage.base());
        assert_eq!(kept[..ROOM_FIRST + 1], bytes[..ROOM_FIRST + 1]);
    }
}
