//! What of the section is measured.

use super::peer::Peer;
use super::row::Row;

/// Rows, and who takes part.
#[derive(Debug)]
pub struct Choice {
    filter: String,
    /// In the order of their turns.
    pub peers: Vec<Peer>,
}

impl Choice {
    /// From the command line: `[--peers NAME,...] [FILTER]`.
    ///
    /// # Errors
    /// A peer is not known, or there are other arguments.
    pub fn from_arguments(arguments: &[String]) -> Result<Choice, String> {
        let (named, rest) = match arguments {
            [flag, names, rest @ ..] if flag == "--peers" => (named(names)?, rest),
            rest => (Peer::ALL.to_vec(), rest),
        };
        let filter = match rest {
            [] => String::new(),
            [filter] => filter.clone(),
            _ => return Err("usage: bench/run rpc [--peers NAME,...] [FILTER]".to_owned()),
        };
        let mut peers = Peer::ALL.to_vec();
        peers.retain(|peer| named.contains(peer));
        Ok(Choice { filter, peers })
    }

    /// Whether everything is measured.
    pub fn is_all(&self) -> bool {
        self.filter.is_empty() && self.peers == Peer::ALL
    }

    /// Whether something of this name is.
    pub fn has(&self, name: &str) -> bool {
        name.contains(&self.filter)
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
