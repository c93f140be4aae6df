//! `tenon ping`: procedure 0.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tenon::lean::BindRefusal;
use tenon::rpcbind::{Registration, Rpcbind, RpcbindError};
use tenon::{
    Address, BindError, CallError, ChannelOptions, Client, ConnectError, Protocol, Refused,
    WaitCounters,
};

use crate::args::PingArgs;
use crate::commands::connect;
use crate::commands::table::{in_micros, micros, percentile};
use crate::failure::CommandFailure;
use crate::interrupt::run_until_interrupted;
use crate::output;

pub fn run(args: PingArgs) -> Result<(), CommandFailure> {
    let target = Arc::new(PingTarget {
        address: connect::address(&args.address)?,
        args,
        measured: Mutex::default(),
    });
    let pinging = Arc::clone(&target);
    match run_until_interrupted(move || pinging.ping_all())? {
        Some(outcome) => outcome,
        None if target.report(PingEnd::Interrupted)? => Ok(()),
        None => Err(CommandFailure::new(
            "interrupted before a call was answered",
        )),
    }
}

/// The server that is called, how, and what was measured so far.
struct PingTarget {
    address: Address,
    args: PingArgs,
    /// The times of the version that is being called.
    measured: Mutex<Option<VersionTimes>>,
}

/// Times of the calls of one version.
struct VersionTimes {
    version: u32,
    client: Client,
    times: Vec<Duration>,
}

/// The reason why there are no more calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PingEnd {
    AllAnswered,
    Failed,
    Interrupted,
}

impl PingTarget {
    fn client(&self, version: u32) -> Result<Client, CommandFailure> {
        let (options, program) = (&self.args.options, self.args.program.program);
        connect::client(&self.address, options, program, version)
    }

    fn failure(&self, error: &CallError) -> CommandFailure {
        connect::failure(&self.address, error)
    }

    fn ping_all(&self) -> Result<(), CommandFailure> {
        let versions = match self.args.program.version {
            Some(version) => vec![version],
            None => self.versions()?,
        };
        versions.into_iter().try_for_each(|version| {
            let pinged = self.ping(version);
            let ending = if pinged.is_ok() {
                PingEnd::AllAnswered
            } else {
                PingEnd::Failed
            };
            self.report(ending)?;
            pinged
        })
    }

