//! Messages of the lean protocol: calls of the peer, replies to calls of this end, and what both say of the
//! connection.

use super::binding::NotBound;
use super::incoming_calls::{Caller, IncomingCall, NULL_PROCEDURE};
use super::outgoing_calls::{LeanAnswer, LeanCall, StartError};
use super::send_queue::RemovedCall;
use super::service_table::ServiceTable;
use super::streams::StreamId;
use super::{Connection, ConnectionError, Event, PeerClosing, WireProtocol};
use crate::codec::lean::{
    self, ByteOrder, CALLS_MIN, CallStreams, Close, CloseReason, CommonHeader, Exception, Fault,
    Features, Flags, Header, Kind, MESSAGE_MIN, Message, Parts, Preamble, RefusalReason, Refused,
    ReplyDraft, Stamps, Violation, plain, put_message,
};
use crate::config::Role;

/// Answers to pings that may wait to be sent before further pings are taken for an attack.
const UNSENT_PONGS_MAX: usize = 4096;

/// A call of the commonest form that was accepted.
pub(super) enum AcceptedCall {
    /// Of procedure 0, which is answered.
    Answered,
    /// For the service of this index in the [`ServiceTable`], and what the answer is written for.
    For(usize, lean::Caller),
}

impl<W> Connection<W> {
    // ---- The handshake ----

