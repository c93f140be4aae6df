//! A message that is being sent: its fragments, and what has become of each.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use super::DATAGRAM_DEFAULT;
use super::ack::ReceivedFragments;
use super::congestion::WINDOW;
use super::spare::{KEPT_BY_SERVER, SpareBuffers};

/// Bytes of every fragment of a message but the last, at least.
pub(super) const FRAGMENT_MIN: usize = 1024;

/// A fragment is lost if so many that were sent after it have arrived (RFC 9002, 6.1.1).
const REORDERED_MAX: u64 = 3;

/// A message that is being sent, or was, and may be again.
#[derive(Debug, Default)]
pub(super) struct OutgoingMessage {
    /// Stands in front of the message: the binding of a service, or the answer to it.
    prefix: Buffer,
    message: Buffer,
    fragment_bytes: usize,
    /// Packets that a fragment counts as: it is more than one if it is larger than an Ethernet takes.
    weight: u32,
    /// 0 if there is no message.
    count: u32,
    /// All before this one have arrived.
    arrived_below: u32,
    /// From here on none was sent.
    next: u32,
    /// From `arrived_below` to `next`.
    flights: VecDeque<SentFragment>,
    /// Fragments to be sent again; some may have arrived since.
    lost: VecDeque<u32>,
}

#[derive(Debug, Clone, Copy)]
struct SentFragment {
    /// The place of its last transmission in the order of all packets.
    order: u64,
    sent_at: Instant,
    times: u32,
    state: FragmentState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FragmentState {
    UnderWay,
    Arrived,
    Lost,
}

/// A number of packets, and when the last of them was sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PacketCount {
    pub(super) count: u32,
    pub(super) sent_at: Option<Instant>,
}

impl PacketCount {
    fn add(&mut self, sent_at: Instant) {
        self.count += 1;
        self.sent_at = self.sent_at.max(Some(sent_at));
    }

    fn weighing(self, weight: u32) -> Self {
        Self {
            count: self.count * weight,
            ..self
        }
    }
}

/// The news in an acknowledgement.
#[derive(Debug, Default)]
pub(super) struct AckOutcome {
    pub(super) arrived: PacketCount,
    pub(super) lost: PacketCount,
    /// The time since something was sent that has arrived now and was sent once (Karn's rule).
    pub(super) trip: Option<Duration>,
}

impl AckOutcome {
    fn weighing(self, weight: u32) -> Self {
        Self {
            arrived: self.arrived.weighing(weight),
            lost: self.lost.weighing(weight),
            ..self
        }
    }
}

impl OutgoingMessage {
    /// Takes an answer, in exchange for an empty buffer, to be sent in fragments of so many bytes.
    /// What stands in front of it is written by `prefix`.
    #[inline]
    pub(super) fn begin(
        &mut self,
        message: &mut Buffer,
        fragment_bytes: usize,
        prefix: impl FnOnce(&mut Buffer),
    ) {
        self.forget();
        // A short answer does not keep the memory of a long one until the next call.
        match message.capacity() > KEPT_BY_SERVER && message.len() <= KEPT_BY_SERVER {
            true => self.copy(message),
            false => self.take(message),
        }
        self.restart(fragment_bytes, prefix);
    }

    /// Takes a message, in exchange for an empty buffer, which is to be [begun](Self::restart). There is none
    /// that was not [forgotten](Self::forget).
    #[inline]
    pub(super) fn take(&mut self, message: &mut Buffer) {
        std::mem::swap(&mut self.message, message);
    }

    #[cold]
    fn copy(&mut self, message: &mut Buffer) {
        self.message.extend(message.as_slice());
        message.clear();
    }

