//! Marshalling alone, on memory streams.

use std::error::Error;

use tenon_bench::contestant::Pinned;

use crate::Maker;
use crate::row::Figures;

/// Rounds that each program works, in turns. The first, in which it finds out how often it fits
/// into a round, does not count.
const ROUNDS: usize = 32;

/// How long a round takes.
const ROUND_NANOSECONDS: u64 = 2_000_000;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into memory that is used again.
    Encode,
    /// Into new memory, which is freed.
    Decode,
    /// Into memory that is there.
    Reused,
}

impl Direction {
    /// All of them.
    pub const ALL: [Direction; 3] = [Direction::Encode, Direction::Decode, Direction::Reused];

    /// Its name in tables and for the program.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Encode => "encode",
            Direction::Decode => "decode",
            Direction::Reused => "reused",
        }
    }
}

/// A work in one direction.
#[derive(Debug, Clone, Copy)]
pub struct Marshal {
    pub work: &'static str,
    pub direction: Direction,
}

impl Marshal {
    /// Lets the programs work in turns.
    pub fn measure(&self) -> Result<Vec<Figures>, Box<dyn Error>> {
        let makers = [Maker::Rpcgen, Maker::Tenon];
        let (mut programs, mut figures, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for maker in makers {
            let program = maker.program("marshal").display().to_string();
            let arguments = [self.work, self.direction.name()].map(str::to_owned);
            let command: Vec<String> = [program].into_iter().chain(arguments).collect();
            let (program, said) = Pinned::start(&command, 1)?;
            programs.push(program);
            figures.push(Figures::new(maker.name()));
            bytes.push(said);
        }
        if bytes[0] != bytes[1] {
            return Err(format!("other bytes: {bytes:?}").into());
        }
        for round in 0..ROUNDS {
            for (program, figures) in programs.iter_mut().zip(&mut figures) {
                let picoseconds: f64 = program.ask(&ROUND_NANOSECONDS.to_string())?.parse()?;
                if round > 0 {
                    figures.nanoseconds.push(picoseconds / 1e3);
                }
            }
        }
        Ok(figures)
    }
}
