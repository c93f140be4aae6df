//! The section `stream`: calls with streams of bytes and of small items, beside peers and beside as many raw bytes.

mod choice;
mod contender;
mod row;

use std::error::Error;

use crate::report;
use contender::Contender;

pub use choice::Choice;

/// The sockets that servers have left, which go when this is dropped.
struct Sockets;

impl Drop for Sockets {
    fn drop(&mut self) {
        Contender::ALL.iter().for_each(|one| one.remove_socket());
    }
}

/// Measures the rows of the choice. Results are written only if that is all.
///
/// # Errors
/// A contestant fails or gives a wrong answer, or results cannot be written.
pub fn run(choice: &Choice) -> Result<(), Box<dyn Error>> {
    let rows = choice.rows();
    if rows.is_empty() {
        return Err("no row has such a name; rows are called tcp.bytes, for example".into());
    }
    let _sockets = Sockets;
    let mut results = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        eprint!("\r{} of {}: {:40}", at + 1, rows.len(), row.name());
        let measured = row.measure(choice);
        results.push(measured.map_err(|error| format!("{}: {error}", row.name()))?);
    }
    eprintln!("\r{:60}", "");
    let section = report::Section {
        name: "stream",
        about: report::about::STREAM,
        required: report::reach::of_streams(),
        results,
        bytes: Vec::new(),
    };
    print!("{}", section.tables());
    if choice.is_all() {
        section.write()?;
    }
    print!("{}", section.ratios());
    Ok(())
}
