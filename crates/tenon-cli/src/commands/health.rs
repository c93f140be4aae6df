//! `tenon health`: whether a server serves, and each of its services.

use std::thread;
use std::time::Duration;

use serde_json::json;
use tenon::health::{HEALTH, HEALTH_V1, HealthEntry, HealthQuestion, HealthStatus, HealthV1Client};
use tenon::wire::BString;
use tenon::{Address, CallError, CallErrorKind, CallOptions};

use crate::args::HealthArgs;
use crate::commands::connect;
use crate::failure::CommandFailure;
use crate::interrupt::run_until_interrupted;
use crate::output;

/// How long a server is asked to wait for another status.
const WATCH: Duration = Duration::from_secs(60);

/// Pause before a server is asked again that has nothing new.
const PAUSE: Duration = Duration::from_millis(200);

pub fn run(args: HealthArgs) -> Result<(), CommandFailure> {
    let address = connect::address(&args.address)?;
    if args.watch {
        let client = connect::untimed_client(&address, &args.options, HEALTH, HEALTH_V1)?;
        let client = HealthV1Client(client);
        let watched = run_until_interrupted(move || watch(&client, &address, &args))?;
        return watched.unwrap_or(Ok(()));
    }
    let client = connect::client(&address, &args.options, HEALTH, HEALTH_V1)?;
    let client = HealthV1Client(client);
    if args.list {
        return list(&client, &address, args.json);
    }
    let status = client.check(&args.service);
    let status = status.map_err(|error| failure(&address, &error))?;
    show(&args, status)?;
    verdict(&args.service, status)
}

/// Shows the status, and each that comes after it: from a stream, where the peer has that.
fn watch(
    client: &HealthV1Client,
    address: &Address,
    args: &HealthArgs,
) -> Result<(), CommandFailure> {
    match follow(client, args) {
        Ok(()) => Ok(()),
        Err(WatchFailure::Unavailable) => poll(client, address, args),
        Err(WatchFailure::Call(error)) => Err(failure(address, &error)),
        Err(WatchFailure::Output(failure)) => Err(failure),
    }
}

/// The reason for which a stream of statuses has ended.
enum WatchFailure {
    /// There is none: the peer is to be asked again and again.
    Unavailable,
    Call(CallError),
    /// A status could not be shown.
    Output(CommandFailure),
}

/// Shows the statuses of a stream.
fn follow(client: &HealthV1Client, args: &HealthArgs) -> Result<(), WatchFailure> {
    let statuses = client.follow(&args.service).map_err(failure_to_follow)?;
    for status in statuses {
        let status = status.map_err(failure_to_follow)?;
        show(args, status).map_err(WatchFailure::Output)?;
    }
    Ok(())
}

/// Returns the reason for which a stream of statuses has ended with this error. There is none by ONC RPC, at older servers, which know no streams of this procedure, and where many others follow; that is said before
/// the first status.
fn failure_to_follow(error: CallError) -> WatchFailure {
    let is_unavailable = matches!(error, CallError::NoStreams { .. })
        || matches!(
            error.kind(),
            CallErrorKind::NoProcedure
                | CallErrorKind::InvalidArguments
                | CallErrorKind::OtherInterface
                | CallErrorKind::Busy
        );
    if is_unavailable {
        WatchFailure::Unavailable
    } else {
        WatchFailure::Call(error)
    }
}

/// Shows the status, and each that comes after it, by calls that wait for a change.
fn poll(
    client: &HealthV1Client,
    address: &Address,
    args: &HealthArgs,
) -> Result<(), CommandFailure> {
    let failed = |error| failure(address, &error);
    let timed = CallOptions::new().timeout(args.options.timeout);
    let checked = client.with_options(timed).check(&args.service);
    let mut known = checked.map_err(failed)?;
    show(args, known)?;
    let patient = CallOptions::new().timeout(WATCH + args.options.timeout);
    loop {
        let question = HealthQuestion {
            service: BString::from(args.service.as_str()),
            known,
            milliseconds: WATCH.as_millis() as u32,
        };
        let status = client.with_options(patient).watch(&question);
        let status = status.map_err(failed)?;
        if status == known {
            // A server that stops, or that many others watch, does not wait.
            thread::sleep(PAUSE);
        } else {
            known = status;
            show(args, known)?;
        }
    }
}

fn show(args: &HealthArgs, status: HealthStatus) -> Result<(), CommandFailure> {
    match args.json {
        true => output::print_json(
            &json!({ "service": args.service, "status": name_of(status) }),
            true,
        ),
        false => output::print(&format!("{}\n", name_of(status))),
    }
}

fn list(client: &HealthV1Client, address: &Address, is_json: bool) -> Result<(), CommandFailure> {
    let entries = client.list().map_err(|error| failure(address, &error))?;
    if is_json {
        let entries = entries.iter().map(|HealthEntry { service, status }| {
            json!({ "service": service.to_string(), "status": name_of(*status) })
        });
        output::print_json(&entries.collect(), true)?;
    } else {
        let shown = |service: &BString| match service.is_empty() {
            true => "(the server)".to_owned(),
            false => service.to_string(),
        };
        let width = entries.iter().map(|of| shown(&of.service).len()).max();
        let width = width.unwrap_or_default();
        for HealthEntry { service, status } in &entries {
            output::print(&format!(
                "{:width$}  {}\n",
                shown(service),
                name_of(*status)
            ))?;
        }
    }
    let ailing = entries.iter().find(|of| of.status != HealthStatus::Serving);
    ailing.map_or(Ok(()), |of| verdict(&of.service.to_string(), of.status))
}

/// Returns by the exit status whether a service serves.
fn verdict(service: &str, status: HealthStatus) -> Result<(), CommandFailure> {
    let what = match service.is_empty() {
        true => "the server".to_owned(),
        false => format!("`{service}`"),
    };
    match status {
        HealthStatus::Serving => Ok(()),
        HealthStatus::NotServing => Err(CommandFailure::new(format!("{what} does not serve"))),
        HealthStatus::Unknown => Err(CommandFailure::new(format!(
            "the server has no service of the name {what}"
        ))
        .hint("`tenon health ADDRESS --list` shows those that it has")),
    }
}

fn name_of(status: HealthStatus) -> &'static str {
    match status {
        HealthStatus::Unknown => "unknown",
        HealthStatus::Serving => "serving",
        HealthStatus::NotServing => "not serving",
    }
}

fn failure(address: &Address, error: &CallError) -> CommandFailure {
    match error.kind() {
        CallErrorKind::NoService => CommandFailure::new("the server does not say how it is")
            .hint("a server of Tenon does if it was built with ServerBuilder::health"),
        CallErrorKind::Stopping => CommandFailure::new("the server stops"),
        _ => connect::failure(address, error),
    }
}