    /// Begins to send the same message anew.
    #[inline]
    pub(super) fn restart(&mut self, fragment_bytes: usize, prefix: impl FnOnce(&mut Buffer)) {
        self.prefix.clear();
        prefix(&mut self.prefix);
        self.fragment_bytes = fragment_bytes.max(FRAGMENT_MIN);
        let bytes = self.bytes();
        // A division takes longer than all else here, and most messages are short.
        self.count = match bytes <= self.fragment_bytes {
            true => 1,
            false => u32::try_from(bytes.div_ceil(self.fragment_bytes)).unwrap_or(u32::MAX),
        };
        let largest = self.fragment_bytes.min(bytes);
        self.weight = largest.div_ceil(DATAGRAM_DEFAULT).max(1) as u32;
        (self.arrived_below, self.next) = (0, 0);
        self.flights.clear();
        self.lost.clear();
    }

    /// Drops the message. Its memory is [still there](Self::spare).
    #[inline]
    pub(super) fn forget(&mut self) {
        self.message.clear();
        self.prefix.clear();
        self.count = 0;
        (self.arrived_below, self.next) = (0, 0);
        self.flights.clear();
        self.lost.clear();
    }

    /// Gives the memory of a message back that was dropped.
    #[inline]
    pub(super) fn spare(&mut self, spare: &mut SpareBuffers) {
        spare.take_message(&mut self.message);
    }

    pub(super) fn message_mut(&mut self) -> &mut Buffer {
        &mut self.message
    }

    /// Bytes of the whole.
    pub(super) fn bytes(&self) -> usize {
        self.prefix.len() + self.message.len()
    }

