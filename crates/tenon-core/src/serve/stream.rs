//! A connection as its server has it: what it has received and not answered, what is to be sent, and how long the
//! peer may take. It has no socket; a driver receives and sends, and runs the handlers.

mod awaited_writers;
mod callbacks;
mod item_memory;
mod piped_calls;
mod sending;
mod streams;
mod timing;
mod waiting_callbacks;

use std::time::Instant;

use tenon_proto::ROOM_FIRST;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::{Detached, ReceiveMemory, Receiver};
use tenon_proto::connection::{
    CommonCall, Connection, ConnectionError, DeferredId, IncomingCounters, Received, ReceivedCall,
    TransmitBatch, WireProtocol,
};
use tenon_proto::lean::{CloseReason, RefusalReason, STREAM_WINDOW};
use tenon_wire::Buffer;

use super::age::ConnectionAge;
use super::end_reason::EndReason;
use super::half_close::{LAST_RECEIVES, LATELY};
use super::half_received::HalfReceived;
use super::limits::{EndOfStream, ServerLimits};
use super::memory::MemoryShare;
use super::registry::CallToServe;
use super::shared::ServerShared;
use super::slow_reader::SlowReader;
use super::slow_sender::SlowSender;
use crate::service::CancelFlag;

pub use awaited_writers::AwaitedWriters;
use item_memory::ItemMemory;
use piped_calls::PipedCalls;
pub use sending::Sending;
pub use waiting_callbacks::lost_callback;
use waiting_callbacks::{CallbackEvent, ServedConnection, WaitingCallbacks};

/// Bytes of replies that wait to be sent before further calls are carried out.
const REPLIES_MAX: usize = 256 << 10;

/// A connection as its server has it.
#[derive(Debug)]
pub struct ServedStream {
    /// The number of the connection among all connections and ports of the server.
    id: usize,
    connection: ServedConnection,
    receiver: Receiver,
    share: MemoryShare,
    /// Bytes that are being sent.
    batch: TransmitBatch,
    /// True if there may be messages among what was received that were not taken out.
    has_unread: bool,
    /// True if among the replies are some that say when they are sent.
    has_stamps: bool,
    /// The next call for a service, which stays there while there is no room for it among those that are carried out
    /// elsewhere.
    call: Option<ReceivedCall>,
    /// The calls that are carried out elsewhere, to be told when they are cancelled.
    deferred: Vec<CancellableCall>,
    /// The calls with streams.
    piped: PipedCalls,
    /// The memory for items that they have not taken.
    items: ItemMemory,
    /// The calls of this end that the client does not take yet.
    callbacks: WaitingCallbacks,
    /// Handlers that run where their calls were received, while another thread may go on with the connection.
    inline: usize,
    /// Bytes of memory of the calls that are carried out, but for short ones that are carried out where they were
    /// received.
    call_bytes: usize,
    half_received: HalfReceived,
    slow_sender: SlowSender,
    slow_reader: SlowReader,
    /// True if a request was complete since the connection was parked last.
    was_active: bool,
    active_at: Instant,
    /// True if a call was answered behind its turn since the connection was parked last.
    has_answered: bool,
    /// Time at which the connection was parked last after a call was answered so, or any came.
    used_at: Instant,
    /// Number of receives since the server began to stop.
    last_receives: u8,
    /// Time at which memory is given back that a silent connection does not need.
    trim_at: Option<Instant>,
    age: ConnectionAge,
}

/// A call that is carried out elsewhere.
#[derive(Debug)]
struct CancellableCall {
    id: DeferredId,
    cancelled: CancelFlag,
    /// Bytes of its memory.
    bytes: usize,
}

/// Kind of the next message among what was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextMessage {
    /// Nothing that is complete.
    Nothing,
    /// A call for a service, which is kept.
    Called,
    /// Something that is taken care of.
    Handled,
}

impl ServedStream {
    /// A connection that was accepted at `now`, of this number among all connections and ports of the server.
    pub fn new(shared: &ServerShared, id: usize, now: Instant) -> Self {
        let config = ConnectionConfig {
            // It grows as far as memory is paid for.
            stream_window_max: STREAM_WINDOW,
            ..shared.config.clone()
        };
        let (connection, receiver) = Connection::server(config);
        Self {
            items: ItemMemory::new(&shared.memory, shared.config.stream_window_max),
            id,
            connection,
            receiver,
            share: MemoryShare::new(&shared.memory),
            batch: TransmitBatch::default(),
            has_unread: false,
            has_stamps: false,
            call: None,
            deferred: Vec::new(),
            piped: PipedCalls::default(),
            callbacks: WaitingCallbacks::default(),
            inline: 0,
            call_bytes: 0,
            half_received: HalfReceived::new(&shared.tally),
            slow_sender: SlowSender::awaiting_first(shared.limits.first_request_timeout, now),
            slow_reader: SlowReader::default(),
            was_active: false,
            active_at: now,
            trim_at: None,
            age: ConnectionAge::new(&shared.limits, id, now),
            has_answered: false,
            used_at: now,
            last_receives: 0,
        }
    }

