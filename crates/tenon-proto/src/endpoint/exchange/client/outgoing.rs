//! Packets to the server.

use std::time::Instant;

use tenon_wire::Buffer;

use super::{ClientCore, ConversationState};
use crate::endpoint::exchange::ack::CallStatus;
use crate::endpoint::exchange::packet::{ASKS, HeaderTemplate, OPENS, PacketHeader, PacketKind};

impl<W> ClientCore<W> {
    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> bool {
        if matches!(self.link, ConversationState::Greeting(_)) {
            return self.transmit_hello(now, out);
        }
        while let Some(number) = self.ready.pop_front() {
            self.lanes[usize::from(number)].is_ready = false;
            if self.transmit(number, now, out) {
                if self.lanes[usize::from(number)].has_more() {
                    self.make_ready(number);
                }
                return true;
            }
        }
        false
    }

    #[cold]
    fn transmit_hello(&mut self, now: Instant, out: &mut Buffer) -> bool {
        let ConversationState::Greeting(greeting) = &mut self.link else {
            return false;
        };
        if !std::mem::take(&mut greeting.owes_hello) {
            return false;
        }
        let wait = self.round_trip.wait(greeting.sent, &mut self.rng);
        greeting.sent += 1;
        greeting.sent_at = now;
        greeting.timer = now + wait;
        let header =
            PacketHeader::plain(PacketKind::Hello, greeting.conversation, 0, greeting.sent);
        let own = self.own;
        HeaderTemplate::new(greeting.conversation).put(out, &header, |out| own.put_hello(out));
        true
    }

    /// Appends what a lane has to send next, if it has anything and may.
    #[inline]
    fn transmit(&mut self, number: u16, now: Instant, out: &mut Buffer) -> bool {
        let ConversationState::Open(open) = &self.link else {
            return false;
        };
        let lane = &mut self.lanes[usize::from(number)];
        let plain = |kind| PacketHeader::plain(kind, open.conversation, number, lane.sequence);
        if lane.owes_ack {
            let header = plain(PacketKind::Ack);
            lane.put_ack(&open.prototype, header, out);
            return true;
        }
        if let Some((sequence, count)) = lane.owes_late_ack.take() {
            let header = PacketHeader {
                detail: CallStatus::Over as u16,
                fragment: count,
                fragments: count,
                ..PacketHeader::plain(PacketKind::Ack, open.conversation, number, sequence)
            };
            open.prototype.put(out, &header, |_| {});
            return true;
        }
        let opens = match open.opening {
            Some(_) => OPENS,
            None => 0,
        };
        let put_opening = |out: &mut Buffer| {
            if let Some(opening) = &open.opening {
                opening.put(out);
            }
        };
        if lane.owes_cancel || lane.owes_probe {
            let kind = match std::mem::take(&mut lane.owes_cancel) {
                true => PacketKind::Cancel,
                false => PacketKind::Probe,
            };
            lane.owes_probe = false;
            let header = PacketHeader {
                flags: opens,
                ..PacketHeader::plain(kind, open.conversation, number, lane.sequence)
            };
            open.prototype.put(out, &header, put_opening);
            lane.asked(now);
            if kind == PacketKind::Cancel {
                let wait = self.round_trip.wait(lane.in_vain, &mut self.rng);
                lane.timer = Some(now + wait);
            }
            return true;
        }
        if !lane.is_calling() {
            return false;
        }
        let Some(fragment) = lane.sending.next_fragment() else {
            return false;
        };
        let is_retrying = std::mem::take(&mut lane.is_retrying);
        if !is_retrying && !self.congestion.has_room() {
            self.has_waiting = true;
            return false;
        }
        let weight = lane.sending.weight();
        let is_repeated = lane.sending.is_repeated(fragment);
        let count = lane.sending.count();
        let is_pause = lane.sending.is_end(fragment)
            || self.congestion.is_last(weight)
            || self.congestion.is_half(weight);
        let asks = match is_retrying || is_repeated || count > 1 && is_pause {
            true => ASKS,
            false => 0,
        };
        self.counters.repeated += u64::from(is_repeated);
        self.order += 1;
        if lane.sending.sent(fragment, self.order, now) {
            self.congestion.sent(weight);
        }
        let header = PacketHeader {
            flags: opens | asks,
            fragment,
            fragments: count,
            ..PacketHeader::plain(PacketKind::Call, open.conversation, number, lane.sequence)
        };
        open.prototype.put(out, &header, |out| {
            put_opening(out);
            lane.sending.put(fragment, out);
        });
        lane.sent(now);
        let wait = self.round_trip.wait(lane.in_vain, &mut self.rng);
        lane.timer = Some(now + wait);
        true
    }
}
