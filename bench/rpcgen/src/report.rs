//! Figures for people, for machines, and for the files of results.

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tenon_bench::machine;
use tenon_bench::results::{self, aligned};
use tenon_bench::stats::Summary;

use crate::marshal::MALLOC;
use crate::row::Row;

const SECTION: &str = "rpcgen";

const ABOUT: &str = "\
C programs on libtirpc with what `tenon rpcgen` writes, beside the same programs with what rpcgen writes:
arrays of integers, the structure of the study of stubs, a record of 1000 integers, and a directory of 10 or 100
entries (`nested`: linked lists of records with texts, unions and what may be absent). Marshalling alone, on
memory streams: `encode` into memory that is used again, `decode` into new memory, which is freed, as
clients and servers do; `reused`, into memory that is there; `malloc` only takes and frees the blocks of memory that
a decoder of the directory does. Whole calls send a value and get it back,
one at a time: `block`, client and server on a core each; `onecore`, both on one, where no wake-up of a core
hides what a call costs. All ends sleep while they wait, but clients with `--fast` on a core of their own. Four mixes: rpcgen's files at both ends (`rpcgen`), ours
at the client only (`client`), at the server only (`server`), and at both (`both`). And two with what
`tenon rpcgen --fast` writes, whose calls are those of Tenon's run time behind libtirpc's names: at the client only
(`fast_client`), at both (`fast`); it waits as it does by default where a process is bound to a core. Everything is compiled with gcc -O2. The directory
of 100 entries has more bytes than libtirpc carries over UDP.
";

/// Tables in Markdown that is also readable as it is.
pub fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    for rows in rows.chunk_by(|a, b| a.table == b.table) {
        let _ = writeln!(text, "\n### {SECTION}.{}\n", rows[0].table);
        text.push_str(&table(rows));
    }
    text
}

/// Each contestant's times, and then what rpcgen's is divided by the others'.
fn table(rows: &[Row]) -> String {
    let names: Vec<&str> = rows[0].figures.iter().map(|it| it.name).collect();
    let ratios = names[1..].iter().map(|name| match *name {
        MALLOC => format!("tenon/{MALLOC}"),
        name => format!("rpcgen/{name}"),
    });
    let times = names.iter().map(|name| (*name).to_owned());
    let heading = std::iter::once("work".to_owned())
        .chain(times)
        .chain(ratios);
    let mut table = vec![heading.collect::<Vec<_>>()];
    table.extend(rows.iter().map(|row| {
        let times = row.figures.iter().map(|it| readable(it.time().median));
        let ratios = row.ratios().into_iter().map(|ratio| {
            let Summary { median, low, high } = ratio.value;
            format!("{median:.2} ({low:.2}-{high:.2})")
        });
        let first = std::iter::once(row.work.to_owned());
        first.chain(times).chain(ratios).collect()
    }));
    aligned(&table)
}

/// Nanoseconds with a unit that suits them.
fn readable(nanoseconds: f64) -> String {
    match nanoseconds {
        few if few < 100.0 => format!("{few:.1} ns"),
        some if some < 10_000.0 => format!("{some:.0} ns"),
        many => format!("{:.1} us", many / 1e3),
    }
}

/// One line per ratio, for machines.
pub fn ratios(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for ratio in row.ratios() {
            let (row, ratio, value) = (&row.name, &ratio.name, ratio.value.median);
            let _ = writeln!(text, "ratio {SECTION}.{row}.{ratio} {value:.3}");
        }
    }
    text
}

/// Writes the files of results.
///
/// # Errors
/// A file cannot be written or read.
pub fn write(rows: &[Row]) -> Result<(), Box<dyn Error>> {
    results::write(
        SECTION,
        &json!({
            "section": SECTION,
            "about": ABOUT,
            "machine": machine::describe(),
            "tables": tables(rows),
            "rows": rows.iter().map(row_json).collect::<Vec<_>>(),
        }),
    )
}

fn row_json(row: &Row) -> Value {
    let contestants = row
        .figures
        .iter()
        .map(|it| (it.name.to_owned(), summary_json(it.time())));
    let ratios = row
        .ratios()
        .into_iter()
        .map(|ratio| (ratio.name, summary_json(ratio.value)));
    json!({
        "name": row.name,
        "contestants_ns": contestants.collect::<Map<_, _>>(),
        "ratios": ratios.collect::<Map<_, _>>(),
    })
}

fn summary_json(it: Summary) -> Value {
    json!({ "median": it.median, "low": it.low, "high": it.high })
}
