//! Servers that are restarted and killed under the load of several client processes, over both protocols, TCP, Unix
//! sockets and shared memory. The journals tell what was carried out, and the clients what they were told.
//!
//! `TENON_KILL_ROUNDS` says how often every server goes; a few times by default.
#![allow(clippy::unwrap_used)]

mod load;
mod support;

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use load::{LoadProcess, Report};
use support::{Folder, Kind, ServerPlace, ServerProcess, WAYS, length_of};
use tenon::ChannelOptions;
use tenon_example_system::jobs::{Event, JobEvent, JobsV1Client};
use tenon_example_system::journal::read_records;
use tenon_example_system::kv::{Change, KvV1Client};
use tenon_example_system::uploads::{UploadEvent, UploadRecord};

/// Rounds of the ordinary tests.
const ROUNDS: usize = 3;

/// Bytes by which each journal grows before its server goes again: some hundred calls.
const GROWTH: u64 = 10_000;

/// More than any step takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client process: run as a test of its own, it does nothing.
#[test]
fn load_of_one_process() {
    load::run_if_asked();
}

#[test]
fn nothing_is_lost_or_unknown_when_servers_are_restarted() {
    let reports = disturb(|server| {
        let last_words = server.terminate();
        assert!(last_words.starts_with("stopped after "), "{last_words}");
    });
    let most = most_unknown();
    for (way, report) in WAYS.iter().zip(&reports) {
        println!("restarted: {way}: {}", report.summary());
        if way.starts_with("lean") || *way == "shm" {
            assert!(report.unknown.is_empty(), "{way}: {:?}", report.unknown);
        } else {
            // ONC RPC has no message that ends a connection: calls in flight may stay unknown.
            assert!(report.unknown.len() <= most, "{way}: {:?}", report.unknown);
        }
    }
}

#[test]
fn nothing_is_lost_or_done_twice_when_servers_are_killed() {
    let reports = disturb(ServerProcess::kill);
    for (way, report) in WAYS.iter().zip(&reports) {
        println!("killed: {way}: {}", report.summary());
        assert!(
            report.unknown.len() <= most_unknown(),
            "{way}: {:?}",
            report.unknown
        );
    }
}

fn rounds() -> usize {
    match std::env::var("TENON_KILL_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("TENON_KILL_ROUNDS is a number"),
        Err(_) => ROUNDS,
    }
}

/// Calls of one process whose fate is unknown when servers go, at most: of each caller one that is in flight, and one that
/// is sent before the end of the connection is noticed.
fn most_unknown() -> usize {
    2 * rounds() * load::CALLERS
}

/// Has each server end by `end` and start again under load, as often as there are rounds, checks the journals, and
/// returns what each client process was told.
fn disturb(end: impl Fn(ServerProcess)) -> Vec<Report> {
    let folder = Folder::new();
    // The lease of a job whose reply was lost ends soon.
    let arguments = |kind| {
        if kind == Kind::Jobs {
            &["--lease", "1"][..]
        } else {
            &[]
        }
    };
    let places = Kind::ALL.map(|kind| ServerPlace::new(kind, &folder, arguments(kind)));
    let mut servers = places.each_ref().map(|place| Some(place.start()));
    let start = |way: &&str| LoadProcess::start(&folder, way, &places);
    let processes: Vec<LoadProcess> = WAYS.iter().map(start).collect();
    for _ in 0..rounds() {
        for (place, server) in places.iter().zip(&mut servers) {
            wait_for_growth(place);
            end(server.take().unwrap());
            *server = Some(place.start());
        }
    }
    let reports: Vec<Report> = processes.into_iter().map(LoadProcess::stop).collect();
    check_kv(&places[0], &reports);
    check_jobs(&places[1], &reports);
    check_uploads(&places[2], &reports);
    reports
}

