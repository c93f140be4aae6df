//! Packets from the server.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lane::{ClientLane, ClientLaneState};
use super::{BindingState, CallId, ClientCore, CompleteAnswer, ConversationState, ExchangeAnswer};
use crate::connection::ReplyError;
use crate::connection::framing::ReceiveBuffer;
use crate::endpoint::exchange::ack::{CallStatus, ReceivedFragments};
use crate::endpoint::exchange::content::AnswerContent;
use crate::endpoint::exchange::failure::Reason;
use crate::endpoint::exchange::packet::{ASKS, DropReason, PacketHeader, PacketKind, decode};
use crate::endpoint::exchange::reassembly::{FragmentError, FragmentOutcome, whole};
use crate::endpoint::exchange::sent_fragments::AckOutcome;
use crate::lean::{
    self, BindAnswer, BindRefusal, ByteOrder, CommonHeader, Exception, Extensions, HEADER, Kind,
};

/// An answer that is sent later than so many microseconds after its call says so by this number.
const HELD_LONG: u16 = u16::MAX;

impl<W> ClientCore<W> {
    #[inline]
    pub(super) fn handle<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        taken: &mut ReceiveBuffer,
    ) -> Result<Option<CompleteAnswer<'d>>, DropReason> {
        let (header, body) = decode(datagram)?;
        match header.kind {
            PacketKind::Reply => self.handle_fragment(now, &header, body, taken),
            PacketKind::Ack => self.handle_ack(now, &header, body).map(|()| None),
            PacketKind::Reset => self.handle_reset(now, &header).map(|()| None),
            PacketKind::Goodbye => self.handle_goodbye(now, &header, body).map(|()| None),
            PacketKind::Welcome => self.handle_welcome(now, &header, body).map(|()| None),
            PacketKind::Hello
            | PacketKind::Call
            | PacketKind::Probe
            | PacketKind::Cancel
            | PacketKind::Data
            | PacketKind::DataAck
            | PacketKind::DataEnd => Err(DropReason::WrongEnd),
        }
    }

    /// The lane of a packet of the conversation that there is, if it carries the packet's call.
    #[inline]
    pub(super) fn lane_of(
        &mut self,
        header: &PacketHeader,
    ) -> Result<&mut ClientLane<W>, DropReason> {
        match &self.link {
            ConversationState::Open(open) if open.conversation == header.conversation => {}
            ConversationState::Open(_)
            | ConversationState::Idle
            | ConversationState::Greeting(_) => return Err(DropReason::Stale),
        }
        match self.lanes.get_mut(usize::from(header.lane)) {
            Some(lane) if lane.sequence == header.sequence => Ok(lane),
            Some(_) | None => Err(DropReason::Stale),
        }
    }

    /// The server knows the conversation: from now on packets need no opening.
    #[inline]
    fn confirm(&mut self) {
        if let ConversationState::Open(open) = &mut self.link
            && open.opening.is_some()
        {
            open.opening = None;
        }
    }

    fn learn(&mut self, now: Instant, outcome: &AckOutcome, held: Option<Duration>) {
        if let (Some(trip), Some(held)) = (outcome.trip, held) {
            self.round_trip.measure(trip.saturating_sub(held));
        }
        self.congestion.handle_ack(outcome, now);
        self.wake();
    }

    fn handle_ack(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let arrived = ReceivedFragments::get(header.fragment.into(), body)?;
        let progress = CallStatus::of(header.detail)?;
        let lane = self.lane_of(header)?;
        let is_calling = match lane.stage {
            ClientLaneState::Free => return Err(DropReason::Stale),
            ClientLaneState::GivenUp => false,
            ClientLaneState::Calling(_) => true,
        };
        lane.heard();
        let outcome = match is_calling {
            true => lane.sending.handle_arrived(&arrived, now),
            false => AckOutcome::default(),
        };
        self.confirm();
        self.learn(now, &outcome, Some(Duration::ZERO));
        match (progress, is_calling) {
            (CallStatus::Receiving | CallStatus::Running, true) => self.go_on(now, header.lane),
            (CallStatus::Receiving | CallStatus::Running, false) => {
                self.cancel_later(now, header.lane)
            }
            (CallStatus::Over | CallStatus::Overloaded | CallStatus::Malformed, false) => {
                self.end(header.lane);
            }
            (CallStatus::Over, true) => self.fail(header.lane, Reason::Lost),
            (CallStatus::Overloaded, true) => self.fail(header.lane, Reason::Overloaded),
            (CallStatus::Malformed, true) => self.fail(header.lane, Reason::Misunderstood),
        }
        Ok(())
    }

    /// Sets the timer of a call that was given up: the server has heard that it is not waited for, and carries it out
    /// all the same.
    fn cancel_later(&mut self, now: Instant, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        lane.probes += 1;
        let wait = self.round_trip.probe(lane.probes, &mut self.rng);
        lane.timer = Some(now + wait);
    }

    /// The server has something of a call, or carries it out.
    fn go_on(&mut self, now: Instant, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        let wait = match lane.sending.has_all_arrived() {
            false => self.round_trip.wait(0, &mut self.rng),
            true => {
                lane.probes += 1;
                self.round_trip.probe(lane.probes, &mut self.rng)
            }
        };
        lane.timer = Some(now + wait);
        self.make_ready(number);
    }

    #[inline]
    fn handle_fragment<'d>(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        body: &'d [u8],
        taken: &mut ReceiveBuffer,
    ) -> Result<Option<CompleteAnswer<'d>>, DropReason> {
        let lane = match self.lane_of(header) {
            Ok(lane) => lane,
            Err(ignored) => {
                self.acknowledge_late(header);
                return Err(ignored);
            }
        };
        match lane.stage {
            ClientLaneState::Calling(_) => {}
            ClientLaneState::GivenUp => {
                // The server may not have heard; a single packet was all that it had to say.
                lane.heard();
                self.confirm();
                if header.fragments == 1 {
                    self.end(header.lane);
                }
                return Err(DropReason::Stale);
            }
            ClientLaneState::Free => {
                if header.has(ASKS) && lane.answer_count > 1 {
                    lane.owes_ack = true;
                    self.make_ready(header.lane);
                }
                return Err(DropReason::Repeated);
            }
        }
        self.hear_reply(now, header);
        let lane = &mut self.lanes[usize::from(header.lane)];
        if header.fragments == 1 && header.fragment == 0 && !lane.assembly.is_begun() {
            lane.answer_count = 1;
            let (lane, datagram) = (header.lane, Some(body));
            return Ok(Some(CompleteAnswer { lane, datagram }));
        }
        self.assemble(now, header, body, taken)
    }

    /// A fragment of an answer has come to a lane that carries another call. The one that it answers is over, or the
    /// other would not have been begun; a server that asks has not heard of that, as nothing of the other has come.
    #[cold]
    fn acknowledge_late(&mut self, header: &PacketHeader) {
        let is_ours = match &self.link {
            ConversationState::Open(open) => open.conversation == header.conversation,
            ConversationState::Idle | ConversationState::Greeting(_) => false,
        };
        let Some(lane) = self.lanes.get_mut(usize::from(header.lane)) else {
            return;
        };
        let behind = lane.sequence.wrapping_sub(header.sequence);
        let is_earlier = (1..=i32::MAX as u32).contains(&behind);
        if is_ours && is_earlier && header.has(ASKS) && header.fragments > 1 {
            lane.owes_late_ack = Some((header.sequence, header.fragments));
            self.make_ready(header.lane);
        }
    }

    /// A fragment of an answer says that the request has arrived.
    #[inline]
    fn hear_reply(&mut self, now: Instant, header: &PacketHeader) {
        let lane = &mut self.lanes[usize::from(header.lane)];
        lane.heard();
        let outcome = lane.sending.all_arrived(now);
        let held = match header.detail {
            HELD_LONG => None,
            held => Some(Duration::from_micros(held.into())),
        };
        self.confirm();
        self.learn(now, &outcome, held);
    }

    /// Ends the call `id` if `datagram` is its answer and of the commonest form: one packet, and in it nothing but the
    /// results. Returns the place of those in what stands behind the packet's header. None says no more than that
    /// [`take_in`](Self::take_in) has to look at it.
    #[inline]
    pub(super) fn take_common(
        &mut self,
        now: Instant,
        datagram: &[u8],
        id: CallId,
    ) -> Option<Range<usize>> {
        let (header, body) = decode(datagram).ok()?;
        let is_single = header.kind == PacketKind::Reply && header.fragments == 1;
        if !is_single || header.flags != 0 || header.fragment != 0 || header.lane != id.lane {
            return None;
        }
        let lane = self.lane_of(&header).ok()?;
        let ClientLaneState::Calling(pending) = &lane.stage else {
            return None;
        };
        let called = (pending.service, pending.procedure);
        if pending.id != id || lane.assembly.is_begun() || lane.owes_ack {
            return None;
        }
        let common = CommonHeader::of(body.first_chunk()?, self.peer?.order)?;
        let is_reply = common.is_reply_to(header.sequence, called.0, called.1);
        if !is_reply || common.message_length() != body.len() as u64 {
            return None;
        }
        self.hear_reply(now, &header);
        self.counters.successes += 1;
        self.end(header.lane);
        Some(HEADER..HEADER + common.length() as usize)
    }

    fn assemble<'d>(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        body: &[u8],
        taken: &mut ReceiveBuffer,
    ) -> Result<Option<CompleteAnswer<'d>>, DropReason> {
        let lane = &mut self.lanes[usize::from(header.lane)];
        let wait = self.round_trip.wait(1, &mut self.rng);
        lane.timer = Some(now + wait);
        let before = lane.assembly.bytes();
        let fragment = match self.bytes + body.len() > self.limits.bytes {
            true => Err(FragmentError::TooLarge),
            false => lane
                .assembly
                .take(header.fragment, header.fragments, body, &mut self.spare),
        };
        // What was held and is appended may find room that is there.
        self.bytes = self.bytes - before + lane.assembly.bytes();
        match fragment {
            Ok(FragmentOutcome::Whole) => {
                lane.answer_count = header.fragments;
                lane.owes_ack = true;
                self.bytes -= lane.assembly.bytes();
                lane.assembly.hand_over(taken, &mut self.spare);
                let (lane, datagram) = (header.lane, None);
                Ok(Some(CompleteAnswer { lane, datagram }))
            }
            Ok(FragmentOutcome::More(is_due)) => {
                if is_due || header.has(ASKS) {
                    lane.owes_ack = true;
                    self.make_ready(header.lane);
                }
                Ok(None)
            }
            Ok(FragmentOutcome::Repeated) => {
                lane.owes_ack = true;
                self.make_ready(header.lane);
                Err(DropReason::Repeated)
            }
            Err(FragmentError::Malformed) => Err(DropReason::Malformed),
            Err(FragmentError::TooLarge) => {
                self.fail_and_tell(header.lane, Reason::AnswerTooLarge);
                Err(DropReason::Full)
            }
        }
    }

    #[inline]
    pub(super) fn take_in<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        taken: &'d mut ReceiveBuffer,
    ) -> Option<ExchangeAnswer<'d, W>> {
        match self.handle(now, datagram, taken) {
            Ok(None) => None,
            Ok(Some(complete)) => {
                let answer = complete.datagram.unwrap_or_else(|| whole(taken));
                self.settle(complete.lane, answer)
            }
            Err(ignored) => {
                self.counters.ignored.count(ignored);
                None
            }
        }
    }

    /// Ends a call with its answer.
    #[inline]
    pub(super) fn settle<'m>(
        &mut self,
        number: u16,
        answer: &'m [u8],
    ) -> Option<ExchangeAnswer<'m, W>> {
        let lane = &mut self.lanes[usize::from(number)];
        let owes_ack = lane.owes_ack;
        let sequence = lane.sequence;
        let order = self.peer.map_or(ByteOrder::NATIVE, |peer| peer.order);
        if is_unbound(answer, order) {
            self.learn_procedures(number, answer, order);
            if self.call_by_procedure(number) {
                return None;
            }
        }
        let pending = self.end(number)?;
        if owes_ack {
            self.lanes[usize::from(number)].owes_ack = true;
            self.make_ready(number);
        }
        let called = (pending.service, pending.procedure);
        let understood = AnswerContent::read(answer, order, sequence, called)
            .and_then(|answered| self.understand(called, &answered));
        let (extensions, outcome) = match understood {
            Ok(understood) => understood,
            Err(violation) => {
                self.report(pending, Reason::Violation(violation), true);
                return None;
            }
        };
        match outcome {
            Ok(_) => self.counters.successes += 1,
            Err(_) => self.counters.exceptions += 1,
        }
        Some(ExchangeAnswer {
            id: pending.id,
            waiter: pending.waiter,
            order,
            extensions,
            start: outcome
                .as_ref()
                .map_or(0, |results| offset(results, answer)),
            outcome,
        })
    }

    #[inline]
    fn understand<'m>(
        &mut self,
        called: (u16, u16),
        answered: &AnswerContent<'m>,
    ) -> Result<Understood<'m>, crate::lean::Violation> {
        let mut refused = None;
        if let Some(message) = &answered.binding {
            refused = self.handle_binding(called, message)?;
        }
        let parts = answered.answer.understood()?;
        let outcome = match (answered.answer.header.kind, refused) {
            (Kind::Reply, _) => Ok(parts.body),
            (_, Some(refusal)) => Err(ReplyError::Unbound(refusal)),
            (_, None) => Err(ReplyError::Exception(
                answered.answer.read(Exception::decode)?,
            )),
        };
        Ok((parts.extensions, outcome))
    }

    /// Finds out which procedures of a service of another version can be called.
    #[cold]
    fn learn_procedures(&mut self, number: u16, answer: &[u8], order: ByteOrder) {
        let lane = &self.lanes[usize::from(number)];
        let ClientLaneState::Calling(pending) = &lane.stage else {
            return;
        };
        let called = (pending.service, pending.procedure);
        let answered = AnswerContent::read(answer, order, lane.sequence, called);
        if let Ok(AnswerContent {
            binding: Some(message),
            ..
        }) = answered
        {
            // A malformed answer is reported when the call is settled.
            let _ = self.handle_binding(called, &message);
        }
    }

    #[cold]
    fn handle_binding(
        &mut self,
        (service, procedure): (u16, u16),
        message: &crate::lean::Message<'_>,
    ) -> Result<Option<Arc<BindRefusal>>, crate::lean::Violation> {
        let Some(binding) = self.bindings.get_mut(usize::from(service)) else {
            return Ok(None);
        };
        if message.header.kind == Kind::Bound {
            message.read(|input| input.u64())?;
            match &mut binding.state {
                BindingState::Procedures(bound) => bound.push(procedure),
                state => *state = BindingState::Bound,
            }
            return Ok(None);
        }
        let BindAnswer { refusal, agreed } = BindAnswer::decode(message, &binding.interface)?;
        let told = match agreed.is_empty() {
            true => refusal.clone(),
            false => refusal.of_procedure(&binding.interface, procedure),
        };
        if !matches!(binding.state, BindingState::Procedures(_)) {
            self.narrow(service, refusal, agreed);
        }
        Ok(Some(Arc::new(told)))
    }
}

/// Returns whether an answer says that the service of its call is not bound.
#[inline]
fn is_unbound(answer: &[u8], order: ByteOrder) -> bool {
    let header = answer.first_chunk::<HEADER>();
    let header = header.and_then(|header| lean::Header::decode(header, order).ok());
    header.is_some_and(|header| header.kind == Kind::Unbound)
}

/// Returns where a part of `whole` begins.
#[inline]
fn offset(part: &[u8], whole: &[u8]) -> usize {
    part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr())
}

type Understood<'m> = (Extensions<'m>, Result<&'m [u8], ReplyError<'m>>);
