//! Where calls of many connections are ready at once, a server finds all of them by one wait, and each costs it one
//! system call to receive and one to send.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::server::{Watched, serve};
use crate::common::caller::*;
use crate::common::counting::alone;

/// Connections with a call each.
const CONNECTIONS: usize = 16;

/// Rounds of which one must be free of noise, such as a server that was not stopped yet when calls came.
const ROUNDS: usize = 40;

/// The process that is watched. On one processor it has no reason to share its connections out.
#[test]
#[ignore = "not a test: the process that the test watches"]
fn crowded_process() {
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor));
    let mut one = CpuSet::new();
    one.set(first.unwrap());
    sched_setaffinity(None, &one).unwrap();
    serve(builder());
}

/// Returns the process that strace has started.
fn watched_process(watched: &Watched) -> Pid {
    let strace = watched.process.id();
    let children = fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).unwrap();
    let child = children.split_whitespace().next().unwrap();
    Pid::from_raw(child.parse().unwrap()).unwrap()
}

/// Has a call of each connection wait for a server that is stopped meanwhile, and get its reply.
fn call_at_once(callers: &mut [Caller], server: Pid, xid: u32) {
    kill_process(server, Signal::STOP).unwrap();
    thread::sleep(Duration::from_millis(2));
    for caller in callers.iter_mut() {
        caller.send(&call(xid, 0, &[]));
    }
    kill_process(server, Signal::CONT).unwrap();
    for caller in callers {
        caller.receive();
    }
}

/// Counts the system calls between two marks that receive, send or wait. That the test stops the server interrupts a wait,
/// which is not counted.
fn system_calls_between(trace: &str, begin: &str, end: &str) -> usize {
    let is_receipt_of = |line: &str, mark: &str| line.contains("recvfrom") && line.contains(mark);
    let lines = trace.lines();
    let lines = lines.skip_while(|line| !is_receipt_of(line, begin));
    let lines = lines.skip(1).take_while(|line| !is_receipt_of(line, end));
    let names = ["recvfrom(", "sendto(", "sendmsg(", "epoll_wait("];
    let (mut counted, mut interrupted) = (0, 0);
    for line in lines {
        counted += usize::from(names.iter().any(|name| line.contains(name)));
        interrupted += usize::from(line.contains("epoll_wait") && line.contains("EINTR"));
    }
    counted - interrupted
}

/// Makes calls in rounds between marks, which are calls of the first connection.
fn run_rounds(callers: &mut [Caller], server: Pid, label: &str) {
    let mark = |caller: &mut Caller, name: String| {
        caller.send(&call(0, ECHO, name.as_bytes()));
        caller.receive();
    };
    for round in 0..ROUNDS {
        mark(&mut callers[0], format!("{label}-{round}-begin"));
        call_at_once(callers, server, round as u32 + 1);
        mark(&mut callers[0], format!("{label}-{round}-end"));
    }
}

#[test]
fn calls_that_are_ready_together_share_a_wait() {
    let _alone = alone();
    let watched = Watched::start("crowd::crowded_process");
    let server = watched_process(&watched);
    let transports = ["tcp", "unix"];
    for (transport, address) in transports.iter().zip(&watched.addresses) {
        let callers = (0..CONNECTIONS).map(|_| Caller::connect(address));
        run_rounds(&mut callers.collect::<Vec<_>>(), server, transport);
    }
    let trace = watched.finish();
    for transport in transports {
        let rounds = (0..ROUNDS).map(|round| {
            let mark = format!("{transport}-{round}");
            system_calls_between(&trace, &format!("{mark}-begin"), &format!("{mark}-end"))
        });
        let fewest = rounds.min().unwrap();
        // One wait for all calls; beside them, the reply of the first mark and the wait for the second.
        let expected = 2 * CONNECTIONS + 1 + 2;
        let range = 2 * CONNECTIONS..=expected;
        assert!(range.contains(&fewest), "{transport}: {fewest}");
    }
}
