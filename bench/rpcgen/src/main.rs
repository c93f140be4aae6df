//! The section `rpcgen`: C programs with our routines and stubs, beside the same programs with rpcgen's.
//! `bench/run rpcgen` builds and starts it.

mod call;
mod marshal;
mod report;
mod row;

use std::error::Error;
use std::path::{Path, PathBuf};

/// What is marshalled: by its name in tables and for the programs.
const WORKS: [&str; 10] = [
    "ints20",
    "ints100",
    "ints250",
    "ints500",
    "ints1000",
    "ints2000",
    "structure",
    "members1000",
    "nested10",
    "nested100",
];

/// Whose files a program is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Rpcgen,
    Tenon,
    /// With `--fast`, which is measured in calls.
    Fast,
}

impl Maker {
    fn name(self) -> &'static str {
        match self {
            Maker::Rpcgen => "rpcgen",
            Maker::Tenon => "tenon",
            Maker::Fast => "fast",
        }
    }

    /// One of its programs.
    fn program(self, name: &str) -> PathBuf {
        Path::new(env!("OUT_DIR")).join(self.name()).join(name)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let mut rows = Vec::new();
    for plan in row::all() {
        if plan.name().contains(&filter) {
            eprint!("\r{:60}", plan.name());
            let row = plan.measure();
            rows.push(row.map_err(|error| format!("{}: {error}", plan.name()))?);
        }
    }
    if rows.is_empty() {
        return Err("no row has such a name; rows are called nested10.encode, for example".into());
    }
    eprintln!("\r{:60}", "");
    print!("{}\n{}", report::tables(&rows), report::ratios(&rows));
    match filter.is_empty() {
        true => report::write(&rows),
        false => Ok(()),
    }
}