    #[cold]
    pub(super) fn handle_preamble<'m>(
        &mut self,
        theirs: &Preamble,
    ) -> Result<Event<'m, W>, ConnectionError> {
        self.protocol = Some(WireProtocol::Lean);
        match self.role {
            Role::Client => self.handle_server_preamble(theirs)?,
            Role::Server => self.handle_client_preamble(theirs)?,
        }
        self.peer = Some(*theirs);
        if self.features().has(Features::PIECES) {
            self.send_queue.use_pieces(self.own.order);
        }
        Ok(Event::Progress)
    }

    fn handle_server_preamble(&mut self, theirs: &Preamble) -> Result<(), ConnectionError> {
        let ours = self.own.versions;
        let refused = |reason| Refused {
            reason,
            theirs: theirs.versions,
            ours,
        };
        if let Some(reason) = theirs.refusal {
            return Err(refused(reason).into());
        }
        if ours.common(theirs.versions).is_none() {
            return Err(refused(RefusalReason::VERSION).into());
        }
        if theirs.calls_max < CALLS_MIN {
            return Err(Fault::CallLimit(theirs.calls_max).at(24).into());
        }
        Ok(())
    }

    fn handle_client_preamble(&mut self, theirs: &Preamble) -> Result<(), ConnectionError> {
        let (ours, offered) = (self.own.versions, theirs.versions);
        let reason = match (theirs.refusal, ours.common(offered)) {
            _ if self.closing.is_closed => self.closing.refusal.or(Some(RefusalReason::STOPPING)),
            (Some(_), _) => Some(RefusalReason::PREAMBLE),
            (None, None) => Some(RefusalReason::VERSION),
            (None, Some(_)) => None,
        };
        self.greet(reason);
        match reason {
            None => Ok(()),
            Some(reason) => {
                self.closing.is_closed = true;
                Err(Refused {
                    reason,
                    theirs: offered,
                    ours,
                }
                .into())
            }
        }
    }

    // ---- Messages ----

    #[inline]
    pub(super) fn handle_message<'m>(
        &mut self,
        message: &Message<'m>,
        services: &ServiceTable,
    ) -> Result<Event<'m, W>, ConnectionError> {
        self.check_direction(message)?;
        match message.header.kind {
            Kind::Reply | Kind::Exception => {
                if self.streams.is_some() {
                    self.close_streams(StreamId::own(message.header.id));
                }
                let answer = self.outgoing.handle_reply(message, &mut self.requested)?;
                Ok(match answer {
                    Some(LeanAnswer::Answered(answer)) => Event::Answered(answer),
                    Some(LeanAnswer::Unbegun(call)) => Event::Unbegun(call),
                    // An answer to a call that was given up may let another begin.
                    None => Event::Progress,
                })
            }
            Kind::Call => self.handle_call(message),
            _ => self.handle_rare(message, services),
        }
    }

    /// Checks that the end which sends messages of this kind is the one that sent it.
    #[inline]
    fn check_direction(&self, message: &Message<'_>) -> Result<(), Violation> {
        let kind = message.header.kind;
        let comes_from_server = match kind {
            Kind::Call | Kind::Cancel | Kind::Bind | Kind::End => self.role == Role::Client,
            Kind::Reply | Kind::Exception | Kind::Bound | Kind::Unbound => {
                self.role == Role::Server
            }
            Kind::Ping | Kind::Pong | Kind::Close | Kind::GoAway | Kind::Items | Kind::Credit => {
                return Ok(());
            }
            Kind::Piece => true,
        };
        let is_reverse = message.header.flags.has(Flags::REVERSE);
        if is_reverse != comes_from_server || kind == Kind::Piece {
            return Err(message.header_violation(Fault::WrongEnd(kind), 0));
        }
        Ok(())
    }

    #[cold]
    fn handle_rare<'m>(
        &mut self,
        message: &Message<'m>,
        services: &ServiceTable,
    ) -> Result<Event<'m, W>, ConnectionError> {
        let header = message.header;
        match header.kind {
            Kind::Bind => {
                self.check_open(message)?;
                self.handle_bind(message, services)?;
                Ok(Event::Handled)
            }
            Kind::Bound => {
                self.requested.handle_bound(message)?;
                Ok(Event::Progress)
            }
            Kind::Unbound => {
                let reverse = self.role == Role::Server;
                let (order, control) = (self.own.order, self.send_queue.control());
                self.requested
                    .handle_unbound(message, reverse, order, control)?;
                Ok(Event::Progress)
            }
            Kind::Cancel => {
                message.read(|_| Ok(()))?;
                self.incoming.counters.cancellations += 1;
                self.give_up_streams(StreamId::of_peer(header.id));
                let cancelled = self.incoming.cancel(header.id);
                Ok(cancelled.map_or(Event::CancelledHere(header.id), Event::Cancelled))
            }
            Kind::Ping => {
                message.read(|_| Ok(()))?;
                if self.unsent_pongs >= UNSENT_PONGS_MAX {
                    return Err(message.header_violation(Fault::Flood, 0).into());
                }
                self.unsent_pongs += 1;
                self.incoming.counters.pings += 1;
                self.put_control(plain(Kind::Pong, header.id, 0));
                Ok(Event::Handled)
            }
            Kind::Pong => {
                message.read(|_| Ok(()))?;
                if let Some(streams) = &mut self.streams {
                    streams.handle_pong(header.id);
                }
                Ok(Event::Pong(header.id))
            }
            Kind::Items => self.handle_item(message),
            Kind::End => self.handle_end(message),
            Kind::Credit => self.handle_credit(message),
            Kind::Close => {
                self.check_open(message)?;
                self.handle_close(message)
            }
            Kind::GoAway => {
                message.read(|_| Ok(()))?;
                self.closing.peer_goes_away = true;
                Ok(Event::Progress)
            }
            Kind::Call | Kind::Reply | Kind::Exception | Kind::Piece => Err(message
                .header_violation(Fault::WrongEnd(header.kind), 0)
                .into()),
        }
    }

    /// A peer that has closed begins nothing any more.
    #[inline]
    fn check_open(&self, message: &Message<'_>) -> Result<(), Violation> {
        if self.closing.peer.is_some() {
            let kind = message.header.kind;
            return Err(message.header_violation(Fault::AfterClose(kind), 0));
        }
        Ok(())
    }

    fn put_control(&mut self, header: Header) {
        put_message(self.send_queue.control(), self.own.order, header, |_| {});
    }

    // ---- Calls of this end ----

    /// Checks whether a lean call may begin, and returns the number of its service, which is asked for if it has
    /// none.
    #[inline(always)]
    pub(super) fn check_lean_call(
        &mut self,
        call: &LeanCall<'_>,
        size: usize,
    ) -> Result<u16, StartError> {
        let (message_max, calls_max) = match &self.peer {
            Some(peer) => (peer.message_max, peer.calls_max),
            None => (MESSAGE_MIN, CALLS_MIN),
        };
        if self.awaits_peer && self.peer.is_none() {
            return Err(StartError::AwaitsPreamble { size });
        }
        if size as u64 > u64::from(message_max) {
            return Err(match self.peer {
                None => StartError::AwaitsPreamble { size },
                Some(_) => StartError::TooLarge {
                    size,
                    limit: message_max as usize,
                },
            });
        }
        if !self.closing.may_begin() {
            return Err(StartError::Closing);
        }
        let streams = call.draft.streams();
        if streams.any() {
            return self.check_streaming_call(call, size);
        }
        let limit = calls_max as usize;
        if self.at_peer() >= limit {
            return Err(StartError::TooManyCalls { limit });
        }
        match self.requested.find(call.interface) {
            Some(service) => Ok(service),
            None => self.bind(call, size, false),
        }
    }

    /// Does the same for a call with streams, which is not sent before its service is bound: its items would be lost if
    /// the peer did not begin it.
    #[cold]
    fn check_streaming_call(
        &mut self,
        call: &LeanCall<'_>,
        size: usize,
    ) -> Result<u16, StartError> {
        let Some(peer) = &self.peer else {
            return Err(StartError::AwaitsPreamble { size });
        };
        let limit = usize::from(peer.streams_max);
        match self.own_streams() {
            _ if limit == 0 => Err(StartError::NoStreams),
            streams if streams >= limit => Err(StartError::TooManyStreams { limit }),
            _ => match self.requested.find(call.interface) {
                Some(service) => Ok(service),
                None => self.bind(call, size, true),
            },
        }
    }

    #[cold]
    fn bind(
        &mut self,
        call: &LeanCall<'_>,
        size: usize,
        must_be_bound: bool,
    ) -> Result<u16, StartError> {
        let reverse = self.role == Role::Server;
        let (order, control) = (self.own.order, self.send_queue.control());
        let of = (call.interface, call.procedure, size);
        let number = (self.requested).bind(of, must_be_bound, reverse, order, control);
        number.map_err(|error| match error {
            NotBound::Error(error) => error.into(),
            NotBound::Awaited => StartError::AwaitsBinding { size },
        })
    }

    /// Tells a lean peer that a call is not waited for any more.
    pub(super) fn tell_cancelled(&mut self, number: u32) {
        if self.protocol == Some(WireProtocol::Lean) && !self.closing.is_lost {
            let reverse = self.role == Role::Server;
            self.put_control(plain(Kind::Cancel, number, 0).reversed(reverse));
        }
    }

    /// Asks whether a lean peer is there; returns the number that its [`Event::Pong`] will have.
    pub fn ping(&mut self) -> u32 {
        self.pings = self.pings.wrapping_add(1);
        self.put_control(plain(Kind::Ping, self.pings, 0));
        self.pings
    }

    // ---- Calls of the peer ----

    /// Takes in a message with this header, which [`Receiver::find_common`](super::framing::Receiver::find_common)
    /// has found, if it is a call of a client to a service that is bound. `None` if it is anything else, which
    /// [`handle_frame`](Self::handle_frame) takes in.
    #[inline]
    pub(super) fn accept_common(&mut self, header: CommonHeader) -> Option<AcceptedCall> {
        let is_open = self.closing.peer.is_none() && !self.closing.is_closed;
        let answers_natively = self.role == Role::Server && self.own.order == ByteOrder::NATIVE;
        if !header.is_call() || !is_open || !answers_natively {
            return None;
        }
        let service = self.bound.get(header.service())?;
        self.incoming.accept(header.id()).ok()?;
        if header.procedure() == NULL_PROCEDURE as u16 {
            self.incoming.counters.pings += 1;
            *self.send_queue.control().chunk() = header.empty_reply();
            return Some(AcceptedCall::Answered);
        }
        self.incoming.counters.calls += 1;
        let message_max = self.peer.as_ref().map_or(0, |peer| peer.message_max);
        let caller = lean::Caller::common(header, self.own.order, message_max);
        Some(AcceptedCall::For(service, caller))
    }

    #[inline]
    fn handle_call<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, ConnectionError> {
        let parts = message.parts()?;
        let header = message.header;
        if !self.accept_call(message)? {
            return Ok(Event::Handled);
        }
        let message_max = self.peer.map_or(0, |peer| peer.message_max);
        let caller = lean::Caller::new(&header, self.own.order, message_max);
        let service = self.bound.find(header.service, header.procedure);
        let mut refused = lean::refusal(service, &parts, self.config.metadata_max);
        let streams = CallStreams::of(header.flags);
        if streams.any() && !self.may_open(StreamId::of_peer(header.id)) {
            refused = refused.or(Some(lean::CallRefusal::TooManyStreams));
        }
        let wants_stamps =
            self.features().has(Features::STAMPS) && Stamps::are_asked_for(parts.extensions);
        match (service, refused) {
            (Some(service), None) => {
                let is_null = u32::from(header.procedure) == NULL_PROCEDURE;
                *match is_null {
                    true => &mut self.incoming.counters.pings,
                    false => &mut self.incoming.counters.calls,
                } += 1;
                if is_null && !wants_stamps {
                    caller.put_empty(self.send_queue.control());
                    return Ok(Event::Handled);
                }
                if streams.any() && !is_null {
                    let id = StreamId::of_peer(header.id);
                    self.stream_table().open(id, streams);
                }
                let call = call(service, message, &parts, caller);
                Ok(Event::Called(IncomingCall {
                    wants_stamps,
                    streams,
                    ..call
                }))
            }
            (_, refused) => {
                self.incoming.counters.refusals += 1;
                let refused = refused.unwrap_or(lean::CallRefusal::Unbound);
                self.refuse_call(caller, &refused.exception());
                Ok(Event::Handled)
            }
        }
    }

    /// Returns whether a call is accepted; it is ignored if not, as this end has closed.
    #[inline]
    fn accept_call(&mut self, message: &Message<'_>) -> Result<bool, Violation> {
        let header = message.header;
        let has_streams = CallStreams::of(header.flags).any();
        let is_granted = self.own.calls_max > 0 || has_streams && self.own.streams_max > 0;
        if self.role == Role::Client && !is_granted {
            return Err(message.header_violation(Fault::NotGranted, 0));
        }
        // A message in pieces has its number since its first piece, and others may have come behind that.
        let was_accepted = message.in_pieces && self.incoming.is_accepted(header.id);
        if self.closing.is_closed {
            return Ok(was_accepted);
        }
        if was_accepted {
            return Ok(true);
        }
        if !message.in_pieces {
            self.check_open(message)?;
        }
        match self.incoming.accept(header.id) {
            Ok(()) => Ok(true),
            Err(last) => {
                let got = header.id;
                Err(message.header_violation(Fault::CallBehind { last, got }, 4))
            }
        }
    }

    /// Answers a lean call with an exception.
    #[cold]
    pub fn refuse_call(&mut self, caller: lean::Caller, exception: &Exception<'_>) {
        if self.streams.is_some() {
            self.close_streams(StreamId::of_peer(caller.id));
        }
        let out = self.send_queue.control();
        ReplyDraft::begin(out, caller)
            .refuse(out, exception)
            .seal(out);
    }

    fn handle_bind(
        &mut self,
        message: &Message<'_>,
        services: &ServiceTable,
    ) -> Result<(), Violation> {
        let reverse = self.role == Role::Client;
        let out = self.send_queue.control();
        let order = self.own.order;
        let is_bound = self
            .bound
            .handle_bind(services, message, reverse, order, out)?;
        if !is_bound {
            self.incoming.counters.refusals += 1;
        }
        Ok(())
    }

    // ---- The end ----

    /// Asks a lean peer to begin no calls any more over this connection, and to close it when its calls are answered.
    /// Those that it begins all the same are accepted until this end [closes](Self::close). Returns whether the peer can
    /// be asked: by ONC RPC there is no word for it.
    pub fn go_away(&mut self) -> bool {
        let can_ask = self.protocol == Some(WireProtocol::Lean)
            && self.has_greeted
            && !self.closing.is_closed;
        if can_ask {
            self.put_control(plain(Kind::GoAway, 0, 0));
        }
        can_ask
    }

    fn handle_close<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, ConnectionError> {
        let close = Close::decode(message)?;
        self.closing.peer = Some(close.last_call);
        let unbegun = match close.reason {
            // The connection is over, and nothing is known of what was begun.
            CloseReason::VIOLATION => Vec::new(),
            _ => self.outgoing.abandon_behind(close.last_call),
        };
        for call in &unbegun {
            self.close_streams(StreamId::own(call.number));
        }
        for call in unbegun.iter().filter(|call| !call.was_sent) {
            if self.send_queue.remove(call.number) == RemovedCall::Unfinished {
                // The peer waits for the rest of it.
                self.tell_cancelled(call.number);
            }
        }
        Ok(Event::PeerClosing(PeerClosing { close, unbegun }))
    }
}

fn call<'m>(
    service: usize,
    message: &Message<'m>,
    parts: &Parts<'m>,
    caller: lean::Caller,
) -> IncomingCall<'m> {
    IncomingCall {
        service,
        procedure: message.header.procedure.into(),
        credential: parts.extensions.credential(),
        time_left: parts.time_left,
        extensions: parts.extensions,
        wants_stamps: false,
        streams: CallStreams::NONE,
        order: message.order,
        arguments: parts.body,
        caller: Caller::Lean(caller),
    }
}
