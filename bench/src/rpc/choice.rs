//! What of the section is measured.

use std::time::Duration;

use super::peer::Peer;
use super::row::Row;

/// Rows, and who takes part.
#[derive(Debug)]
pub struct Choice {
    /// Parts of names; a row is measured whose name has one of them.
    filters: Vec<String>,
    /// In the order of their turns.
    pub peers: Vec<Peer>,
    /// How long rounds take, if not as long as their rows say.
    pub round: Option<Duration>,
}

const USAGE: &str = "usage: bench/run rpc [--peers NAME,...] [--round MILLISECONDS] [FILTER,...]";

impl Choice {
    /// From the command line: `[--peers NAME,...] [--round MILLISECONDS] [FILTER,...]`.
    ///
    /// # Errors
    /// A peer is not known, or there are other arguments.
    pub fn from_arguments(arguments: &[String]) -> Result<Choice, String> {
        let mut choice = Choice {
            filters: vec![String::new()],
            peers: Peer::ALL.to_vec(),
            round: None,
        };
        let mut rest = arguments;
        loop {
            rest = match rest {
                [flag, names, rest @ ..] if flag == "--peers" => {
                    let named = named(names)?;
                    choice.peers.retain(|peer| named.contains(peer));
                    rest
                }
                [flag, length, rest @ ..] if flag == "--round" => {
                    choice.round = Some(milliseconds(length)?);
                    rest
                }
                [] => return Ok(choice),
                [filters] if !filters.starts_with('-') => {
                    choice.filters = filters.split(',').map(str::to_owned).collect();
                    return Ok(choice);
                }
                _ => return Err(USAGE.to_owned()),
            };
        }
    }

    /// Whether everything is measured.
    pub fn is_all(&self) -> bool {
        self.filters == [""] && self.peers == Peer::ALL && self.round.is_none()
    }

    /// Whether something of this name is.
    pub fn has(&self, name: &str) -> bool {
        self.filters.iter().any(|filter| name.contains(filter))
    }

    /// The rows that are.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Row::all();
        rows.retain(|row| self.has(&row.name()));
        rows
    }
}

fn named(names: &str) -> Result<Vec<Peer>, String> {
    let names = names.split(',').filter(|name| *name != "none");
    names.map(str::parse).collect()
}

fn milliseconds(length: &str) -> Result<Duration, String> {
    match length.parse() {
        Ok(0) | Err(_) => Err(format!("a round cannot take {length} ms")),
        Ok(length) => Ok(Duration::from_millis(length)),
    }
}
