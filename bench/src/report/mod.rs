//! Figures for people, for machines, and for the files of results.

pub mod bytes;

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tenon_bench::machine;
use tenon_bench::results::{self, aligned};
use tenon_bench::stats::Summary;

use bytes::Counted;
use tenon_bench::contestant::Round;

/// A section that was measured.
#[derive(Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
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

    fn summary(&self, figure: impl Fn(&Round) -> f64) -> Summary {
        Summary::of(self.rounds.iter().map(figure))
    }
}

/// What one contestant's figure is divided by another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ratio {
    over: &'static str,
    under: &'static str,
}

impl Ratio {
    /// `tonic_over_tenon`, for instance. libtirpc speaks ONC RPC, and so is compared with Tenon's.
    fn name(self) -> String {
        match (self.over, self.under) {
            ("libtirpc", _) => "libtirpc_over_tenon".to_owned(),
            (_, "libtirpc") => "tenon_over_libtirpc".to_owned(),
            ("tenon_udp", _) => "udp_over_xdp".to_owned(),
            (_, "tenon_udp") => "xdp_over_udp".to_owned(),
            ("tenon_tcp", _) => "tcp_over_exchange".to_owned(),
            (_, "tenon_tcp") => "exchange_over_tcp".to_owned(),
            (over, under) => format!("{over}_over_{under}"),
        }
    }
}

impl Measured {
    fn of(&self, name: &str) -> Option<&Figures> {
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
                (Unit::Rate, _) | (Unit::Time, "raw") => Ratio {
                    over: own,
                    under: other,
                },
                (Unit::Time, _) => Ratio {
                    over: other,
                    under: own,
                },
            }
        };
        others.filter(|name| *name != "tenon").map(ratio).collect()
    }

    /// The ratio in each round, if both took part.
    fn value(&self, ratio: Ratio) -> Option<Summary> {
        let figure = |round: &Round| match self.unit {
            Unit::Time => round.median_us,
            Unit::Rate => round.rate(),
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
            let described = json!({
                "median_us": median.median,
                "low_us": median.low,
                "high_us": median.high,
                "p99_us": figures.summary(|round| round.high_us).median,
                "calls_per_second": figures.summary(Round::rate).median,
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
        }
    }

    /// One of each contestant's figures.
    fn figures(&self, text: &mut String, title: &str, figure: impl Fn(&Figures) -> f64) {
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
            |ratio| format!("{}/{}", ratio.over, ratio.under),
            |row, ratio| match row.value(*ratio) {
                Some(value) => format!("{:.2} ({:.2}-{:.2})", value.median, value.low, value.high),
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
        let first = std::iter::once("operation".to_owned());
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
        text
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

    /// Writes `results/SECTION.json` and puts RESULTS.md together from all sections' files.
    pub fn write(&self) -> Result<(), Box<dyn Error>> {
        let mut machine = machine::describe();
        machine::add_peers(&mut machine);
        results::write(
            self.name,
            &json!({
                "section": self.name,
                "about": ABOUT,
                "machine": machine,
                "tables": self.tables(),
                "rows": self.results.iter().map(Measured::json).collect::<Vec<_>>(),
                "bytes": self.bytes.iter().map(Counted::json).collect::<Vec<_>>(),
            }),
        )
    }
}

const ABOUT: &str = "\
One call at a time: `block`, client and server on two cores, asleep while they wait; `onecore`, both on
one; `spin`, on two cores, and Tenon and `raw` do not sleep while they wait, whereas peers wait as they
do by default. Many: `inflight64`, one client that has 64 calls in flight; `clients4`, four clients that
have one each, on one core, the server on the other. `raw`: as many bytes as Tenon sends over the same
kind of socket and nothing else, in shared memory copied in and out by words, a line of the caches at least.
`tenon`: the lean protocol, but ONC RPC over UDP; `exchange`: the
lean protocol in datagrams; `tenon_tcp`: over TCP, beside it; `tenon_onc`: ONC RPC,
which libtirpc is compared with; `tenon_adaptive`: as `tenon`, but waiting as Tenon does if nothing is
said, which the rows with many calls do, too. Ratios are of times, but of calls per second where many
are made: there above 1 means that the first is faster. MaxResult returns 1440 bytes; LargeData sends so
many distinct members, random in [0, 2^31), and gets them back, built and owned one by one at both ends
by all. tonic, tarpc and Cap'n Proto run on one thread, which is what they are fastest on when they have
one core; TCP_NODELAY is set everywhere, and nothing is compressed. Tenon's client has many calls in
flight by starting them one after the other and taking the answers in order, in one thread. iceoryx2 moves
memory in which the other end reads and marshals nothing, and both its ends look all the time; Tenon moves typed
values, which are checked and owned at both ends. volo goes through shared memory by its shmipc, whose ends wake each
other by eventfds, as it recommends for small messages. tarpc beside greetings in shared memory goes over a Unix
socket. Bytes are those of a call and its answer, with all headers but those of TCP. A dash: the contestant cannot take
part (libtirpc carries no more than 8000 bytes over UDP and has one call in flight on a connection; others
do not speak UDP; protobuf's C++ for 8192 members does not compile, and what tarpc and Cap'n Proto derive
and generate for more than 1024 takes rustc too long).
";
