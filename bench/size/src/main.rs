//! The section `size`: what code costs by being large. A record of 8192 members, and messages of up
//! to a thousand types in a random order. `bench/run size` builds and starts it.

mod code;
mod measure;
mod messages;
mod report;
mod wide;

use std::error::Error;

use code::Code;
use measure::{Direction, POPULATIONS};
use messages::Message;
use report::Report;

fn main() -> Result<(), Box<dyn Error>> {
    wide::try_out()?;
    let messages = Message::all()?;
    let mut rows = Vec::new();
    for direction in Direction::ALL {
        for types in POPULATIONS {
            eprintln!("measuring {}, {types} types", direction.name());
            rows.push(measure::measure(&messages, types, direction));
        }
    }
    let bytes: usize = messages.iter().map(Message::size).sum();
    let report = Report {
        code: Code::of_this_program()?,
        rows,
        message_bytes: bytes / messages.len(),
    };
    print!("{}\n{}", report.tables(), report.ratios());
    report.write()
}
