//! Conversations: asked for, begun, and begun anew.

use std::hash::Hasher;
use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use siphasher::sip::SipHasher24;

use super::lane::{ClientLane, ClientLaneState};
use super::{ClientCore, ConversationState, OpenConversation, PendingHandshake};
use crate::endpoint::exchange::congestion::CongestionController;
use crate::endpoint::exchange::failure::Reason;
use crate::endpoint::exchange::farewell::UnfinishedCalls;
use crate::endpoint::exchange::opening::{ConversationOpening, TransportParameters, WelcomePacket};
use crate::endpoint::exchange::packet::{
    DropReason, HeaderTemplate, PACKET_HEADER, PacketHeader, PacketKind,
};
use crate::endpoint::exchange::{DATAGRAM_DEFAULT, datagram_max};
use crate::lean::{CALLS_MIN, Preamble, RefusalReason, Refused};

impl<W> ClientCore<W> {
    /// Asks for a conversation.
    #[cold]
    pub(super) fn greet(&mut self, now: Instant) {
        let mut name = SipHasher24::new_with_key(&self.key);
        name.write(&self.counters.conversations.to_be_bytes());
        self.counters.conversations += 1;
        self.link = ConversationState::Greeting(PendingHandshake {
            conversation: name.finish(),
            sent: 0,
            sent_at: now,
            began_at: now,
            timer: now,
            owes_hello: true,
            is_awaited: false,
        });
    }

    pub(super) fn greet_without_call(&mut self, now: Instant) {
        if matches!(self.link, ConversationState::Idle) {
            self.greet(now);
        }
        if let ConversationState::Greeting(greeting) = &mut self.link {
            greeting.is_awaited = true;
        }
    }

    #[cold]
    pub(super) fn handle_welcome(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let ConversationState::Greeting(greeting) = &self.link else {
            return Err(DropReason::Stale);
        };
        if header.conversation != greeting.conversation {
            return Err(DropReason::Stale);
        }
        let welcome = WelcomePacket::get(body)?;
        if header.sequence == greeting.sent {
            let trip = now.saturating_duration_since(greeting.sent_at);
            self.round_trip.measure(trip);
        }
        let theirs = welcome.facts.preamble;
        let ours = self.own.preamble.versions;
        let reason = match (theirs.refusal, ours.common(theirs.versions)) {
            (Some(reason), _) => Some(reason),
            (None, None) => Some(RefusalReason::VERSION),
            (None, Some(_)) if theirs.calls_max < CALLS_MIN => return Err(DropReason::Malformed),
            (None, Some(_)) => None,
        };
        if let Some(reason) = reason {
            let theirs = theirs.versions;
            self.be_refused(Refused {
                reason,
                theirs,
                ours,
            });
            return Ok(());
        }
        self.open(greeting_of(&welcome, greeting.conversation, &self.own));
        self.peer = Some(theirs);
        self.fit_lanes(theirs.calls_max as usize);
        self.prepare_all(&theirs);
        Ok(())
    }

    pub(super) fn open(&mut self, open: OpenConversation) {
        self.congestion = CongestionController::new(open.room);
        self.link = ConversationState::Open(open);
    }

    fn be_refused(&mut self, refused: Refused) {
        self.link = ConversationState::Idle;
        for number in 0..self.lanes.len() {
            if self.lanes[number].is_calling() {
                self.fail(number as u16, Reason::Refused(refused));
            }
        }
    }

    /// Has calls that wait use the lanes that the server grants, which may be fewer than an earlier one did.
    /// Those that there is no lane for come to nothing.
    fn fit_lanes(&mut self, granted: usize) {
        if self.lanes.len() <= granted {
            return;
        }
        let mut low = 0;
        for high in granted..self.lanes.len() {
            if !self.lanes[high].is_calling() {
                continue;
            }
            while low < granted && self.lanes[low].is_calling() {
                low += 1;
            }
            match low < granted {
                true => self.lanes.swap(low, high),
                false => self.fail(high as u16, Reason::Overloaded),
            }
        }
        self.lanes.truncate(granted);
        self.free.clear();
        // What is begun now is made ready anew.
        self.ready.clear();
        for (lane, number) in self.lanes.iter_mut().zip(0..) {
            lane.is_ready = false;
            if !lane.is_calling() {
                self.free.push(number);
            }
        }
    }

    /// Sends what waited for the conversation.
    fn prepare_all(&mut self, theirs: &Preamble) {
        for number in 0..self.lanes.len() {
            let lane = &self.lanes[number];
            if !lane.is_calling() {
                continue;
            }
            let size = lane.sending.bytes();
            let limit = theirs.message_max as usize;
            let number = number as u16;
            match size > limit {
                true => self.fail(number, Reason::TooLarge { size, limit }),
                false => self.prepare(number),
            }
        }
    }

