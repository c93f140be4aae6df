//! The measuring core: times pieces of work that may take less than a nanosecond.
//!
//! A machine is never quiet: its clock changes, other programs run on it. So the entries that are to be compared take
//! turns, many short ones each, and what counts is the median of the turns, or of the ratios of two that were taken one
//! after the other.
//!
//! Nor is any place in memory like all others: a processor that compares but the last bits of
//! addresses takes a load for one of what was just stored 4 KiB away, and waits. So turns are taken
//! at [`PLACES`], one after the other.
//!
//! ```
//! use tenon_study::measure::{BenchmarkGroup, MeasurementEffort};
//!
//! let numbers: Vec<u64> = (0..1000).collect();
//! let mut group = BenchmarkGroup::new();
//! group.enter("sum", || numbers.iter().sum::<u64>());
//! group.enter("product", || numbers.iter().product::<u64>());
//! let timings = group.run(MeasurementEffort::QUICK, |_| {});
//! let ratio = timings[1].over(&timings[0]);
//! println!("{} ns, {} as much", timings[0].summary().median, ratio.median);
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Number and length of the turns of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasurementEffort {
    /// Turns that each entry takes.
    pub rounds: usize,
    /// Length of one turn, unless doing the work once takes longer.
    pub turn: Duration,
}

impl MeasurementEffort {
    /// Enough for figures that are to be believed. A turn is so short that the scheduler seldom
    /// interrupts one.
    pub const FULL: Self = Self {
        rounds: 101,
        turn: Duration::from_micros(400),
    };

    /// Enough to see that it works.
    pub const QUICK: Self = Self {
        rounds: 5,
        turn: Duration::from_micros(20),
    };
}

/// The number of places at which turns are taken: the stack ends elsewhere in each, and so does what work moves that
/// [asks for its place](BenchmarkGroup::enter_placed).
pub const PLACES: usize = 16;

/// Bytes from one place to the next. All places are within a page or a little more, at ever other
/// positions in their line of cache.
pub const STEP: usize = 264;

/// Pieces of work that take turns.
#[derive(Default)]
pub struct BenchmarkGroup<'a> {
    contestants: Vec<BenchmarkEntry<'a>>,
}

struct BenchmarkEntry<'a> {
    name: String,
    work: TimedWork<'a>,
}

/// Takes a turn, and tells how long that was.
type TimedWork<'a> = Box<dyn FnMut(BenchmarkTurn) -> Duration + 'a>;

/// One turn.
#[derive(Clone, Copy)]
struct BenchmarkTurn {
    /// Index of the place.
    place: usize,
    /// Repetitions of the work.
    times: u64,
}

impl<'a> BenchmarkGroup<'a> {
    /// Creates a group without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry. What `work` returns is dropped, in the time that is measured, and
    /// computed in earnest. What it reads from outside the optimiser may know: put it through
    /// [`black_box`] where that matters.
    pub fn enter<T>(&mut self, name: &str, mut work: impl FnMut() -> T + 'a) {
        self.enter_placed(name, (), |(), _| {}, move |()| work());
    }

