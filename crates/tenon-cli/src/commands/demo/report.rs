//! What the demonstration shows: both protocols side by side.

use serde_json::{Value as Json, json};
use tenon::Protocol;

use super::client::Figure;
use crate::commands::table::{in_micros, micros, render};

const HEADING: [&str; 6] = [
    "procedure",
    "transport",
    "ONC median us",
    "p99 us",
    "lean median us",
    "p99 us",
];

/// A row for each procedure and transport.
pub fn as_table(figures: &[Figure]) -> String {
    let onc = figures.iter().filter(|of| of.protocol == Protocol::Onc);
    let rows: Vec<Vec<String>> = onc.map(|onc| row(onc, by_lean(figures, onc))).collect();
    let table = render(&HEADING, &rows, 2);
    format!("\n{table}\nevery answer was checked\n")
}

fn row(onc: &Figure, lean: Option<&Figure>) -> Vec<String> {
    let times = |figure: &Figure| [micros(figure.median), micros(figure.p99)];
    let words = [onc.procedure.clone(), onc.transport.to_string()];
    // The lean protocol needs a stream.
    let lean = lean.map_or(["-".to_owned(), "-".to_owned()], times);
    words.into_iter().chain(times(onc)).chain(lean).collect()
}

/// The same calls by the lean protocol.
fn by_lean<'f>(figures: &'f [Figure], onc: &Figure) -> Option<&'f Figure> {
    figures.iter().find(|figure| {
        figure.protocol == Protocol::Lean
            && figure.transport == onc.transport
            && figure.procedure == onc.procedure
    })
}

/// The same for machines.
pub fn as_json(figures: &[Figure]) -> Json {
    let row = |figure: &Figure| {
        json!({
            "procedure": figure.procedure,
            "transport": figure.transport.to_string(),
            "protocol": match figure.protocol {
                Protocol::Onc => "onc",
                Protocol::Lean => "lean",
            },
            "calls": figure.calls,
            "median_us": in_micros(figure.median),
            "p99_us": in_micros(figure.p99),
        })
    };
    Json::Array(figures.iter().map(row).collect())
}
