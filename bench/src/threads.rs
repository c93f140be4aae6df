//! Rounds in which many threads call at the same time.

use std::error::Error;
use std::io;
use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};

use tenon_bench_common::measure::{Round, Rounds};

/// How a thread's calls end.
pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Serves rounds until standard input ends: each of the callers makes one call after the other, by a thread of its
/// own.
///
/// # Errors
/// A call fails, or a round cannot be read or answered.
pub fn serve_rounds_of_threads<C>(mut callers: Vec<C>) -> Outcome
where
    C: FnMut() -> Outcome + Send,
{
    for (index, call) in callers.iter_mut().enumerate() {
        call().map_err(|error| of_thread(index, error.as_ref()))?;
    }
    let mut rounds = Rounds::begin()?;
    while let Some(mut round) = rounds.next_round()? {
        call_by_threads(&mut callers, &mut round)?;
        rounds.answer(round)?;
    }
    Ok(())
}

/// Begins when all threads are there.
fn call_by_threads<C>(callers: &mut [C], round: &mut Round) -> Outcome
where
    C: FnMut() -> Outcome + Send,
{
    let barrier = &Barrier::new(callers.len() + 1);
    thread::scope(|scope| {
        let spawn = |call| {
            let calls = round.of_thread();
            scope.spawn(move || call_repeatedly(call, calls, barrier))
        };
        let threads: Vec<_> = callers.iter_mut().map(spawn).collect();
        round.restart();
        barrier.wait();
        // All have ended before the first is looked at.
        let ended: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        for (index, calls) in ended.into_iter().enumerate() {
            let calls = calls.map_err(|_| format!("thread {} has panicked", index + 1))?;
            round.add(calls.map_err(|error| of_thread(index, error.as_ref()))?);
        }
        Ok(())
    })
}

fn call_repeatedly(
    call: &mut (impl FnMut() -> Outcome + Send),
    mut calls: Round,
    barrier: &Barrier,
) -> Outcome<Round> {
    barrier.wait();
    calls.restart();
    let mut before = calls.start();
    while calls.goes_on(before) {
        call()?;
        before = calls.record(before);
    }
    Ok(calls)
}

fn of_thread(index: usize, error: &dyn Error) -> io::Error {
    io::Error::other(format!("thread {}: {error}", index + 1))
}
