//! The section `rpc`: one call at a time, blocking, over every transport, on two cores and on one,
//! beside libtirpc and beside a raw ping-pong of the same bytes.

mod row;
mod system;

use std::error::Error;

use tenon_bench::address::Transport;
use tenon_bench::operation::Operation;

use crate::report;
use row::{Placement, Row};
use system::System;

/// Measures the rows whose name contains `filter`. Results are written only if all were measured.
///
/// # Errors
/// A contestant fails or gives a wrong answer, or results cannot be written.
pub fn run(filter: &str) -> Result<(), Box<dyn Error>> {
    let rows = rows();
    let chosen: Vec<&Row> = rows
        .iter()
        .filter(|row| row.name().contains(filter))
        .collect();
    let mut results = Vec::new();
    for (at, row) in chosen.iter().enumerate() {
        eprint!("\r{} of {}: {:40}", at + 1, chosen.len(), row.name());
        results.push(
            row.measure()
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
    if filter.is_empty() {
        section.write()?;
    }
    print!("{}", section.ratios());
    Ok(())
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for transport in Transport::ALL {
        for placement in Placement::ALL {
            rows.extend(Operation::all().into_iter().map(|operation| Row {
                transport,
                placement,
                operation,
            }));
        }
    }
    rows.retain(Row::fits);
    rows
}
