//! The section `rpc`: calls over every transport, one at a time on two cores, on one and spinning, and
//! many at once, beside peers and beside a raw ping-pong of the same bytes.

mod row;
mod system;

use std::error::Error;

use crate::report;
use row::Row;
use system::System;

/// What of the section is measured.
#[derive(Debug)]
pub struct Choice {
    /// Part of the names of its rows.
    filter: String,
    /// Who takes part, in the order of their turns.
    systems: Vec<System>,
}

impl Choice {
    /// From the command line: `[--peers NAME,...] [FILTER]`.
    ///
    /// # Errors
    /// A peer is not known, or there are other arguments.
    pub fn from_arguments(arguments: &[String]) -> Result<Choice, String> {
        let (peers, rest) = match arguments {
            [flag, names, rest @ ..] if flag == "--peers" => (named(names)?, rest),
            rest => (System::ALL.to_vec(), rest),
        };
        let filter = match rest {
            [] => String::new(),
            [filter] => filter.clone(),
            _ => return Err("usage: bench/run rpc [--peers NAME,...] [FILTER]".to_owned()),
        };
        let takes_part = |system: &System| !system.is_peer() || peers.contains(system);
        let systems = System::ALL.into_iter().filter(takes_part).collect();
        Ok(Choice { filter, systems })
    }

    /// Whether everything is measured.
    fn is_all(&self) -> bool {
        self.filter.is_empty() && self.systems == System::ALL
    }
}

fn named(names: &str) -> Result<Vec<System>, String> {
    let names = names.split(',').filter(|name| *name != "none");
    names.map(str::parse).collect()
}

/// Measures the rows of the choice. Results are written only if that is all.
///
/// # Errors
/// A contestant fails or gives a wrong answer, or results cannot be written.
pub fn run(choice: &Choice) -> Result<(), Box<dyn Error>> {
    let mut rows = Row::all();
    rows.retain(|row| row.name().contains(&choice.filter));
    let mut results = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        eprint!("\r{} of {}: {:40}", at + 1, rows.len(), row.name());
        results.push(
            row.measure(&choice.systems)
                .map_err(|error| format!("{}: {error}", row.name()))?,
        );
    }
    eprintln!("\r{:60}", "");
    System::ALL.into_iter().for_each(System::remove_socket);
    let section = report::Section {
        name: "rpc",
        results,
    };
    print!("{}", section.tables());
    if choice.is_all() {
        section.write()?;
    }
    print!("{}", section.ratios());
    Ok(())
}
