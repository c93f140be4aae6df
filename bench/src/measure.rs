//! How a client measures. It prints `ready` when the answer of a first call is checked; then, for
//! each number of milliseconds on its standard input, it calls for so long and prints how many
//! calls it made, their median and their 99th percentile in nanoseconds.

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

/// Calls that are remembered of one round, at most.
const SAMPLES_MAX: usize = 1 << 20;

/// Serves rounds until standard input ends. `call` makes one call and checks its answer.
///
/// # Errors
/// A call fails, or a round cannot be read or answered.
pub fn serve_rounds<E>(mut call: impl FnMut() -> Result<(), E>) -> Result<(), E>
where
    E: From<io::Error>,
{
    call()?;
    let mut output = io::stdout().lock();
    writeln!(output, "ready")?;
    let mut samples = Vec::with_capacity(SAMPLES_MAX);
    for line in io::stdin().lock().lines() {
        let milliseconds = line?.trim().parse().map_err(io::Error::other)?;
        samples.clear();
        round(&mut samples, Duration::from_millis(milliseconds), &mut call)?;
        samples.sort_unstable();
        let (median, high) = (
            samples[samples.len() / 2],
            samples[samples.len() * 99 / 100],
        );
        writeln!(output, "{} {median} {high}", samples.len())?;
    }
    Ok(())
}

/// Calls until `length` is over, at least once.
fn round<E>(
    samples: &mut Vec<u64>,
    length: Duration,
    call: &mut impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let start = Instant::now();
    let mut before = start;
    loop {
        call()?;
        let after = Instant::now();
        samples.push((after - before).as_nanos() as u64);
        before = after;
        if after - start >= length || samples.len() == SAMPLES_MAX {
            return Ok(());
        }
    }
}