    /// Bytes of memory that the message has, if it is more than lanes keep.
    #[inline]
    pub(super) fn bytes_beyond_kept(&self) -> usize {
        match self.message.capacity() {
            kept if kept <= KEPT_BY_SERVER => 0,
            bytes => bytes,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn has_all_arrived(&self) -> bool {
        self.arrived_below == self.count
    }

    /// Returns whether any fragment was sent.
    pub(super) fn is_begun(&self) -> bool {
        self.next > 0
    }

    /// Returns whether all fragments were sent.
    pub(super) fn is_sent(&self) -> bool {
        self.next == self.count
    }

    /// Packets that are under way.
    pub(super) fn under_way(&self) -> u32 {
        let flights = self.flights.iter();
        let under_way = flights.filter(|flight| flight.state == FragmentState::UnderWay);
        under_way.count() as u32 * self.weight
    }

    /// Packets that a fragment counts as.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// The fragment that is to be sent next.
    #[inline]
    pub(super) fn next_fragment(&mut self) -> Option<u32> {
        while let Some(&fragment) = self.lost.front() {
            match self.flight(fragment).map(|flight| flight.state) {
                Some(FragmentState::Lost) => return Some(fragment),
                Some(FragmentState::Arrived | FragmentState::UnderWay) | None => {
                    self.lost.pop_front()
                }
            };
        }
        let end = self.count.min(self.arrived_below.saturating_add(WINDOW));
        (self.next < end).then_some(self.next)
    }

    /// Returns whether nothing can be sent behind this fragment before something arrives.
    #[inline]
    pub(super) fn is_end(&self, fragment: u32) -> bool {
        let window_end = self.arrived_below.saturating_add(WINDOW);
        fragment + 1 == self.count || fragment + 1 >= window_end
    }

    fn flight(&self, fragment: u32) -> Option<&SentFragment> {
        let index = fragment.checked_sub(self.arrived_below)?;
        self.flights.get(index as usize)
    }

    #[inline]
    fn flight_mut(&mut self, fragment: u32) -> Option<&mut SentFragment> {
        let index = fragment.checked_sub(self.arrived_below)?;
        self.flights.get_mut(index as usize)
    }

    /// Returns whether a fragment was sent before.
    pub(super) fn is_repeated(&self, fragment: u32) -> bool {
        fragment < self.next
    }

    /// A fragment is sent, as the `order`th of all packets. Says whether it is under way in addition
    /// to those that were.
    #[inline]
    pub(super) fn sent(&mut self, fragment: u32, order: u64, now: Instant) -> bool {
        if fragment == self.next {
            self.next += 1;
            self.flights.push_back(SentFragment {
                order,
                sent_at: now,
                times: 1,
                state: FragmentState::UnderWay,
            });
            return true;
        }
        let Some(flight) = self.flight_mut(fragment) else {
            return false;
        };
        (flight.order, flight.sent_at) = (order, now);
        flight.times = flight.times.saturating_add(1);
        std::mem::replace(&mut flight.state, FragmentState::UnderWay) == FragmentState::Lost
    }

    /// Appends a fragment's bytes.
    #[inline]
    pub(super) fn put(&self, fragment: u32, out: &mut Buffer) {
        let begin = fragment as usize * self.fragment_bytes;
        let end = (begin + self.fragment_bytes).min(self.bytes());
        let prefix = self.prefix.as_slice();
        let front = prefix.get(begin..end.min(prefix.len())).unwrap_or_default();
        out.extend(front);
        let skipped = prefix.len();
        let message = begin.saturating_sub(skipped)..end.saturating_sub(skipped);
        out.extend(&self.message.as_slice()[message]);
    }

    /// All has arrived, as the answer says.
    #[inline]
    pub(super) fn all_arrived(&mut self, now: Instant) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        self.arrive_below(self.count, now, &mut outcome);
        outcome.weighing(self.weight)
    }

    /// Takes in what the other end has.
    pub(super) fn handle_arrived(
        &mut self,
        arrived: &ReceivedFragments<'_>,
        now: Instant,
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        let below = arrived.below.min(self.next);
        let mut latest = self.arrive_below(below, now, &mut outcome);
        let mut has_holes = false;
        for fragment in arrived.beyond() {
            has_holes = true;
            let Some(flight) = self.flight_mut(fragment) else {
                continue;
            };
            latest = latest.max(arrive(flight, now, &mut outcome));
        }
        if has_holes || !self.lost.is_empty() || outcome.arrived.count > 0 {
            self.detect_losses(latest, &mut outcome);
        }
        outcome.weighing(self.weight)
    }

    /// The latest order among those that have arrived before `below`.
    #[inline]
    fn arrive_below(&mut self, below: u32, now: Instant, outcome: &mut AckOutcome) -> Option<u64> {
        let mut latest = None;
        while self.arrived_below < below {
            if let Some(mut flight) = self.flights.pop_front() {
                latest = latest.max(arrive(&mut flight, now, outcome));
            }
            self.arrived_below += 1;
        }
        self.next = self.next.max(self.arrived_below);
        latest
    }

    fn detect_losses(&mut self, latest: Option<u64>, outcome: &mut AckOutcome) {
        let Some(latest) = latest else { return };
        for (index, flight) in self.flights.iter_mut().enumerate() {
            if flight.state == FragmentState::UnderWay && flight.order + REORDERED_MAX <= latest {
                flight.state = FragmentState::Lost;
                outcome.lost.add(flight.sent_at);
                self.lost.push_back(self.arrived_below + index as u32);
            }
        }
    }

    /// Nothing is heard: the first fragment that has not arrived is to be sent again, or all that were
    /// sent, and in any case those that are known to be lost. Returns those that are no longer under way.
    pub(super) fn send_again(&mut self, all: bool) -> PacketCount {
        let mut lost = PacketCount::default();
        self.lost.clear();
        for (index, flight) in self.flights.iter_mut().enumerate() {
            let is_first = self.lost.is_empty();
            match flight.state {
                FragmentState::Arrived => continue,
                FragmentState::UnderWay if all || is_first => lost.add(flight.sent_at),
                FragmentState::UnderWay => continue,
                FragmentState::Lost => {}
            }
            flight.state = FragmentState::Lost;
            self.lost.push_back(self.arrived_below + index as u32);
        }
        lost.weighing(self.weight)
    }
}

/// A flight has arrived; its order if that is news.
#[inline]
fn arrive(flight: &mut SentFragment, now: Instant, outcome: &mut AckOutcome) -> Option<u64> {
    match std::mem::replace(&mut flight.state, FragmentState::Arrived) {
        FragmentState::Arrived => return None,
        FragmentState::UnderWay => outcome.arrived.add(flight.sent_at),
        FragmentState::Lost => {}
    }
    if flight.times == 1 {
        outcome.trip = Some(now.saturating_duration_since(flight.sent_at));
    }
    Some(flight.order)
}
