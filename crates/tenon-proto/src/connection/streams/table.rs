//! The calls with streams that are in flight: what waits to be sent of each, and what may be sent and received.

use std::collections::{HashMap, VecDeque};

use tenon_wire::Buffer;

use super::stream_id::StreamId;
use super::window::{ConnectionWindow, StreamWindow};
use crate::codec::lean::{
    ByteOrder, CONNECTION_WINDOW, CallStreams, Credit, Fault, ITEM_PART, Kind, PIECE,
    STREAM_WINDOW, cut_item, plain, put_message, split_item,
};

/// Most bytes that may be granted at once.
const CREDIT_MAX: u64 = i32::MAX as u64;

/// The calls with streams of both ends.
#[derive(Debug)]
pub(in super::super) struct StreamTable {
    calls: HashMap<StreamId, CallEntry>,
    /// Those of this end among them.
    own: usize,
    /// Calls that have something to send, in their turns.
    ready: VecDeque<StreamId>,
    /// Calls of which the items wait for credit, in their turns.
    blocked: VecDeque<StreamId>,
    /// Calls of which the writer waits for room that there is now.
    writable: VecDeque<StreamId>,
    /// Bytes of items that may be sent of all streams together.
    credit: u64,
    window: ConnectionWindow,
    /// True if items go before the next piece of a long message.
    is_next: bool,
}

/// A call with streams.
#[derive(Debug)]
struct CallEntry {
    sending: Option<OutgoingStream>,
    receiving: Option<IncomingStream>,
    queued: Queued,
    /// The reply, which is to be sent behind the items.
    reply: Option<Buffer>,
}

/// The queue that a call is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queued {
    /// None: nothing waits to be sent.
    No,
    /// That of the calls which have something to send.
    Ready,
    /// That of the calls with items that wait for credit.
    Blocked,
}

/// The stream of which this end sends the items.
#[derive(Debug)]
struct OutgoingStream {
    /// Whole messages that wait to be sent.
    pending: Buffer,
    /// Bytes that may be sent.
    credit: u64,
    /// True if no further items come.
    has_ended: bool,
    /// True if the writer waits for room.
    is_awaited: bool,
}

/// The stream of which this end receives the items.
#[derive(Debug)]
struct IncomingStream {
    window: StreamWindow,
    has_ended: bool,
    /// False if its reader is gone: what still comes is dropped.
    is_wanted: bool,
}

/// The reason for which an item cannot be handed over to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// So much waits to be sent that this is to wait: [`crate::connection::Connection::poll_writable`] says when there is room.
    #[error("items wait to be sent")]
    Full,
    /// The peer takes no items any more: the call is answered, or given up.
    #[error("the stream is over")]
    Over,
}

/// What becomes of an item that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemFate {
    /// It is for the reader.
    Delivered,
    /// It is dropped, as the reader is gone.
    Dropped,
    /// No call of this name has a stream.
    Unknown,
}

/// What is to be sent next of the streams.
#[derive(Debug, Default)]
pub(in super::super) struct StreamTransmit {
    /// Whole messages of items.
    pub(in super::super) items: Buffer,
    /// A reply that follows them.
    pub(in super::super) reply: Option<Buffer>,
}

impl CallEntry {
    /// Number of bytes of items that wait to be sent.
    fn pending_bytes(&self) -> u64 {
        let sending = self.sending.as_ref();
        sending.map_or(0, |sending| sending.pending.len() as u64)
    }
}

impl OutgoingStream {
    fn new() -> Self {
        Self {
            pending: Buffer::default(),
            credit: STREAM_WINDOW.into(),
            has_ended: false,
            is_awaited: false,
        }
    }
}

impl IncomingStream {
    fn new() -> Self {
        Self {
            window: StreamWindow::new(),
            has_ended: false,
            is_wanted: true,
        }
    }
}

impl StreamTable {
    /// No calls yet; windows grow to this many bytes for a stream.
    pub(in super::super) fn new(stream_window_max: u32) -> Self {
        Self {
            calls: HashMap::new(),
            own: 0,
            ready: VecDeque::new(),
            blocked: VecDeque::new(),
            writable: VecDeque::new(),
            credit: CONNECTION_WINDOW.into(),
            window: ConnectionWindow::new(stream_window_max),
            is_next: false,
        }
    }

    /// Bytes of the window of a stream by now.
    pub(in super::super) fn stream_window(&self) -> u32 {
        self.window.of_stream()
    }

