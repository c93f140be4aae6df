//! Figures for people, for machines, and for the files of results.

pub mod about;
pub mod bytes;
mod ratio;
pub mod reach;

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tenon_bench::machine;
use tenon_bench::results::{self, aligned};
use tenon_bench::stats::Summary;

use bytes::Counted;
use ratio::Figure;
use reach::Requirement;
use tenon_bench::contestant::Round;

pub use ratio::Ratio;

/// A section that was measured.
#[derive(Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// What readers are told of it.
    pub about: &'static str,
    /// What its ratios are to be.
    pub required: Vec<Requirement>,
    /// Its rows.
    pub results: Vec<Measured>,
    /// What its calls put on the wire.
    pub bytes: Vec<Counted>,
}

/// What counts in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// How long a call takes.
    Time,
    /// How many calls there are in a second.
    Rate,
    /// How many bytes of a stream there are in a second.
    Bytes,
    /// How many items of a stream there are in a second.
    Items,
}

/// A row that was measured.
#[derive(Debug)]
pub struct Measured {
    /// Its name in full, but for the section's.
    pub name: String,
    /// The table it belongs to.
    pub table: String,
    /// Its name in the table.
    pub row: String,
    /// What counts in it.
    pub unit: Unit,
    /// What each contestant reached.
    pub figures: Vec<CodecStats>,
    /// What is compared besides each contestant with Tenon.
    pub further: Vec<Ratio>,
    /// Who did not take part, and why.
    pub left_out: Vec<(&'static str, &'static str)>,
}

/// The rounds of one contestant.
#[derive(Debug)]
pub struct CodecStats {
    /// Who.
    pub name: &'static str,
    /// In order.
    pub rounds: Vec<Round>,
}

impl CodecStats {
    /// No rounds yet.
    pub fn new(name: &'static str) -> CodecStats {
        CodecStats {
            name,
            rounds: Vec::new(),
        }
    }

    fn summary(&self, figure: impl Fn(&Round) -> f64) -> Summary {
        Summary::of(self.rounds.iter().map(figure))
    }
}

impl Measured {
    fn of(&self, name: &str) -> Option<&CodecStats> {
        self.figures.iter().find(|figures| figures.name == name)
    }

    /// The pairs that are compared: times of others over Tenon's, and Tenon's over the limit; rates
    /// of Tenon over those of others.
    fn ratios(&self) -> Vec<Ratio> {
        let others = self.figures.iter().map(|figures| figures.name);
        let ratio = |other| {
            let own = match (other, self.of("tenon_onc")) {
                ("libtirpc", Some(_)) => "tenon_onc",
                _ => "tenon",
            };
            match (self.unit, other) {
                (Unit::Time, "raw") => Ratio::of(own, other),
                (Unit::Time, _) => Ratio::of(other, own),
                (Unit::Rate | Unit::Bytes | Unit::Items, _) => Ratio::of(own, other),
            }
        };
        let beside_tenon = others.filter(|name| *name != "tenon").map(ratio);
        let all = beside_tenon.chain(self.further.iter().copied());
        all.filter(|ratio| self.of(ratio.over).is_some() && self.of(ratio.under).is_some())
            .collect()
    }

    /// The ratio in each round, if both took part.
    fn value(&self, ratio: Ratio) -> Option<Summary> {
        let figure = |round: &Round| match (ratio.figure, self.unit) {
            (Figure::P99, _) => round.high_us,
            (Figure::Main, Unit::Time) => round.median_us,
            (Figure::Main, Unit::Rate | Unit::Bytes | Unit::Items) => round.rate(),
        };
        let pairs = self
            .of(ratio.over)?
            .rounds
            .iter()
            .zip(&self.of(ratio.under)?.rounds);
        Some(Summary::of(pairs.map(|(a, b)| figure(a) / figure(b))))
    }

    fn json(&self) -> Value {
        let figures = self.figures.iter().map(|figures| {
            let median = figures.summary(|round| round.median_us);
            let rate = figures.summary(Round::rate);
            if let Unit::Bytes | Unit::Items = self.unit {
                let described = json!({
                    "per_second": rate.median, "low": rate.low, "high": rate.high,
                });
                return (figures.name.to_owned(), described);
            }
            let described = json!({
                "median_us": median.median,
                "low_us": median.low,
                "high_us": median.high,
                "p99_us": figures.summary(|round| round.high_us).median,
                "calls_per_second": rate.median,
                "calls": figures.rounds.iter().map(|round| round.calls).sum::<u64>(),
            });
            (figures.name.to_owned(), described)
        });
        let ratios = self.ratios().into_iter().filter_map(|ratio| {
            let value = self.value(ratio)?;
            let described = json!({
                "median": value.median, "low": value.low, "high": value.high,
            });
            Some((ratio.name(), described))
        });
        json!({
            "name": self.name,
            "contestants": figures.collect::<Map<_, _>>(),
            "ratios": ratios.collect::<Map<_, _>>(),
            "left_out": self.left_out.iter().map(|(who, why)| format!("{who} {why}")).collect::<Vec<_>>(),
        })
    }
}

/// Rows that stand in the same tables.
struct Group<'a> {
    section: &'static str,
    rows: &'a [Measured],
}

