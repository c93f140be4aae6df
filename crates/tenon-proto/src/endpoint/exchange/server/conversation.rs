//! A client at the server: its lanes, each with the call that it carries, or carried last.

use std::time::Instant;

use tenon_wire::Buffer;

use crate::connection::SERVICES_MAX;
use crate::endpoint::exchange::ack::{CallStatus, ReceivedFragments, put_bitmap};
use crate::endpoint::exchange::congestion::CongestionController;
use crate::endpoint::exchange::farewell::{NAMED_MAX, put_begun};
use crate::endpoint::exchange::packet::{
    ASKS, DropReason, HeaderTemplate, PacketHeader, PacketKind,
};
use crate::endpoint::exchange::reassembly::Reassembly;
use crate::endpoint::exchange::sending::OutgoingMessage;
use crate::endpoint::exchange::time::{RetransmitTimeouts, RttEstimator, SplitMix64};
use crate::lean::Caller;
use crate::lean::{BindRequest, ByteOrder, Interface, Preamble, UnboundReason, put_bound};

/// Times that an answer is sent again before its client has to ask for it.
const REPEATS_MAX: u32 = 8;

/// A reply that is sent later than so many microseconds after its call says so by this number.
const HELD_LONG: u16 = u16::MAX;

/// The state of a client at the server.
#[derive(Debug)]
pub(super) struct Conversation<A> {
    prototype: HeaderTemplate,
    id: u64,
    pub(super) peer: A,
    pub(super) heard_at: Instant,
    /// Before this time a packet could begin the conversation again.
    pub(super) cookie_expiry: Instant,
    /// The preamble of the client.
    pub(super) client: Preamble,
    fragment_bytes: usize,
    bound: Vec<BoundService>,
    pub(super) lanes: Vec<ServerLane>,
    pub(super) bytes: usize,
    pub(super) congestion: CongestionController,
    pub(super) round_trip: RttEstimator,
    /// An answer waits for room in the window.
    pub(super) has_waiting: bool,
}

/// A service that the client has asked for.
#[derive(Debug)]
struct BoundService {
    /// The number that the client gave it.
    number: u16,
    /// Its index in the table of services.
    service: usize,
    /// The procedures that the client asked for; `None` for all.
    procedures: Option<Vec<u32>>,
}

/// One call at a time, and the answer to the last one.
#[derive(Debug)]
pub(super) struct ServerLane {
    pub(super) number: u16,
    pub(super) sequence: u32,
    pub(super) stage: ServerLaneState,
    pub(super) assembly: Reassembly,
    pub(super) sending: OutgoingMessage,
    pub(super) caller: Option<Caller>,
    /// The answer begins by saying that a service is bound: its number and its fingerprint.
    bound: Option<(u16, u64)>,
    /// Fragments of the request.
    request_count: u32,
    pub(super) received_at: Instant,
    pub(super) owes_ack: bool,
    pub(super) owes_answer: bool,
    /// A fragment is sent whatever the window says, to learn whether anything arrives.
    is_retrying: bool,
    pub(super) is_ready: bool,
    /// It is among those with timers that are looked at.
    pub(super) is_timed: bool,
    pub(super) timer: Option<Instant>,
    pub(super) in_vain: u32,
    pub(super) charged: usize,
}

/// The state of a lane's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerLaneState {
    /// Its request is not whole.
    Receiving,
    /// It is carried out.
    Running,
    /// It is carried out, and the client no longer waits for it.
    Cancelled,
    /// Its answer may have to be sent again.
    Answered,
    /// Nothing is known any more but how it ended.
    Over(CallStatus),
}

/// Tells whether a lane has more to send.
pub(super) enum SendStatus {
    Done,
    More,
}

impl BoundService {
    /// Takes in what is asked for beside; the service has granted it, so that its procedures are the most.
    fn add(&mut self, bind: &BindRequest) {
        if bind.procedures.is_empty() {
            self.procedures = None;
        }
        if let Some(procedures) = &mut self.procedures {
            for asked in &bind.procedures {
                if !procedures.contains(&asked.number) {
                    procedures.push(asked.number);
                }
            }
        }
    }
}