    // ---- Receiving ----

    /// Receives into memory of the thread that receives, if the connection has none.
    #[inline]
    pub fn lend(&mut self, memory: &mut ReceiveMemory) {
        self.receiver.lend(memory);
    }

    /// Gives lent memory back, if nothing is in it.
    #[inline]
    pub fn reclaim(&mut self, memory: &mut ReceiveMemory) {
        self.receiver.reclaim(memory);
    }

    /// Returns where to put received bytes.
    ///
    /// # Errors
    /// Half-received requests take all the memory there may be.
    #[inline]
    pub fn room(&mut self) -> Result<&mut [u8], EndReason> {
        let share = &mut self.share;
        let room = self.receiver.room_within(|capacity| share.fit(capacity));
        room.ok_or(EndReason::Memory)
    }

    /// Takes in that so many bytes were received into the [room](Self::room).
    ///
    /// # Errors
    /// The peer speaks no protocol that is known.
    #[inline]
    pub fn handle_received(&mut self, bytes: usize) -> Result<(), EndReason> {
        self.has_unread = true;
        let identified = self.receiver.handle_received(bytes);
        identified.map_err(|error| self.broken(error.into()))
    }

    /// Returns whether a part of a message has arrived, and not the rest.
    #[inline]
    pub fn has_begun(&self) -> bool {
        !self.receiver.is_between_frames()
    }

    /// Returns why the connection ends, as its peer has closed it.
    pub fn end_of_stream(&self) -> EndReason {
        if !self.receiver.is_between_frames() {
            EndReason::CutOff
        } else if self.age.was_asked() {
            EndReason::Aged
        } else {
            EndReason::PeerClosed
        }
    }

    /// Returns whether a peer that has ended its stream is gone, so that its calls need no answer.
    #[cold]
    pub fn is_peer_gone(&self, policy: EndOfStream, is_hung_up: impl FnOnce() -> bool) -> bool {
        let is_lean = self.connection.protocol() == Some(WireProtocol::Lean);
        match policy {
            EndOfStream::Gone => true,
            EndOfStream::ByProtocol if is_lean => true,
            EndOfStream::ByProtocol | EndOfStream::HalfClosed => is_hung_up(),
        }
    }

    /// Takes the next call for a service out of what was received. Everything else is answered.
    ///
    /// # Errors
    /// The connection is to end, behind what is still to be sent.
    #[inline]
    pub fn next_call(&mut self, shared: &ServerShared) -> Result<Option<ReceivedCall>, EndReason> {
        if self.call.is_some() {
            return Ok(self.call.take());
        }
        while !self.receiver.is_between_frames() {
            let services = shared.registry.table();
            match self.connection.next_common(&mut self.receiver, services) {
                Some(CommonCall::For(call)) => {
                    self.was_active = true;
                    return Ok(Some(call));
                }
                Some(CommonCall::Answered) => {}
                None => match self.next_uncommon(shared)? {
                    NextMessage::Nothing => break,
                    NextMessage::Called => {
                        self.was_active = true;
                        return Ok(self.call.take());
                    }
                    NextMessage::Handled => {}
                },
            }
            self.was_active = true;
            if self.has_many_replies() {
                return Ok(None);
            }
        }
        self.has_unread = false;
        Ok(None)
    }

