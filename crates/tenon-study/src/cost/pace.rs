//! The pace of the machine: how fast it works at the moment.
//!
//! Others share the processor, its clock changes. So between the messages that are timed a yardstick
//! is, a little work that is always the same, and what counts is how many yardsticks a message
//! takes. Parameters that were found an hour ago then fit the machine of this minute.

use std::hint::black_box;

use super::entrant::Contests;
use crate::measure::{Contest, Summary, Timing};

/// Messages between one yardstick and the next.
const BETWEEN: usize = 6;

/// Numbers that the yardstick moves.
const NUMBERS: usize = 64;

/// Puts a yardstick in front of every few messages and behind the last. `enter` enters one message.
///
/// # Errors
/// Those of `enter`.
pub fn enter_all<'a, T, E>(
    contests: &mut Contests<'a>,
    messages: &'a [T],
    mut enter: impl FnMut(&mut Contests<'a>, &'a T) -> Result<(), E>,
) -> Result<(), E> {
    for some in messages.chunks(BETWEEN) {
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

/// How many yardsticks each message took, in the order in which they were entered, and how long a
/// yardstick was.
pub fn in_yardsticks(timings: &[Timing]) -> (Vec<f64>, f64) {
    let step = BETWEEN + 1;
    let last = timings.len().saturating_sub(1);
    let is_yardstick = |at: usize| at.is_multiple_of(step) || at == last;
    let messages = (0..timings.len()).filter(|at| !is_yardstick(*at));
    let ratios = messages.map(|at| {
        let before = &timings[at - at % step].nanoseconds;
        let behind = &timings[(at - at % step + step).min(last)].nanoseconds;
        let paces = before
            .iter()
            .zip(behind)
            .map(|(before, behind)| (before + behind) / 2.0);
        let turns = timings[at].nanoseconds.iter().zip(paces);
        Summary::of(turns.map(|(taken, pace)| taken / pace)).median
    });
    let yardsticks = (0..timings.len()).filter(|at| is_yardstick(*at));
    let paces = yardsticks.map(|at| timings[at].summary().lower);
    let pace = paces.fold(f64::INFINITY, f64::min);
    (ratios.collect(), pace)
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
        let yardstick = |ns: &[f64]| timing("yardstick", ns);
        let mut timings = vec![yardstick(&[10.0, 20.0, 10.0])];
        timings.extend((1..=6).map(|n| {
            let ns = f64::from(n);
            timing("message", &[ns * 10.0, ns * 20.0, ns * 11.0])
        }));
        timings.push(yardstick(&[10.0, 20.0, 10.0]));
        timings.push(timing("message", &[70.0, 140.0, 70.0]));
        timings.push(yardstick(&[10.0, 20.0, 10.0]));
        let (ratios, pace) = in_yardsticks(&timings);
        assert_eq!(ratios, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(pace, 10.0);
    }
}