    fn measured(&self) -> MutexGuard<'_, Option<VersionTimes>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn versions(&self) -> Result<Vec<u32>, CommandFailure> {
        match self.address.needs_port() {
            true => self.registered(),
            false => self.offered(),
        }
    }

    /// Returns the versions that rpcbind knows, if it has to be asked for the port: each version may have its own.
    fn registered(&self) -> Result<Vec<u32>, CommandFailure> {
        let program = self.args.program.program;
        let all = self.registrations().map_err(|cause| {
            connect::no_connection(&ConnectError::Unresolved {
                address: self.address.clone(),
                cause: Arc::new(cause),
            })
        })?;
        let leads_here = |address: Address| address.transport() == self.address.transport();
        let versions: BTreeSet<u32> = all
            .iter()
            .filter(|one| one.program == program && one.address().is_some_and(leads_here))
            .map(|one| one.version)
            .collect();
        match versions.is_empty() {
            true => Err(CommandFailure::new(format!(
                "{} has no port, and program {program} is not registered there",
                self.address
            ))
            .hint("`rpcinfo -p HOST` shows what is")),
            false => Ok(versions.into_iter().collect()),
        }
    }

    fn registrations(&self) -> Result<Vec<Registration>, RpcbindError> {
        let timeout = self.args.options.timeout;
        // Where a port may be missing, ONC RPC leads.
        let onc = self.address.clone().over_onc();
        let place = onc.unwrap_or_else(|| self.address.clone()).to_string();
        let options = ChannelOptions::default().connect_timeout(timeout);
        let rpcbind = Rpcbind::connect_with(&place, options).map_err(CallError::from)?;
        rpcbind.with_timeout(timeout).dump()
    }

    /// Asks for a version that no server has; the refusal says which there are.
    fn offered(&self) -> Result<Vec<u32>, CommandFailure> {
        const NO_VERSION: u32 = u32::MAX;
        let Err(error) = null(&self.client(NO_VERSION)?) else {
            return Ok(vec![NO_VERSION]);
        };
        match versions_there_are(&error) {
            Some((low, high)) if high - low < 64 => self.answering(low, high),
            _ => Err(self.failure(&error)),
        }
    }

    /// The range may have holes.
    fn answering(&self, low: u32, high: u32) -> Result<Vec<u32>, CommandFailure> {
        let mut versions = Vec::new();
        for version in low..=high {
            match null(&self.client(version)?) {
                Ok(()) => versions.push(version),
                Err(error) if versions_there_are(&error).is_some() => {}
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Ok(versions)
    }

    /// Calls a version, and notes what each call took.
    fn ping(&self, version: u32) -> Result<(), CommandFailure> {
        let client = self.client(version)?;
        *self.measured() = Some(VersionTimes {
            version,
            client: client.clone(),
            times: Vec::new(),
        });
        for _ in 0..self.args.count {
            let start = Instant::now();
            null(&client).map_err(|error| self.failure(&error))?;
            let time = start.elapsed();
            if let Some(measured) = &mut *self.measured() {
                measured.times.push(time);
            }
        }
        Ok(())
    }

    /// Shows what was measured of the version that is being called; returns whether there is anything.
    fn report(&self, ending: PingEnd) -> Result<bool, CommandFailure> {
        let measured = self.measured().take();
        let Some(mut measured) = measured.filter(|it| !it.times.is_empty()) else {
            return Ok(false);
        };
        measured.times.sort_unstable();
        report(&self.args, &measured, ending).map(|()| true)
    }
}

fn null(client: &Client) -> Result<(), CallError> {
    match client.protocol() {
        Protocol::Onc => client.onc().call(0, |_| Ok(()), |_| Ok(())),
        Protocol::Lean => client.lean().call(0, |_| Ok(()), |_| Ok(())),
    }
}

/// Returns the lowest and the highest version of a program, if that is what a refusal says.
fn versions_there_are(error: &CallError) -> Option<(u32, u32)> {
    let (low, high) = match error {
        CallError::Refused(Refused::ProgramMismatch { low, high }) => (*low, *high),
        CallError::Unbound(BindError::Refused(refusal)) => match **refusal {
            BindRefusal::NoVersion { low, high, .. } => (low, high),
            _ => return None,
        },
        _ => return None,
    };
    (low <= high).then_some((low, high))
}

fn report(args: &PingArgs, measured: &VersionTimes, ending: PingEnd) -> Result<(), CommandFailure> {
    if args.json {
        return output::print_json(&as_json(args, measured, ending), true);
    }
    let (program, version) = (args.program.program, measured.version);
    let (median, p99) = percentiles(measured);
    let calls = match measured.times.len() {
        1 => format!("{} us", micros(median)),
        count => format!(
            "{count} calls, median {} us, p99 {} us",
            micros(median),
            micros(p99)
        ),
    };
    let asked = args.count;
    let ending = match ending {
        PingEnd::AllAnswered => String::new(),
        PingEnd::Failed => format!("; the next of {asked} calls failed"),
        PingEnd::Interrupted => format!("; interrupted, of {asked} calls"),
    };
    output::print(&format!(
        "program {program} version {version} answers: {calls}{ending}\n"
    ))
}

/// Returns the median and the 99th percentile.
fn percentiles(measured: &VersionTimes) -> (Duration, Duration) {
    let sorted = &measured.times;
    (percentile(sorted, 50), percentile(sorted, 99))
}

fn as_json(args: &PingArgs, measured: &VersionTimes, ending: PingEnd) -> Json {
    let (median, p99) = percentiles(measured);
    json!({
        "address": args.address,
        "program": args.program.program,
        "version": measured.version,
        "calls": measured.times.len(),
        "interrupted": ending == PingEnd::Interrupted,
        "median_us": in_micros(median),
        "p99_us": in_micros(p99),
        "waits": waits_as_json(measured.client.channel().counters().waits),
    })
}

fn waits_as_json(waits: WaitCounters) -> Json {
    json!({
        "blocks": waits.blocks,
        "spins": waits.spins,
        "misses": waits.misses,
        "attempts": waits.attempts,
    })
}
