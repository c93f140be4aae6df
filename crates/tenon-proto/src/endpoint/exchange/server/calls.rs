//! Packets of calls.

use std::time::Instant;

use super::conversation::{ServerLane, ServerLaneState};
use super::{CallKey, CompleteRequest, PeerAddress, ServerCore, ServerEvent, ServerLimits};
use crate::connection::framing::ReceiveBuffer;
use crate::endpoint::exchange::ack::{CallStatus, ReceivedFragments};
use crate::endpoint::exchange::packet::{ASKS, DropReason, PacketHeader, PacketKind};
use crate::endpoint::exchange::reassembled::content_max;
use crate::endpoint::exchange::reassembly::{FragmentError, FragmentOutcome};

impl<A: PeerAddress> ServerCore<A> {
    #[inline]
    pub(super) fn handle_of_call<'d>(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        body: &'d [u8],
        taken: &mut ReceiveBuffer,
    ) -> Result<Option<CompleteRequest<'d>>, DropReason> {
        let lanes_max = self.preamble.calls_max;
        let bytes_max = content_max(&self.preamble);
        if u32::from(header.lane) >= lanes_max {
            return Err(DropReason::Malformed);
        }
        let Some(conversation) = self.conversations.get_mut(header.conversation) else {
            return Err(DropReason::Stale);
        };
        let (index, is_new) = conversation.lane_for(header, bytes_max, now)?;
        if is_new {
            conversation.begin_call(index, header.sequence, now);
            self.charge(header.conversation, index);
            self.wake(header.conversation);
        }
        match header.kind {
            PacketKind::Call => self.handle_fragment(now, header, index, body, taken),
            PacketKind::Ack => self.handle_ack(now, header, index, body).map(|()| None),
            PacketKind::Probe => {
                self.handle_probe(header, index);
                Ok(None)
            }
            PacketKind::Cancel => self.handle_cancel(header, index).map(|()| None),
            PacketKind::Hello
            | PacketKind::Welcome
            | PacketKind::Reply
            | PacketKind::Reset
            | PacketKind::Goodbye
            | PacketKind::Data
            | PacketKind::DataAck
            | PacketKind::DataEnd => Err(DropReason::WrongEnd),
        }
    }

    #[inline]
    fn handle_fragment<'d>(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        index: usize,
        body: &'d [u8],
        taken: &mut ReceiveBuffer,
    ) -> Result<Option<CompleteRequest<'d>>, DropReason> {
        let lane = self.lane(header.conversation, index)?;
        if !matches!(lane.stage, ServerLaneState::Receiving) {
            self.repeat(header, index);
            return Err(DropReason::Repeated);
        }
        lane.received_at = now;
        let key = CallKey {
            conversation: header.conversation,
            lane: header.lane,
            sequence: header.sequence,
        };
        if header.fragments == 1 && header.fragment == 0 && !lane.assembly.is_begun() {
            lane.begin_running(1);
            let datagram = Some(body);
            return Ok(Some(CompleteRequest { key, datagram }));
        }
        match self.assemble(header, index, body)? {
            FragmentOutcome::Whole => {}
            FragmentOutcome::More(is_due) => {
                if is_due || header.has(ASKS) {
                    self.owe_ack(header, index);
                }
                return Ok(None);
            }
            FragmentOutcome::Repeated => {
                self.owe_ack(header, index);
                return Err(DropReason::Repeated);
            }
        }
        let Some(conversation) = self.conversations.get_mut(header.conversation) else {
            return Err(DropReason::Stale);
        };
        let lane = &mut conversation.lanes[index];
        let count = lane.assembly.count();
        lane.assembly.hand_over(taken, &mut self.spare);
        lane.begin_running(count);
        self.charge(header.conversation, index);
        self.owe_ack(header, index);
        let datagram = None;
        Ok(Some(CompleteRequest { key, datagram }))
    }

    fn assemble(
        &mut self,
        header: &PacketHeader,
        index: usize,
        body: &[u8],
    ) -> Result<FragmentOutcome, DropReason> {
        let lane = self.lane(header.conversation, index)?;
        let cost = lane.assembly.cost_of(header.fragment, body.len());
        let is_full = !self.can_keep(header.conversation, cost);
        let Some(conversation) = self.conversations.get_mut(header.conversation) else {
            return Err(DropReason::Stale);
        };
        let lane = &mut conversation.lanes[index];
        let taken = match is_full {
            true => Err(FragmentError::TooLarge),
            false => lane
                .assembly
                .take(header.fragment, header.fragments, body, &mut self.spare),
        };
        let taken = match taken {
            Ok(taken) => Ok(taken),
            Err(FragmentError::Malformed) => Err(DropReason::Malformed),
            Err(FragmentError::TooLarge) => {
                lane.end(CallStatus::Overloaded);
                self.counters.refusals += 1;
                self.owe_ack(header, index);
                Err(DropReason::Full)
            }
        };
        self.charge(header.conversation, index);
        taken
    }

    /// A packet of a call comes again, or its client asks: it hears what becomes of it.
    fn repeat(&mut self, header: &PacketHeader, index: usize) {
        if !header.has(ASKS) {
            return;
        }
        match self.lane(header.conversation, index) {
            Ok(lane) if matches!(lane.stage, ServerLaneState::Answered) => {
                self.answer_again(header, index);
            }
            Ok(_) => self.owe_ack(header, index),
            Err(_) => {}
        }
    }

    fn answer_again(&mut self, header: &PacketHeader, index: usize) {
        let is_closed = self.is_closed;
        let Ok(lane) = self.lane(header.conversation, index) else {
            return;
        };
        match lane.sending.count() {
            1 => lane.owes_answer = true,
            _ => {
                // The client is there: go on, if it was given up. A server that stops goes on only as long as something
                // arrives: a client that asks and takes nothing would keep it for ever.
                if !is_closed {
                    lane.in_vain = 0;
                }
                lane.owes_ack = true;
            }
        }
        self.counters.repeated += 1;
        self.wait_for(header.conversation, index);
        self.make_ready(header.conversation, header.lane);
    }

    fn handle_probe(&mut self, header: &PacketHeader, index: usize) {
        let asking = PacketHeader {
            flags: ASKS,
            ..*header
        };
        self.repeat(&asking, index);
    }

    fn handle_cancel(&mut self, header: &PacketHeader, index: usize) -> Result<(), DropReason> {
        let Some(conversation) = self.conversations.get_mut(header.conversation) else {
            return Err(DropReason::Stale);
        };
        let lane = &mut conversation.lanes[index];
        match lane.stage {
            ServerLaneState::Running => {
                lane.stage = ServerLaneState::Cancelled;
                self.events.push_back(ServerEvent::Cancelled(CallKey {
                    conversation: header.conversation,
                    lane: header.lane,
                    sequence: header.sequence,
                }));
            }
            ServerLaneState::Receiving | ServerLaneState::Answered => {
                conversation.end_call(index, CallStatus::Over);
            }
            ServerLaneState::Cancelled | ServerLaneState::Over(_) => {}
        }
        self.charge(header.conversation, index);
        self.owe_ack(header, index);
        self.wake(header.conversation);
        Ok(())
    }

    /// The client says what it has of an answer.
    fn handle_ack(
        &mut self,
        now: Instant,
        header: &PacketHeader,
        index: usize,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let arrived = ReceivedFragments::get(header.fragment.into(), body)?;
        let Some(conversation) = self.conversations.get_mut(header.conversation) else {
            return Err(DropReason::Stale);
        };
        let is_awaited = matches!(conversation.lanes[index].stage, ServerLaneState::Answered);
        if !is_awaited || conversation.lanes[index].sending.count() <= 1 {
            return Err(DropReason::Repeated);
        }
        let is_news = conversation.handle_arrived(index, &arrived, now, &mut self.rng);
        let lane = &mut conversation.lanes[index];
        if is_news || !self.is_closed {
            lane.in_vain = 0;
        }
        let timer = lane.timer;
        self.expect(timer);
        self.charge(header.conversation, index);
        self.make_ready(header.conversation, header.lane);
        self.wake(header.conversation);
        Ok(())
    }

    pub(super) fn lane(
        &mut self,
        conversation: u64,
        index: usize,
    ) -> Result<&mut ServerLane, DropReason> {
        let conversation = self.conversations.get_mut(conversation);
        let lane = conversation.and_then(|conversation| conversation.lanes.get_mut(index));
        lane.ok_or(DropReason::Stale)
    }

    pub(super) fn owe_ack(&mut self, header: &PacketHeader, index: usize) {
        if let Ok(lane) = self.lane(header.conversation, index) {
            lane.owes_ack = true;
        }
        self.make_ready(header.conversation, header.lane);
    }

    pub(super) fn make_ready(&mut self, conversation: u64, lane: u16) {
        let Some(found) = self.conversations.get_mut(conversation) else {
            return;
        };
        if let Some(lane) = found.lane_mut(lane)
            && !std::mem::replace(&mut lane.is_ready, true)
        {
            self.ready.push_back((conversation, lane.number));
        }
    }

    /// Lanes that waited for room in the window of their conversation.
    pub(super) fn wake(&mut self, id: u64) {
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        if conversation.congestion.has_room() && std::mem::take(&mut conversation.has_waiting) {
            for lane in &mut conversation.lanes {
                let waits =
                    matches!(lane.stage, ServerLaneState::Answered) && lane.sending.count() > 1;
                if waits && !std::mem::replace(&mut lane.is_ready, true) {
                    self.ready.push_back((id, lane.number));
                }
            }
        }
    }

    /// Counts anew what a call keeps.
    pub(super) fn charge(&mut self, conversation: u64, index: usize) {
        let Some(conversation) = self.conversations.get_mut(conversation) else {
            return;
        };
        let lane = &mut conversation.lanes[index];
        lane.sending.spare(&mut self.spare);
        let bytes = lane.assembly.bytes() + lane.sending.bytes_beyond_kept();
        if bytes == lane.charged {
            return;
        }
        let before = std::mem::replace(&mut lane.charged, bytes);
        conversation.bytes = conversation.bytes - before + bytes;
        self.bytes = self.bytes - before + bytes;
        if let Some(host) = self.hosts.get_mut(&conversation.peer.host()) {
            host.bytes = host.bytes - before + bytes;
        }
    }

    /// Returns whether there is room for so many bytes more of a conversation.
    pub(super) fn can_keep(&self, conversation: u64, bytes: usize) -> bool {
        let Some(conversation) = self.conversations.get(conversation) else {
            return false;
        };
        let (limits, total) = (&self.limits, self.bytes + bytes);
        let of_host = || {
            let host = self.hosts.get(&conversation.peer.host());
            host.map_or(0, |host| host.bytes) + bytes
        };
        total <= limits.bytes
            && conversation.bytes + bytes <= limits.bytes_of_conversation
            && (total <= limits.bytes_of_host || limits.leave_to_host(of_host(), total))
    }
}

impl ServerLimits {
    /// Returns whether a host may have so many bytes, when `total` is all that is kept then: in proportion to what is
    /// free behind it, so that there is room for another host however many have taken theirs (Choudhury and Hahne,
    /// "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998).
    fn leave_to_host(&self, of_host: usize, total: usize) -> bool {
        let left_by_one = self.bytes.saturating_sub(self.bytes_of_host);
        let free = self.bytes.saturating_sub(total);
        let product = |a: usize, b: usize| a as u128 * b as u128;
        of_host <= self.bytes_of_host
            && product(of_host, left_by_one) <= product(free, self.bytes_of_host)
    }
}
