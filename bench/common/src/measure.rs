//! How a client measures. It prints `ready` when the answer of a first call is checked; then, for
//! each number of milliseconds on its standard input, it calls for so long and prints how many
//! calls it made, how many nanoseconds that took, and the median and the 99th percentile of the
//! calls' times in nanoseconds. A call's time goes from its start to its answer, however many
//! others are in flight.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};

/// Calls that are remembered of one round, at most.
const SAMPLES_MAX: usize = 1 << 20;

/// Serves rounds until standard input ends, one call at a time. `call` makes one call and checks its
/// answer.
///
/// # Errors
/// A call fails, or a round cannot be read or answered.
pub fn serve_rounds<E>(mut call: impl FnMut() -> Result<(), E>) -> Result<(), E>
where
    E: From<io::Error>,
{
    call()?;
    let mut rounds = Rounds::begin()?;
    while let Some(mut round) = rounds.next_round()? {
        let mut before = round.start;
        while round.goes_on(before) {
            call()?;
            before = round.record(before);
        }
        rounds.answer(round)?;
    }
    Ok(())
}

/// Serves rounds as [`serve_rounds`] does, with so many calls in flight, which are answered in
/// order: `start` starts a call, `finish` waits for one and checks its answer. When half of them
/// are answered, as many are started anew, while what `together` returns is held.
///
/// # Errors
/// As [`serve_rounds`].
pub fn serve_pipelined<P, B, E>(
    in_flight: usize,
    together: impl Fn() -> B,
    mut start: impl FnMut() -> Result<P, E>,
    mut finish: impl FnMut(P) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<io::Error>,
{
    finish(start()?)?;
    let mut rounds = Rounds::begin()?;
    let mut pending = VecDeque::with_capacity(in_flight);
    while let Some(mut round) = rounds.next_round()? {
        let mut now = round.start;
        loop {
            if pending.len() <= in_flight / 2 {
                let _batch = together();
                while pending.len() < in_flight && round.goes_on(now) {
                    pending.push_back((now, start()?));
                }
            }
            let Some((started, oldest)) = pending.pop_front() else {
                break;
            };
            finish(oldest)?;
            now = round.record(started);
        }
        rounds.answer(round)?;
    }
    Ok(())
}

/// Serves rounds as [`serve_rounds`] does, with so many calls in flight.
///
/// # Errors
/// As [`serve_rounds`].
pub async fn serve_rounds_async<E>(
    in_flight: usize,
    call: impl AsyncFn() -> Result<(), E>,
) -> Result<(), E>
where
    E: From<io::Error>,
{
    call().await?;
    let mut rounds = Rounds::begin()?;
    while let Some(round) = rounds.next_round()? {
        let round = RefCell::new(round);
        let one_after_the_other = async || -> Result<(), E> {
            let mut before = round.borrow().start;
            while round.borrow().goes_on(before) {
                call().await?;
                before = round.borrow_mut().record(before);
            }
            Ok(())
        };
        match in_flight {
            1 => one_after_the_other().await?,
            _ => {
                let mut all: FuturesUnordered<_> =
                    (0..in_flight).map(|_| one_after_the_other()).collect();
                while let Some(outcome) = all.next().await {
                    outcome?;
                }
            }
        }
        rounds.answer(round.into_inner())?;
    }
    Ok(())
}

/// The rounds that standard input asks for.
#[derive(Debug)]
pub struct Rounds {
    /// Kept from one round to the next.
    samples: Vec<u64>,
}

/// One of them: when it began, how long it lasts, and the times of its calls.
#[derive(Debug)]
pub struct Round {
    start: Instant,
    length: Duration,
    samples: Vec<u64>,
}

impl Rounds {
    /// Prints `ready`: the answer of a first call is checked.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn begin() -> io::Result<Rounds> {
        writeln!(io::stdout(), "ready")?;
        let samples = Vec::with_capacity(SAMPLES_MAX);
        Ok(Rounds { samples })
    }

    /// Waits for the next round; there is none when standard input has ended.
    ///
    /// # Errors
    /// Standard input has no number of milliseconds.
    pub fn next_round(&mut self) -> io::Result<Option<Round>> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let milliseconds = line.trim().parse().map_err(io::Error::other)?;
        Ok(Some(Round {
            start: Instant::now(),
            length: Duration::from_millis(milliseconds),
            samples: std::mem::take(&mut self.samples),
        }))
    }

    /// Prints what was measured, and keeps the memory for the next round.
    ///
    /// # Errors
    /// No call was made, or standard output is closed.
    pub fn answer(&mut self, round: Round) -> io::Result<()> {
        let elapsed = round.start.elapsed().as_nanos();
        let mut samples = round.samples;
        if samples.is_empty() {
            return Err(io::Error::other("a round without a call"));
        }
        samples.sort_unstable();
        let at = |percent: usize| samples[samples.len() * percent / 100];
        let (calls, median, high) = (samples.len(), at(50), at(99));
        writeln!(io::stdout(), "{calls} {elapsed} {median} {high}")?;
        samples.clear();
        self.samples = samples;
        Ok(())
    }
}

impl Round {
    /// When it began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Begins it now, as threads that call in it had to be started first.
    pub fn restart(&mut self) {
        self.start = Instant::now();
    }

    /// Returns a round of one of several threads that call at the same time: it begins and ends with this one.
    pub fn of_thread(&self) -> Round {
        Round {
            start: self.start,
            length: self.length,
            samples: Vec::new(),
        }
    }

    /// Adds the calls of a thread.
    pub fn add(&mut self, thread: Round) {
        self.samples.extend(thread.samples);
    }

    /// Whether another call is to be made at `now`: until the time is over, but one at least.
    pub fn goes_on(&self, now: Instant) -> bool {
        let is_time = now - self.start < self.length || self.samples.is_empty();
        is_time && self.samples.len() < SAMPLES_MAX
    }

    /// Remembers the call that began at `start` and ends now, and says when that is.
    pub fn record(&mut self, start: Instant) -> Instant {
        let now = Instant::now();
        self.samples.push((now - start).as_nanos() as u64);
        now
    }
}