impl Group<'_> {
    fn print(&self, text: &mut String) {
        match self.rows[0].unit {
            Unit::Time => {
                self.figures(text, "time, us", |figures| {
                    figures.summary(|round| round.median_us).median
                });
                self.figures(text, "99th percentile, us", |figures| {
                    figures.summary(|round| round.high_us).median
                });
                self.ratios(text, "ratios of time");
            }
            Unit::Rate => {
                self.figures(text, "thousand calls per second", |figures| {
                    figures.summary(Round::rate).median / 1e3
                });
                self.figures(text, "99th percentile of times, us", |figures| {
                    figures.summary(|round| round.high_us).median
                });
                self.ratios(text, "ratios of calls per second");
            }
            Unit::Bytes => {
                self.figures(text, "MB per second", |figures| {
                    figures.summary(Round::rate).median / 1e6
                });
                self.ratios(text, "ratios of bytes per second");
            }
            Unit::Items => {
                self.figures(text, "thousand items per second", |figures| {
                    figures.summary(Round::rate).median / 1e3
                });
                self.ratios(text, "ratios of items per second");
            }
        }
    }

    /// One of each contestant's figures.
    fn figures(&self, text: &mut String, title: &str, figure: impl Fn(&CodecStats) -> f64) {
        let names = distinct(self.rows.iter().flat_map(|row| &row.figures), |it| it.name);
        let cell = |row: &Measured, name: &str| match row.of(name) {
            Some(figures) => format!("{:.1}", figure(figures)),
            None => "-".to_owned(),
        };
        let table = self.table(
            &names,
            |name| (*name).to_owned(),
            |row, name| cell(row, name),
        );
        self.section(text, title, &table);
    }

    fn ratios(&self, text: &mut String, title: &str) {
        let ratios = distinct(self.rows.iter().flat_map(Measured::ratios), |ratio| ratio);
        if ratios.is_empty() {
            return;
        }
        let table = self.table(
            &ratios,
            |ratio| ratio.heading(),
            |row, ratio| match row.value(*ratio) {
                Some(value) => value.to_string(),
                None => "-".to_owned(),
            },
        );
        self.section(text, title, &table);
    }

    /// A column for each of some things.
    fn table<T>(
        &self,
        columns: &[T],
        heading: impl Fn(&T) -> String,
        cell: impl Fn(&Measured, &T) -> String,
    ) -> Vec<Vec<String>> {
        let first = match self.rows[0].unit {
            Unit::Time | Unit::Rate => "operation",
            Unit::Bytes | Unit::Items => "stream",
        };
        let first = std::iter::once(first.to_owned());
        let mut table = vec![first.chain(columns.iter().map(heading)).collect()];
        for row in self.rows {
            let first = std::iter::once(row.row.clone());
            let cells = columns.iter().map(|column| cell(row, column));
            table.push(first.chain(cells).collect());
        }
        table
    }

    fn section(&self, text: &mut String, title: &str, table: &[Vec<String>]) {
        let _ = writeln!(
            text,
            "\n### {}.{}: {title}\n",
            self.section, self.rows[0].table
        );
        text.push_str(&aligned(table));
    }
}

/// What `key` makes of the items, each once, in the order in which they come first.
fn distinct<T, K: PartialEq>(items: impl Iterator<Item = T>, key: impl Fn(T) -> K) -> Vec<K> {
    let mut found = Vec::new();
    for item in items.map(key) {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

impl Section {
    /// Tables in Markdown that is also readable as it is.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for rows in self.results.chunk_by(|a, b| a.table == b.table) {
            let section = self.name;
            Group { section, rows }.print(&mut text);
        }
        text.push_str(&bytes::table(self.name, &self.bytes));
        text.push_str(&reach::table(self.name, &self.required, |row, ratio| {
            self.find(row, ratio)
        }));
        text
    }

    /// A ratio of a row, both by their names, if it was measured.
    fn find(&self, row: &str, ratio: &str) -> Option<Summary> {
        let measured = self.results.iter().find(|measured| measured.name == row)?;
        let mut ratios = measured.ratios().into_iter();
        measured.value(ratios.find(|one| one.name() == ratio)?)
    }

    /// One line per ratio, for machines.
    pub fn ratios(&self) -> String {
        let mut text = String::new();
        for measured in &self.results {
            for ratio in measured.ratios() {
                if let Some(value) = measured.value(ratio) {
                    let row = format!("{}.{}", self.name, measured.name);
                    let _ = writeln!(text, "ratio {row}.{} {:.3}", ratio.name(), value.median);
                }
            }
        }
        text.push_str(&bytes::ratio_lines(self.name, &self.bytes));
        text
    }

    /// Publishes the section, as [`results::write`] says.
    pub fn write(&self) -> Result<(), Box<dyn Error>> {
        let mut machine = machine::describe();
        machine::add_peers(&mut machine);
        results::write(
            self.name,
            &json!({
                "section": self.name,
                "about": self.about,
                "machine": machine,
                "tables": self.tables(),
                "rows": self.results.iter().map(Measured::json).collect::<Vec<_>>(),
                "bytes": self.bytes.iter().map(Counted::json).collect::<Vec<_>>(),
            }),
        )
    }
}
