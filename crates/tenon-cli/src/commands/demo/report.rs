//! What the demonstration shows: both protocols side by side.

use serde_json::{Value as Json, json};
use tenon::Protocol;

use super::account;
use super::client::LatencyFigure;
use crate::commands::account::{ProfileFinding, as_json as account_as_json};
use crate::commands::table::{in_micros, micros, render};

const HEADING: [&str; 6] = [
    "procedure",
    "transport",
    "ONC median us",
    "p99 us",
    "lean median us",
    "p99 us",
];

/// Returns a table with a row for each procedure and transport, and where the time goes.
pub fn as_tables(figures: &[LatencyFigure], accounts: &[ProfileFinding]) -> String {
    let lean = |onc: &&LatencyFigure| by(Protocol::Lean, figures, onc);
    let onc = |lean: &&LatencyFigure| by(Protocol::Onc, figures, lean);
    let rows = figures.iter().filter_map(|figure| match figure.protocol {
        Protocol::Onc => Some(row(Some(figure), lean(&figure))),
        // It stands beside that by ONC RPC, if there is one.
        Protocol::Lean if onc(&figure).is_some() => None,
        Protocol::Lean => Some(row(None, Some(figure))),
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let table = render(&HEADING, &rows, 2);
    let accounts = account::as_tables(accounts);
    format!("\n{table}\nevery answer was checked\n\n{accounts}")
}

/// Returns a row of the same calls by each protocol that goes over their transport.
fn row(onc: Option<&LatencyFigure>, lean: Option<&LatencyFigure>) -> Vec<String> {
    let of = |figure: &LatencyFigure| [figure.procedure.clone(), figure.transport.to_string()];
    let words = onc.or(lean).map(of);
    let times = |figure: Option<&LatencyFigure>| match figure {
        Some(figure) => [micros(figure.median), micros(figure.p99)],
        None => ["-".to_owned(), "-".to_owned()],
    };
    let words = words.into_iter().flatten();
    words.chain(times(onc)).chain(times(lean)).collect()
}

/// Returns the same calls by `protocol`.
fn by<'f>(
    protocol: Protocol,
    figures: &'f [LatencyFigure],
    same: &LatencyFigure,
) -> Option<&'f LatencyFigure> {
    figures.iter().find(|figure| {
        figure.protocol == protocol
            && figure.transport == same.transport
            && figure.procedure == same.procedure
    })
}

/// Returns the same for machines.
pub fn as_json(figures: &[LatencyFigure], accounts: &[ProfileFinding]) -> Json {
    let row = |figure: &LatencyFigure| {
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
    json!({
        "figures": figures.iter().map(row).collect::<Vec<_>>(),
        "accounts": accounts.iter().map(account_as_json).collect::<Vec<_>>(),
    })
}
