//! Timers of a client.

use std::time::{Duration, Instant};

use super::lane::{ClientLane, ClientLaneState};
use super::{ClientCore, ConversationState};
use crate::endpoint::exchange::failure::Reason;

/// Times that something is asked in vain, at least, before the server is taken to be gone.
const IN_VAIN_MIN: u32 = 4;

impl<W> ClientCore<W> {
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let greeting = match &self.link {
            // What is to be sent already waits for no time.
            ConversationState::Greeting(greeting) => {
                (!greeting.owes_hello).then_some(greeting.timer)
            }
            ConversationState::Idle | ConversationState::Open(_) => None,
        };
        let lanes = self.lanes.iter().filter_map(ClientLane::next_timeout);
        lanes.chain(greeting).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for number in 0..self.lanes.len() {
            self.handle_lane_timeout(now, number as u16);
        }
        self.handle_greeting_timeout(now);
    }

    fn handle_lane_timeout(&mut self, now: Instant, number: u16) {
        let lane = &self.lanes[usize::from(number)];
        if let ClientLaneState::Calling(pending) = &lane.stage
            && pending.deadline <= now
        {
            self.fail_and_tell(number, Reason::Expired);
            return;
        }
        if lane.timer.is_none_or(|timer| timer > now) {
            return;
        }
        let is_silent =
            lane.in_vain >= IN_VAIN_MIN && lane.is_unheard_for(now, self.limits.patience.silence);
        match (&lane.stage, is_silent) {
            (ClientLaneState::Free, _) => self.lanes[usize::from(number)].timer = None,
            (ClientLaneState::Calling(_) | ClientLaneState::GivenUp, true) => {
                self.renew(now, Duration::ZERO, Reason::Unreachable);
            }
            (ClientLaneState::Calling(_) | ClientLaneState::GivenUp, false) => {
                self.ask_again(now, number)
            }
        }
    }

    /// Nothing was heard of a call for long enough to ask, or to send something again.
    fn ask_again(&mut self, now: Instant, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        lane.in_vain += 1;
        let wait = self.round_trip.wait(lane.in_vain, &mut self.rng);
        lane.timer = Some(now + wait);
        if matches!(lane.stage, ClientLaneState::GivenUp) {
            lane.owes_cancel = true;
        } else if lane.sending.has_all_arrived() {
            lane.owes_probe = true;
            lane.probes += 1;
            let wait = self.round_trip.probe(lane.probes, &mut self.rng);
            lane.timer = Some(now + wait);
        } else {
            let all = lane.in_vain > 1;
            let lost = lane.sending.send_again(all);
            self.congestion.handle_timeout(lost, all, now);
            lane.is_retrying = true;
            self.has_waiting = true;
        }
        self.make_ready(number);
        self.wake();
    }

    fn handle_greeting_timeout(&mut self, now: Instant) {
        let ConversationState::Greeting(greeting) = &mut self.link else {
            return;
        };
        let is_wanted = greeting.is_awaited || self.lanes.iter().any(ClientLane::is_calling);
        let asked_for = now.saturating_duration_since(greeting.began_at);
        let is_silent = greeting.sent > IN_VAIN_MIN && asked_for >= self.limits.patience.silence;
        if is_wanted && !is_silent {
            greeting.owes_hello |= greeting.timer <= now;
            return;
        }
        self.give_all_up();
    }
}
