//! More connections than threads, and more than descriptors. The test changes and counts what its process may have.

use std::fs;

use crate::ALLOCATOR;
use crate::common::caller::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Grants the process so many descriptors, or as many as it may have; says how many.
fn descriptors_max(count: u64) -> u64 {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let count = maximum.map_or(count, |maximum| maximum.min(count));
    let limit = Rlimit {
        current: Some(count),
        maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    count
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Bytes of memory that are allocated: what the allocator keeps beyond them depends on the number of
/// processors.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats
        .bytes_allocated
        .saturating_sub(stats.bytes_deallocated)
}

/// All in one test: what is limited and counted is the whole process's.
pub fn crowds() {
    idle_connections_cost_no_thread_and_disturb_nobody();
    half_sent_requests_take_no_more_memory_than_there_may_be();
    a_server_without_descriptors_goes_on_when_it_has_some();
}

/// A thousand where a process may have so many: a connection has two ends, and both are here.
fn idle_connections_cost_no_thread_and_disturb_nobody() {
    let pairs = (descriptors_max(4000) / 8).min(500);
    assert!(pairs >= 100, "the process may have too few descriptors");
    let server = builder().start().unwrap();
    let mut others = Caller::on_all(&server);
    let idle = (0..pairs).flat_map(|_| Caller::on_streams(&server));
    let mut idle: Vec<_> = idle.collect();
    idle.iter_mut().for_each(Caller::expect_service);
    for _ in 0..100 {
        others.iter_mut().for_each(Caller::expect_service);
    }
    assert_eq!(server.counters().connections_open, 2 * pairs + 2);
    let threads_in_all = threads();
    assert!(threads_in_all < 80, "{threads_in_all} threads");
    eventually("the threads leave", || threads() <= 4);
    idle.iter_mut().for_each(Caller::expect_service);
    server.shutdown(PATIENCE);
    idle.iter_mut().for_each(Caller::expect_close_notice);
}

fn half_sent_requests_take_no_more_memory_than_there_may_be() {
    let limits = limited(|limits| limits.receive_bytes = 8 << 20);
    let server = builder().limits(limits).start().unwrap();
    let mut others = Caller::on_all(&server);
    let large = record(&call(1, ECHO, &vec![1; 3 << 20]));
    let before = allocated();
    let hoarders: Vec<_> = (0..64)
        .map(|_| {
            let mut hoarder = Caller::tcp(&server);
            // The server may close before it has read everything.
            let _ = hoarder.try_send_raw(&large[..large.len() - 1]);
            others.iter_mut().for_each(Caller::expect_service);
            hoarder
        })
        .collect();
    // Such a request takes 4 MiB, as storage is doubled.
    eventually("all but two are closed", || {
        server.counters().memory_exhausted >= 62
    });
    let grown = allocated().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for half of 64 requests");
    others.iter_mut().for_each(Caller::expect_service);
    drop(hoarders);
    eventually("the memory is there again", || {
        server.counters().connections_open == 2
    });
    others[0].send_raw(&large);
    assert_eq!(others[0].receive().len(), (3 << 20) + 24);
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
    let mut refused = Caller::tcp(&server);
    eventually("it is refused", || {
        server.counters().descriptors_exhausted > 0
    });
    refused.expect_close();
    before.expect_service();
    drop(hoard);
    Caller::tcp(&server).expect_service();
}
