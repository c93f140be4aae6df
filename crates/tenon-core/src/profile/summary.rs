//! The summary of many calls.

use super::packets::PacketCoverage;
use super::part::{Part, Way};
use super::trace::Trace;

/// Summary of calls that went the same way, as far as that is known.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of calls.
    pub calls: usize,
    /// Calls that are left out, because less, or more, is known of them than of most.
    pub left_out: usize,
    /// Extent of what is known of their way.
    pub way: Way,
    /// Ends of which it is known when the kernel had their packets.
    pub packets: PacketCoverage,
    /// Time from when they were entered until they were left.
    pub round_trip: ProfileStats,
    /// The client's system call that sent them, see [`Trace::send`].
    pub send: ProfileStats,
    /// The parts of their way, in order. Their typical times add up to the round trip's. A
    /// [hand-over](Part::HandOver) that none of them had is left out.
    pub parts: Vec<PartStats>,
}

/// Statistics of a part of the way.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PartStats {
    /// The part.
    pub part: Part,
    /// Time that it took.
    pub figures: ProfileStats,
}

/// Distribution of a duration, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ProfileStats {
    /// The mean over the middle half of the calls, by their round trips: unlike medians, the typical times
    /// of parts add up.
    pub typical: f64,
    /// Half of the calls took no more.
    pub median: u64,
    /// All but one in a hundred took no more.
    pub p99: u64,
}

/// Ways, and ends of which packets are known: of two that as many calls have, the latter counts.
const WAYS: [Way; 3] = [Way::Client, Way::TwoClocks, Way::Whole];
const COVERAGES: [PacketCoverage; 3] = [
    PacketCoverage::Neither,
    PacketCoverage::Client,
    PacketCoverage::Both,
];

/// Returns what is known of a call: those of which the same is known have the same parts.
fn kind_of(trace: &Trace) -> (Way, PacketCoverage) {
    (trace.way(), trace.packets())
}

impl Summary {
    /// The summary of the calls of which as much is known as of most. `None` if there are none.
    pub fn of(traces: &[Trace]) -> Option<Self> {
        let of_kind = |kind| traces.iter().filter(move |trace| kind_of(trace) == kind);
        let kinds = WAYS
            .into_iter()
            .flat_map(|way| COVERAGES.map(|packets| (way, packets)));
        let kind = kinds.max_by_key(|kind| of_kind(*kind).count())?;
        let mut same: Vec<&Trace> = of_kind(kind).collect();
        let (way, packets) = kind;
        same.sort_by_key(|trace| trace.round_trip());
        let nanos_at =
            |trace: &Trace, index| trace.parts().nth(index).map_or(0, |(_, nanos)| nanos);
        let had = |index| same.iter().any(|trace| nanos_at(trace, index) > 0);
        let parts = same.first()?.parts().enumerate();
        let parts = parts.filter(|(index, (part, _))| *part != Part::HandOver || had(*index));
        let parts = parts.map(|(index, (part, _))| PartStats {
            part,
            figures: ProfileStats::of(&same, |trace| nanos_at(trace, index)),
        });
        Some(Self {
            calls: same.len(),
            left_out: traces.len() - same.len(),
            way,
            packets,
            round_trip: ProfileStats::of(&same, Trace::round_trip),
            send: ProfileStats::of(&same, Trace::send),
            parts: parts.collect(),
        })
    }

    /// Returns whether a call is one of those that are summed up here, and is not left out.
    pub fn counts(&self, trace: &Trace) -> bool {
        kind_of(trace) == (self.way, self.packets)
    }
}

