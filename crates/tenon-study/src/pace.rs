//! The pace of the machine: how fast it works at the moment.
//!
//! Other programs share the processor, its clock changes. So a yardstick stands between the entries that are timed, a
//! little work that is always the same, and what counts is how many yardsticks an entry takes. Parameters that were
//! found an hour ago then fit the machine of this minute.
//!
//! A neighbour on the same core takes more from some work than from other: most from what keeps the core
//! busy, little from what waits for itself. The yardstick is a message as interfaces have it, so that it
//! loses about what messages lose; and only the faster half of the turns is heard.

use crate::cost::enter_yardstick;
use crate::entry::CodecBenchmarks;
use crate::measure::{QuartileSummary, TurnTimings};

/// Entries between one yardstick and the next.
const BETWEEN: usize = 4;

/// The yardsticks on either side that a pace is the median of: one may lie at a bad place.
const NEAR: usize = 2;

/// Puts a yardstick in front of every few of the entries and behind the last.
///
/// # Errors
/// Those of `enter`.
pub fn enter_all<'a, T, E>(
    contests: &mut CodecBenchmarks<'a>,
    all: &'a [T],
    mut enter: impl FnMut(&mut CodecBenchmarks<'a>, &'a T) -> Result<(), E>,
) -> Result<(), E> {
    for some in all.chunks(BETWEEN) {
        enter_yardstick(contests);
        some.iter().try_for_each(|one| enter(contests, one))?;
    }
    enter_yardstick(contests);
    Ok(())
}

/// Returns the timings of those that [`enter_all`] entered, in their order, and how many yardsticks each took.
pub fn in_yardsticks(timings: &[TurnTimings]) -> impl Iterator<Item = (&TurnTimings, f64)> {
    let last = timings.len().saturating_sub(1);
    let all = (0..timings.len()).filter(move |at| !is_yardstick(*at, last));
    all.map(|at| {
        let turns = timings[at].nanoseconds.iter().zip(paces(timings, at));
        let mut turns: Vec<(f64, f64)> = turns.map(|(taken, pace)| (pace, taken / pace)).collect();
        turns.sort_by(|a, b| a.0.total_cmp(&b.0));
        turns.truncate(turns.len().div_ceil(2));
        let ratios = QuartileSummary::of(turns.into_iter().map(|(_, ratio)| ratio));
        (&timings[at], ratios.median)
    })
}

/// Returns the pace of each round, of an entry at a position.
fn paces(timings: &[TurnTimings], at: usize) -> impl Iterator<Item = f64> {
    let step = BETWEEN + 1;
    let last = timings.len() - 1;
    let before = (at - at % step) as isize - ((NEAR - 1) * step) as isize;
    let near = (0..2 * NEAR).map(|number| before + (number * step) as isize);
    let near = near.filter_map(|at| usize::try_from(at).ok());
    let mut near: Vec<&TurnTimings> = near.map(|at| &timings[at.min(last)]).collect();
    near.dedup_by(|a, b| std::ptr::eq(*a, *b));
    let rounds = timings[at].nanoseconds.len();
    (0..rounds).map(move |round| {
        let turns = near.iter().map(|timing| timing.nanoseconds[round]);
        QuartileSummary::of(turns).median
    })
}

/// Nanoseconds that a yardstick took when the machine was fast.
pub fn yardstick(timings: &[TurnTimings]) -> f64 {
    let last = timings.len().saturating_sub(1);
    let yardsticks = (0..timings.len()).filter(|at| is_yardstick(*at, last));
    QuartileSummary::of(yardsticks.map(|at| timings[at].summary().lower)).median
}

fn is_yardstick(at: usize, last: usize) -> bool {
    at.is_multiple_of(BETWEEN + 1) || at == last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(name: &str, nanoseconds: &[f64]) -> TurnTimings {
        TurnTimings {
            name: name.to_owned(),
            nanoseconds: nanoseconds.to_vec(),
        }
    }

    #[test]
    fn a_slow_moment_slows_the_yardstick_too() {
        let yardstick_of = |ns: &[f64]| timing("yardstick", ns);
        let message = |n: f64| timing("message", &[n * 10.0, n * 20.0, n * 10.0]);
        let pace = [10.0, 20.0, 10.0];
        let mut timings = vec![yardstick_of(&pace)];
        timings.extend((1..=4).map(|n| message(f64::from(n))));
        timings.push(yardstick_of(&pace));
        timings.push(message(5.0));
        timings.push(yardstick_of(&pace));
        let ratios = in_yardsticks(&timings).map(|(_, ratio)| ratio);
        assert_eq!(ratios.collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(yardstick(&timings), 10.0);
    }

    #[test]
    fn the_slower_half_and_a_yardstick_at_a_bad_place_are_not_heard() {
        let mut timings = Vec::new();
        for yardstick in [10.0, 10.0, 70.0, 10.0] {
            timings.push(timing("yardstick", &[yardstick, 20.0, yardstick, 30.0]));
            // A neighbour takes more of them than of the yardstick.
            timings.extend((0..4).map(|_| timing("message", &[50.0, 200.0, 50.0, 300.0])));
        }
        timings.push(timing("yardstick", &[10.0, 20.0, 10.0, 30.0]));
        assert!(in_yardsticks(&timings).all(|(_, ratio)| ratio == 5.0));
        assert_eq!(yardstick(&timings), 10.0);
    }
}
