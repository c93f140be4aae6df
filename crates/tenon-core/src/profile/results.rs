//! Making accounts of calls, and reading them: what there is without the feature `account` cannot be made.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use tenon_net::{PacketCosts, PacketStamps};
use tenon_proto::lean::SentReply;

use super::call_profile::{AccountState, CallProfile, RecentCalls};
use super::clock::{WallClock, clock};
use super::packets::{PacketObservation, PacketTicks};
use super::steps::CallTimestamps;
use super::summary::Summary;
use super::trace::Trace;

impl CallProfile {
    /// Number of traces that are kept by default.
    const KEPT: usize = 4096;

    /// An account of every call.
    pub fn of_every_call() -> Self {
        Self::of_one_in(1)
    }

    /// An account of the first call and then of one in so many, for production. 0 means 1.
    pub fn of_one_in(calls: u32) -> Self {
        Self::with(calls, Self::KEPT)
    }

    /// An account of one call in so many that keeps the newest `kept` of them, at least one.
    pub fn with(calls: u32, kept: usize) -> Self {
        Self::new(calls, kept, None)
    }

    /// An account of every call and of its packets that keeps the newest `kept` calls, at least one. Lean calls ask the
    /// server when its kernel had the packets; when the client's kernel had them, it is [told](Self::note_packets) by
    /// the code that calls. `costs` are of this machine.
    pub fn of_packets(kept: usize, costs: PacketCosts) -> Self {
        Self::new(1, kept, Some(costs))
    }

    fn new(calls: u32, kept: usize, packets: Option<PacketCosts>) -> Self {
        // The first use waits for it a moment: better now than in a call.
        clock();
        let kept = RecentCalls {
            calls: Vec::new(),
            limit: kept.max(1),
            next: 0,
        };
        Self {
            shared: Arc::new(AccountState {
                every: calls.max(1).into(),
                calls: AtomicU64::new(0),
                packets,
                kept: Mutex::new(kept),
            }),
        }
    }

    /// Notes when the kernel had the packets of the call that was kept last. Returns by how many nanoseconds such times
    /// may be wrong, as the kernel's clock is another one than the account's.
    pub fn note_packets(&self, stamps: PacketStamps) -> u64 {
        let wall = WallClock::read();
        let mut kept = self.lock();
        if let Some(call) = kept.last_mut() {
            call.packets = PacketTicks::of(stamps, &wall);
        }
        wall.error()
    }

    /// Returns the newest calls that were followed and had results, in the order in which they were kept.
    pub fn traces(&self) -> Vec<Trace> {
        let calls = self.lock().oldest_first();
        let replies = sent_replies(&calls);
        let trace = |times: CallTimestamps| {
            let observed = self.observation(&times, &replies);
            Trace::new(times, observed, clock().scale())
        };
        calls.into_iter().map(trace).collect()
    }

    /// Returns what is known of the packets of a call. `replies` are those of which later calls have brought times.
    fn observation(
        &self,
        times: &CallTimestamps,
        replies: &HashMap<u64, SentReply>,
    ) -> Option<PacketObservation> {
        Some(PacketObservation {
            client: times.packets?,
            reply: times
                .server
                .and_then(|stamps| replies.get(&stamps.sent).copied()),
            costs: self.shared.packets?,
        })
    }

    /// Returns the summary of the calls that are kept; `None` if there are none.
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(&self.traces())
    }

    /// Forgets all calls.
    pub fn clear(&self) {
        let mut kept = self.lock();
        kept.calls.clear();
        kept.next = 0;
    }
}

impl RecentCalls {
    fn oldest_first(&self) -> Vec<CallTimestamps> {
        let mut calls = self.calls.clone();
        if calls.len() == self.limit {
            calls.rotate_left(self.next);
        }
        calls
    }

    /// Returns the newest call.
    fn last_mut(&mut self) -> Option<&mut CallTimestamps> {
        let last = (self.next + self.limit - 1) % self.limit;
        self.calls.get_mut(last)
    }
}

/// Returns the times of those replies that later replies say them of, by the time of sending in their time stamps.
fn sent_replies(calls: &[CallTimestamps]) -> HashMap<u64, SentReply> {
    let earlier = |call: &CallTimestamps| call.server?.packets?.earlier;
    let replies = calls.iter().filter_map(earlier);
    replies.map(|reply| (reply.sent, reply)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::clock::ClockScale;
    use super::super::steps::Step;
    use super::*;

    const SCALE: ClockScale = ClockScale {
        identity: 1,
        rate: 1_000_000_000,
    };

    fn times(round_trip: u64) -> CallTimestamps {
        let mut client = [0; Step::COUNT];
        client[Step::Left as usize] = round_trip;
        CallTimestamps {
            client,
            server: None,
            packets: None,
        }
    }

    #[test]
    fn one_call_in_so_many_is_followed() {
        let followed = |every| {
            let account = CallProfile::of_one_in(every);
            let calls = (0..7).filter(|_| account.is_due());
            calls.collect::<Vec<u32>>()
        };
        assert_eq!(followed(0), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(followed(1), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(followed(3), [0, 3, 6]);
    }

    #[test]
    fn the_newest_are_kept_in_the_order_of_the_calls() {
        let account = CallProfile::with(1, 3);
        assert!(account.summary().is_none());
        let kept = || {
            let calls = account.lock().oldest_first().into_iter();
            let traces = calls.map(|times| Trace::new(times, None, SCALE));
            traces.map(|trace| trace.round_trip()).collect::<Vec<u64>>()
        };
        (1..=5).for_each(|time| account.keep(times(time)));
        assert_eq!(kept(), [3, 4, 5]);
        account.clear();
        account.keep(times(9));
        assert_eq!(kept(), [9]);
        assert_eq!(account.traces().len(), 1);
    }
}
