//! `tenon ping`: procedure 0.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tenon::{CallError, Client, Refused};

use crate::args::PingArgs;
use crate::commands::connect;
use crate::commands::table::{in_micros, micros, percentile};
use crate::failure::Failure;
use crate::output;

pub fn run(args: &PingArgs) -> Result<(), Failure> {
    let versions = match args.program.version {
        Some(version) => vec![version],
        None => versions(args)?,
    };
    for version in versions {
        let times = ping(args, version)?;
        report(args, version, &times)?;
    }
    Ok(())
}

fn client(args: &PingArgs, version: u32) -> Result<Client, Failure> {
    connect::client(&args.address, &args.options, args.program.program, version)
}

fn null(client: &Client) -> Result<(), CallError> {
    client.call(0, |_| Ok(()), |_| Ok(()))
}

/// Asks for a version that nobody has; the refusal says which there are.
fn versions(args: &PingArgs) -> Result<Vec<u32>, Failure> {
    const NO_VERSION: u32 = u32::MAX;
    match null(&client(args, NO_VERSION)?) {
        Ok(()) => Ok(vec![NO_VERSION]),
        Err(CallError::Refused(Refused::ProgramMismatch { low, high })) if high - low < 64 => {
            answering(args, low, high)
        }
        Err(error) => Err(Failure::new(error)),
    }
}

/// The range may have holes.
fn answering(args: &PingArgs, low: u32, high: u32) -> Result<Vec<u32>, Failure> {
    let mut versions = Vec::new();
    for version in low..=high {
        match null(&client(args, version)?) {
            Ok(()) => versions.push(version),
            Err(CallError::Refused(Refused::ProgramMismatch { .. })) => {}
            Err(error) => return Err(Failure::new(error)),
        }
    }
    Ok(versions)
}

fn ping(args: &PingArgs, version: u32) -> Result<Vec<Duration>, Failure> {
    let client = client(args, version)?;
    let mut times = Vec::new();
    for _ in 0..args.count {
        let start = Instant::now();
        null(&client).map_err(Failure::new)?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}

fn report(args: &PingArgs, version: u32, sorted: &[Duration]) -> Result<(), Failure> {
    let (median, p99) = (percentile(sorted, 50), percentile(sorted, 99));
    if args.json {
        return output::print_json(&as_json(args, version, median, p99), true);
    }
    let program = args.program.program;
    let calls = match sorted.len() {
        1 => format!("{} us", micros(median)),
        count => format!(
            "{count} calls, median {} us, p99 {} us",
            micros(median),
            micros(p99)
        ),
    };
    output::print(&format!(
        "program {program} version {version} answers: {calls}\n"
    ))
}

fn as_json(args: &PingArgs, version: u32, median: Duration, p99: Duration) -> Json {
    json!({
        "address": args.address,
        "program": args.program.program,
        "version": version,
        "calls": args.count,
        "median_us": in_micros(median),
        "p99_us": in_micros(p99),
    })
}
