//! More connections than threads, and more than descriptors. In a process of its own, because it
//! changes and counts what the process may have.
#![allow(clippy::unwrap_used)]

#[path = "common/caller.rs"]
mod caller;

use std::fs;
use std::time::Duration;

use caller::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn descriptors_max(count: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: Some(count),
        maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Both in one test: the limit is the whole process's.
#[test]
fn crowds() {
    a_thousand_idle_connections_cost_no_thread_and_disturb_nobody();
    a_server_without_descriptors_goes_on_when_it_has_some();
}

fn a_thousand_idle_connections_cost_no_thread_and_disturb_nobody() {
    descriptors_max(4000);
    let server = builder().start().unwrap();
    let mut others = Caller::on_all(&server);
    let mut idle: Vec<_> = (0..500).flat_map(|_| Caller::on_streams(&server)).collect();
    idle.iter_mut().for_each(Caller::expect_service);
    for _ in 0..100 {
        others.iter_mut().for_each(Caller::expect_service);
    }
    assert_eq!(server.counters().connections_open, 1002);
    let threads_in_all = threads();
    assert!(threads_in_all < 80, "{threads_in_all} threads");
    eventually("the threads leave", || threads() <= 4);
    idle.iter_mut().for_each(Caller::expect_service);
    server.shutdown(Duration::from_secs(5));
    idle.iter_mut().for_each(Caller::expect_close);
}

fn a_server_without_descriptors_goes_on_when_it_has_some() {
    let server = builder().start().unwrap();
    let mut before = Caller::tcp(&server);
    before.expect_service();
    let mut hoard = Vec::new();
    descriptors_max(60);
    while let Ok(file) = fs::File::open("/dev/null") {
        hoard.push(file);
    }
    // One is left for the client's end, none for the server's.
    hoard.pop();
    let mut unaccepted = Caller::tcp(&server);
    eventually("accepting fails", || server.counters().accept_failures > 0);
    before.expect_service();
    drop(hoard);
    unaccepted.expect_service();
}
