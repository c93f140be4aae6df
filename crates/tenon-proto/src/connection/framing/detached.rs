//! A message that was taken out of the memory that a connection receives into.

use std::ops::Range;

use super::frame::Frame;
use super::storage::{ROOM_FIRST, ReceiveBuffer};
use crate::codec::lean::{ByteOrder, Header, Message};

/// A message with the memory that it was received in. The connection that it came over goes on receiving elsewhere,
/// so the message stays valid for as long as a handler needs it.
#[derive(Debug)]
pub struct Detached {
    storage: ReceiveBuffer,
    frame: Option<DetachedFrame>,
}

/// The kind of a detached message, and its place in the storage.
#[derive(Debug, Clone)]
pub(super) enum DetachedFrame {
    Record(Range<usize>),
    Message {
        header: Header,
        at: u64,
        order: ByteOrder,
        in_pieces: bool,
        begin: usize,
    },
}

impl Detached {
    pub(super) fn new(storage: ReceiveBuffer, frame: Option<DetachedFrame>) -> Self {
        Self { storage, frame }
    }

    /// Returns the message.
    #[inline]
    pub fn frame(&self) -> Option<Frame<'_>> {
        Some(match self.frame.as_ref()? {
            DetachedFrame::Record(place) => Frame::Record(self.storage.get(place.clone())),
            DetachedFrame::Message {
                header,
                at,
                order,
                in_pieces,
                begin,
            } => {
                let content = self.storage.get(*begin..begin + header.length as usize);
                let message = Message::new(*header, *at, *order, content);
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
        match &self.frame {
            Some(DetachedFrame::Record(place)) => self.storage.get(place.clone()),
            Some(DetachedFrame::Message { header, begin, .. }) => {
                self.storage.get(*begin..begin + header.length as usize)
            }
            None => &[],
        }
    }

    /// Bytes of memory that the message has.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.storage.capacity()
    }

    /// Copies a message that fills less than half of its memory into memory of its own size, if it is short; returns
    /// what it was in.
    pub(super) fn compact(&mut self) -> Option<ReceiveBuffer> {
        let place = self.place()?;
        if self.storage.capacity() > ROOM_FIRST || 2 * place.len() > self.storage.capacity() {
            return None;
        }
        let own = self.storage.exact(place);
        match self.frame.as_mut()? {
            DetachedFrame::Record(place) => *place = own.base()..own.end(),
            DetachedFrame::Message { begin, .. } => *begin = own.base(),
        }
        Some(std::mem::replace(&mut self.storage, own))
    }

    /// Returns where the content is.
    fn place(&self) -> Option<Range<usize>> {
        Some(match self.frame.as_ref()? {
            DetachedFrame::Record(place) => place.clone(),
            DetachedFrame::Message { header, begin, .. } => *begin..*begin + header.length as usize,
        })
    }

    pub(super) fn into_storage(self) -> ReceiveBuffer {
        self.storage
    }
}
