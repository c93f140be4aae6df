//! The section `rpc`: calls over every transport, one at a time on two cores, on one and spinning, and
//! many at once, beside peers and beside a raw ping-pong of the same bytes.

mod bytes;
mod choice;
mod commands;
mod descriptors;
mod mode;
mod networks;
mod peer;
mod relay;
mod row;
mod system;

use std::error::Error;

use crate::report;
use networks::Networks;
use row::Row;
use system::System;
use tenon_bench_common::address::Transport;

pub use choice::Choice;

/// The networks that some rows are in. Those are left out, and that is said, where networks cannot be made.
fn networks_for(rows: &mut Vec<Row>) -> Option<Networks> {
    let is_inside = |row: &Row| row.transport == Transport::Xdp;
    if !rows.iter().any(is_inside) {
        return None;
    }
    match Networks::make() {
        Ok(networks) => Some(networks),
        Err(error) => {
            eprintln!("LEFT OUT: the rows of xdp: {error}");
            rows.retain(|row| !is_inside(row));
            None
        }
    }
}

/// The sockets that servers have left, which go when this is dropped.
struct Sockets<'a>(&'a [System]);

impl Drop for Sockets<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|system| system.remove_socket());
    }
}

/// Measures the rows of the choice. Results are written only if that is all.
///
/// # Errors
/// A contestant fails or gives a wrong answer, or results cannot be written.
pub fn run(choice: &Choice) -> Result<(), Box<dyn Error>> {
    let mut rows = choice.rows();
    descriptors::provide(&rows)?;
    let _networks = networks_for(&mut rows);
    let systems = System::beside(&choice.peers);
    let _sockets = Sockets(&systems);
    let bytes = bytes::count(choice)?;
    if rows.is_empty() && bytes.is_empty() {
        return Err("no row has such a name; rows are called tcp.onecore.null, for example".into());
    }
    let mut results = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        eprint!("\r{} of {}: {:40}", at + 1, rows.len(), row.name());
        results.push(
            row.measure(&systems, choice.round)
                .map_err(|error| format!("{}: {error}", row.name()))?,
        );
    }
    eprintln!("\r{:60}", "");
    let section = report::Section {
        name: "rpc",
        about: report::about::RPC,
        required: report::reach::of_calls(),
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
