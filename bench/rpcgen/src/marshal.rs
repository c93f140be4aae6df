//! Marshalling alone, on memory streams.

use std::error::Error;

use tenon_bench::contestant::Pinned;

use crate::Maker;
use crate::row::CodecStats;

/// Rounds that each program works, in turns. The first, in which it finds out how often it fits
/// into a round, does not count.
const ROUNDS: usize = 32;

/// How long a round takes.
const ROUND_NANOSECONDS: u64 = 2_000_000;

/// Who only takes the blocks of memory that decoding takes, and gives them back.
pub const MALLOC: &str = "malloc";

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
    /// Whether the values lie in many blocks of memory, which take their time with any decoder.
    pub fn is_nested(&self) -> bool {
        self.work.starts_with("nested")
    }

    /// Who takes part, whose program that is, and what it does.
    fn contestants(&self) -> Vec<(&'static str, Maker, &'static str)> {
        let makers = [Maker::Rpcgen, Maker::Tenon];
        let mut contestants: Vec<_> = makers
            .map(|maker| (maker.name(), maker, self.direction.name()))
            .into();
        if self.is_nested() && self.direction == Direction::Decode {
            contestants.push((MALLOC, Maker::Tenon, "blocks"));
        }
        contestants
    }

    /// Lets the programs work in turns.
    pub fn measure(&self) -> Result<Vec<CodecStats>, Box<dyn Error>> {
        let (mut programs, mut figures, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for (name, maker, operation) in self.contestants() {
            let program = maker.program("marshal").display().to_string();
            let arguments = [self.work, operation].map(str::to_owned);
            let command: Vec<String> = [program].into_iter().chain(arguments).collect();
            let (program, said) = Pinned::start(&command, 1)?;
            programs.push(program);
            figures.push(CodecStats::new(name));
            bytes.push(said);
        }
        if bytes.iter().any(|said| *said != bytes[0]) {
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
