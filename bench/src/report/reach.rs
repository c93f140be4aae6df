//! The ratios that are required of rows of the sections `rpc` and `stream`, and whether they hold.

use std::fmt;

use tenon_bench::results::aligned;
use tenon_bench::stats::Summary;

/// A ratio and what it is to be.
#[derive(Debug)]
pub struct Requirement {
    /// The row, without the section.
    row: String,
    ratio: &'static str,
    bound: Bound,
    /// A direction, which nothing depends on.
    is_aim: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtLeast(least) => write!(f, "{least} or more"),
            Bound::AtMost(most) => write!(f, "{most} or less"),
        }
    }
}

/// Ratios of `clients<N>`: with 64 and 1000 connections they are required, with fewer they are aims.
const CLIENTS: [(&str, Bound); 7] = [
    ("tenon_over_raw", Bound::AtLeast(0.85)),
    ("tokio_over_raw", Bound::AtLeast(0.85)),
    ("p99.tenon_over_raw", Bound::AtMost(2.0)),
    ("tenon_over_libtirpc", Bound::AtLeast(1.3)),
    ("tenon_over_tarpc", Bound::AtLeast(1.3)),
    ("tenon_over_capnp", Bound::AtLeast(1.3)),
    ("tenon_over_tonic", Bound::AtLeast(2.3)),
];

/// Ratios of single rows, required and aimed at.
const SINGLE: [(&str, &str, Bound, bool); 10] = [
    (
        "tcp.onecore.null",
        "middleware5_over_none",
        Bound::AtMost(1.1),
        false,
    ),
    (
        "tcp.onecore.sayhello",
        "middleware5_over_none",
        Bound::AtMost(1.1),
        false,
    ),
    (
        "tcp.onecore.null",
        "metadata_over_none",
        Bound::AtMost(1.1),
        false,
    ),
    (
        "tcp.onecore.sayhello",
        "metadata_over_none",
        Bound::AtMost(1.1),
        false,
    ),
    (
        "tcp.adaptive.null",
        "tokio_over_raw",
        Bound::AtMost(1.4),
        false,
    ),
    (
        "tcp.adaptive.null",
        "tokio_over_tenon",
        Bound::AtMost(1.4),
        false,
    ),
    (
        "tcp.adaptive.null",
        "tarpc_over_tokio",
        Bound::AtLeast(6.0),
        true,
    ),
    (
        "shm.adaptive.null",
        "tokio_over_tenon",
        Bound::AtMost(3.0),
        false,
    ),
    (
        "tcp.inflight64.sayhello",
        "tenon_over_tokio",
        Bound::AtMost(2.0),
        false,
    ),
    (
        "tcp.inflight64.sayhello",
        "tenon_over_tokio",
        Bound::AtMost(1.5),
        true,
    ),
];

/// Ratios of streams.
const STREAMS: [(&str, &str, f64, bool); 8] = [
    ("tcp.bytes", "tenon_over_raw", 0.8, false),
    ("tcp.bytes", "tenon_over_raw", 0.9, true),
    ("tcp.bytes", "tenon_over_tonic", 2.0, false),
    ("tcp.bytes", "tenon_over_tonic", 3.0, true),
    ("tcp.bytes", "tenon_over_grpccpp", 2.0, false),
    ("tcp.bytes", "tenon_over_grpccpp", 3.0, true),
    ("tcp.items", "tenon_over_tonic", 10.0, false),
    ("shm.bytes", "tenon_over_raw", 0.7, false),
];

/// Returns those of the section `stream`, in the order of the table.
pub fn of_streams() -> Vec<Requirement> {
    let required = STREAMS.map(|(row, ratio, least, is_aim)| Requirement {
        row: row.to_owned(),
        ratio,
        bound: Bound::AtLeast(least),
        is_aim,
    });
    required.into()
}

/// Returns those of the section `rpc`, in the order of the table: of the rows with many connections, threads or tasks.
pub fn of_calls() -> Vec<Requirement> {
    let mut all = Vec::new();
    let mut add = |row: String, ratio, bound, is_aim| {
        all.push(Requirement {
            row,
            ratio,
            bound,
            is_aim,
        });
    };
    for (row, ratio, bound, is_aim) in SINGLE {
        add(row.to_owned(), ratio, bound, is_aim);
    }
    for transport in ["tcp", "unix"] {
        for count in [1, 4, 64, 1000] {
            for (ratio, bound) in CLIENTS {
                let row = format!("{transport}.clients{count}.null");
                add(row, ratio, bound, count < 64);
            }
        }
        for count in [4, 64] {
            let row = format!("{transport}.threads{count}.null");
            add(row.clone(), "tenon_over_raw", Bound::AtLeast(1.0), false);
            add(row, "tenon_over_raw", Bound::AtLeast(1.5), true);
        }
    }
    all
}

/// A table of those that were measured: `find` returns the ratio of a row.
pub fn table(
    section: &str,
    required: &[Requirement],
    find: impl Fn(&str, &str) -> Option<Summary>,
) -> String {
    let heading = ["ratio", "measured", "required", "holds"].map(str::to_owned);
    let mut table = vec![heading.to_vec()];
    for required in required {
        let Some(value) = find(&required.row, required.ratio) else {
            continue;
        };
        let aim = if required.is_aim { "aim: " } else { "" };
        let holds = if required.bound.holds(value.median) {
            "yes"
        } else {
            "NO"
        };
        table.push(vec![
            format!("{section}.{}.{}", required.row, required.ratio),
            value.to_string(),
            format!("{aim}{}", required.bound),
            holds.to_owned(),
        ]);
    }
    if table.len() == 1 {
        return String::new();
    }
    let table = aligned(&table);
    format!("\n### {section}: required ratios\n\n{table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of the rows if one row of the section was measured.
    fn cells_at(median: f64) -> Vec<Vec<String>> {
        let value = Summary {
            median,
            low: 0.0,
            high: 9.0,
        };
        let text = table("rpc", &of_calls(), |row, _| {
            (row == "unix.threads64.null").then_some(value)
        });
        let rows = text.lines().filter(|line| line.starts_with("| rpc."));
        let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().to_owned()));
        cells.map(Iterator::collect).collect()
    }

    #[test]
    fn a_table_says_of_each_measured_ratio_whether_it_holds() {
        let name = "rpc.unix.threads64.null.tenon_over_raw";
        let measured = "1.25 (0.00-9.00)";
        assert_eq!(
            cells_at(1.25),
            [
                ["", name, measured, "1 or more", "yes", ""],
                ["", name, measured, "aim: 1.5 or more", "NO", ""],
            ]
        );
    }

    #[test]
    fn bounds_hold_at_their_value() {
        assert!(Bound::AtMost(1.4).holds(1.4) && !Bound::AtMost(1.4).holds(1.41));
        assert!(Bound::AtLeast(0.85).holds(0.85) && !Bound::AtLeast(0.85).holds(0.84));
    }

    #[test]
    fn nothing_is_said_if_no_such_row_was_measured() {
        assert_eq!(table("rpc", &of_calls(), |_, _| None), "");
    }
}