impl ServerLane {
    fn new(number: u16, sequence: u32, bytes_max: usize, now: Instant) -> Self {
        Self {
            number,
            sequence,
            stage: ServerLaneState::Receiving,
            assembly: Reassembly::new(bytes_max),
            sending: OutgoingMessage::default(),
            caller: None,
            bound: None,
            request_count: 0,
            received_at: now,
            owes_ack: false,
            owes_answer: false,
            is_retrying: false,
            is_ready: false,
            is_timed: false,
            timer: None,
            in_vain: 0,
            charged: 0,
        }
    }

    pub(super) fn begin_running(&mut self, request_count: u32) {
        self.request_count = request_count;
        self.stage = ServerLaneState::Running;
    }

    /// The call is over. Its answer, if there was one, is not under way.
    pub(super) fn end(&mut self, progress: CallStatus) {
        self.stage = ServerLaneState::Over(progress);
        self.assembly.clear();
        self.sending.forget();
        self.bound = None;
        self.timer = None;
        self.owes_answer = false;
    }

    fn progress(&self) -> CallStatus {
        match self.stage {
            ServerLaneState::Receiving => CallStatus::Receiving,
            ServerLaneState::Running | ServerLaneState::Cancelled | ServerLaneState::Answered => {
                CallStatus::Running
            }
            ServerLaneState::Over(progress) => progress,
        }
    }
}

impl<A> Conversation<A> {
    pub(super) fn new(
        id: u64,
        peer: A,
        cookie_expiry: Instant,
        client: Preamble,
        fragment_bytes: usize,
        patience: RetransmitTimeouts,
        now: Instant,
    ) -> Self {
        Self {
            prototype: HeaderTemplate::new(id),
            id,
            peer,
            heard_at: now,
            cookie_expiry,
            client,
            fragment_bytes,
            bound: Vec::new(),
            lanes: Vec::new(),
            bytes: 0,
            congestion: CongestionController::new(fragment_bytes),
            round_trip: RttEstimator::new(patience),
            has_waiting: false,
        }
    }

    /// Returns the index of a lane. Lanes mostly come in the order of their numbers.
    #[inline]
    pub(super) fn index_of(&self, number: u16) -> Option<usize> {
        let guess = usize::from(number);
        match self.lanes.get(guess) {
            Some(lane) if lane.number == number => Some(guess),
            _ => self.lanes.iter().position(|lane| lane.number == number),
        }
    }

    pub(super) fn lane(&self, number: u16) -> Option<&ServerLane> {
        self.index_of(number).map(|index| &self.lanes[index])
    }

    pub(super) fn lane_mut(&mut self, number: u16) -> Option<&mut ServerLane> {
        self.index_of(number).map(|index| &mut self.lanes[index])
    }

    /// The lane of a packet, and whether the packet begins a call on it.
    #[inline]
    pub(super) fn lane_for(
        &mut self,
        header: &PacketHeader,
        bytes_max: usize,
        now: Instant,
    ) -> Result<(usize, bool), DropReason> {
        let begins = matches!(header.kind, PacketKind::Call | PacketKind::Cancel);
        let Some(index) = self.index_of(header.lane) else {
            if !begins {
                return Err(DropReason::Stale);
            }
            let lane = ServerLane::new(header.lane, header.sequence, bytes_max, now);
            self.lanes.push(lane);
            return Ok((self.lanes.len() - 1, false));
        };
        let lane = &self.lanes[index];
        match header.sequence.wrapping_sub(lane.sequence) {
            0 => Ok((index, false)),
            ahead if ahead <= i32::MAX as u32 && begins => match lane.stage {
                // Its client does not begin another call before this one is over.
                ServerLaneState::Running | ServerLaneState::Cancelled => Err(DropReason::Malformed),
                ServerLaneState::Receiving
                | ServerLaneState::Answered
                | ServerLaneState::Over(_) => Ok((index, true)),
            },
            _ => Err(DropReason::Stale),
        }
    }

    /// A new call on a lane says that the answer to the last one has arrived.
    #[inline]
    pub(super) fn begin_call(&mut self, index: usize, sequence: u32, now: Instant) {
        self.drop_answer(index);
        let lane = &mut self.lanes[index];
        if lane.assembly.is_begun() {
            lane.assembly.clear();
        }
        lane.sequence = sequence;
        lane.stage = ServerLaneState::Receiving;
        lane.received_at = now;
        lane.caller = None;
        lane.bound = None;
        lane.owes_ack = false;
    }

    /// Ends a call that is not being carried out.
    pub(super) fn end_call(&mut self, index: usize, progress: CallStatus) {
        self.drop_answer(index);
        self.lanes[index].end(progress);
    }

