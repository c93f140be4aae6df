//! What of the section is measured.

use super::contender::Contender;
use super::row::Row;

/// Rows, who takes part, and how much a stream has.
#[derive(Debug)]
pub struct Choice {
    /// Parts of names; a row is measured whose name has one of them.
    filters: Vec<String>,
    /// In the order of their turns.
    pub contenders: Vec<Contender>,
    /// Bytes of a stream of bytes, in millions, and items of one of items, in thousands.
    pub megabytes: u64,
}

/// What a stream has if nothing is said.
const MEGABYTES: u64 = 1000;

const USAGE: &str = "usage: bench/run stream [--peers NAME,...] [--megabytes N] [FILTER,...]";

impl Choice {
    /// From the command line: `[--peers NAME,...] [--megabytes N] [FILTER,...]`.
    ///
    /// # Errors
    /// A peer is not known, or there are other arguments.
    pub fn from_arguments(arguments: &[String]) -> Result<Choice, String> {
        let mut choice = Choice {
            filters: vec![String::new()],
            contenders: Contender::ALL.to_vec(),
            megabytes: MEGABYTES,
        };
        let mut rest = arguments;
        loop {
            rest = match rest {
                [flag, names, rest @ ..] if flag == "--peers" => {
                    let named = named(names)?;
                    let takes_part = |one: &Contender| !one.is_peer() || named.contains(one);
                    choice.contenders.retain(takes_part);
                    rest
                }
                [flag, amount, rest @ ..] if flag == "--megabytes" => {
                    choice.megabytes = positive(amount)?;
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
        self.filters == [""] && self.contenders == Contender::ALL && self.megabytes == MEGABYTES
    }

    /// The rows that are.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Row::all();
        let has = |name: &str| self.filters.iter().any(|filter| name.contains(filter));
        rows.retain(|row| has(&row.name()));
        rows
    }
}

fn named(names: &str) -> Result<Vec<Contender>, String> {
    let names = names.split(',').filter(|name| *name != "none");
    names.map(Contender::peer).collect()
}

fn positive(amount: &str) -> Result<u64, String> {
    match amount.parse() {
        Ok(0) | Err(_) => Err(format!("a stream cannot have {amount} megabytes")),
        Ok(amount) => Ok(amount),
    }
}
