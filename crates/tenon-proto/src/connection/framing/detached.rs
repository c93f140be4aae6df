//! A message that was taken out of the memory that a connection receives into.

use std::ops::Range;

use super::frame::Frame;
use super::storage::{ROOM_FIRST, ReceiveBuffer};
use crate::codec::lean::{ByteOrder, HEADER, Header, Message};

/// A message with the memory that it was received in. The connection that it came over goes on receiving elsewhere,
/// so the message stays valid for as long as a handler needs it.
#[derive(Debug)]
pub struct Detached {
    storage: ReceiveBuffer,
    frame: DetachedFrame,
}

/// The kind of a detached message, and its place in the storage.
#[derive(Debug, Clone)]
pub(super) enum DetachedFrame {
    Record(Range<usize>),
    Message {
        at: u64,
        order: ByteOrder,
        in_pieces: bool,
        /// What stands behind its header.
        content: Range<usize>,
    },
}

impl Detached {
    pub(super) fn new(storage: ReceiveBuffer, frame: DetachedFrame) -> Self {
        Self { storage, frame }
    }

    /// Returns the message.
    #[inline]
    pub fn frame(&self) -> Option<Frame<'_>> {
        Some(match &self.frame {
            DetachedFrame::Record(place) => Frame::Record(self.storage.get(place.clone())),
            DetachedFrame::Message {
                at,
                order,
                in_pieces,
                content,
            } => {
                let header = content.start - HEADER..content.start;
                let header = self.storage.get(header).first_chunk()?;
                let header = Header::decode(header, *order).ok()?;
                let content = self.storage.get(content.clone());
                let message = Message::new(header, *at, *order, content);
                Frame::Message(if *in_pieces {
                    message.joined()
                } else {
                    message
                })
            }
        })
    }

    /// Returns what stands behind the header of a lean message, or a whole message of ONC RPC.
    #[inline]
    pub fn content(&self) -> &[u8] {
        let (DetachedFrame::Record(content) | DetachedFrame::Message { content, .. }) = &self.frame;
        self.storage.get(content.clone())
    }

    /// Bytes of memory that the message has.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.storage.capacity()
    }

    /// Copies a message that fills less than half of its memory into memory of its own size, if it is short; returns
    /// what it was in.
    pub(super) fn compact(&mut self) -> Option<ReceiveBuffer> {
        let (content, header) = match &mut self.frame {
            DetachedFrame::Record(content) => (content, 0),
            DetachedFrame::Message { content, .. } => (content, HEADER),
        };
        let place = content.start - header..content.end;
        if self.storage.capacity() > ROOM_FIRST || 2 * place.len() > self.storage.capacity() {
            return None;
        }
        let own = self.storage.exact(place);
        *content = own.base() + header..own.end();
        Some(std::mem::replace(&mut self.storage, own))
    }

    pub(super) fn into_storage(self) -> ReceiveBuffer {
        self.storage
    }
}
