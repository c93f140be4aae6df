//! One connection over a stream of bytes, at either end, by ONC RPC or the lean protocol: which calls are in flight in
//! both directions, which services are bound, what is sent next, and how it ends.
//!
//! A connection has two parts. The [`Receiver`] finds messages in the bytes that arrive; it belongs to the thread or
//! task that receives, and messages stay in its memory while they are decoded. The [`Connection`] is told of each
//! message and knows the rest; it does so little at a time that any number of threads may share it under a lock.
//! Neither has a clock, a socket or a thread.
//!
//! ```text
//! bytes -> Receiver::room, handle_received -> next_frame -> Connection::handle_frame -> Event
//! Connection::start_call, push_call, push_reply -> poll_transmit -> bytes -> handle_transmitted
//! ```
//!
//! A call from the first byte to the last, over a stream that both ends reach into:
//! ```
//! use std::time::{Duration, Instant};
//! use tenon_proto::config::ConnectionConfig;
//! use tenon_proto::connection::{
//!     CallDraft, Connection, Event, ReplyDraft, ServiceTable, TransmitBatch, WireProtocol,
//! };
//! use tenon_proto::connection::framing::Receiver;
//! use tenon_proto::onc::auth::Credential;
//! use tenon_proto::onc::message::CallTemplate;
//! use tenon_proto::onc::record;
//! use tenon_wire::Buffer;
//!
//! /// What `send` and `recv` do between two sockets.
//! fn carry<W>(from: &mut Connection<W>, to: &mut Receiver) {
//!     let mut batch = TransmitBatch::default();
//!     while from.poll_transmit(&mut batch) {
//!         for slice in batch.slices() {
//!             to.room()[..slice.len()].copy_from_slice(slice);
//!             to.handle_received(slice.len()).expect("a known protocol");
//!         }
//!         batch.advance(batch.remaining());
//!         from.handle_transmitted(&mut batch);
//!     }
//! }
//!
//! let services = ServiceTable::default();
//! let mut served = ServiceTable::default();
//! served.add(300, 1, None);
//! let (mut client, mut client_receiver) =
//!     Connection::client(ConnectionConfig::client(), WireProtocol::Onc, 0x5eed);
//! let (mut server, mut server_receiver) = Connection::<()>::server(ConnectionConfig::server());
//!
//! // The client: a template made once, and for every call its arguments.
//! let template = CallTemplate::new(300, 1, &Credential::None);
//! let mut message = Buffer::default();
//! template.begin(&mut message, 7);
//! message.extend(b"ping");
//! record::seal(&mut message, 0, record::FRAGMENT_MAX);
//! let deadline = Instant::now() + Duration::from_secs(5);
//! let call = client.start_call(&CallDraft::Onc, &mut message, deadline, "the caller")?;
//! client.push_call(&call, &mut message);
//! carry(&mut client, &mut server_receiver);
//!
//! // The server: which service is meant, and the result behind a header.
//! let frame = server_receiver.next_frame()?.expect("a whole message");
//! let Event::Called(call) = server.handle_frame(frame, &served)? else {
//!     unreachable!("a call was sent");
//! };
//! assert_eq!((call.procedure, call.arguments), (7, &b"ping"[..]));
//! let mut reply = Buffer::default();
//! let draft = ReplyDraft::begin(&mut reply, call.caller);
//! reply.extend(b"pong");
//! draft.seal(&mut reply);
//! server.push_reply(&mut reply);
//! carry(&mut server, &mut client_receiver);
//!
//! // The client again: which call is answered, and with what.
//! let frame = client_receiver.next_frame()?.expect("a whole message");
//! let Event::Answered(answer) = client.handle_frame(frame, &services)? else {
//!     unreachable!("a reply was sent");
//! };
//! assert_eq!((answer.waiter, answer.outcome), ("the caller", Ok(&b"pong"[..])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binding;
mod byte_layer;
mod closing;
mod counters;
mod ending;
mod error;
pub mod framing;
mod given_up;
mod incoming_calls;
mod layered;
mod lean_messages;
mod liveness;
mod onc_messages;
mod outgoing_calls;
mod pings;
mod received_call;
mod send_queue;
mod service_table;
mod started_call;
mod streams;

use std::time::Instant;

use tenon_wire::Buffer;

