//! Streams of items that calls have beside their arguments and results, by the lean protocol.
//!
//! The owner of a connection hands whole messages of items over, which wait here until they may be sent: the receiver
//! grants bytes of each stream, and of all together. Items that come are handed out as [events](super::Event), and the
//! owner says when it has taken them. A stream waits for its reader alone: whatever else the connection carries goes on.

mod item_message;
mod stream_id;
mod table;
mod window;

use tenon_wire::Buffer;

use self::table::ItemFate;
use super::send_queue::TransmitBatch;
use super::{Connection, ConnectionError, DeferredCallState, DeferredId, Event};
use crate::codec::lean::{
    Credit, Fault, Flags, ItemDraft, Message, STREAM_WINDOW, Violation, check_item,
};
use crate::config::Role;

pub use item_message::ItemMessage;
pub use stream_id::StreamId;
pub use table::PushError;
pub(super) use table::StreamTable;

impl<W> Connection<W> {
    // ---- Sending ----

    /// Returns the form of the messages that carry the items of a stream.
    pub fn item_draft(&self, id: StreamId) -> ItemDraft {
        ItemDraft::new(self.own.order, id.number, self.is_reverse(id))
    }

    /// Has whole messages of items sent, of at most [`ITEM_MAX`](crate::lean::ITEM_MAX) bytes together, behind those of
    /// the same stream. An empty buffer is left in their place.
    ///
    /// # Errors
    /// They cannot be sent now, or ever; they are as they were.
    pub fn push_item(&mut self, id: StreamId, messages: &mut Buffer) -> Result<(), PushError> {
        match &mut self.streams {
            Some(streams) => streams.push(id, messages),
            None => Err(PushError::Over),
        }
    }

    /// Tells the peer, behind what waits to be sent, that a call of this end has no further items.
    pub fn end_stream(&mut self, id: StreamId) {
        if let Some(streams) = &mut self.streams {
            streams.end(id);
        }
    }

    /// Takes the name of a stream of which the writer has waited for [room](PushError::Full) that there is now.
    pub fn poll_writable(&mut self) -> Option<StreamId> {
        self.streams.as_mut()?.poll_writable()
    }

    /// Ends a call that was [deferred](Self::defer), and has its reply sent, behind the items of its result if that is a
    /// stream. An empty buffer is left in place of the reply. `None` if the call was ended before.
    pub fn answer_deferred(
        &mut self,
        id: DeferredId,
        reply: &mut Buffer,
    ) -> Option<DeferredCallState> {
        let state = self.finish_deferred(id)?;
        let stream = StreamId::of_peer(id.number());
        match &mut self.streams {
            Some(streams) if streams.has(stream) => {
                if let Some(mut reply) = streams.push_reply(stream, reply) {
                    self.push_reply(&mut reply);
                }
            }
            _ => self.push_reply(reply),
        }
        Some(state)
    }

    /// Ends a call with streams that was [deferred](Self::defer) and whose handler still runs, and has its reply sent behind
    /// those of its items that the peer has granted credit for; the others are dropped, so the reply does not wait for
    /// the peer. An empty buffer is left in place of the reply. `None` if the call was ended before.
    pub fn cut_off_deferred(
        &mut self,
        id: DeferredId,
        reply: &mut Buffer,
    ) -> Option<DeferredCallState> {
        let order = self.own.order;
        if let Some(streams) = &mut self.streams {
            streams.drop_unsendable(StreamId::of_peer(id.number()), order);
        }
        self.answer_deferred(id, reply)
    }

    /// Puts items behind what a batch has, and returns whether there are any; they and pieces of long messages take
    /// turns.
    #[cold]
    pub(super) fn add_items(&mut self, batch: &mut TransmitBatch) -> bool {
        let (order, is_server) = (self.own.order, self.role == Role::Server);
        let outgoing = &self.outgoing;
        let Some(streams) = &mut self.streams else {
            return false;
        };
        let spare = self.send_queue.spare();
        let was_sent = |number| outgoing.was_sent(number);
        let transmit = streams.next(order, is_server, was_sent, spare);
        let has_items = !transmit.items.is_empty();
        batch.add_items(transmit.items);
        if let Some(mut reply) = transmit.reply {
            self.send_queue.push(&mut reply, None);
        }
        has_items
    }

    // ---- Receiving ----

    /// Notes that the reader of a stream has taken items that have so many [bytes](ItemMessage::size), so that the peer
    /// may send more.
    pub fn give_back(&mut self, id: StreamId, bytes: u64) {
        let Some(streams) = &mut self.streams else {
            return;
        };
        let Some(credit) = streams.give_back(id, bytes) else {
            return;
        };
        let wants_probe = credit.stream > 0 && streams.wants_probe();
        self.put_credit(id, credit);
        if wants_probe {
            let number = self.ping();
            if let Some(streams) = &mut self.streams {
                streams.begin_probe(number);
            }
        }
    }

    /// Notes that the reader of a stream is gone: items that still come are dropped.
    pub fn stop_receiving(&mut self, id: StreamId) {
        if let Some(streams) = &mut self.streams {
            streams.stop_receiving(id);
        }
    }

    fn put_credit(&mut self, id: StreamId, credit: Credit) {
        let reverse = self.is_reverse(id);
        let (order, out) = (self.own.order, self.send_queue.control());
        credit.encode(out, order, id.number, reverse);
    }