    /// The server does not know the conversation. It would know one that it has heard of within the
    /// time that it says: calls that are younger were not carried out.
    #[cold]
    pub(super) fn handle_reset(
        &mut self,
        now: Instant,
        header: &PacketHeader,
    ) -> Result<(), DropReason> {
        let lane = self.lane_of(header)?;
        if !matches!(
            lane.stage,
            ClientLaneState::Calling(_) | ClientLaneState::GivenUp
        ) {
            return Err(DropReason::Stale);
        }
        let memory = Duration::from_millis(header.fragments.into());
        let was_restarted = match &self.link {
            ConversationState::Open(open) => open.incarnation != header.fragment,
            ConversationState::Idle | ConversationState::Greeting(_) => {
                return Err(DropReason::Stale);
            }
        };
        self.renew(now, memory, Reason::Forgotten { was_restarted });
        Ok(())
    }

    /// Ends the conversation, and appends the packet that tells the server; false if there is none.
    #[cold]
    pub(super) fn send_close(&mut self, out: &mut Buffer) -> bool {
        let ConversationState::Open(open) = &self.link else {
            return false;
        };
        let header = PacketHeader::plain(PacketKind::Goodbye, open.conversation, 0, 0);
        open.prototype.put(out, &header, |_| {});
        self.forget_conversation();
        true
    }

    /// The server stops: it has not begun other calls than it says, and will answer none.
    #[cold]
    pub(super) fn handle_goodbye(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        body: &[u8],
    ) -> Result<(), DropReason> {
        match &self.link {
            ConversationState::Open(open) if open.conversation == header.conversation => {}
            ConversationState::Open(_)
            | ConversationState::Idle
            | ConversationState::Greeting(_) => return Err(DropReason::Stale),
        }
        let begun = UnfinishedCalls::get(header.fragments, body)?;
        self.renew_but(now, Reason::Stopped, |number, lane| {
            lane.is_sent && begun.may_have(number, lane.sequence)
        });
        Ok(())
    }

    #[cold]
    pub(super) fn handle_refusal(&mut self, now: Instant) {
        match &self.link {
            ConversationState::Idle => {}
            ConversationState::Greeting(_) => self.give_all_up(),
            ConversationState::Open(_) => {
                self.renew(now, Duration::ZERO, Reason::Unreachable);
                self.give_all_up();
            }
        }
    }

    /// The server is not there: calls that wait for a conversation wait in vain.
    pub(super) fn give_all_up(&mut self) {
        self.link = ConversationState::Idle;
        for number in 0..self.lanes.len() {
            if self.lanes[number].is_calling() {
                self.fail(number as u16, Reason::Unreachable);
            }
        }
    }

    pub(super) fn forget_conversation(&mut self) {
        self.link = ConversationState::Idle;
        // Another server may follow, which takes more or less.
        self.peer = None;
        for binding in &mut self.bindings {
            binding.state.reset();
        }
        self.ready.clear();
        for lane in &mut self.lanes {
            lane.is_ready = false;
        }
        self.congestion = CongestionController::new(DATAGRAM_DEFAULT);
    }

    /// Begins another conversation. Calls that may have been carried out fail.
    pub(super) fn renew(&mut self, now: Instant, memory: Duration, reason: Reason) {
        self.renew_but(now, reason, |_, lane| lane.may_have_run(now, memory));
    }

    /// Begins another conversation with all calls but those that `may_have_run`.
    fn renew_but(
        &mut self,
        now: Instant,
        reason: Reason,
        may_have_run: impl Fn(u16, &ClientLane<W>) -> bool,
    ) {
        self.link = ConversationState::Idle;
        let mut goes_on = false;
        for number in 0..self.lanes.len() {
            let lane = &mut self.lanes[number];
            let number = number as u16;
            match &lane.stage {
                ClientLaneState::Free => lane.rest(),
                ClientLaneState::GivenUp => {
                    self.end(number);
                }
                ClientLaneState::Calling(_) if may_have_run(number, lane) => {
                    self.fail(number, reason)
                }
                ClientLaneState::Calling(_) => {
                    self.bytes -= lane.assembly.bytes();
                    lane.begin_anew();
                    goes_on = true;
                }
            }
        }
        self.forget_conversation();
        if goes_on {
            self.greet(now);
        }
    }
}

fn greeting_of(
    welcome: &WelcomePacket,
    conversation: u64,
    own: &TransportParameters,
) -> OpenConversation {
    let datagram = datagram_max(
        own.datagram_max as usize,
        welcome.facts.datagram_max as usize,
    );
    OpenConversation {
        conversation,
        prototype: HeaderTemplate::new(conversation),
        opening: Some(ConversationOpening {
            cookie: welcome.cookie,
            facts: *own,
        }),
        room: datagram - PACKET_HEADER,
        incarnation: welcome.incarnation,
    }
}