    /// Adds an entry with `work` on something: `put` puts that to one of [`PLACES`] before each turn, out of the time
    /// that is measured.
    pub fn enter_placed<S: 'a, T>(
        &mut self,
        name: &str,
        mut of: S,
        mut put: impl FnMut(&mut S, usize) + 'a,
        mut work: impl FnMut(&mut S) -> T + 'a,
    ) {
        let repeated = move |turn: BenchmarkTurn| {
            put(&mut of, turn.place);
            let start = Instant::now();
            for _ in 0..turn.times {
                let done = work(&mut of);
                // Not moved, as what is large would have to be.
                black_box(&done);
            }
            start.elapsed()
        };
        self.push(name.to_owned(), Box::new(repeated));
    }

    /// Adds an entry with `work` that makes something. That stays where it was made, as if the caller had asked for it
    /// there, until the next one is made; and is dropped when two more are: what was just written cannot always be read
    /// at once, and an allocator looks at what it is given back. No other program moves or gives back what is that new.
    pub fn enter_making<T>(&mut self, name: &str, mut work: impl FnMut() -> T + 'a) {
        let repeated = move |turn: BenchmarkTurn| {
            let (mut before, mut between) = (None, None);
            let start = Instant::now();
            for _ in 0..turn.times / 2 {
                let first = work();
                black_box(&first);
                let second = work();
                black_box(&second);
                before = Some(first);
                between = Some(second);
            }
            if turn.times % 2 == 1 {
                before = Some(work());
            }
            black_box((&before, &between));
            start.elapsed()
        };
        self.push(name.to_owned(), Box::new(repeated));
    }

    /// Apart from `enter`, which is compiled for each of hundreds of stubs.
    fn push(&mut self, name: String, work: TimedWork<'a>) {
        self.contestants.push(BenchmarkEntry { name, work });
    }

    /// Lets all take their turns. `progress` hears after each round which part of all rounds is
    /// done, up to 1. The timings come in the order of entry.
    pub fn run(self, effort: MeasurementEffort, mut progress: impl FnMut(f64)) -> Vec<TurnTimings> {
        let mut turns: Vec<EntryProgress<'a>> = self
            .contestants
            .into_iter()
            .map(|contestant| EntryProgress::new(contestant, effort.turn))
            .collect();
        for round in 0..effort.rounds {
            // No entry always comes behind the same one, which leaves its traces in the caches.
            let first = round % turns.len().max(1);
            let (before, from) = turns.split_at_mut(first);
            let all = from.iter_mut().chain(before);
            all.for_each(|turns| turns.take(round % PLACES));
            progress((round + 1) as f64 / effort.rounds as f64);
        }
        turns.into_iter().map(|turns| turns.timing).collect()
    }
}

/// An entry and what it has done so far.
struct EntryProgress<'a> {
    work: TimedWork<'a>,
    /// Repetitions of the work in one turn.
    times: u64,
    timing: TurnTimings,
}

impl<'a> EntryProgress<'a> {
    /// Warms the entry up, and finds out how often it fits into a turn.
    fn new(contestant: BenchmarkEntry<'a>, turn: Duration) -> Self {
        let BenchmarkEntry { name, mut work } = contestant;
        let mut times = 1;
        let mut taken = work(BenchmarkTurn { place: 0, times });
        while taken < turn && times < 1 << 40 {
            times *= 2;
            taken = work(BenchmarkTurn { place: 0, times });
        }
        // Once is at least done; a turn of no length at all is none of the clock's business.
        let share = turn.as_secs_f64() / taken.as_secs_f64().max(1e-9);
        Self {
            work,
            times: ((times as f64 * share) as u64).clamp(1, times),
            timing: TurnTimings {
                name,
                nanoseconds: Vec::new(),
            },
        }
    }

    fn take(&mut self, place: usize) {
        let times = self.times;
        let taken = deeper(place, &mut self.work, BenchmarkTurn { place, times });
        let each = taken.as_nanos() as f64 / self.times as f64;
        self.timing.nanoseconds.push(each);
    }
}

/// Takes a turn on a stack that is so many steps deeper.
#[inline(never)]
fn deeper(steps: usize, work: &mut TimedWork<'_>, turn: BenchmarkTurn) -> Duration {
    let mut step = [0_u8; STEP];
    black_box(&mut step);
    let taken = match steps {
        0 => work(turn),
        steps => deeper(steps - 1, work, turn),
    };
    // It is there until now, so that nothing takes its place.
    black_box(&mut step);
    taken
}

/// Times of the turns of one entry.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnTimings {
    /// Name of the entry.
    pub name: String,
    /// Nanoseconds for doing the work once, of each turn.
    pub nanoseconds: Vec<f64>,
}

