//! Random calls over all transports and both protocols at once, directly and through relays that
//! delay, cut, drop and repeat what goes through them. Every result is checked, no call may be lost,
//! and memory stays flat.
//!
//! `TENON_SOAK_SECONDS` says for how long, 6 unless set; before a release it is 600:
//! `TENON_SOAK_SECONDS=600 cargo test --release -p tenon-interop --test soak -- --nocapture`.

mod calls;
mod relay;

use std::alloc::System;
use std::env;
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use calls::{Caller, Tally};
use relay::{relay_datagrams, relay_stream};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tenon::Channel;
use tenon_interop::compiled::hprpc::HprpcVersionClient;
use tenon_interop::services::serve;
use tenon_interop::{Transport, socket_path};

/// Threads that share a channel.
const CALLERS: u64 = 2;

/// What a process may grow by while it does the same again and again: by what happens to be under way.
const GROWTH_MAX: usize = 32 << 20;

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn random_calls_stay_right_and_cost_no_memory() {
    let seconds = env::var("TENON_SOAK_SECONDS").map_or(Ok(6), |it| it.parse());
    let length = Duration::from_secs(seconds.expect("whole seconds"));
    let (server, addresses) = serve(&socket_path("soak"));
    let [tcp, udp, unix] =
        [Transport::Tcp, Transport::Udp, Transport::Unix].map(|transport| addresses.url(transport));
    let (bad_tcp, bad_udp) = (relay_stream(&tcp), relay_datagrams(&udp));
    let direct = [&tcp, &unix, &udp].map(|url| (url.clone(), false));
    let faulty = [bad_tcp.clone(), bad_udp].map(|url| (url, true));
    let lean = [(&tcp, false), (&unix, false), (&bad_tcp, true)]
        .map(|(url, is_faulty)| (format!("lean+{url}"), is_faulty));
    let ways: Vec<_> = direct.into_iter().chain(faulty).chain(lean).collect();

    let end = Instant::now() + length;
    let (tallies, early, late) = thread::scope(|scope| {
        let mut callers = Vec::new();
        for (url, is_faulty) in &ways {
            let channel = Channel::connect(url).expect("a server");
            let client = HprpcVersionClient::over(channel);
            for seed in 0..CALLERS {
                let mut caller = Caller::new(client.clone(), *is_faulty, seed);
                callers.push(scope.spawn(move || caller.call_until(end)));
            }
        }
        thread::sleep(length / 3);
        let early = allocated();
        thread::sleep(end.saturating_duration_since(Instant::now()));
        let late = allocated();
        let join = |caller: thread::ScopedJoinHandle<'_, Tally>| caller.join();
        let tallies: Vec<_> = callers.into_iter().map(join).collect();
        (tallies, early, late)
    });

    let mut report = String::new();
    let mut failed = false;
    for (position, tally) in tallies.into_iter().enumerate() {
        let (url, is_faulty) = &ways[position / CALLERS as usize];
        let tally = tally.expect("no caller panics");
        failed |= !tally.wrong.is_empty() || !tally.is_enough(*is_faulty);
        writeln!(report, "{url}: {tally}").expect("memory");
    }
    writeln!(report, "memory: {early} bytes early, {late} late").expect("memory");
    writeln!(report, "{:?}", server.counters()).expect("memory");
    println!("{report}");
    assert!(!failed, "{report}");
    assert!(late < early + GROWTH_MAX, "{report}");
    assert_eq!(server.counters().panics, 0);
    server.shutdown(Duration::from_secs(1));
}

/// Bytes of memory that are allocated: what the allocator keeps beyond them depends on the number of
/// processors.
fn allocated() -> usize {
    let stats = COUNTED.stats();
    stats
        .bytes_allocated
        .saturating_sub(stats.bytes_deallocated)
}
