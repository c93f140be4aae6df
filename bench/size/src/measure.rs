//! Rounds in which the engines take turns with messages in a random order.

use std::hint::black_box;
use std::time::Instant;

use tenon::wire::Buffer;
use tenon_bench::stats::Summary;
use tenon_exec::random::Random;

use crate::messages::{Engine, Message};

/// Among how many types the messages are.
pub const POPULATIONS: [usize; 4] = [1, 10, 100, 1000];

const ROUNDS: usize = 21;

/// Messages of a turn: so many that the processor cannot learn their order by heart.
const MESSAGES: usize = 20_000;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into a buffer that is used again.
    Encode,
    /// To an owned value, which is dropped.
    Decode,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Encode, Self::Decode];

    /// Its name in tables and ratios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
        }
    }
}

/// Messages of so many types, one way.
pub struct Row {
    /// How many types.
    pub types: usize,
    /// Which way.
    pub direction: Direction,
    /// Nanoseconds for a message in each round, by engine in the order of [`Engine::ALL`].
    pub figures: [Vec<f64>; 3],
}

impl Row {
    /// Nanoseconds of an engine.
    pub fn time(&self, engine: Engine) -> Summary {
        Summary::of(self.figures[engine as usize].iter().copied())
    }

    /// The time of an engine over that of compiled stubs, round by round.
    pub fn over_compiled(&self, engine: Engine) -> Summary {
        let compiled = &self.figures[Engine::Compiled as usize];
        let pairs = self.figures[engine as usize].iter().zip(compiled);
        Summary::of(pairs.map(|(over, under)| over / under))
    }
}

/// Lets the engines take turns. The same messages come in the same order for all.
pub fn measure(messages: &[Message], types: usize, direction: Direction) -> Row {
    let mut random = Random::new(types as u64);
    // Types from everywhere, so that a few of them are not neighbours in memory.
    let step = messages.len() / types;
    let order = (0..MESSAGES).map(|_| random.below(types as u64) as usize * step);
    let order: Vec<usize> = order.collect();
    let mut figures = [const { Vec::new() }; 3];
    // The first round warms up.
    for round in 0..=ROUNDS {
        for (engine, figures) in Engine::ALL.into_iter().zip(&mut figures) {
            let each = turn(messages, &order, engine, direction);
            if round > 0 {
                figures.push(each);
            }
        }
    }
    Row {
        types,
        direction,
        figures,
    }
}

fn turn(messages: &[Message], order: &[usize], engine: Engine, direction: Direction) -> f64 {
    let mut buffer = Buffer::default();
    let start = Instant::now();
    for at in order {
        let message = black_box(&messages[*at]);
        match direction {
            Direction::Encode => message.encode(engine, &mut buffer),
            Direction::Decode => message.decode(engine),
        }
    }
    start.elapsed().as_nanos() as f64 / order.len() as f64
}