    /// Lets the window of a stream grow to so many bytes.
    pub(in super::super) fn set_stream_window_max(&mut self, bytes: u32) {
        self.window.set_stream_max(bytes);
    }

    // ---- Calls ----

    /// Number of calls of this end.
    pub(in super::super) fn own(&self) -> usize {
        self.own
    }

    /// Number of calls of the peer.
    pub(in super::super) fn of_peer(&self) -> usize {
        self.calls.len() - self.own
    }

    /// Notes that a call with these streams is in flight.
    pub(in super::super) fn open(&mut self, id: StreamId, streams: CallStreams) {
        let (sends, receives) = match id.is_own {
            true => (streams.argument, streams.result),
            false => (streams.result, streams.argument),
        };
        let call = CallEntry {
            sending: sends.then(OutgoingStream::new),
            receiving: receives.then(IncomingStream::new),
            queued: Queued::No,
            reply: None,
        };
        if self.calls.insert(id, call).is_none() {
            self.own += usize::from(id.is_own);
        }
    }

    /// Returns whether a call has streams and is in flight.
    pub(in super::super) fn has(&self, id: StreamId) -> bool {
        self.calls.contains_key(&id)
    }

    /// Forgets a call, which is over.
    pub(in super::super) fn remove(&mut self, id: StreamId) {
        if let Some(mut call) = self.calls.remove(&id) {
            self.own -= usize::from(id.is_own);
            self.dequeue(id, &mut call);
        }
    }

    /// Drops what waits to be sent of a call, and lets nothing more of its streams through: one of its ends has given it
    /// up. Returns the reply to it, if that waited for the items.
    pub(in super::super) fn give_up(&mut self, id: StreamId) -> Option<Buffer> {
        let mut call = self.calls.remove(&id)?;
        self.dequeue(id, &mut call);
        // What is not sent takes no credit.
        call.sending = None;
        if let Some(receiving) = &mut call.receiving {
            receiving.is_wanted = false;
        }
        let reply = call.reply.take();
        match reply {
            Some(_) => self.own -= usize::from(id.is_own),
            None => drop(self.calls.insert(id, call)),
        }
        reply
    }

    fn dequeue(&mut self, id: StreamId, call: &mut CallEntry) {
        match std::mem::replace(&mut call.queued, Queued::No) {
            Queued::No => {}
            Queued::Ready => self.ready.retain(|ready| *ready != id),
            Queued::Blocked => self.blocked.retain(|blocked| *blocked != id),
        }
    }

    // ---- Sending ----

    /// Puts whole messages of an item behind those that wait; an empty buffer is left in their place.
    pub(super) fn push(&mut self, id: StreamId, messages: &mut Buffer) -> Result<(), PushError> {
        let call = self.calls.get_mut(&id).ok_or(PushError::Over)?;
        let sending = call.sending.as_mut().ok_or(PushError::Over)?;
        if sending.has_ended {
            return Err(PushError::Over);
        }
        let waiting = sending.pending.len();
        if waiting > 0 && waiting + messages.len() > PIECE {
            sending.is_awaited = true;
            return Err(PushError::Full);
        }
        if waiting == 0 {
            std::mem::swap(&mut sending.pending, messages);
        } else {
            sending.pending.extend(messages.as_slice());
        }
        messages.clear();
        self.enqueue(id);
        Ok(())
    }

    /// Notes that no further items come.
    pub(super) fn end(&mut self, id: StreamId) {
        let call = self.calls.get_mut(&id).filter(|_| id.is_own);
        if let Some(sending) = call.and_then(|call| call.sending.as_mut()) {
            sending.has_ended = true;
            self.enqueue(id);
        }
    }

    /// Has the reply to a call of the peer sent behind its items. It is handed back if none wait.
    pub(in super::super) fn push_reply(
        &mut self,
        id: StreamId,
        reply: &mut Buffer,
    ) -> Option<Buffer> {
        let reply = std::mem::take(reply);
        let Some(call) = self.calls.get_mut(&id) else {
            return Some(reply);
        };
        match &mut call.sending {
            Some(sending) if !sending.pending.is_empty() => {
                sending.has_ended = true;
                call.reply = Some(reply);
                // The arguments are of no interest any more.
                if let Some(receiving) = &mut call.receiving {
                    receiving.is_wanted = false;
                }
                None
            }
            _ => {
                self.remove(id);
                Some(reply)
            }
        }
    }

