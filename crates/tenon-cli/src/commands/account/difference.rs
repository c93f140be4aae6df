//! Two procedures side by side, as Firefly's authors showed Null and MaxResult: what a call costs by
//! itself, and what its bytes cost.

use serde_json::{Value as Json, json};
use tenon::Owner;

use super::measuring::ProfileFinding;
use super::report::{self, OWNERS, owner_name, part_name, shown};
use crate::commands::table::render;

/// The difference of two findings in one figure.
#[derive(Debug, Clone, Copy)]
struct CostDifference {
    small: f64,
    large: f64,
    /// Bytes that the second has more.
    bytes: i64,
}

impl CostDifference {
    fn new(
        small: &ProfileFinding,
        large: &ProfileFinding,
        nanos: impl Fn(&ProfileFinding) -> f64,
    ) -> Self {
        Self {
            small: nanos(small),
            large: nanos(large),
            bytes: large.bytes.both() as i64 - small.bytes.both() as i64,
        }
    }

    fn more(self) -> f64 {
        self.large - self.small
    }

    /// Returns the nanoseconds of each byte that the second has more, if it has more. Steps may have less than none,
    /// so that they add up.
    fn per_byte(self) -> Option<f64> {
        (self.bytes > 0).then(|| self.more() / self.bytes as f64)
    }

    fn cells(self) -> [String; 4] {
        let more = match self.more() {
            more if more < 0.0 => format!("-{}", shown(-more)),
            more => shown(more),
        };
        let per_byte = self.per_byte();
        [
            shown(self.small),
            shown(self.large),
            more,
            per_byte.map_or_else(String::new, |nanos| format!("{nanos:.2}")),
        ]
    }

    fn json(self) -> Json {
        json!({
            "small_us": self.small / 1e3,
            "large_us": self.large / 1e3,
            "more_us": self.more() / 1e3,
            "ns_per_byte": self.per_byte(),
        })
    }
}

/// Returns tables of both by owner of the time, and step by step.
pub fn as_tables(small: &ProfileFinding, large: &ProfileFinding) -> String {
    let round_trip = |finding: &ProfileFinding| finding.summary.round_trip.typical;
    let round_trip = CostDifference::new(small, large, round_trip);
    let by_owner = |owner: Owner| {
        let has = [small, large].map(|finding| finding.of_owner(owner).is_some());
        let nanos = |finding: &ProfileFinding| finding.of_owner(owner).unwrap_or(0.0);
        let row = row(
            [owner_name(owner)],
            CostDifference::new(small, large, nanos),
        );
        has.contains(&true).then_some(row)
    };
    let names = [&small.procedure[..], &large.procedure];
    let heading = |first: &[&'static str]| {
        let first = first.iter().copied();
        first.chain(names).chain(["more", "ns a byte"]).collect()
    };
    let heading_whole: Vec<&str> = heading(&["whose time"]);
    let mut whole: Vec<_> = OWNERS.into_iter().filter_map(by_owner).collect();
    whole.push(row(["round trip"], round_trip));
    let parts = report::parts_of(&[small, large]).into_iter();
    let mut way: Vec<_> = parts
        .map(|part| {
            let nanos = |finding: &ProfileFinding| finding.typical(part).unwrap_or(0.0);
            let first = [owner_name(part.owner()), part_name(part)];
            row(first, CostDifference::new(small, large, nanos))
        })
        .collect();
    way.push(row(["", "round trip"], round_trip));
    let heading_way: Vec<&str> = heading(&["whose time", "step"]);
    format!(
        "{} and {} at {}, {} of each, in us\n\n{}\n{}\n{}",
        with_bytes(small),
        with_bytes(large),
        small.address,
        report::calls(small.summary.calls.min(large.summary.calls)),
        render(&heading_whole, &whole, 1),
        render(&heading_way, &way, 2),
        notes(small, large)
    )
}

fn with_bytes(finding: &ProfileFinding) -> String {
    let bytes = finding.bytes;
    format!(
        "{} ({} + {} bytes)",
        finding.procedure, bytes.arguments, bytes.result
    )
}

fn row<const N: usize>(first: [&str; N], difference: CostDifference) -> Vec<String> {
    let first = first.map(str::to_owned).into_iter();
    first.chain(difference.cells()).collect()
}

fn notes(small: &ProfileFinding, large: &ProfileFinding) -> String {
    let measured = |finding: &ProfileFinding| shown(finding.measured.typical());
    let mut notes = vec![
        what_more_is(small, large)
            + " All times are typical ones: the mean over the middle half of the calls.",
        format!(
            "A clock around the same calls says {} and {} us: the steps leave {:.1} % and {:.1} % of the \
             round\ntrips unaccounted.",
            measured(small),
            measured(large),
            small.unaccounted_percent(),
            large.unaccounted_percent()
        ),
    ];
    match small.summary.way == large.summary.way {
        true => {
            notes.extend(report::on_the_way(large));
            notes.extend(report::on_packets(large));
        }
        false => {
            notes.push("Of one of them less is known than of the other.".to_owned());
        }
    }
    notes.join("\n") + "\n"
}

/// Returns how to read the columns beside the times: only more bytes have a price.
fn what_more_is(first: &ProfileFinding, second: &ProfileFinding) -> String {
    if second.bytes.both() > first.bytes.both() {
        return "The first is what a call costs whatever it carries; more is what the second's bytes cost, those \
                of\nits arguments and of its result."
            .to_owned();
    }
    let (first, second) = (&first.procedure, &second.procedure);
    format!(
        "{second} carries no more bytes than {first}, so the difference is no price of bytes: name the procedure \
         with\nfewer bytes first for ns a byte."
    )
}

/// Returns both, and how they differ.
/// `accounts` are those of both.
pub fn as_json(small: &ProfileFinding, large: &ProfileFinding, accounts: [Json; 2]) -> Json {
    let parts = report::parts_of(&[small, large]).into_iter();
    let parts = parts.map(|part| {
        let nanos = |finding: &ProfileFinding| finding.typical(part).unwrap_or(0.0);
        let mut json = CostDifference::new(small, large, nanos).json();
        json["part"] = report::part_key(part).into();
        json["owner"] = report::owner_key(part.owner()).into();
        json
    });
    let round_trip = |finding: &ProfileFinding| finding.summary.round_trip.typical;
    json!({
        "accounts": accounts,
        "difference": {
            "bytes": large.bytes.both() as i64 - small.bytes.both() as i64,
            "round_trip": CostDifference::new(small, large, round_trip).json(),
            "parts": parts.collect::<Vec<_>>(),
        },
    })
}