/// Lets a server live until clients have called it, and a moment more.
fn wait_for_growth(place: &ServerPlace) {
    let journal = place.journal();
    let (enough, begin) = (length_of(&journal) + GROWTH, Instant::now());
    while length_of(&journal) < enough {
        assert!(begin.elapsed() < PATIENCE, "{:?} is not called", place.kind);
        thread::sleep(Duration::from_millis(2));
    }
}

/// Checks that the calls which `journal` has were carried out once each, and as their callers were told.
fn check_calls(what: &str, journal: &[String], reports: &[Report]) {
    let executed: HashSet<&str> = journal.iter().map(String::as_str).collect();
    assert_eq!(
        executed.len(),
        journal.len(),
        "{what}: a call was carried out twice"
    );
    let mut accounted = 0;
    for report in reports {
        for call in load::names_of(&report.done, what) {
            assert!(
                executed.contains(call),
                "{what} {call} was acknowledged and is lost"
            );
            accounted += 1;
        }
        for call in load::names_of(&report.denied, what) {
            assert!(
                !executed.contains(call),
                "{what} {call} was carried out and denied"
            );
        }
        let unknown = load::names_of(&report.unknown, what);
        accounted += unknown.filter(|call| executed.contains(call)).count();
    }
    assert_eq!(
        accounted,
        journal.len(),
        "{what}: calls that no client has made"
    );
    assert!(accounted > rounds(), "{what}: only {accounted} calls");
}

fn check_kv(place: &ServerPlace, reports: &[Report]) {
    let changes: Vec<Change> = read_records(&place.journal()).unwrap();
    for (index, change) in changes.iter().enumerate() {
        assert_eq!(change.revision, index as u64 + 1);
        assert_eq!(
            change.value.as_deref(),
            Some(load::value_of(&change.key).as_bytes())
        );
    }
    let keys: Vec<String> = changes.into_iter().map(|change| change.key).collect();
    check_calls("put", &keys, reports);

    let client = KvV1Client::connect_with(&place.address("lean+unix"), patient()).unwrap();
    for key in keys.iter().step_by(1 + keys.len() / 1000) {
        let entry = client.get(key).unwrap().unwrap();
        assert_eq!(entry.value, load::value_of(key).as_bytes());
    }
}

fn check_jobs(place: &ServerPlace, reports: &[Report]) {
    finish_what_is_left(place);
    let (mut submitted, mut results, mut completed) = (Vec::new(), Vec::new(), HashMap::new());
    for JobEvent { id, event, bytes } in read_records(&place.journal()).unwrap() {
        let text = String::from_utf8(bytes).unwrap();
        match event {
            Event::Submitted => {
                submitted.push(text);
                assert_eq!(id, submitted.len() as u64);
            }
            Event::Completed => {
                *completed.entry(id).or_insert(0) += 1;
                // The results of `finish_what_is_left` are in no report.
                results.extend(Some(text).filter(|text| !text.is_empty()));
            }
        }
    }
    check_calls("submit", &submitted, reports);
    check_calls("finish", &results, reports);
    assert!(completed.values().all(|times| *times == 1));
    assert_eq!(
        completed.len(),
        submitted.len(),
        "jobs that were never given out"
    );
}

/// Finishes the jobs that the load has left, also those whose replies to workers were lost.
fn finish_what_is_left(place: &ServerPlace) {
    let client = JobsV1Client::connect_with(&place.address("lean+unix"), patient()).unwrap();
    while let Some(job) = client.take(3_000).unwrap() {
        assert!(client.finish(job.id, b"").unwrap());
    }
}

fn check_uploads(place: &ServerPlace, reports: &[Report]) {
    let (mut begun, mut completed, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for UploadRecord { event, name, .. } in read_records(&place.journal()).unwrap() {
        match event {
            UploadEvent::Begun => begun.push(name),
            UploadEvent::Completed => completed.push(name),
            UploadEvent::Removed => removed.push(name),
        }
    }
    check_calls("begin", &begun, reports);
    check_calls("complete", &completed, reports);
    check_calls("remove", &removed, reports);
}

fn patient() -> ChannelOptions {
    ChannelOptions::default().wait_for_ready(true)
}