    /// Drops the items of a call that wait for credit. Replies that wait behind items of other calls have a first claim on
    /// the credit that all streams share.
    pub(super) fn drop_unsendable(&mut self, id: StreamId, order: ByteOrder) {
        let answered = self.calls.values().filter(|call| call.reply.is_some());
        let claimed: u64 = answered.map(CallEntry::pending_bytes).sum();
        let free = self.credit.saturating_sub(claimed);
        let call = self.calls.get_mut(&id);
        if let Some(sending) = call.and_then(|call| call.sending.as_mut()) {
            let limit = sending.credit.min(free);
            let length = split_item(sending.pending.as_slice(), order, limit);
            sending.pending.truncate(length);
        }
    }

    /// Puts a call among those that have something to send, unless it is in a queue already: what waits for credit goes
    /// on waiting.
    fn enqueue(&mut self, id: StreamId) {
        if let Some(call) = self.calls.get_mut(&id)
            && call.queued == Queued::No
        {
            call.queued = Queued::Ready;
            self.ready.push_back(id);
        }
    }

    /// Lets a call with items that waited for credit try again.
    fn unblock(&mut self, id: StreamId) {
        if let Some(call) = self.calls.get_mut(&id)
            && call.queued == Queued::Blocked
        {
            call.queued = Queued::Ready;
            self.blocked.retain(|blocked| *blocked != id);
            self.ready.push_back(id);
        }
    }

    /// Returns whether a stream may have something to send.
    #[inline]
    pub(in super::super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns whether items are to go now, and not a piece of a long message, if one waits: they take turns.
    pub(in super::super) fn takes_turn(&mut self, is_alone: bool) -> bool {
        let is_turn = is_alone || self.is_next;
        self.is_next = !is_turn;
        is_turn
    }

    /// Takes what is to be sent next: of one stream all that waits and may be sent. `was_sent` says whether a call of
    /// this end went out, behind which alone its items may; `spare` is an empty buffer.
    pub(in super::super) fn next(
        &mut self,
        order: ByteOrder,
        is_server: bool,
        was_sent: impl Fn(u32) -> bool,
        spare: &mut Buffer,
    ) -> StreamTransmit {
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else {
                break;
            };
            if id.is_own && !was_sent(id.number) {
                self.ready.push_back(id);
                continue;
            }
            if let Some(transmit) = self.next_of(id, order, is_server, spare) {
                return transmit;
            }
        }
        StreamTransmit::default()
    }

    /// Takes what may be sent of a stream. If something is left it is ready again.
    fn next_of(
        &mut self,
        id: StreamId,
        order: ByteOrder,
        is_server: bool,
        spare: &mut Buffer,
    ) -> Option<StreamTransmit> {
        let call = self.calls.get_mut(&id)?;
        call.queued = Queued::No;
        let sending = call.sending.as_mut()?;
        let may_send = sending.credit.min(self.credit);
        let mut items = match sending.pending.len() {
            all if all as u64 <= may_send => {
                std::mem::replace(&mut sending.pending, std::mem::take(spare))
            }
            _ => take_front(&mut sending.pending, order, may_send),
        };
        sending.credit -= items.len() as u64;
        self.credit -= items.len() as u64;
        let is_drained = sending.pending.is_empty();
        if !items.is_empty() && std::mem::take(&mut sending.is_awaited) {
            self.writable.push_back(id);
        }
        let mut reply = None;
        if is_drained && sending.has_ended {
            reply = call.reply.take();
            if id.is_own {
                let header = plain(Kind::End, id.number, 0).reversed(is_server);
                put_message(&mut items, order, header, |_| {});
                call.sending = None;
            } else {
                self.remove(id);
            }
        } else if !is_drained {
            let (queued, queue) = match items.is_empty() {
                true => (Queued::Blocked, &mut self.blocked),
                false => (Queued::Ready, &mut self.ready),
            };
            call.queued = queued;
            queue.push_back(id);
        }
        (!items.is_empty() || reply.is_some()).then_some(StreamTransmit { items, reply })
    }

    /// Takes the name of a call of which the writer has waited for room that there is now.
    pub(super) fn poll_writable(&mut self) -> Option<StreamId> {
        self.writable.pop_front()
    }

    /// Takes in that the peer takes further bytes.
    pub(super) fn handle_credit(&mut self, id: StreamId, credit: Credit) -> Result<(), Fault> {
        self.credit = grown(self.credit, credit.connection)?;
        if let Some(call) = self.calls.get_mut(&id)
            && let Some(sending) = &mut call.sending
        {
            sending.credit = grown(sending.credit, credit.stream)?;
        }
        if credit.connection > 0 {
            // Those that waited longest are first.
            for id in std::mem::take(&mut self.blocked) {
                if let Some(call) = self.calls.get_mut(&id) {
                    call.queued = Queued::Ready;
                    self.ready.push_back(id);
                }
            }
        } else {
            self.unblock(id);
        }
        Ok(())
    }