    fn next_uncommon(&mut self, shared: &ServerShared) -> Result<NextMessage, EndReason> {
        let services = shared.registry.table();
        let received = self.connection.next_received(&mut self.receiver, services);
        Ok(match received {
            Ok(Received::Nothing) => NextMessage::Nothing,
            Ok(Received::Call(call)) => self.keep(call),
            Ok(Received::Item(item)) => {
                self.piped
                    .receive(&mut self.connection, &mut self.items, &item);
                NextMessage::Handled
            }
            Ok(Received::StreamEnded(id)) => {
                self.piped.end(id);
                NextMessage::Handled
            }
            Ok(Received::Cancelled(id)) => {
                // A handler that finds its streams closed may ask why.
                self.note_cancelled(id);
                self.piped.close(id.number());
                self.answer_held();
                NextMessage::Handled
            }
            Ok(Received::CancelledHere(number)) => {
                if self.inline > 0 {
                    shared.handlers.cancel(self.id, number.into());
                }
                NextMessage::Handled
            }
            Ok(Received::Answered(answer)) => {
                let event = CallbackEvent::answered(answer);
                self.handle_callback(event);
                NextMessage::Handled
            }
            Ok(Received::Unbegun(call)) => {
                self.handle_callback(CallbackEvent::Unbegun(Box::new(call)));
                NextMessage::Handled
            }
            Ok(Received::PeerClosing(closing)) => {
                let event = CallbackEvent::closing(closing);
                self.handle_callback(event);
                NextMessage::Handled
            }
            Ok(Received::Handled) => {
                if !self.callbacks.is_empty() {
                    // The client may have said that it binds a service.
                    self.resume_callbacks();
                }
                NextMessage::Handled
            }
            Err(error) => return Err(self.broken(error)),
        })
    }

    fn keep(&mut self, call: ReceivedCall) -> NextMessage {
        self.has_stamps |= call.wants_stamps;
        self.call = Some(call);
        NextMessage::Called
    }

    /// Returns whether there may be messages among what was received that were not taken out: they are to be taken out
    /// before more is received.
    #[inline]
    pub fn has_unread(&self) -> bool {
        self.has_unread
    }

    /// Returns whether further calls wait until replies were sent.
    #[inline]
    pub fn has_many_replies(&self) -> bool {
        self.connection.queued_bytes() > REPLIES_MAX
    }

    #[cold]
    fn broken(&mut self, error: ConnectionError) -> EndReason {
        if !matches!(error, ConnectionError::Refused(_)) {
            self.connection.count_violation();
            let text = error.to_string();
            let is_preamble = self.connection.protocol().is_none();
            if is_preamble && self.receiver.lean_reader().is_some() {
                self.connection.refuse(RefusalReason::PREAMBLE);
            } else {
                self.connection.close(CloseReason::VIOLATION, &text);
            }
        }
        EndReason::Protocol(error)
    }

    // ---- Answering ----

    /// Answers a call that was carried out where it was received, and takes its memory back.
    #[inline]
    pub fn finish_call(&mut self, message: Detached, reply: &mut Buffer) {
        self.receiver.reattach(message);
        self.connection.push_reply(reply);
    }

    /// Answers a call that was carried out where it was received, after its memory is gone.
    pub fn push_reply(&mut self, reply: &mut Buffer) {
        self.has_answered = true;
        self.connection.push_reply(reply);
    }

    /// Returns whether a call can be carried out elsewhere now: not while one of the same number is, or if there are
    /// too many.
    pub fn may_defer(&self, call: &CallToServe) -> bool {
        self.connection.may_defer(&call.caller)
    }

    /// Notes that a call with so many `bytes` of memory is carried out elsewhere; returns its number, and the flag
    /// that is set when it is cancelled. `None` if it [cannot be](Self::may_defer).
    pub fn defer(&mut self, call: &CallToServe, bytes: usize) -> Option<(DeferredId, CancelFlag)> {
        let id = self.connection.defer(&call.caller, call.deadline)?;
        let cancelled = CancelFlag::default();
        self.charge(bytes);
        self.deferred.push(CancellableCall {
            id,
            cancelled: cancelled.clone(),
            bytes,
        });
        Some((id, cancelled))
    }

    #[cold]
    fn note_cancelled(&self, id: DeferredId) {
        let mut deferred = self.deferred.iter();
        if let Some(call) = deferred.find(|call| call.id == id) {
            call.cancelled.set();
        }
    }

    /// Tells all handlers of the connection that their callers have stopped waiting.
    pub fn cancel_all(&self, shared: &ServerShared) {
        for call in &self.deferred {
            call.cancelled.set();
        }
        self.piped.close_all();
        if self.inline > 0 {
            shared.handlers.cancel_all(self.id);
        }
    }

    /// Notes that a handler begins where its call was received, while another thread may go on with the connection.
    #[inline]
    pub fn begin_inline(&mut self) {
        self.inline += 1;
    }

    /// Notes that such a handler has ended, or its answer has come.
    #[inline]
    pub fn end_inline(&mut self) {
        self.inline -= 1;
        // The connection may have been parked since the call came.
        self.has_answered = true;
    }

