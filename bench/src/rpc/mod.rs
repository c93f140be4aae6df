//! The section `rpc`: calls over every transport, one at a time on two cores, on one and spinning, and
//! many at once, beside peers and beside a raw ping-pong of the same bytes.

mod bytes;
mod choice;
mod peer;
mod relay;
mod row;
mod system;

use std::error::Error;

use crate::report;
use system::System;

pub use choice::Choice;

/// Measures the rows of the choice. Results are written only if that is all.
///
/// # Errors
/// A contestant fails or gives a wrong answer, or results cannot be written.
pub fn run(choice: &Choice) -> Result<(), Box<dyn Error>> {
    let rows = choice.rows();
    let systems = System::beside(&choice.peers);
    let bytes = bytes::count(choice)?;
    let mut results = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        eprint!("\r{} of {}: {:40}", at + 1, rows.len(), row.name());
        results.push(
            row.measure(&systems)
                .map_err(|error| format!("{}: {error}", row.name()))?,
        );
    }
    eprintln!("\r{:60}", "");
    systems.into_iter().for_each(System::remove_socket);
    let section = report::Section {
        name: "rpc",
        results,
        bytes,
    };
    print!("{}", section.tables());
    if choice.is_all() {
        section.write()?;
    }
    print!("{}", section.ratios());
    Ok(())
}