    fn drop_answer(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        if lane.sending.count() > 1 {
            self.congestion.forget(lane.sending.under_way());
            self.has_waiting = true;
        }
        lane.sending.forget();
        lane.timer = None;
        lane.owes_answer = false;
    }

    // ---- Services ----

    /// Gives a service its number, and has the answer say so. A number that has a service keeps it, and may get further
    /// procedures of it.
    pub(super) fn bind<'i>(
        &mut self,
        index: usize,
        number: u16,
        bind: &BindRequest,
        (service, interface): (usize, &'i Interface),
    ) -> Result<(), UnboundReason<'i>> {
        let is_full = self.bound.len() >= SERVICES_MAX;
        let known = self.bound.iter_mut().find(|known| known.number == number);
        match known {
            Some(known) if known.service == service => known.add(bind),
            // There is no number left for it.
            Some(_) => return Err(UnboundReason::TooMany),
            None if is_full => return Err(UnboundReason::TooMany),
            None => {
                let mut bound = BoundService {
                    number,
                    service,
                    procedures: Some(Vec::new()),
                };
                bound.add(bind);
                self.bound.push(bound);
            }
        }
        self.lanes[index].bound = Some((number, interface.fingerprint));
        Ok(())
    }

    /// The service of a number, if it is bound for a procedure.
    #[inline]
    pub(super) fn service(&self, number: u16, procedure: u16) -> Option<usize> {
        let mut bound = self.bound.iter();
        let found = bound.find(|known| known.number == number)?;
        let has = match &found.procedures {
            None => true,
            Some(procedures) => procedure == 0 || procedures.contains(&procedure.into()),
        };
        has.then_some(found.service)
    }

    // ---- Answers ----

    pub(super) fn begin_answer(&mut self, index: usize, message: &mut Buffer, order: ByteOrder) {
        let lane = &mut self.lanes[index];
        let bound = lane.bound.take();
        lane.sending.begin(message, self.fragment_bytes, |prefix| {
            if let Some((number, fingerprint)) = bound {
                put_bound(prefix, order, number, fingerprint, false);
            }
        });
        lane.stage = ServerLaneState::Answered;
        lane.owes_answer = true;
        lane.is_retrying = false;
        lane.in_vain = 0;
    }

    /// Takes in what has arrived of an answer; says whether anything has that had not.
    pub(super) fn handle_arrived(
        &mut self,
        index: usize,
        arrived: &ReceivedFragments<'_>,
        now: Instant,
        rng: &mut SplitMix64,
    ) -> bool {
        let lane = &mut self.lanes[index];
        let outcome = lane.sending.handle_arrived(arrived, now);
        if let Some(trip) = outcome.trip {
            self.round_trip.measure(trip);
        }
        self.congestion.handle_ack(&outcome, now);
        let is_news = outcome.arrived.count > 0;
        if lane.timer.is_some() {
            lane.timer = Some(now + self.round_trip.wait(0, rng));
        }
        if lane.sending.has_all_arrived() {
            lane.end(CallStatus::Over);
        }
        self.has_waiting = true;
        is_news
    }

    /// Nothing was heard of an answer; whether to go on sending it.
    pub(super) fn send_again(&mut self, index: usize, now: Instant, rng: &mut SplitMix64) -> bool {
        let lane = &mut self.lanes[index];
        lane.in_vain += 1;
        if lane.in_vain > REPEATS_MAX {
            self.congestion.forget(lane.sending.under_way());
            lane.timer = None;
            lane.sending.send_again(true);
            self.has_waiting = true;
            return false;
        }
        let all = lane.in_vain > 1;
        let lost = lane.sending.send_again(all);
        self.congestion.handle_timeout(lost, all, now);
        lane.is_retrying = true;
        lane.timer = Some(now + self.round_trip.wait(lane.in_vain, rng));
        self.has_waiting = true;
        true
    }

    /// Returns whether an answer is still to be sent, or to be sent again by itself.
    pub(super) fn has_unarrived(&self) -> bool {
        let mut answered = self
            .lanes
            .iter()
            .filter(|lane| lane.stage == ServerLaneState::Answered);
        answered.any(|lane| match lane.sending.count() {
            1 => lane.owes_answer,
            _ => lane.in_vain <= REPEATS_MAX,
        })
    }

    // ---- The end ----

    /// Returns whether nothing is carried out and nothing is under way that the client has to hear more of.
    pub(super) fn is_idle(&self) -> bool {
        let busy = self.lanes.iter().any(|lane| match lane.stage {
            ServerLaneState::Running | ServerLaneState::Cancelled => true,
            ServerLaneState::Answered => lane.owes_answer || lane.sending.count() > 1,
            ServerLaneState::Receiving | ServerLaneState::Over(_) => false,
        });
        !busy
    }

    /// Appends that the server stops, and what it has begun.
    #[cold]
    pub(super) fn put_goodbye(&self, incarnation: u32, out: &mut Buffer) {
        let is_begun = |lane: &&ServerLane| match lane.stage {
            ServerLaneState::Running | ServerLaneState::Cancelled | ServerLaneState::Answered => {
                true
            }
            ServerLaneState::Receiving | ServerLaneState::Over(_) => false,
        };
        let begun = || self.lanes.iter().filter(is_begun);
        let header = PacketHeader {
            fragment: incarnation,
            fragments: begun().count() as u32,
            ..PacketHeader::plain(PacketKind::Goodbye, self.id, 0, 0)
        };
        self.prototype.put(out, &header, |out| {
            for lane in begun().take(NAMED_MAX) {
                put_begun(out, lane.number, lane.sequence);
            }
        });
    }

    // ---- Packets ----

    /// Appends what a lane has to send next, if it has anything and may.
    #[inline]
    pub(super) fn transmit(
        &mut self,
        index: usize,
        now: Instant,
        order: &mut u64,
        rng: &mut SplitMix64,
        out: &mut Buffer,
    ) -> Option<SendStatus> {
        let lane = &mut self.lanes[index];
        if std::mem::take(&mut lane.owes_ack) {
            self.put_ack(index, out);
            return Some(SendStatus::More);
        }
        if lane.stage != ServerLaneState::Answered {
            return None;
        }
        if lane.sending.count() == 1 {
            if !std::mem::take(&mut lane.owes_answer) {
                return None;
            }
            self.put_reply(index, 0, false, now, out);
            return Some(SendStatus::Done);
        }
        let fragment = lane.sending.next_fragment()?;
        if lane.in_vain > REPEATS_MAX {
            return None;
        }
        let is_retrying = std::mem::take(&mut lane.is_retrying);
        if !is_retrying && !self.congestion.has_room() {
            self.has_waiting = true;
            return None;
        }
        let weight = lane.sending.weight();
        let asks = is_retrying
            || lane.sending.is_repeated(fragment)
            || lane.sending.is_end(fragment)
            || self.congestion.is_last(weight)
            || self.congestion.is_half(weight);
        *order += 1;
        if lane.sending.sent(fragment, *order, now) {
            self.congestion.sent(weight);
        }
        lane.timer = Some(now + self.round_trip.wait(lane.in_vain, rng));
        self.put_reply(index, fragment, asks, now, out);
        Some(SendStatus::More)
    }

    fn put_ack(&self, index: usize, out: &mut Buffer) {
        let lane = &self.lanes[index];
        let below = match lane.stage {
            ServerLaneState::Receiving => lane.assembly.below(),
            ServerLaneState::Running
            | ServerLaneState::Cancelled
            | ServerLaneState::Answered
            | ServerLaneState::Over(_) => lane.request_count,
        };
        let header = PacketHeader {
            detail: lane.progress() as u16,
            fragment: below,
            fragments: lane.request_count.max(lane.assembly.count()),
            ..PacketHeader::plain(PacketKind::Ack, self.id, lane.number, lane.sequence)
        };
        self.prototype.put(out, &header, |out| {
            put_bitmap(out, below.into(), lane.assembly.held().map(u64::from));
        });
    }

    #[inline]
    fn put_reply(&self, index: usize, fragment: u32, asks: bool, now: Instant, out: &mut Buffer) {
        let lane = &self.lanes[index];
        let held = now.saturating_duration_since(lane.received_at).as_micros();
        let header = PacketHeader {
            flags: match asks {
                true => ASKS,
                false => 0,
            },
            detail: u16::try_from(held).unwrap_or(HELD_LONG),
            fragment,
            fragments: lane.sending.count(),
            ..PacketHeader::plain(PacketKind::Reply, self.id, lane.number, lane.sequence)
        };
        self.prototype
            .put(out, &header, |out| lane.sending.put(fragment, out));
    }
}
