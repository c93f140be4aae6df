//! The rows of the section, before and after they are measured.

use std::error::Error;

use tenon_bench::stats::Summary;

use crate::call::{Call, Transport};
use crate::marshal::{Direction, MALLOC, Marshal};
use crate::{WORKS, call};

/// A row that is to be measured.
#[derive(Debug, Clone, Copy)]
pub enum Plan {
    /// Marshalling alone.
    Marshal(Marshal),
    /// Whole calls.
    Call(Call),
}

/// All rows.
pub fn all() -> Vec<Plan> {
    let marshal = Direction::ALL
        .into_iter()
        .flat_map(|direction| WORKS.map(|work| Plan::Marshal(Marshal { work, direction })));
    let calls = Transport::ALL.into_iter().flat_map(|transport| {
        call::Mode::ALL.into_iter().flat_map(move |mode| {
            WORKS.map(|work| Call {
                transport,
                mode,
                work,
            })
        })
    });
    let calls = calls.filter(Call::fits_datagram).map(Plan::Call);
    marshal.chain(calls).collect()
}

impl Plan {
    /// Its name, but for the section's.
    pub fn name(&self) -> String {
        match self {
            Plan::Marshal(marshal) => format!("{}.{}", marshal.work, marshal.direction.name()),
            Plan::Call(call) => call.name(),
        }
    }

    /// The table that it belongs to.
    fn table(&self) -> String {
        match self {
            Plan::Marshal(marshal) if marshal.is_nested() => {
                format!("nested.{}", marshal.direction.name())
            }
            Plan::Marshal(marshal) => marshal.direction.name().to_owned(),
            Plan::Call(call) => format!("call.{}.{}", call.transport.name(), call.mode.name()),
        }
    }

    /// Its name in there.
    fn work(&self) -> &'static str {
        match self {
            Plan::Marshal(marshal) => marshal.work,
            Plan::Call(call) => call.work,
        }
    }

    /// Lets the contestants take turns.
    ///
    /// # Errors
    /// A program fails, or two of them do not say the same.
    pub fn measure(&self) -> Result<Row, Box<dyn Error>> {
        let figures = match self {
            Plan::Marshal(marshal) => marshal.measure()?,
            Plan::Call(call) => call.measure()?,
        };
        Ok(Row {
            name: self.name(),
            table: self.table(),
            work: self.work(),
            figures,
        })
    }
}

/// A row that was measured.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub table: String,
    pub work: &'static str,
    /// rpcgen's figures come first.
    pub figures: Vec<CodecStats>,
}

/// What one contestant reached.
#[derive(Debug)]
pub struct CodecStats {
    /// Who.
    pub name: &'static str,
    /// Nanoseconds in each round.
    pub nanoseconds: Vec<f64>,
}

impl CodecStats {
    /// No rounds yet.
    pub fn new(name: &'static str) -> CodecStats {
        CodecStats {
            name,
            nanoseconds: Vec::new(),
        }
    }

    /// Nanoseconds.
    pub fn time(&self) -> Summary {
        Summary::of(self.nanoseconds.iter().copied())
    }
}

/// How often a contestant is as fast as rpcgen; of us beside malloc, how much longer we take.
pub struct Ratio {
    /// Its name, but for the row's.
    pub name: String,
    pub value: Summary,
}

impl Row {
    /// rpcgen's time in each round over that of each other contestant, and ours over malloc's.
    pub fn ratios(&self) -> Vec<Ratio> {
        let Some((rpcgen, others)) = self.figures.split_first() else {
            return Vec::new();
        };
        let ratio = |other: &CodecStats| {
            let (over, name) = match other.name {
                "tenon" => (rpcgen, "rpcgen_over_tenon".to_owned()),
                MALLOC => (&others[0], "tenon_over_malloc".to_owned()),
                mix => (rpcgen, format!("{mix}.rpcgen_over_tenon")),
            };
            let pairs = over.nanoseconds.iter().zip(&other.nanoseconds);
            Ratio {
                name,
                value: Summary::of(pairs.map(|(over, other)| over / other)),
            }
        };
        others.iter().map(ratio).collect()
    }
}