    // ---- Receiving ----

    /// As [`ConnectionWindow::wants_probe`].
    pub(super) fn wants_probe(&self) -> bool {
        self.window.wants_probe()
    }

    /// As [`ConnectionWindow::begin_probe`].
    pub(super) fn begin_probe(&mut self, number: u32) {
        self.window.begin_probe(number);
    }

    /// As [`ConnectionWindow::handle_pong`].
    pub(in super::super) fn handle_pong(&mut self, number: u32) {
        self.window.handle_pong(number);
    }

    /// Takes in that an item of so many bytes came.
    pub(super) fn receive(&mut self, id: StreamId, bytes: u64) -> Result<ItemFate, Fault> {
        let no_credit = |credit| Fault::NoCredit {
            id: id.number,
            length: bytes,
            credit,
        };
        self.window.receive(bytes).map_err(no_credit)?;
        let Some(call) = self.calls.get_mut(&id) else {
            return Ok(ItemFate::Unknown);
        };
        let receiving = call.receiving.as_mut();
        let receiving = receiving.ok_or(Fault::StrayItem(id.number))?;
        receiving.check_open(id, Kind::Items)?;
        receiving.window.receive(bytes).map_err(no_credit)?;
        Ok(match receiving.is_wanted {
            true => ItemFate::Delivered,
            false => ItemFate::Dropped,
        })
    }

    /// Takes in that a stream has ended; returns whether its reader is still there. `None` if no call has that name.
    pub(super) fn receive_end(&mut self, id: StreamId) -> Result<Option<bool>, Fault> {
        let Some(call) = self.calls.get_mut(&id) else {
            return Ok(None);
        };
        let receiving = call.receiving.as_mut();
        let receiving = receiving.ok_or(Fault::StrayItem(id.number))?;
        receiving.check_open(id, Kind::End)?;
        receiving.has_ended = true;
        Ok(Some(receiving.is_wanted))
    }

    /// Notes that the reader of a stream is gone.
    pub(super) fn stop_receiving(&mut self, id: StreamId) {
        let call = self.calls.get_mut(&id);
        if let Some(receiving) = call.and_then(|call| call.receiving.as_mut()) {
            receiving.is_wanted = false;
        }
    }

    /// Notes that the reader has taken items of so many bytes; returns what the peer is to be told.
    pub(super) fn give_back(&mut self, id: StreamId, bytes: u64) -> Option<Credit> {
        self.window.give_back(bytes);
        let receiving = self
            .calls
            .get_mut(&id)
            .and_then(|call| call.receiving.as_mut())
            .filter(|receiving| receiving.is_wanted && !receiving.has_ended);
        if let Some(receiving) = receiving
            && receiving.window.give_back(bytes)
        {
            if receiving.window.holds_sender_up() {
                self.window.grow();
            }
            return Some(Credit {
                stream: receiving.window.grant(&self.window),
                connection: self.window.grant(),
            });
        }
        self.window.is_due().then(|| Credit {
            stream: 0,
            connection: self.window.grant(),
        })
    }
}

impl IncomingStream {
    fn check_open(&self, id: StreamId, kind: Kind) -> Result<(), Fault> {
        let id = id.number;
        match self.has_ended {
            true => Err(Fault::BehindEnd { id, kind }),
            false => Ok(()),
        }
    }
}

/// Takes the first of several messages out, as many as have at most `limit` bytes together. Of one that is longer, and for
/// which there may never be credit, a part is.
fn take_front(messages: &mut Buffer, order: ByteOrder, limit: u64) -> Buffer {
    let mut front = Buffer::default();
    let length = split_item(messages.as_slice(), order, limit);
    if length == 0 && limit >= ITEM_PART as u64 {
        return cut_item(messages, order).unwrap_or(front);
    }
    if length > 0 {
        front.extend(&messages.as_slice()[..length]);
        let rest = messages.len() - length;
        messages.as_mut_slice().copy_within(length.., 0);
        messages.truncate(rest);
    }
    front
}

fn grown(credit: u64, by: u32) -> Result<u64, Fault> {
    match credit + u64::from(by) {
        grown if grown > CREDIT_MAX => Err(Fault::CreditOverflow(grown)),
        grown => Ok(grown),
    }
}
