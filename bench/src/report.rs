//! Figures for people, for machines, and for the files of results.

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tenon_bench::machine;
use tenon_bench::results::{self, aligned};
use tenon_bench::stats::Summary;

use crate::contestant::Round;

/// The pairs whose ratio is reported: the time of the first over that of the second.
const RATIOS: [(&str, &str); 2] = [("libtirpc", "tenon"), ("tenon", "raw")];

/// A section that was measured.
#[derive(Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// Its rows.
    pub results: Vec<Measured>,
}

/// A row that was measured.
#[derive(Debug)]
pub struct Measured {
    /// The table it belongs to.
    pub group: String,
    /// Its name in the table.
    pub row: String,
    /// What each contestant reached.
    pub figures: Vec<Figures>,
    /// Who did not take part, and why.
    pub left_out: Vec<(&'static str, &'static str)>,
}

/// The rounds of one contestant.
#[derive(Debug)]
pub struct Figures {
    /// Who.
    pub name: &'static str,
    /// In order.
    pub rounds: Vec<Round>,
}

impl Figures {
    /// No rounds yet.
    pub fn new(name: &'static str) -> Figures {
        Figures {
            name,
            rounds: Vec::new(),
        }
    }

    fn median_us(&self) -> Summary {
        Summary::of(self.rounds.iter().map(|round| round.median_us))
    }

    fn high_us(&self) -> f64 {
        Summary::of(self.rounds.iter().map(|round| round.high_us)).median
    }
}

impl Measured {
    fn of(&self, name: &str) -> Option<&Figures> {
        self.figures.iter().find(|figures| figures.name == name)
    }

    /// The ratio of two contestants in each round, if both took part.
    fn ratio(&self, (over, under): (&str, &str)) -> Option<Summary> {
        let pairs = self.of(over)?.rounds.iter().zip(&self.of(under)?.rounds);
        Some(Summary::of(pairs.map(|(a, b)| a.median_us / b.median_us)))
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.row.clone()];
        for name in ["libtirpc", "tenon", "raw"] {
            cells.push(match self.of(name) {
                Some(figures) => format!("{:.1}", figures.median_us().median),
                None => "-".to_owned(),
            });
        }
        let tenon = self.of("tenon").map(Figures::high_us);
        cells.push(tenon.map_or("-".to_owned(), |high| format!("{high:.1}")));
        cells.extend(RATIOS.map(|pair| match self.ratio(pair) {
            Some(ratio) => format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.low, ratio.high),
            None => "-".to_owned(),
        }));
        cells
    }

    fn json(&self) -> Value {
        let figures = self.figures.iter().map(|figures| {
            let median = figures.median_us();
            let described = json!({
                "median_us": median.median,
                "low_us": median.low,
                "high_us": median.high,
                "p99_us": figures.high_us(),
                "calls": figures.rounds.iter().map(|round| round.calls).sum::<u64>(),
            });
            (figures.name.to_owned(), described)
        });
        let ratios = RATIOS.iter().filter_map(|pair| {
            let ratio = self.ratio(*pair)?;
            let described = json!({
                "median": ratio.median, "low": ratio.low, "high": ratio.high,
            });
            Some((format!("{}_over_{}", pair.0, pair.1), described))
        });
        json!({
            "name": format!("{}.{}", self.group, self.row),
            "contestants": figures.collect::<Map<_, _>>(),
            "ratios": ratios.collect::<Map<_, _>>(),
            "left_out": self.left_out.iter().map(|(who, why)| format!("{who}: {why}")).collect::<Vec<_>>(),
        })
    }
}

const HEADINGS: [&str; 7] = [
    "operation",
    "libtirpc us",
    "tenon us",
    "raw us",
    "tenon p99 us",
    "libtirpc/tenon (spread)",
    "tenon/raw (spread)",
];

impl Section {
    /// A table per group, in Markdown that is also readable as it is.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for group in self.results.chunk_by(|a, b| a.group == b.group) {
            let mut table = vec![HEADINGS.map(str::to_owned).to_vec()];
            table.extend(group.iter().map(Measured::cells));
            let _ = writeln!(text, "\n### {}.{}\n", self.name, group[0].group);
            text.push_str(&aligned(&table));
        }
        text
    }

    /// One line per ratio, for machines.
    pub fn ratios(&self) -> String {
        let mut text = String::new();
        for measured in &self.results {
            for pair in RATIOS {
                if let Some(ratio) = measured.ratio(pair) {
                    let (over, under) = pair;
                    let row = format!("{}.{}.{}", self.name, measured.group, measured.row);
                    let _ = writeln!(text, "ratio {row}.{over}_over_{under} {:.3}", ratio.median);
                }
            }
        }
        text
    }

    /// Writes `results/SECTION.json` and puts RESULTS.md together from all sections' files.
    pub fn write(&self) -> Result<(), Box<dyn Error>> {
        results::write(
            self.name,
            &json!({
                "section": self.name,
                "about": ABOUT,
                "machine": machine::describe(),
                "tables": self.tables(),
                "rows": self.results.iter().map(Measured::json).collect::<Vec<_>>(),
            }),
        )
    }
}

const ABOUT: &str = "\
Microseconds per call. One call at a time, blocking. `block`: client and server on two cores;
`onecore`: both pinned to one. `raw`: the same bytes over the same kind of socket and nothing else.
A dash: the contestant cannot take part (libtirpc carries no more than 8000 bytes over UDP).
";
