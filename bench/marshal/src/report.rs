//! Figures for people, for machines, and for the files of results.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use tenon_bench::machine;
use tenon_bench::results::{self, aligned};
use tenon_bench::stats::Summary;

use crate::making::Made;
use crate::measure::{Direction, Row};
use crate::work::Work;

const SECTION: &str = "marshal";

/// Tenon in each representation, by each engine.
const OURS: [&str; 11] = [
    "xdr",
    "xdr called",
    "xdr jit",
    "xdr jit reused",
    "xdr interp",
    "lean",
    "lean called",
    "lean swapped",
    "lean jit",
    "lean jit reused",
    "lean interp",
];

/// Those beside whom the compiled stubs stand.
const THEIRS: [&str; 11] = [
    "xdr",
    "lean",
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
    over: Who,
    under: Who,
}

/// A contestant.
#[derive(Clone, Copy)]
enum Who {
    Named(&'static str),
    /// The fastest of the peers.
    Best,
}

impl Ratio {
    const fn of(
        representation: &'static str,
        name: &'static str,
        over: &'static str,
        under: &'static str,
    ) -> Self {
        Self {
            representation,
            name,
            over: Who::Named(over),
            under: Who::Named(under),
        }
    }

    const fn over_best(representation: &'static str) -> Self {
        Self {
            representation,
            name: "tenon_over_best",
            over: Who::Named(representation),
            under: Who::Best,
        }
    }
}

const RATIOS: [Ratio; 15] = [
    Ratio::of("xdr", "libtirpc_over_tenon", "libtirpc", "xdr"),
    Ratio::of(
        "xdr",
        "libtirpc_reused_over_tenon",
        "libtirpc reused",
        "xdr",
    ),
    Ratio::of("xdr", "tenon_over_memcpy", "xdr", "memcpy"),
    Ratio::over_best("xdr"),
    Ratio::of("xdr", "jit_over_compiled", "xdr jit", "xdr"),
    Ratio::of("xdr", "jit_over_called", "xdr jit", "xdr called"),
    Ratio::of("xdr", "interp_over_compiled", "xdr interp", "xdr"),
    Ratio::of("lean", "tenon_over_wincode", "lean", "wincode"),
    Ratio::over_best("lean"),
    Ratio::of("lean", "tenon_over_memcpy", "lean", "memcpy"),
    Ratio::of("lean", "tenon_over_rkyv", "lean", "rkyv"),
    Ratio::of("lean", "swapped_over_native", "lean swapped", "lean"),
    Ratio::of("lean", "jit_over_compiled", "lean jit", "lean"),
    Ratio::of("lean", "jit_over_called", "lean jit", "lean called"),
    Ratio::of("lean", "interp_over_compiled", "lean interp", "lean"),
];

impl Ratio {
    fn in_row(&self, row: &Row) -> Option<Summary> {
        row.ratio(self.over.in_row(row)?, self.under.in_row(row)?)
    }
}

impl Who {
    fn in_row(self, row: &Row) -> Option<&'static str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Best => best_peer(row),
        }
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

/// All that there is to report.
pub struct Measured {
    /// Times of each work, in each direction.
    pub rows: Vec<Row>,
    /// What each work takes on the wire.
    pub sizes: Vec<Sizes>,
    /// How long machine code took to make.
    pub made: Vec<Made>,
}

/// Tables in Markdown that is also readable as it is.
pub fn tables(measured: &Measured) -> String {
    let Measured { rows, sizes, made } = measured;
    let mut text = String::new();
    for direction in Direction::ALL {
        let of_it = |row: &&Row| row.direction == direction && !row.figures.is_empty();
        let of_it: Vec<&Row> = rows.iter().filter(of_it).collect();
        let name = direction.name();
        let _ = writeln!(text, "\n### {SECTION}.{name}: time beside the peers\n");
        text.push_str(&times(&THEIRS, &of_it));
        let _ = writeln!(text, "\n### {SECTION}.{name}: time of tenon's engines\n");
        text.push_str(&times(&OURS, &of_it));
        text.push_str(&of_entering(&of_it));
        for representation in ["xdr", "lean"] {
            if let Some(table) = ratio_table(representation, &of_it) {
                let _ = writeln!(text, "\n### {SECTION}.{name}: ratios of {representation}\n");
                text.push_str(&table);
            }
        }
    }
    let _ = writeln!(text, "\n### {SECTION}: bytes\n");
    text.push_str(&table(
        &THEIRS,
        sizes.iter().map(|of| {
            let cells = THEIRS.map(|name| of.cell(name));
            (of.work.clone(), cells.to_vec())
        }),
    ));
    for (of, why) in sizes
        .iter()
        .flat_map(|of| of.left_out.iter().map(move |why| (of, why)))
    {
        let _ = writeln!(text, "\nLeft out of {}: {why}.", of.work);
    }
    let _ = writeln!(text, "\n### {SECTION}: making machine code\n");
    for made in made {
        let _ = writeln!(
            text,
            "- {} in {}: {} ({} to {})",
            made.of,
            made.representation,
            readable(made.time.median),
            readable(made.time.low),
            readable(made.time.high)
        );
    }
    text
}

/// The times of those who took part anywhere.
fn times(names: &[&'static str], rows: &[&Row]) -> String {
    let took_part = |name: &&&str| rows.iter().any(|row| row.of(name).is_some());
    let names: Vec<&str> = names.iter().filter(took_part).copied().collect();
    let cell = |row: &Row, name: &str| {
        let time = row.time(name);
        time.map_or("-".to_owned(), |it| readable(it.median))
    };
    table(
        &names,
        rows.iter().map(|row| {
            let cells = names.iter().map(|name| cell(row, name));
            (row.work.clone(), cells.collect())
        }),
    )
}

/// What it costs to enter machine code, as the shortest work shows it.
fn of_entering(rows: &[&Row]) -> String {
    let int = rows.iter().find(|row| row.work == "int");
    let more = |name: &str| {
        let row = int?;
        Some(row.time(name)?.median - row.time("xdr")?.median)
    };
    match (more("xdr jit"), more("xdr called")) {
        (Some(machine), Some(called)) => format!(
            "\nFor a single int machine code takes {} more than a compiled stub, which is part of its caller. The \
             stub itself takes {}\nmore where it is no part of its caller but called through a pointer, as \
             machine code is (`called`). Where the stub takes\nless than {} machine code cannot take 1.15 of that.\n",
            readable(machine),
            readable(called),
            readable(machine / 0.15),
        ),
        _ => String::new(),
    }
}

/// The ratios that there are of any work, if there are any.
fn ratio_table(representation: &str, rows: &[&Row]) -> Option<String> {
    let ratios = RATIOS
        .iter()
        .filter(|ratio| ratio.representation == representation)
        .filter(|ratio| rows.iter().any(|row| ratio.in_row(row).is_some()));
    let ratios: Vec<&Ratio> = ratios.collect();
    let names: Vec<&str> = ratios.iter().map(|ratio| ratio.name).collect();
    if names.is_empty() {
        return None;
    }
    let cell = |row: &Row, ratio: &Ratio| match ratio.in_row(row) {
        Some(it) => format!("{:.2} ({:.2}-{:.2})", it.median, it.low, it.high),
        None => "-".to_owned(),
    };
    Some(table(
        &names,
        rows.iter().map(|row| {
            let cells = ratios.iter().map(|ratio| cell(row, ratio));
            (row.work.clone(), cells.collect())
        }),
    ))
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
            if let Some(of) = ratio.in_row(row) {
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
in the cache where it fits. `xdr` and `lean`: stubs compiled from the interface, in these
representations; `called`: the same stubs, called through a pointer as machine code is; `lean swapped`:
from and for a machine of the other byte order; `jit` and `interp`: machine code made at run time, and the interpreter, both on memory in C's layout, for types known
only at run time, decoding to a place that stays, as the stack frame does that a stub returns to, and
freeing what the value points to; `jit reused`: that memory is used again, too; `libtirpc`: rpcgen's routines on memory streams, decoding into new memory and
freeing it; `libtirpc reused`: decoding into memory that is there already; `rkyv`: checked access,
then an owned value; `memcpy`: as many bytes as xdr writes, into a reused buffer. The direction
`view` makes a view that borrows from the bytes: tenon's views of lean, rkyv's checked access. Only
xdr's and libtirpc's bytes are most significant byte first. `best` is the fastest peer of the row. The
text after the tables says who was left out. Everything is made anew in many
places in memory, as how buffers lie to each other within a page can make a short copy take twice as long.
A contestant that takes a turn works for a millisecond before the clock runs, so that nobody pays for what others have
pushed out of the cache, or for memory of its own that went cold meanwhile.
`making machine code` is the time that Cranelift takes for all types and procedures of an interface, both
ways, when its plans are there: the structure alone is what a client of one message waits for.
";

/// Writes the files of results.
pub fn write(measured: &Measured) -> Result<(), Box<dyn Error>> {
    results::write(
        SECTION,
        &json!({
            "section": SECTION,
            "about": ABOUT,
            "machine": described()?,
            "tables": tables(measured),
            "rows": measured.rows.iter().map(row_json).collect::<Vec<_>>(),
            "bytes": measured.sizes.iter().map(sizes_json).collect::<Map<_, _>>(),
            "making_ns": measured.made.iter().map(made_json).collect::<Map<_, _>>(),
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
        .filter_map(|ratio| Some((ratio_name(row, ratio), summary_json(ratio.in_row(row)?))));
    json!({
        "name": format!("{}.{}", row.work, row.direction.name()),
        "best_peer": best_peer(row),
        "contestants_ns": contestants.collect::<Map<_, _>>(),
        "ratios": ratios.collect::<Map<_, _>>(),
    })
}

fn made_json(made: &Made) -> (String, Value) {
    let name = format!("{}.{}", made.representation, made.of);
    (name, summary_json(made.time))
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
