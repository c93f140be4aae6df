//! Figures for people, for machines, and for the files of results.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use tenon_bench::machine;
use tenon_bench::results::{self, aligned};
use tenon_bench::stats::Summary;

use crate::measure::{Direction, Row};
use crate::work::Work;

const SECTION: &str = "marshal";

/// The contestants, a column each.
const COLUMNS: [&str; 11] = [
    "tenon",
    "tenon interp",
    "libtirpc",
    "libtirpc reused",
    "wincode",
    "bitcode",
    "rkyv",
    "bincode",
    "postcard",
    "prost",
    "memcpy",
];

/// Those whom a user might pick instead; the fastest of them is `best`.
const PEERS: [&str; 7] = [
    "libtirpc", "wincode", "bitcode", "rkyv", "bincode", "postcard", "prost",
];

/// A ratio to report, if both took part.
struct Ratio {
    representation: &'static str,
    name: &'static str,
    over: &'static str,
    under: Under,
}

#[derive(Clone, Copy)]
enum Under {
    Contestant(&'static str),
    BestPeer,
}

const RATIOS: [Ratio; 5] = [
    Ratio {
        representation: "xdr",
        name: "libtirpc_over_tenon",
        over: "libtirpc",
        under: Under::Contestant("tenon"),
    },
    Ratio {
        representation: "xdr",
        name: "libtirpc_reused_over_tenon",
        over: "libtirpc reused",
        under: Under::Contestant("tenon"),
    },
    Ratio {
        representation: "xdr",
        name: "tenon_over_memcpy",
        over: "tenon",
        under: Under::Contestant("memcpy"),
    },
    Ratio {
        representation: "xdr",
        name: "interp_over_compiled",
        over: "tenon interp",
        under: Under::Contestant("tenon"),
    },
    Ratio {
        representation: "xdr",
        name: "tenon_over_best",
        over: "tenon",
        under: Under::BestPeer,
    },
];

impl Ratio {
    fn of(&self, row: &Row) -> Option<Summary> {
        row.ratio(
            self.over,
            match self.under {
                Under::Contestant(name) => name,
                Under::BestPeer => best_peer(row)?,
            },
        )
    }
}

fn best_peer(row: &Row) -> Option<&'static str> {
    let times = PEERS
        .iter()
        .filter_map(|&peer| Some((row.time(peer)?.median, peer)));
    times
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, peer)| peer)
}

/// Bytes that a contestant writes for a work, and who was left out.
pub struct Sizes {
    work: String,
    bytes: Vec<(&'static str, usize)>,
    left_out: Vec<String>,
}

impl Sizes {
    /// Of a work.
    pub fn of(work: &Work) -> Self {
        let bytes = work
            .entrants
            .iter()
            .map(|entrant| (entrant.name, entrant.bytes));
        Self {
            work: work.name.clone(),
            bytes: bytes.collect(),
            left_out: work.left_out.clone(),
        }
    }