impl TurnTimings {
    /// Returns the median turn, and the spread.
    ///
    /// # Panics
    /// If there was no round.
    pub fn summary(&self) -> QuartileSummary {
        QuartileSummary::of(self.nanoseconds.iter().copied())
    }

    /// Returns the ratio of each turn to that of `other` in the same round: above 1 the other is faster.
    ///
    /// # Panics
    /// If there was no round.
    pub fn over(&self, other: &Self) -> QuartileSummary {
        let turns = self.nanoseconds.iter().zip(&other.nanoseconds);
        QuartileSummary::of(turns.map(|(own, other)| own / other))
    }
}

/// The middle of some values, and how far they spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuartileSummary {
    /// As many are lower as are higher.
    pub median: f64,
    /// A quarter is lower.
    pub lower: f64,
    /// A quarter is higher.
    pub upper: f64,
}

impl QuartileSummary {
    /// Returns the summary of at least one value.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |quarters: usize| sorted[(sorted.len() - 1) * quarters / 4];
        Self {
            median: at(2),
            lower: at(1),
            upper: at(3),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_middle_and_the_quarters() {
        let summary = QuartileSummary::of([9.0, 1.0, 4.0, 2.0, 7.0]);
        let expected = QuartileSummary {
            median: 4.0,
            lower: 2.0,
            upper: 7.0,
        };
        assert_eq!(summary, expected);
        assert_eq!(QuartileSummary::of([3.0]).upper, 3.0);
    }

    #[test]
    fn a_ratio_is_that_of_turns_of_one_round() {
        let timing = |nanoseconds: &[f64]| TurnTimings {
            name: String::new(),
            nanoseconds: nanoseconds.to_vec(),
        };
        // The machine was ten times slower in the second round.
        let ratio = timing(&[2.0, 20.0, 2.0]).over(&timing(&[1.0, 10.0, 1.0]));
        assert_eq!((ratio.lower, ratio.upper), (2.0, 2.0));
    }

    #[test]
    fn contestants_take_turns_and_each_comes_first_now_and_then() {
        let order = RefCell::new(Vec::new());
        let mut contest = BenchmarkGroup::new();
        for name in ["a", "b"] {
            let order = &order;
            contest.enter(name, move || order.borrow_mut().push(name));
        }
        let effort = MeasurementEffort {
            rounds: 2,
            turn: Duration::ZERO,
        };
        let mut parts = Vec::new();
        let timings = contest.run(effort, |part| parts.push(part));
        // Each warms up once.
        assert_eq!(*order.borrow(), ["a", "b", "a", "b", "b", "a"]);
        assert_eq!(parts, [0.5, 1.0]);
        let taken = timings.iter().map(|timing| timing.nanoseconds.len());
        assert_eq!(taken.collect::<Vec<_>>(), [2, 2]);
    }

    #[test]
    fn each_turn_is_at_the_next_place_of_both() {
        let places = RefCell::new(Vec::new());
        let mut contest = BenchmarkGroup::new();
        let put = |place: &mut usize, to| *place = to;
        contest.enter_placed("work", 0, put, |place| {
            let on_the_stack = 0_u8;
            let at = std::ptr::from_ref(black_box(&on_the_stack)).addr();
            places.borrow_mut().push((*place, at));
        });
        let effort = MeasurementEffort {
            rounds: PLACES + 1,
            turn: Duration::ZERO,
        };
        contest.run(effort, |_| {});
        let taken = places.into_inner().split_off(1);
        let expected = (0..PLACES).chain([0]);
        assert!(taken.iter().map(|(place, _)| *place).eq(expected));
        for pair in taken[..PLACES].windows(2) {
            assert!(pair[0].1.abs_diff(pair[1].1) >= STEP);
        }
    }

    #[test]
    fn nobody_takes_no_time() {
        assert_eq!(
            BenchmarkGroup::new().run(MeasurementEffort::QUICK, |_| {}),
            []
        );
    }
}
