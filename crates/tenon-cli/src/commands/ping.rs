//! `tenon ping`: procedure 0.

use std::collections::BTreeSet;
use std::sync::Arc;
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
use crate::failure::Failure;
use crate::output;

pub fn run(args: &PingArgs) -> Result<(), Failure> {
    let address = connect::address(&args.address)?;
    let target = Target {
        address: &address,
        args,
    };
    let versions = match args.program.version {
        Some(version) => vec![version],
        None => target.versions()?,
    };
    for version in versions {
        let (times, waits) = target.ping(version)?;
        report(args, version, &times, waits)?;
    }
    Ok(())
}

/// What is asked, and how.
struct Target<'a> {
    address: &'a Address,
    args: &'a PingArgs,
}

impl Target<'_> {
    fn client(&self, version: u32) -> Result<Client, Failure> {
        let (options, program) = (&self.args.options, self.args.program.program);
        connect::client(self.address, options, program, version)
    }

    fn failure(&self, error: &CallError) -> Failure {
        connect::failure(self.address, error)
    }

    fn versions(&self) -> Result<Vec<u32>, Failure> {
        match self.address.needs_port() {
            true => self.registered(),
            false => self.offered(),
        }
    }

    /// Where rpcbind has to be asked for the port of a version it knows which there are: each may have its own.
    fn registered(&self) -> Result<Vec<u32>, Failure> {
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
            true => Err(Failure::new(format!(
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

    /// Asks for a version that nobody has; the refusal says which there are.
    fn offered(&self) -> Result<Vec<u32>, Failure> {
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
    fn answering(&self, low: u32, high: u32) -> Result<Vec<u32>, Failure> {
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

    /// What each call took, and how replies were waited for.
    fn ping(&self, version: u32) -> Result<(Vec<Duration>, WaitCounters), Failure> {
        let client = self.client(version)?;
        let mut times = Vec::new();
        for _ in 0..self.args.count {
            let start = Instant::now();
            null(&client).map_err(|error| self.failure(&error))?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        Ok((times, client.channel().counters().waits))
    }
}

fn null(client: &Client) -> Result<(), CallError> {
    match client.protocol() {
        Protocol::Onc => client.onc().call(0, |_| Ok(()), |_| Ok(())),
        Protocol::Lean => client.lean().call(0, |_| Ok(()), |_| Ok(())),
    }
}

/// The lowest and the highest version of a program, if that is what a refusal says.
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

fn report(
    args: &PingArgs,
    version: u32,
    sorted: &[Duration],
    waits: WaitCounters,
) -> Result<(), Failure> {
    let (median, p99) = (percentile(sorted, 50), percentile(sorted, 99));
    if args.json {
        let mut json = as_json(args, version, median, p99);
        json["waits"] = waits_as_json(waits);
        return output::print_json(&json, true);
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

fn waits_as_json(waits: WaitCounters) -> Json {
    json!({
        "blocks": waits.blocks,
        "spins": waits.spins,
        "misses": waits.misses,
        "attempts": waits.attempts,
    })
}