    fn cell(&self, name: &str) -> String {
        let found = self.bytes.iter().find(|(who, _)| *who == name);
        found.map_or("-".to_owned(), |(_, bytes)| bytes.to_string())
    }
}

/// Tables in Markdown that is also readable as it is.
pub fn tables(rows: &[Row], sizes: &[Sizes]) -> String {
    let mut text = String::new();
    for direction in [Direction::Encode, Direction::Decode] {
        let of_it = || rows.iter().filter(move |row| row.direction == direction);
        let name = direction.name();
        let _ = writeln!(text, "\n### {SECTION}.{name}: time\n");
        text.push_str(&table(&COLUMNS, of_it().map(time_cells)));
        let _ = writeln!(text, "\n### {SECTION}.{name}: ratios of tenon's xdr\n");
        let names = RATIOS.map(|ratio| ratio.name);
        text.push_str(&table(&names, of_it().map(ratio_cells)));
    }
    let _ = writeln!(text, "\n### {SECTION}: bytes\n");
    text.push_str(&table(
        &COLUMNS,
        sizes.iter().map(|of| {
            let cells = COLUMNS.map(|name| of.cell(name));
            (of.work.clone(), cells.to_vec())
        }),
    ));
    for (of, why) in sizes
        .iter()
        .flat_map(|of| of.left_out.iter().map(move |why| (of, why)))
    {
        let _ = writeln!(text, "\nLeft out of {}: {why}.", of.work);
    }
    text
}

fn table(columns: &[&str], rows: impl Iterator<Item = (String, Vec<String>)>) -> String {
    let headings = std::iter::once("work").chain(columns.iter().copied());
    let mut table = vec![headings.map(str::to_owned).collect::<Vec<_>>()];
    table.extend(rows.map(|(work, cells)| {
        let mut row = vec![work];
        row.extend(cells);
        row
    }));
    aligned(&table)
}

fn time_cells(row: &Row) -> (String, Vec<String>) {
    let cells = COLUMNS.map(|name| {
        row.time(name)
            .map_or("-".to_owned(), |it| readable(it.median))
    });
    (row.work.clone(), cells.to_vec())
}

fn ratio_cells(row: &Row) -> (String, Vec<String>) {
    let cells = RATIOS.map(|ratio| match ratio.of(row) {
        Some(it) => format!("{:.2} ({:.2}-{:.2})", it.median, it.low, it.high),
        None => "-".to_owned(),
    });
    (row.work.clone(), cells.to_vec())
}

/// Nanoseconds with a unit that suits them.
fn readable(nanoseconds: f64) -> String {
    match nanoseconds {
        few if few < 100.0 => format!("{few:.1} ns"),
        some if some < 10_000.0 => format!("{some:.0} ns"),
        many if many < 1e6 => format!("{:.1} us", many / 1e3),
        most => format!("{:.2} ms", most / 1e6),
    }
}

/// One line per ratio, for machines.
pub fn ratios(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for ratio in &RATIOS {
            if let Some(of) = ratio.of(row) {
                let _ = writeln!(text, "ratio {} {:.3}", ratio_name(row, ratio), of.median);
            }
        }
    }
    text
}

fn ratio_name(row: &Row, ratio: &Ratio) -> String {
    let (representation, direction) = (ratio.representation, row.direction.name());
    format!(
        "{SECTION}.{representation}.{}.{direction}.{}",
        row.work, ratio.name
    )
}

const ABOUT: &str = "\
Time to encode into a reused buffer, and to decode to an owned value and drop it; one thread, data
in the cache where it fits. `tenon`: stubs compiled from the interface, xdr representation; `tenon
interp`: the interpreter, on values of types known at run time; `libtirpc`: rpcgen's routines on
memory streams, decoding into new memory and freeing it; `libtirpc reused`: decoding into memory
that is there already; `rkyv`: checked access, then an owned value; `memcpy`: as many bytes as tenon
writes, into a reused buffer. Only tenon's and libtirpc's bytes are most significant byte first.
`best` is the fastest peer of the row. The text after the tables says who was left out.
";

/// Writes the files of results.
pub fn write(rows: &[Row], sizes: &[Sizes]) -> Result<(), Box<dyn Error>> {
    results::write(
        SECTION,
        &json!({
            "section": SECTION,
            "about": ABOUT,
            "machine": described()?,
            "tables": tables(rows, sizes),
            "rows": rows.iter().map(row_json).collect::<Vec<_>>(),
            "bytes": sizes.iter().map(sizes_json).collect::<Map<_, _>>(),
        }),
    )
}

/// The machine, and the versions of the peers that were built.
fn described() -> Result<Value, Box<dyn Error>> {
    let mut described = machine::describe();
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    let lock = fs::read_to_string(lock)?;
    for peer in PEERS {
        let heading = format!("name = \"{peer}\"\nversion = \"");
        if let Some((_, from)) = lock.split_once(&heading) {
            described[peer] = from.split('"').next().into();
        }
    }
    Ok(described)
}

fn row_json(row: &Row) -> Value {
    let contestants = row.figures.iter().filter_map(|(name, _)| {
        let it = row.time(name)?;
        Some(((*name).to_owned(), summary_json(it)))
    });
    let ratios = RATIOS
        .iter()
        .filter_map(|ratio| Some((ratio_name(row, ratio), summary_json(ratio.of(row)?))));
    json!({
        "name": format!("{}.{}", row.work, row.direction.name()),
        "best_peer": best_peer(row),
        "contestants_ns": contestants.collect::<Map<_, _>>(),
        "ratios": ratios.collect::<Map<_, _>>(),
    })
}

fn summary_json(it: Summary) -> Value {
    json!({ "median": it.median, "low": it.low, "high": it.high })
}

fn sizes_json(of: &Sizes) -> (String, Value) {
    let bytes = of
        .bytes
        .iter()
        .map(|(who, bytes)| ((*who).to_owned(), json!(bytes)));
    (of.work.clone(), bytes.collect::<Map<_, _>>().into())
}