use crate::codec::lean::{ByteOrder, CALLS_MIN, Close, Features, Preamble, RefusalReason};
use crate::codec::onc::message::CallTemplate;
use crate::config::{ConnectionConfig, Role};
use binding::{BoundServices, RequestedServices};
use closing::ClosingState;
use framing::{Frame, FramingError, PlainReply, Receiver};
use incoming_calls::IncomingCalls;
use liveness::PeerLiveness;
use outgoing_calls::OutgoingCalls;
use send_queue::SendQueue;
use streams::StreamTable;

pub use binding::{BindError, SERVICES_MAX};
pub use byte_layer::{ByteLayer, LayerError};
pub use counters::{IncomingCounters, OutgoingCounters};
pub use error::ConnectionError;
pub use incoming_calls::{
    CallAttachments, Caller, DeferredCallState, DeferredId, IncomingCall, NULL_PROCEDURE,
    ReplyDraft,
};
pub use liveness::PeerSilence;
pub(crate) use onc_messages::understand;
pub use outgoing_calls::{
    AbandonedCall, Answer, CallDraft, LeanCall, PlainAnswer, ReplyError, StartError, UnsentCall,
};
pub use received_call::{CommonCall, Received, ReceivedCall};
pub use send_queue::TransmitBatch;
pub use service_table::ServiceTable;
pub use started_call::StartedCall;
pub use streams::{ItemMessage, PushError, StreamId};

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireProtocol {
    /// ONC RPC version 2 (RFC 5531).
    Onc,
    /// The lean protocol.
    Lean,
}

