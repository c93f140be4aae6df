//! Items of a stream that were received, and wait for their reader.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;

use tenon_proto::connection::framing::{Detached, Receiver};
use tenon_proto::connection::{ItemMessage, StreamId};
use tenon_proto::lean::ByteOrder;

/// Bytes of content from which on a message is taken over with its memory.
const TAKEN_OVER_LEAST: usize = 8 << 10;

/// Items of a stream that were received and not taken, one behind the other.
#[derive(Debug)]
pub struct ReceivedItems {
    /// A long message in the memory that it was received in, if all others came behind it; or memory of one that was taken.
    whole: Option<Detached>,
    /// True if the next part is the content of that message.
    is_whole_next: bool,
    /// True if the part is that was taken last.
    is_whole_taken: bool,
    bytes: Vec<u8>,
    /// The first byte that was not taken.
    begin: usize,
    parts: VecDeque<ItemPart>,
    order: ByteOrder,
}

/// A message of items, apart from its content.
#[derive(Debug, Clone, Copy)]
pub struct ItemPart {
    order: ByteOrder,
    length: usize,
    has_more: bool,
    pub(super) size: u64,
}

/// An item that was taken, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TakenPart {
    /// Its place in the [bytes](ReceivedItems::bytes), as long as nothing else is taken.
    pub place: Range<usize>,
    /// True if the item goes on in the next part.
    pub has_more: bool,
    /// Bytes of credit that it took, which are to be given back.
    pub size: u64,
}

impl Default for ReceivedItems {
    fn default() -> Self {
        Self {
            whole: None,
            is_whole_next: false,
            is_whole_taken: false,
            bytes: Vec::new(),
            begin: 0,
            parts: VecDeque::new(),
            order: ByteOrder::NATIVE,
        }
    }
}

impl ItemPart {
    /// That of a message that was received.
    pub fn of(item: &ItemMessage<'_>) -> Self {
        Self {
            order: item.order,
            length: item.content.len(),
            has_more: item.has_more,
            size: item.size,
        }
    }

    /// The message again, with its content.
    pub(super) fn message<'m>(&self, id: StreamId, content: &'m [u8]) -> ItemMessage<'m> {
        ItemMessage {
            id,
            order: self.order,
            content,
            has_more: self.has_more,
            size: self.size,
        }
    }

    /// Returns whether the message is so long that its memory is taken over, and not its content copied.
    pub fn is_long(&self) -> bool {
        self.length >= TAKEN_OVER_LEAST
    }
}

impl ReceivedItems {
    /// Takes in an item that was received, or a part of one.
    pub fn push(&mut self, item: &ItemMessage<'_>) {
        self.order = item.order;
        self.bytes.extend_from_slice(item.content);
        self.parts.push_back(ItemPart::of(item));
    }

    /// Takes in the message that a `receiver` has handed out last, with its memory, and leaves the receiver that of one
    /// which was taken before. Nothing else is there. A receiver that has no memory for it ends its connection.
    pub(super) fn push_whole(&mut self, part: ItemPart, receiver: &mut Receiver) {
        self.whole = receiver.detach_for(self.whole.take());
        if self.whole.is_some() {
            (self.order, self.is_whole_next) = (part.order, true);
            self.parts.push_back(part);
        }
    }

    /// Returns whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The order of the bytes of the items.
    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    /// Takes the next item, or the next part of one.
    pub(super) fn take(&mut self) -> Option<TakenPart> {
        let ItemPart {
            length,
            has_more,
            size,
            ..
        } = self.parts.pop_front()?;
        self.is_whole_taken = mem::take(&mut self.is_whole_next);
        let place = match self.is_whole_taken {
            true => 0..length,
            false => {
                let begin = self.begin;
                self.begin += length;
                begin..self.begin
            }
        };
        Some(TakenPart {
            place,
            has_more,
            size,
        })
    }

    /// Returns the bytes in which what was taken lies.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.whole {
            Some(whole) if self.is_whole_taken => whole.content(),
            _ => &self.bytes,
        }
    }

    /// Moves everything that is there into `empty`, and its memory here.
    pub(super) fn move_to(&mut self, empty: &mut Self) {
        empty.bytes.clear();
        empty.begin = 0;
        mem::swap(self, empty);
    }
}

#[cfg(test)]
mod tests {
    use tenon_proto::connection::framing::Frame;
    use tenon_proto::lean::{ItemDraft, Preamble};
    use tenon_wire::Buffer;

    use super::super::pipe::{Readable, StreamPipe};
    use super::*;

    const LENGTH: usize = TAKEN_OVER_LEAST;

    /// So many messages behind a preamble, each with its number in every byte.
    fn stream_of(messages: u8) -> Vec<u8> {
        let mut stream = Preamble::server(1 << 20, 1).encode().to_vec();
        for number in 0..messages {
            let draft = ItemDraft::new(ByteOrder::NATIVE, 1, false);
            let mut message = Buffer::default();
            draft.begin(&mut message);
            message.extend(&[number; LENGTH]);
            assert!(draft.seal(&mut message));
            stream.extend(message.as_slice());
        }
        stream
    }

    /// Receives the next message, and hands it to the pipe; returns whether its memory was taken over.
    fn push_next(stream: &mut Vec<u8>, receiver: &mut Receiver, pipe: &StreamPipe) -> bool {
        let part = loop {
            match receiver.next_frame().unwrap() {
                Some(Frame::Message(message)) => {
                    break ItemPart {
                        order: message.order,
                        length: message.content().len(),
                        has_more: false,
                        size: message.header.message_length(),
                    };
                }
                Some(_) => {}
                None => {
                    let room = receiver.room();
                    let step = room.len().min(stream.len());
                    assert!(step > 0, "there is no such message");
                    room[..step].copy_from_slice(&stream[..step]);
                    stream.drain(..step);
                    receiver.handle_received(step).unwrap();
                }
            }
        };
        let is_taken_over = pipe.push_whole(part, receiver);
        if !is_taken_over {
            pipe.push(&part.message(StreamId::own(1), receiver.last_content()));
        }
        is_taken_over
    }

    #[test]
    fn the_memory_of_a_long_message_is_taken_over_if_no_other_waits() {
        let (mut stream, mut receiver) = (stream_of(6), Receiver::lean(1 << 20));
        let (pipe, mut taken) = (StreamPipe::default(), ReceivedItems::default());
        for number in [0, 3] {
            assert!(push_next(&mut stream, &mut receiver, &pipe));
            assert!(!push_next(&mut stream, &mut receiver, &pipe));
            assert!(!push_next(&mut stream, &mut receiver, &pipe));
            assert_eq!(pipe.take(&mut taken), Readable::Items);
            for number in number..number + 3 {
                let place = taken.take().expect("three messages").place;
                assert_eq!(taken.bytes()[place], [number; LENGTH]);
            }
            assert_eq!(taken.take(), None);
        }
    }
}
