//! Timers of a server.

use std::time::Instant;

use super::conversation::ServerLaneState;
use super::{CallKey, PeerAddress, ServerCore, ServerEvent};
use crate::endpoint::exchange::ack::CallStatus;

impl<A: PeerAddress> ServerCore<A> {
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let sweep = (!self.conversations.is_empty()).then_some(self.sweep_at);
        self.next_due.into_iter().chain(sweep).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.next_due.is_some_and(|due| due <= now) {
            self.look_at_answers(now);
        }
        if self.sweep_at <= now {
            self.sweep_at = now + self.limits.retention / 4;
            self.sweep(now);
        }
    }

    fn look_at_answers(&mut self, now: Instant) {
        let mut timed = std::mem::take(&mut self.timed);
        timed.retain(|(id, number)| self.handle_lane_timeout(now, *id, *number));
        timed.append(&mut self.timed);
        self.timed = timed;
        let timers = self.timed.iter().filter_map(|(id, number)| {
            let lane = self.conversations.get(*id)?.lane(*number)?;
            lane.timer
        });
        self.next_due = timers.min();
    }

    /// A lane's timer was set.
    pub(super) fn expect(&mut self, timer: Option<Instant>) {
        if let Some(at) = timer
            && self.next_due.is_none_or(|due| at < due)
        {
            self.next_due = Some(at);
        }
    }

    /// Handles the timer of a lane; returns whether its answer is still to be waited for.
    fn handle_lane_timeout(&mut self, now: Instant, id: u64, number: u16) -> bool {
        let Some(conversation) = self.conversations.get_mut(id) else {
            return false;
        };
        let Some(index) = conversation.index_of(number) else {
            return false;
        };
        let lane = &mut conversation.lanes[index];
        let is_awaited = lane.stage == ServerLaneState::Answered && lane.sending.count() > 1;
        match lane.timer {
            _ if !is_awaited => {
                lane.is_timed = false;
                return false;
            }
            None => return true,
            Some(timer) if timer > now => return true,
            Some(_) => {}
        }
        let goes_on = conversation.send_again(index, now, &mut self.rng);
        conversation.lanes[index].is_timed = goes_on;
        if goes_on {
            self.make_ready(id, number);
        }
        self.wake(id);
        goes_on
    }

    /// Forgets conversations that were not used for long enough.
    fn sweep(&mut self, now: Instant) {
        let retention = self.limits.retention;
        let over = self.conversations.iter();
        let over = over.filter(|(_, conversation)| {
            now >= conversation.heard_at + retention && now >= conversation.cookie_expiry
        });
        let over: Vec<u64> = over.map(|(id, _)| id).collect();
        for id in over {
            self.forget(id);
        }
        self.end_unfinished(now);
        self.over.forget_old(now);
        if self.conversations.is_empty() {
            self.ready.clear();
            self.timed.clear();
            self.next_due = None;
        }
    }

    /// Drops requests of which nothing has come for so long that their clients have given them up.
    fn end_unfinished(&mut self, now: Instant) {
        let silence = self.limits.patience.silence;
        let mut ended = Vec::new();
        for (id, conversation) in self.conversations.iter() {
            for (index, lane) in conversation.lanes.iter().enumerate() {
                if lane.assembly.is_begun() && now >= lane.received_at + silence {
                    ended.push((id, index));
                }
            }
        }
        for (id, index) in ended {
            if let Ok(lane) = self.lane(id, index) {
                lane.end(CallStatus::Overloaded);
            }
            self.charge(id, index);
        }
    }

    pub(super) fn forget(&mut self, id: u64) {
        let Some(conversation) = self.conversations.remove(id) else {
            return;
        };
        self.bytes -= conversation.bytes;
        self.counters.forgotten += 1;
        let running = conversation.lanes.iter();
        let running = running.filter(|lane| matches!(lane.stage, ServerLaneState::Running));
        self.events.extend(running.map(|lane| {
            ServerEvent::Cancelled(CallKey {
                conversation: id,
                lane: lane.number,
                sequence: lane.sequence,
            })
        }));
        let host = conversation.peer.host();
        if let Some(known) = self.hosts.get_mut(&host) {
            known.conversations -= 1;
            known.bytes -= conversation.bytes;
            if known.conversations == 0 {
                self.hosts.remove(&host);
            }
        }
    }
}
