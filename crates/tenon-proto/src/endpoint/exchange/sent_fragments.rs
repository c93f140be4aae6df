//! The fragments that were sent of a message or of a stream of bytes: which of them are under way, have arrived, or are
//! lost.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::WINDOW;
use super::ack::ReceivedFragments;

/// A fragment is lost if so many that were sent after it have arrived (RFC 9002, 6.1.1).
const REORDERED_MAX: u64 = 3;

/// The fragments that were sent, in the order of their numbers, from the first that has not arrived.
#[derive(Debug, Default)]
pub(super) struct SentFragments {
    /// All before this one have arrived.
    arrived_below: u64,
    /// From here on none was sent.
    next: u64,
    /// From `arrived_below` to `next`.
    flights: VecDeque<SentFragment>,
    /// Fragments to be sent again; some may have arrived since.
    lost: VecDeque<u64>,
}

#[derive(Debug, Clone, Copy)]
struct SentFragment {
    /// The place of its last transmission in the order of all packets.
    order: u64,
    sent_at: Instant,
    times: u32,
    /// Packets that it counts as.
    weight: u32,
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
    fn add(&mut self, flight: &SentFragment) {
        self.count += flight.weight;
        self.sent_at = self.sent_at.max(Some(flight.sent_at));
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

impl SentFragments {
    /// Forgets all of them: none was sent.
    #[inline]
    pub(super) fn clear(&mut self) {
        (self.arrived_below, self.next) = (0, 0);
        self.flights.clear();
        self.lost.clear();
    }

    /// Returns the first fragment that has not arrived.
    #[inline]
    pub(super) fn arrived_below(&self) -> u64 {
        self.arrived_below
    }

    /// Returns the fragment from which on none was sent.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Packets that are under way.
    pub(super) fn under_way(&self) -> u32 {
        let flights = self.flights.iter();
        let under_way = flights.filter(|flight| flight.state == FragmentState::UnderWay);
        under_way.map(|flight| flight.weight).sum()
    }

    /// Returns the fragment that is to be sent next, of those before `end`.
    #[inline]
    pub(super) fn next_to_send(&mut self, end: u64) -> Option<u64> {
        while let Some(&fragment) = self.lost.front() {
            match self.flight(fragment).map(|flight| flight.state) {
                Some(FragmentState::Lost) => return Some(fragment),
                Some(FragmentState::Arrived | FragmentState::UnderWay) | None => {
                    self.lost.pop_front()
                }
            };
        }
        (self.next < end.min(self.window_end())).then_some(self.next)
    }

    /// Returns the fragment before which all may be sent before something arrives.
    #[inline]
    pub(super) fn window_end(&self) -> u64 {
        self.arrived_below.saturating_add(WINDOW.into())
    }

    fn flight(&self, fragment: u64) -> Option<&SentFragment> {
        let index = fragment.checked_sub(self.arrived_below)?;
        self.flights.get(index as usize)
    }

    #[inline]
    fn flight_mut(&mut self, fragment: u64) -> Option<&mut SentFragment> {
        let index = fragment.checked_sub(self.arrived_below)?;
        self.flights.get_mut(index as usize)
    }

    /// Returns whether a fragment was sent before.
    pub(super) fn is_repeated(&self, fragment: u64) -> bool {
        fragment < self.next
    }

    /// A fragment that counts as so many packets is sent, as the `order`th of all packets. Says whether it is under way
    /// in addition to those that were.
    #[inline]
    pub(super) fn sent(&mut self, fragment: u64, weight: u32, order: u64, now: Instant) -> bool {
        if fragment == self.next {
            self.next += 1;
            self.flights.push_back(SentFragment {
                order,
                sent_at: now,
                times: 1,
                weight,
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

    /// All fragments before `count` have arrived.
    #[inline]
    pub(super) fn all_arrived(&mut self, count: u64, now: Instant) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        self.arrive_below(count, now, &mut outcome);
        outcome
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
        outcome
    }

    /// The latest order among those that have arrived before `below`.
    #[inline]
    fn arrive_below(&mut self, below: u64, now: Instant, outcome: &mut AckOutcome) -> Option<u64> {
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
                outcome.lost.add(flight);
                self.lost.push_back(self.arrived_below + index as u64);
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
                FragmentState::UnderWay if all || is_first => lost.add(flight),
                FragmentState::UnderWay => continue,
                FragmentState::Lost => {}
            }
            flight.state = FragmentState::Lost;
            self.lost.push_back(self.arrived_below + index as u64);
        }
        lost
    }
}

/// A flight has arrived; its order if that is news.
#[inline]
fn arrive(flight: &mut SentFragment, now: Instant, outcome: &mut AckOutcome) -> Option<u64> {
    match std::mem::replace(&mut flight.state, FragmentState::Arrived) {
        FragmentState::Arrived => return None,
        FragmentState::UnderWay => outcome.arrived.add(flight),
        FragmentState::Lost => {}
    }
    if flight.times == 1 {
        outcome.trip = Some(now.saturating_duration_since(flight.sent_at));
    }
    Some(flight.order)
}