impl ProfileStats {
    /// Of at least one call, sorted by round trip.
    fn of(sorted: &[&Trace], value: impl Fn(&Trace) -> u64) -> Self {
        let middle = &sorted[sorted.len() / 4..sorted.len() - sorted.len() / 4];
        let sum: f64 = middle.iter().map(|trace| value(trace) as f64).sum();
        let mut values: Vec<u64> = sorted.iter().map(|trace| value(trace)).collect();
        values.sort_unstable();
        let rank = |percent: usize| (values.len() * percent).div_ceil(100).max(1) - 1;
        Self {
            typical: sum / middle.len() as f64,
            median: values[rank(50)],
            p99: values[rank(99)],
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_proto::lean::Stamps;

    use super::*;
    use crate::profile::clock::ClockScale;
    use crate::profile::steps::{CallTimestamps, Step};

    /// A call with steps that are so far apart.
    fn trace(spans: [u64; Step::COUNT - 1]) -> Trace {
        let mut times = [0; Step::COUNT];
        for (step, span) in spans.iter().enumerate() {
            times[step + 1] = times[step] + span;
        }
        let scale = ClockScale {
            identity: 0,
            rate: 1_000_000_000,
        };
        let times = CallTimestamps {
            client: times,
            server: None,
            packets: None,
        };
        Trace::new(times, None, scale)
    }

    #[test]
    fn typical_times_add_up_and_strange_calls_do_not_count_for_them() {
        let mut traces: Vec<Trace> = (0..100)
            .map(|call| trace([call, 2, 3 * (100 - call), 400, call % 7, 0, 6, 7]))
            .collect();
        traces.push(trace([1_000_000, 0, 0, 0, 0, 0, 0, 0]));
        let summary = Summary::of(&traces).expect("calls");
        assert_eq!((summary.calls, summary.left_out), (101, 0));
        let sum: f64 = summary.parts.iter().map(|part| part.figures.typical).sum();
        let round_trip = summary.round_trip.typical;
        assert!((sum - round_trip).abs() < 1e-6, "{sum} {round_trip}");
        assert!(round_trip < 1000.0, "{round_trip}");
        let figures = |part| {
            let mut parts = summary.parts.iter();
            parts
                .find(|figures| figures.part == part)
                .expect("the part")
                .figures
        };
        let turn = ProfileStats {
            typical: figures(Part::Turn).typical,
            median: 2,
            p99: 2,
        };
        assert_eq!(figures(Part::Turn), turn);
        assert_eq!(
            (figures(Part::Encode).median, figures(Part::Encode).p99),
            (50, 99)
        );
        assert_eq!(figures(Part::Wait).typical, 400.0);
        // No caller received for another.
        let parts = summary.parts.iter();
        assert_eq!(
            parts
                .filter(|figures| figures.part == Part::HandOver)
                .count(),
            0
        );
    }

    #[test]
    fn calls_that_are_left_out_are_not_counted() {
        let by_client = trace([1, 2, 3, 4, 5, 6, 7, 8]);
        let server = Stamps {
            clock: 1,
            rate: 1_000_000_000,
            received: 1,
            dispatched: 1,
            done: 1,
            sent: 1,
            packets: None,
        };
        let times = CallTimestamps {
            client: [1; Step::COUNT],
            server: Some(server),
            packets: None,
        };
        let scale = ClockScale {
            identity: 1,
            rate: server.rate,
        };
        let by_both = Trace::new(times, None, scale);
        let traces = [by_client.clone(), by_both.clone(), by_client.clone()];
        let summary = Summary::of(&traces).expect("calls");
        assert_eq!((summary.calls, summary.left_out), (2, 1));
        assert!(summary.counts(&by_client));
        assert!(!summary.counts(&by_both));
    }

    #[test]
    fn one_call_is_enough() {
        let summary = Summary::of(&[trace([1, 2, 3, 4, 5, 6, 7, 8])]).expect("a call");
        assert_eq!(summary.parts.len(), 8);
        assert_eq!(summary.round_trip.typical, 36.0);
        assert_eq!(
            (summary.round_trip.median, summary.round_trip.p99),
            (36, 36)
        );
        assert_eq!(summary.send.median, 3);
        assert!(Summary::of(&[]).is_none());
    }
}
