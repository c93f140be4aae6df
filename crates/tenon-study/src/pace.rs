//! The pace of the machine: how fast it works at the moment.
//!
//! Others share the processor, its clock changes. So between those who are timed a yardstick is, a
//! little work that is always the same, and what counts is how many yardsticks one takes. Parameters
//! that were found an hour ago then fit the machine of this minute.

use std::hint::black_box;

use crate::entry::Contests;
use crate::measure::{Contest, Summary, Timing};

/// Contestants between one yardstick and the next.
const BETWEEN: usize = 6;

/// Numbers that the yardstick moves.
const NUMBERS: usize = 64;

/// Puts a yardstick in front of every few of those who enter and behind the last.
///
/// # Errors
/// Those of `enter`.
pub fn enter_all<'a, T, E>(
    contests: &mut Contests<'a>,
    all: &'a [T],
    mut enter: impl FnMut(&mut Contests<'a>, &'a T) -> Result<(), E>,
) -> Result<(), E> {
    for some in all.chunks(BETWEEN) {
        enter_yardstick(&mut contests.encode);
        enter_yardstick(&mut contests.decode);
        some.iter().try_for_each(|one| enter(contests, one))?;
    }
    enter_yardstick(&mut contests.encode);
    enter_yardstick(&mut contests.decode);
    Ok(())
}

fn enter_yardstick(contest: &mut Contest<'_>) {
    let numbers = [0x0102_0304_u32; NUMBERS];
    let mut bytes = [0; NUMBERS];
    contest.enter("yardstick", move || {
        for (to, number) in bytes.iter_mut().zip(&numbers) {
            *to = black_box(*number).swap_bytes();
        }
        bytes[NUMBERS - 1]
    });
}

/// The timings of those that [`enter_all`] entered, in their order, and how many yardsticks each
/// took.
pub fn in_yardsticks(timings: &[Timing]) -> impl Iterator<Item = (&Timing, f64)> {
    let step = BETWEEN + 1;
    let last = timings.len().saturating_sub(1);
    let all = (0..timings.len()).filter(move |at| !is_yardstick(*at, last));
    all.map(move |at| {
        let before = &timings[at - at % step].nanoseconds;
        let behind = &timings[(at - at % step + step).min(last)].nanoseconds;
        let paces = before
            .iter()
            .zip(behind)
            .map(|(before, behind)| (before + behind) / 2.0);
        let turns = timings[at].nanoseconds.iter().zip(paces);
        let ratios = Summary::of(turns.map(|(taken, pace)| taken / pace));
        (&timings[at], ratios.median)
    })
}

/// Nanoseconds that a yardstick took when the machine was fast.
pub fn yardstick(timings: &[Timing]) -> f64 {
    let last = timings.len().saturating_sub(1);
    let yardsticks = (0..timings.len()).filter(|at| is_yardstick(*at, last));
    let paces = yardsticks.map(|at| timings[at].summary().lower);
    paces.fold(f64::INFINITY, f64::min)
}

fn is_yardstick(at: usize, last: usize) -> bool {
    at.is_multiple_of(BETWEEN + 1) || at == last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(name: &str, nanoseconds: &[f64]) -> Timing {
        Timing {
            name: name.to_owned(),
            nanoseconds: nanoseconds.to_vec(),
        }
    }

    #[test]
    fn a_slow_moment_slows_the_yardstick_too() {
        let one = |ns: &[f64]| timing("yardstick", ns);
        let mut timings = vec![one(&[10.0, 20.0, 10.0])];
        timings.extend((1..=6).map(|n| {
            let ns = f64::from(n);
            timing("message", &[ns * 10.0, ns * 20.0, ns * 11.0])
        }));
        timings.push(one(&[10.0, 20.0, 10.0]));
        timings.push(timing("message", &[70.0, 140.0, 70.0]));
        timings.push(one(&[10.0, 20.0, 10.0]));
        let ratios = in_yardsticks(&timings).map(|(_, ratio)| ratio);
        assert_eq!(
            ratios.collect::<Vec<_>>(),
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
        );
        assert_eq!(yardstick(&timings), 10.0);
    }
}
