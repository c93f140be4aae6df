//! Rounds in which the contestants take turns.

use std::time::{Duration, Instant};

use tenon_bench::stats::Summary;

use crate::entrant::{Entrant, Timed};
use crate::places::elsewhere;
use crate::work::Work;

/// How long a contestant works in one round, unless it takes longer to do it once: so short that
/// the scheduler seldom interrupts it.
const ROUND: Duration = Duration::from_micros(400);

/// How long it works before.
const WARM: Duration = Duration::from_millis(1);

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into a reused buffer.
    Encode,
    /// To an owned value.
    Decode,
    /// To a view that borrows from the bytes.
    View,
}

impl Direction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Encode, Self::Decode, Self::View];

    /// Its name in tables and ratios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::View => "view",
        }
    }
}

/// One work in one direction.
pub struct Row {
    /// The work.
    pub work: String,
    /// Which way.
    pub direction: Direction,
    /// Nanoseconds of each contestant in each round.
    pub figures: Vec<(&'static str, Vec<f64>)>,
}

impl Row {
    /// The rounds of one contestant.
    pub fn of(&self, name: &str) -> Option<&[f64]> {
        let found = self.figures.iter().find(|(who, _)| *who == name);
        found.map(|(_, rounds)| &rounds[..])
    }

    /// Adds rounds of the same contestants.
    pub fn extend(&mut self, further: Self) {
        for ((_, rounds), (_, more)) in self.figures.iter_mut().zip(further.figures) {
            rounds.extend(more);
        }
    }

    /// Nanoseconds of one contestant.
    pub fn time(&self, name: &str) -> Option<Summary> {
        self.of(name)
            .map(|rounds| Summary::of(rounds.iter().copied()))
    }

    /// The time of `over` in each round over that of `under`.
    pub fn ratio(&self, over: &str, under: &str) -> Option<Summary> {
        let pairs = self.of(over)?.iter().zip(self.of(under)?);
        Some(Summary::of(pairs.map(|(over, under)| over / under)))
    }
}

/// Measures all directions of a work, a round each.
pub fn measure(work: &mut Work) -> [Row; 3] {
    Direction::ALL.map(|direction| {
        let turns: Vec<Turn<'_>> = work
            .entrants
            .iter_mut()
            .filter_map(|entrant| Turn::new(entrant, direction))
            .collect();
        let figures = turns.into_iter();
        Row {
            work: work.name.clone(),
            direction,
            figures: figures.map(|turn| (turn.name, vec![turn.take()])).collect(),
        }
    })
}

/// A contestant who takes turns with others.
struct Turn<'a> {
    name: &'static str,
    timed: &'a mut Timed,
    times: u64,
}

impl<'a> Turn<'a> {
    /// Warms the contestant up and finds out how often it fits into a round.
    fn new(entrant: &'a mut Entrant, direction: Direction) -> Option<Self> {
        let timed = match direction {
            Direction::Encode => entrant.encode.as_mut()?,
            Direction::Decode => entrant.decode.as_mut()?,
            Direction::View => entrant.view.as_mut()?,
        };
        elsewhere();
        let mut times = 1;
        while time(timed, times) < ROUND {
            times *= 2;
        }
        Some(Self {
            name: entrant.name,
            timed,
            times,
        })
    }

    /// It works for a moment before the clock runs: what the contestants before have pushed out of the cache
    /// comes back, as it is there in a program that goes on with the same. With what is large once is not
    /// enough: a contestant behind one with the same value was ahead by a third.
    fn take(self) -> f64 {
        let warm = Instant::now();
        while warm.elapsed() < WARM {
            (self.timed)(1);
        }
        let elapsed = time(self.timed, self.times);
        elapsed.as_nanos() as f64 / self.times as f64
    }
}

fn time(timed: &mut Timed, times: u64) -> Duration {
    let start = Instant::now();
    timed(times);
    start.elapsed()
}