    #[cold]
    pub(super) fn handle_item<'m>(
        &mut self,
        message: &Message<'m>,
    ) -> Result<Event<'m, W>, ConnectionError> {
        check_item(message)?;
        let id = self.stream_of(message);
        let size = message.header.message_length();
        let fate = self.streams_of(id);
        let fate = fate.and_then(|streams| streams.receive(id, size));
        match fate.map_err(|fault| message.header_violation(fault, 4))? {
            ItemFate::Delivered => {
                return Ok(Event::Items(ItemMessage {
                    id,
                    order: message.order,
                    content: message.content(),
                    has_more: message.header.flags.has(Flags::MORE),
                    size,
                }));
            }
            ItemFate::Dropped => {}
            ItemFate::Unknown => self.check_late(id, message)?,
        }
        self.give_back(id, size);
        Ok(Event::Handled)
    }

    /// Checks that a message belongs to a call that has been in flight.
    fn check_late(&self, id: StreamId, message: &Message<'_>) -> Result<(), Violation> {
        let is_late = match id.is_own {
            true => self.outgoing.is_over(id.number),
            // Calls that come behind the close of this end are ignored.
            false => self.closing.is_closed || self.incoming.is_accepted(id.number),
        };
        match is_late {
            true => Ok(()),
            false => Err(message.header_violation(Fault::StrayItem(id.number), 4)),
        }
    }

    #[cold]
    pub(super) fn handle_end<'m>(
        &mut self,
        message: &Message<'m>,
    ) -> Result<Event<'m, W>, ConnectionError> {
        message.read(|_| Ok(()))?;
        let id = self.stream_of(message);
        let ended = self.streams_of(id);
        let ended = ended.and_then(|streams| streams.receive_end(id));
        Ok(match ended {
            Ok(Some(true)) => Event::StreamEnded(id),
            Ok(Some(false)) => Event::Handled,
            Ok(None) => {
                self.check_late(id, message)?;
                Event::Handled
            }
            Err(fault) => return Err(message.header_violation(fault, 4).into()),
        })
    }

    #[cold]
    pub(super) fn handle_credit<'m>(
        &mut self,
        message: &Message<'m>,
    ) -> Result<Event<'m, W>, ConnectionError> {
        let credit = Credit::decode(message)?;
        let id = self.stream_of(message);
        let handled = self.streams_of(id);
        let handled = handled.and_then(|streams| streams.handle_credit(id, credit));
        handled.map_err(|fault| message.header_violation(fault, 4))?;
        Ok(Event::Handled)
    }

    // ---- Calls ----

    /// Forgets the streams of a call that is over.
    #[cold]
    pub(super) fn close_streams(&mut self, id: StreamId) {
        if let Some(streams) = &mut self.streams {
            streams.remove(id);
        }
    }

    /// Lets nothing more of the streams of a call through that one of both ends has given up.
    #[cold]
    pub(super) fn give_up_streams(&mut self, id: StreamId) {
        let streams = self.streams.as_mut();
        if let Some(mut reply) = streams.and_then(|streams| streams.give_up(id)) {
            self.push_reply(&mut reply);
        }
    }

    /// Number of calls of this end with streams that the peer has to be taken to be at.
    pub(super) fn own_streams(&self) -> usize {
        self.streams.as_ref().map_or(0, |streams| streams.own())
    }

    /// Returns whether a call of the peer with streams is not answered, or its answer waits for items to be sent.
    pub fn has_peer_streams(&self) -> bool {
        self.peer_streams() > 0
    }

    /// Number of calls of the peer with streams that are not answered.
    pub(super) fn peer_streams(&self) -> usize {
        self.streams.as_ref().map_or(0, |streams| streams.of_peer())
    }

    /// Returns whether another call of the peer may have streams: not if its number has come round while a call with it
    /// is not answered.
    pub(super) fn may_open(&self, id: StreamId) -> bool {
        let is_free = !self.streams.as_ref().is_some_and(|streams| streams.has(id));
        is_free && self.peer_streams() < self.own.streams_max.into()
    }

    /// Returns the calls with streams. There may be none yet when the first messages of a stream come: its call may have
    /// been refused.
    fn streams_of(&mut self, id: StreamId) -> Result<&mut StreamTable, Fault> {
        let may_be = self.streams.is_some() || !id.is_own && self.own.streams_max > 0;
        match may_be {
            true => Ok(self.stream_table()),
            false => Err(Fault::StrayItem(id.number)),
        }
    }

    /// Bytes of the window of each stream by now.
    #[inline]
    pub fn stream_window(&self) -> u32 {
        match &self.streams {
            None => STREAM_WINDOW,
            Some(streams) => streams.stream_window(),
        }
    }

    /// Lets the window of each stream grow to so many bytes, in place of those of the
    /// [configuration](crate::config::ConnectionConfig::stream_window_max). What was granted before stays so.
    pub fn set_stream_window_max(&mut self, bytes: u32) {
        self.config.stream_window_max = bytes;
        self.stream_table().set_stream_window_max(bytes);
    }

    pub(super) fn stream_table(&mut self) -> &mut StreamTable {
        let window_max = self.config.stream_window_max;
        self.streams
            .get_or_insert_with(|| Box::new(StreamTable::new(window_max)))
    }

    fn is_reverse(&self, id: StreamId) -> bool {
        id.is_own == (self.role == Role::Server)
    }

    fn stream_of(&self, message: &Message<'_>) -> StreamId {
        let is_reverse = message.header.flags.has(Flags::REVERSE);
        StreamId {
            number: message.header.id,
            is_own: is_reverse == (self.role == Role::Server),
        }
    }
}