    /// Answers a call that was carried out elsewhere.
    pub fn answer_deferred(&mut self, id: DeferredId, reply: &mut Buffer) {
        self.has_answered = true;
        if self.piped.is_empty() || !self.piped.hold_reply(id, reply) {
            self.finish_deferred(id, reply);
        }
    }

    fn finish_deferred(&mut self, id: DeferredId, reply: &mut Buffer) {
        self.forget_deferred(id);
        self.connection.answer_deferred(id, reply);
    }

    /// Forgets a call that was carried out elsewhere, and its streams.
    fn forget_deferred(&mut self, id: DeferredId) {
        let answered = self.deferred.iter().position(|call| call.id == id);
        if let Some(index) = answered {
            let call = self.deferred.remove(index);
            self.release(call.bytes);
        }
        if !self.piped.is_empty() {
            self.close_streams(id.number());
        }
    }

    /// Returns the number of calls that are carried out, here or elsewhere.
    #[inline]
    pub fn running(&self) -> usize {
        self.connection.deferred() + self.inline
    }

    /// Returns the number of calls that are carried out elsewhere.
    #[inline]
    pub fn deferred(&self) -> usize {
        self.connection.deferred()
    }

    // ---- Memory of calls ----

    /// Has a call that is going to be carried out elsewhere take no more memory than it needs.
    pub fn compact(&mut self, call: &mut ReceivedCall) {
        self.receiver.compact(&mut call.message);
    }

    /// Returns whether a call with so many bytes of memory may be carried out beside the others of this connection.
    pub fn has_memory_for(&self, bytes: usize, limits: &ServerLimits) -> bool {
        self.call_bytes == 0 || self.call_bytes + bytes <= limits.connection_call_bytes
    }

    /// Returns how many of the bytes of a call count against the memory for the calls of all connections.
    pub fn counted_bytes(&self, bytes: usize) -> usize {
        if self.call_bytes + bytes <= ROOM_FIRST {
            0
        } else {
            bytes
        }
    }

    /// Returns the bytes of memory of the call that is [kept](Self::hold).
    pub fn held_bytes(&self) -> usize {
        self.call.as_ref().map_or(0, |call| call.message.capacity())
    }

    /// Notes that a call takes so many bytes of memory until it is answered.
    pub fn charge(&mut self, bytes: usize) {
        self.call_bytes += bytes;
    }

    /// Notes that the memory of a call is free.
    pub fn release(&mut self, bytes: usize) {
        self.call_bytes -= bytes;
    }

    /// Keeps a call that cannot be carried out now; it is the [next](Self::next_call).
    pub fn hold(&mut self, call: ReceivedCall) {
        self.call = Some(call);
    }

    /// Returns whether a call is [kept](Self::hold), so that nothing behind it may be carried out.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.call.is_some()
    }

    /// Tells a peer that can be told that nothing further is accepted.
    pub fn close(&mut self, reason: CloseReason) {
        self.connection.close(reason, "");
    }

    /// Tells a caller by ONC RPC, behind the replies, that the calls are carried out which were answered, and no others. It
    /// is for a connection that is closed now, of which every call is answered and nothing is received any more.
    #[cold]
    pub fn push_close_notice(&mut self) {
        self.connection.push_close_notice();
    }

    /// Returns whether the peer has said that it begins nothing any more.
    pub fn is_peer_closing(&self) -> bool {
        self.connection.is_peer_closing()
    }

    // ---- The end of the server ----

    /// Returns whether the server still receives though it stops, as the peer cannot be told which calls were not
    /// begun.
    pub fn receives_last(&self) -> bool {
        let is_lean = self.connection.protocol() == Some(WireProtocol::Lean);
        !is_lean && self.last_receives < LAST_RECEIVES
    }

    /// Notes that something `has_come`, or nothing, since the server began to stop.
    pub fn note_last_receive(&mut self, has_come: bool) {
        self.last_receives = if has_come {
            self.last_receives.saturating_add(1)
        } else {
            LAST_RECEIVES
        };
    }

    /// Returns whether its replies may still be on their way at `now`, so that a socket is to be half-closed first.
    pub fn was_called_lately(&self, now: Instant) -> bool {
        let is_used = self.was_active || self.has_answered;
        is_used || now.saturating_duration_since(self.used_at) < LATELY
    }

    /// Returns the counters of the calls.
    #[inline]
    pub fn counters(&self) -> IncomingCounters {
        self.connection.incoming_counters()
    }
}