/// The meaning of a message.
#[derive(Debug)]
pub enum Event<'m, W> {
    /// A call of this end is answered.
    Answered(Answer<'m, W>),
    /// The peer calls a procedure. The call is to be answered with [`Connection::push_reply`].
    Called(IncomingCall<'m>),
    /// The peer no longer waits for a call that is [carried out elsewhere](Connection::defer).
    Cancelled(DeferredId),
    /// The peer no longer waits for the call of this number, which is not carried out elsewhere: its answer has crossed
    /// this, or it is carried out where it was received.
    CancelledHere(u32),
    /// The peer has not begun a call, as the service was bound for some of its procedures only behind it. It is no
    /// longer in flight, and is to be [started again](Connection::restart_call).
    Unbegun(AbandonedCall<W>),
    /// The peer accepts no calls any more.
    PeerClosing(PeerClosing<'m, W>),
    /// An item of a stream came, or a part of one. It is to be [given back](Connection::give_back).
    Items(ItemMessage<'m>),
    /// The peer has no further items for a stream of arguments.
    StreamEnded(StreamId),
    /// The peer has answered the ping of this number.
    Pong(u32),
    /// The peer has said something that may let calls begin which could not.
    Progress,
    /// Nothing for the owner.
    Handled,
}

/// The peer accepts no calls any more. What it has accepted it answers.
#[derive(Debug)]
pub struct PeerClosing<'m, W> {
    /// The peer's message.
    pub close: Close<'m>,
    /// Calls of this end that the peer did not begin, in the order in which they were sent. They are no longer in
    /// flight, and may be sent over another connection.
    pub unbegun: Vec<AbandonedCall<W>>,
}

/// The action for a call at a given time.
#[derive(Debug)]
pub enum CallTimeout<W> {
    /// Nothing before this time.
    Wait(Instant),
    /// The time of the call ran out, and it is no longer in flight.
    Expired(AbandonedCall<W>),
}

/// A connection over a stream. `W` is what its owner needs to find the waiter of a call.
#[derive(Debug)]
pub struct Connection<W> {
    role: Role,
    config: ConnectionConfig,
    /// `None` until the first bytes of a client are known.
    protocol: Option<WireProtocol>,
    /// The lean preamble of this end.
    own: Preamble,
    has_greeted: bool,
    /// True if no call is sent before the peer has said that it is there.
    awaits_peer: bool,
    /// The lean preamble of the peer.
    peer: Option<Preamble>,
    outgoing: OutgoingCalls<W>,
    requested: RequestedServices,
    incoming: IncomingCalls,
    bound: BoundServices,
    send_queue: SendQueue,
    /// The calls with streams, once there was one.
    streams: Option<Box<StreamTable>>,
    closing: ClosingState,
    liveness: PeerLiveness,
    /// Asks a peer by ONC RPC whether it is there.
    null_call: Option<Box<CallTemplate>>,
    /// Pings of this end.
    pings: u32,
    /// Pings of the peer that wait for their answers to be sent.
    unsent_pongs: usize,
    layer: Option<Box<dyn ByteLayer>>,
    /// An empty buffer.
    scratch: Buffer,
}

impl<W> Connection<W> {
    /// A connection that this end has begun, and its receiving half. `seed` is the number of the first call: choose
    /// it at random, so that a restarted client does not repeat the numbers of its former life.
    pub fn client(config: ConnectionConfig, protocol: WireProtocol, seed: u32) -> (Self, Receiver) {
        let mut connection = Self::new(config, Role::Client, Some(protocol), seed);
        let receiver = connection.begin();
        (connection, receiver)
    }

    /// A connection that this end has accepted, and its receiving half. The first bytes that come say which protocol
    /// it speaks.
    pub fn server(config: ConnectionConfig) -> (Self, Receiver) {
        let connection = Self::new(config, Role::Server, None, 0);
        let receiver = Receiver::sniffing(connection.config.receive_max);
        (connection, receiver)
    }

    fn new(
        config: ConnectionConfig,
        role: Role,
        protocol: Option<WireProtocol>,
        seed: u32,
    ) -> Self {
        let interval = match protocol {
            Some(WireProtocol::Lean) => config.pings.lean_interval,
            // Which program is called is not known yet.
            Some(WireProtocol::Onc) | None => None,
        };
        Self {
            role,
            protocol,
            own: config.preamble(role),
            has_greeted: false,
            awaits_peer: false,
            peer: None,
            outgoing: OutgoingCalls::new(seed),
            requested: RequestedServices::default(),
            incoming: IncomingCalls::new(config.incoming_calls_max),
            bound: BoundServices::default(),
            send_queue: SendQueue::default(),
            streams: None,
            closing: ClosingState::default(),
            liveness: PeerLiveness::new(interval, &config.pings),
            null_call: None,
            pings: 0,
            unsent_pongs: 0,
            layer: None,
            scratch: Buffer::default(),
            config,
        }
    }

    /// Goes on from `now` on over another stream that this end has begun, in place of the one before, and returns the
    /// receiving half. Nothing is bound over it. Numbers of calls go on.
    ///
    /// # Panics
    /// Calls are in flight; [abandon](Self::abandon_all) them when the connection is lost.
    pub fn renew(&mut self, now: Instant) -> Receiver {
        assert_eq!(
            self.in_flight(),
            0,
            "calls are in flight over a lost connection"
        );
        self.has_greeted = false;
        // The one before was lost, perhaps with its server. A connection that no server has accepted yet is reset if
        // that goes away, too, and of a call that was sent over it nothing would be known.
        self.awaits_peer = self.outgoing.has_called();
        self.peer = None;
        self.outgoing.renew();
        self.requested.clear();
        self.bound.clear();
        self.incoming.renew();
        self.send_queue = SendQueue::default();
        self.streams = None;
        self.closing = ClosingState::default();
        self.liveness.begin(now, &self.outgoing);
        self.unsent_pongs = 0;
        self.layer = None;
        self.begin()
    }

    fn begin(&mut self) -> Receiver {
        if self.protocol == Some(WireProtocol::Lean) {
            self.greet(None);
            Receiver::lean(self.own.message_max as usize)
        } else {
            Receiver::onc(self.config.receive_max)
        }
    }

    /// Sends the preamble, once.
    fn greet(&mut self, refusal: Option<RefusalReason>) {
        if !std::mem::replace(&mut self.has_greeted, true) {
            let preamble = Preamble {
                refusal,
                ..self.own
            };
            self.send_queue.control().extend(&preamble.encode());
        }
    }

    /// Returns the protocol, once it is known.
    #[inline]
    pub fn protocol(&self) -> Option<WireProtocol> {
        self.protocol
    }

    /// Returns the lean preamble of the peer; `None` as long as it has said nothing.
    pub fn peer(&self) -> Option<&Preamble> {
        self.peer.as_ref()
    }

    /// Returns the optional capabilities that both ends have; none before the peer has said what it can do.
    pub fn features(&self) -> Features {
        let peer = self.peer.map_or(Features::default(), |peer| peer.features);
        self.own.features.common(peer)
    }

    // ---- What comes ----

    /// Takes in a message. `services` are those that this end serves.
    ///
    /// # Errors
    /// The peer broke the protocol, or refuses the connection: send what is left, and close it.
    #[inline]
    pub fn handle_frame<'m>(
        &mut self,
        frame: Frame<'m>,
        services: &ServiceTable,
    ) -> Result<Event<'m, W>, ConnectionError> {
        match frame {
            Frame::Message(message) => self.handle_message(&message, services),
            Frame::Record(record) => self.handle_record(record, services),
            Frame::Preamble(preamble) => self.handle_preamble(&preamble),
        }
    }

    /// Takes in that the stream of the peer cannot be read on. A lean client with a malformed preamble is known to be
    /// one from then on, so that it is refused when the connection is [closed](Self::close).
    #[cold]
    pub fn handle_framing_error(&mut self, error: FramingError) -> ConnectionError {
        if let FramingError::Lean(_) = error {
            self.protocol = Some(WireProtocol::Lean);
        }
        error.into()
    }

    // ---- Calls of this end ----

    /// Puts a call in flight and gives it its number; `message` holds its whole message. It is to be handed over to be
    /// sent then, in the order in which calls were started: by [`push_call`](Self::push_call), or directly if [nothing
    /// waits](Self::is_send_idle).
    ///
    /// # Errors
    /// It cannot be started now, and why. The message is as it was.
    #[inline(always)]
    pub fn start_call(
        &mut self,
        draft: &CallDraft<'_>,
        message: &mut Buffer,
        deadline: Instant,
        waiter: W,
    ) -> Result<StartedCall, StartError> {
        let (service, procedure) = match (draft, self.protocol) {
            (CallDraft::Lean(call), Some(WireProtocol::Lean)) => {
                let service = self.check_lean_call(call, message.len())?;
                (service, call.procedure)
            }
            (CallDraft::Onc, Some(WireProtocol::Onc)) if self.closing.may_begin() => (0, 0),
            (CallDraft::Onc, Some(WireProtocol::Onc)) => return Err(StartError::Closing),
            (CallDraft::Onc | CallDraft::Lean(_), _) => return Err(StartError::OtherProtocol),
        };
        let number = self.outgoing.insert((service, procedure), deadline, waiter);
        let call = StartedCall {
            number,
            service,
            procedure,
        };
        draft.stamp(message, &call);
        if let CallDraft::Lean(call) = draft
            && call.draft.streams().any()
        {
            self.stream_table()
                .open(StreamId::own(number), call.draft.streams());
        }
        if self.requested.is_keeping() {
            self.requested.keep(service, number, message);
        }
        Ok(call)
    }

    /// Has a call sent that was started. An empty buffer is left in place of its message.
    #[inline]
    pub fn push_call(&mut self, call: &StartedCall, message: &mut Buffer) {
        self.send_queue.push(message, Some(call.number));
    }

    /// Notes that the owner sends a call itself, which is the first that goes out.
    #[inline]
    pub fn mark_sent(&mut self, call: &StartedCall) {
        self.outgoing.mark_sent(call.number);
    }

    /// Ends a call to which its owner has found a successful reply, if it is the one of `is_meant`; returns whether.
    #[inline]
    pub fn finish_call(&mut self, number: u32, is_meant: impl FnOnce(&W) -> bool) -> bool {
        let is_finished = self.outgoing.finish(number, is_meant);
        if is_finished && self.streams.is_some() {
            self.close_streams(StreamId::own(number));
        }
        is_finished
    }

    /// Takes the next message out of what `receiver` has received, if it is a successful reply of the commonest form to
    /// a call in flight; `None` if it is anything else, which is left there. Where many calls are in flight, taking
    /// their replies in takes a third of the instructions that the general way takes.
    #[inline(always)]
    pub fn next_plain_reply(&mut self, receiver: &mut Receiver) -> Option<PlainAnswer<W>> {
        let reply = receiver.find_plain_reply()?;
        let (number, names, order) = match &reply {
            // What a client sends as a reply answers a call of the server, and says so.
            PlainReply::Lean(_) if self.role == Role::Server => return None,
            PlainReply::Lean(header) => {
                let names = (header.service(), header.procedure());
                (header.id(), names, ByteOrder::NATIVE)
            }
            PlainReply::Onc { number, .. } => (*number, (0, 0), ByteOrder::Big),
        };
        let waiter = self.outgoing.take_successful(number, names)?;
        if self.streams.is_some() {
            self.close_streams(StreamId::own(number));
        }
        Some(PlainAnswer {
            waiter,
            order,
            place: receiver.take_plain_reply(&reply),
        })
    }

    /// Number of calls of this end in flight.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.outgoing.in_flight()
    }

    /// Calls of this end without streams that the peer has to be taken to be at.
    #[inline]
    fn at_peer(&self) -> usize {
        let calls = self.outgoing.at_peer();
        match &self.streams {
            None => calls,
            Some(streams) => calls - streams.own(),
        }
    }

    /// Returns how many calls a lean peer takes, if it has so many of them that further ones wait.
    pub fn full_at(&self) -> Option<usize> {
        if self.protocol != Some(WireProtocol::Lean) {
            return None;
        }
        let limit = self.peer.map_or(CALLS_MIN, |peer| peer.calls_max) as usize;
        (self.at_peer() >= limit).then_some(limit)
    }

    /// Returns when the call is given up; `None` if it is not in flight.
    #[inline]
    pub fn call_deadline(&self, number: u32) -> Option<Instant> {
        self.outgoing.deadline(number)
    }

    /// Gives a call that is in flight another deadline.
    pub fn set_call_deadline(&mut self, number: u32, deadline: Instant) {
        self.outgoing.set_deadline(number, deadline);
    }

    /// Returns when the first of all calls of this end is given up; `None` if none is in flight.
    pub fn next_call_deadline(&self) -> Option<Instant> {
        self.outgoing.next_deadline()
    }

    /// Counts that the peer broke the protocol, with the calls that this end has begun or accepted the connection for.
    pub fn count_violation(&mut self) {
        match self.role {
            Role::Client => self.outgoing.count_violation(),
            Role::Server => self.incoming.counters.violations += 1,
        }
    }

    /// Returns the outcomes of the calls of this end.
    pub fn outgoing_counters(&self) -> OutgoingCounters {
        self.outgoing.counters()
    }

    // ---- Calls of the peer ----

    /// Has a reply sent, which [`ReplyDraft`] has written. An empty buffer is left in its place.
    #[inline]
    pub fn push_reply(&mut self, reply: &mut Buffer) {
        self.send_queue.push(reply, None);
    }

    /// Notes that a call is carried out elsewhere than where it was received, so that it may be cancelled and counts
    /// against the limit; those with streams are granted beside it. `None` if there are too many, or the number of a lean call has come round while a call with
    /// it is carried out: it is to be refused, or to wait.
    pub fn defer(&mut self, caller: &Caller, deadline: Option<Instant>) -> Option<DeferredId> {
        let beside = self.peer_streams();
        self.incoming.defer(caller, deadline, beside)
    }

    /// Returns whether a call can be [deferred](Self::defer) now.
    pub fn may_defer(&self, caller: &Caller) -> bool {
        self.incoming.may_defer(caller, self.peer_streams())
    }

    /// Notes that a deferred call is over; returns what was known of it.
    pub fn finish_deferred(&mut self, id: DeferredId) -> Option<DeferredCallState> {
        self.incoming.finish(id)
    }

    /// Returns the state of a deferred call; `None` if it is over.
    pub fn deferred_state(&self, id: DeferredId) -> Option<DeferredCallState> {
        self.incoming.state(id)
    }

    /// Number of calls that are carried out elsewhere.
    #[inline]
    pub fn deferred(&self) -> usize {
        self.incoming.len()
    }

    /// Returns a deferred call that has run out of time by `now` and that was not returned before. It stays until it is
    /// [finished](Self::finish_deferred).
    pub fn poll_expired(&mut self, now: Instant) -> Option<DeferredId> {
        self.incoming.poll_expired(now)
    }

    /// Returns the outcomes of the calls of the peer.
    pub fn incoming_counters(&self) -> IncomingCounters {
        self.incoming.counters
    }

    // ---- What goes out ----

    /// Returns whether nothing waits to be sent, so that a message may be sent without being queued.
    #[inline]
    pub fn is_send_idle(&self) -> bool {
        self.send_queue.is_empty() && self.layer.is_none()
    }

    /// Returns whether [`poll_transmit`](Self::poll_transmit) has something to send.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        match &self.layer {
            None => self.has_queued(),
            Some(layer) => self.layer_has_transmit(&**layer),
        }
    }

    #[cold]
    fn layer_has_transmit(&self, layer: &dyn ByteLayer) -> bool {
        layer.has_transmit() || layer.is_open() && self.has_queued()
    }

    #[inline]
    fn has_queued(&self) -> bool {
        !self.send_queue.is_empty() || self.has_items()
    }

    /// Returns whether items of streams may be there to be sent.
    #[inline]
    fn has_items(&self) -> bool {
        self.streams
            .as_ref()
            .is_some_and(|streams| streams.has_ready())
    }

    /// Bytes that wait to be sent, answers included that were given without a service.
    #[inline]
    pub fn queued_bytes(&self) -> usize {
        self.send_queue.control_bytes() + self.send_queue.bytes()
    }

    /// Fills an empty batch with what is to be sent next; returns whether there is anything. Only one batch of a
    /// connection may be under way: give it [back](Self::handle_transmitted) before the next.
    #[inline(always)]
    pub fn poll_transmit(&mut self, batch: &mut TransmitBatch) -> bool {
        if self.layer.is_some() {
            return self.poll_layer(batch);
        }
        if self.has_items() {
            return self.poll_with_items(batch);
        }
        if self.send_queue.is_empty() {
            return false;
        }
        self.send_queue.fill(batch, true);
        self.note_sent(batch);
        true
    }

    #[cold]
    fn poll_with_items(&mut self, batch: &mut TransmitBatch) -> bool {
        let is_alone = self.send_queue.has_no_piece();
        let takes_items = self.stream_table().takes_turn(is_alone);
        self.send_queue.fill(batch, !takes_items);
        self.note_sent(batch);
        if takes_items && !self.add_items(batch) && !is_alone {
            // All of them wait, for credit or for their calls.
            self.send_queue.fill_piece(batch);
            self.note_sent(batch);
        }
        !batch.is_sent()
    }

    /// Notes which calls go out with a batch.
    #[inline]
    fn note_sent(&mut self, batch: &TransmitBatch) {
        if self.outgoing.in_flight() > 0 {
            for number in batch.calls() {
                self.outgoing.mark_sent(number);
            }
            if let Some((number, size)) = batch.long_call()
                && self.protocol == Some(WireProtocol::Onc)
            {
                self.outgoing.note_long_call(number, size);
            }
        }
    }

    /// Takes a batch back that was sent.
    #[inline]
    pub fn handle_transmitted(&mut self, batch: &mut TransmitBatch) {
        self.unsent_pongs = 0;
        self.send_queue.recycle(batch);
    }

    /// Returns whether the connection may have more memory than it needs while it is idle.
    #[inline]
    pub fn has_grown(&self) -> bool {
        self.send_queue.has_grown()
    }

    /// Gives memory back that only large messages, or many at once, have needed; returns false if something is still to
    /// be sent. `batch` is the one of the connection.
    pub fn trim(&mut self, batch: &mut TransmitBatch) -> bool {
        self.incoming.trim();
        self.send_queue.trim(batch)
    }

    /// Takes a batch back that was not sent whole, as the connection failed: calls of which a part is missing were
    /// not carried out.
    pub fn handle_transmit_failed(&mut self, batch: &mut TransmitBatch) {
        for number in batch.unsent_calls() {
            self.outgoing.mark_cut_off(number);
        }
        let outgoing = &self.outgoing;
        let is_wanted = |number| outgoing.deadline(number).is_some();
        self.send_queue.restore(batch, self.own.order, is_wanted);
    }

    /// Takes a batch back of which nothing was sent; what is in it goes out before everything else. Returns whether
    /// that was so: otherwise the batch is as it was.
    #[cold]
    pub fn put_back(&mut self, batch: &mut TransmitBatch) -> bool {
        let numbers: Vec<u32> = batch.calls().collect();
        let is_back = self.layer.is_none() && self.send_queue.put_back(batch);
        for number in numbers.into_iter().filter(|_| is_back) {
            self.outgoing.mark_unsent(number);
        }
        is_back
    }

    // ---- Time and end ----

    /// Returns when something is to be done even if nothing comes: a call is given up, a deferred one is late, or
    /// [silence](Self::handle_silence) has lasted for too long.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timeouts = [
            self.outgoing.next_deadline(),
            self.incoming.next_timeout(),
            self.silence_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }
}
