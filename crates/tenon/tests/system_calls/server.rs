//! In the steady state a call costs a server that sleeps while it waits two system calls: one to
//! receive, one to send. A server process is watched with strace, all its threads.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::caller::*;
use crate::common::counting::alone;
use crate::common::lean_caller;
use crate::common::lean_steady;
use tenon::wire::{Encoder, Lean};
use tenon::{ServerBuilder, Waiting};

const CALLS: usize = 50;

/// Rounds of which one must be free of noise: a machine that is busy with something else may let
/// the server believe that the peer is silent.
const ROUNDS: u32 = 10;

/// How often a server is watched, as long as no round was free of noise.
const SERVERS: u32 = 10;

/// The process that is watched. It serves until its standard input ends.
#[test]
#[ignore = "not a test: the process that the test watches"]
fn served_process() {
    serve(builder());
}

/// The same for lean calls.
#[test]
#[ignore = "not a test: the process that the test watches"]
fn lean_process() {
    serve(lean_caller::lean_builder());
}

pub fn serve(builder: ServerBuilder) {
    let server = builder.waiting(Waiting::Block).start().unwrap();
    for address in server.addresses() {
        println!("at {address}");
    }
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
}

pub struct Watched {
    pub process: Child,
    pub addresses: Vec<String>,
    trace: PathBuf,
    /// Kept open, because the process has more to say when it ends.
    _output: BufReader<ChildStdout>,
}

impl Watched {
    pub fn start(name: &str) -> Self {
        let trace = fresh_path();
        let mut process = Command::new("strace")
            .args(["-f", "-qq", "-s", "128", "-o"])
            .arg(&trace)
            .arg(env::current_exe().unwrap())
            .args(["--exact", name, "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test needs strace: apt-get install strace");
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let addresses = output
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| line.split_once("at ").map(|(_, at)| at.to_owned()))
            .take(3)
            .collect::<Vec<_>>();
        assert_eq!(addresses.len(), 3, "strace cannot watch a process here");
        Self {
            process,
            addresses,
            trace,
            _output: output,
        }
    }

    /// Ends the process and reads what it did.
    pub fn finish(mut self) -> String {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
        fs::read_to_string(&self.trace).unwrap()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Both have happened already unless the test has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.trace);
    }
}

/// A call that can be found in the trace.
fn marked(name: &str) -> Vec<u8> {
    call(0, ECHO, name.as_bytes())
}

/// The thread that looks every half a millisecond whether a handler takes long, while handlers run. Its waits belong to
/// no call.
fn watchdog(trace: &str) -> &str {
    let named = |line: &&str| line.contains("PR_SET_NAME") && line.contains("tenon-watchdog");
    let line = trace.lines().find(named).unwrap();
    line.split_whitespace().next().unwrap()
}

/// System calls of all threads that serve from the receipt of the message `begin`, which is not counted, to the receipt
/// of `end`, which is. The allocator's are not: over UDP replies are kept, for which its arena grows until the cache is
/// full, once in a round of large ones.
fn system_calls_between(trace: &str, begin: &str, end: &str) -> usize {
    let is_receipt_of = |line: &str, name: &str| line.contains("recvfrom") && line.contains(name);
    let watchdog = watchdog(trace);
    let lines = trace.lines().filter(|line| !line.starts_with(watchdog));
    let lines = lines.skip_while(|line| !is_receipt_of(line, begin));
    let mut counted = 0;
    for line in lines.skip(1) {
        // A call that another thread interrupted in the trace stands there twice.
        let is_counted = !line.contains("resumed>") && !line.contains(" mprotect(");
        counted += usize::from(is_counted);
        if is_receipt_of(line, end) {
            return counted;
        }
    }
    panic!("{end:?} is not in the trace");
}

/// Calls `procedure` in rounds between marks that carry `label`.
fn run_rounds(address: &str, label: &str, procedure: u32, arguments: &[u8]) {
    let mut caller = Caller::connect(address);
    let mut exchange = |message: &[u8]| {
        caller.send(message);
        caller.receive();
    };
    for round in 0..ROUNDS {
        exchange(&marked(&format!("{label}-{round}-begin")));
        for xid in 1..=CALLS as u32 {
            let xid = 1000 * (round + 1) + xid;
            exchange(&call(xid, procedure, arguments));
        }
        exchange(&marked(&format!("{label}-{round}-end")));
    }
}

/// Watches servers until each kind of call has had a round without noise.
fn expect_two_per_call(watch: impl Fn() -> BTreeMap<String, usize>) {
    let mut fewest = watch();
    // The marks are answered and received too.
    let expected = 2 * (CALLS + 1);
    for _ in 1..SERVERS {
        if fewest.values().all(|count| *count == expected) {
            return;
        }
        for (kind, count) in watch() {
            fewest
                .entry(kind)
                .and_modify(|least| *least = (*least).min(count));
        }
    }
    assert!(
        fewest.values().all(|count| *count == expected),
        "{fewest:?}"
    );
}

#[test]
fn two_system_calls_per_call() {
    expect_two_per_call(watch_calls);
}

/// The system calls of the quietest round of each kind.
fn watch_calls() -> BTreeMap<String, usize> {
    let _alone = alone();
    let watched = Watched::start("server::served_process");
    let addresses = watched.addresses.clone();
    for (transport, address) in ["tcp", "unix", "udp"].iter().zip(&addresses) {
        run_rounds(address, &format!("{transport}-null"), 0, &[]);
        let bytes = words(&[1440]);
        run_rounds(address, &format!("{transport}-maxresult"), BIG, &bytes);
    }
    let trace = watched.finish();
    let kinds = ["tcp", "unix", "udp"].iter().flat_map(|transport| {
        ["null", "maxresult"].map(|procedure| format!("{transport}-{procedure}"))
    });
    kinds.map(|kind| fewest(&trace, kind)).collect()
}

/// The system calls of the quietest round of this kind.
fn fewest(trace: &str, kind: String) -> (String, usize) {
    let counts = (0..ROUNDS).map(|round| {
        let mark = format!("{kind}-{round}");
        system_calls_between(trace, &format!("{mark}-begin"), &format!("{mark}-end"))
    });
    let count = counts.min().unwrap();
    (kind, count)
}

/// Makes lean calls in rounds between marks that carry `label`.
fn run_lean_rounds(address: &str, label: &str) {
    let client = lean_steady::client(&format!("lean+{address}"));
    // The first of all says so much beside that a mark would not be seen.
    lean_steady::call(&client, 0);
    let mark = |name: String| {
        let put = |out: &mut Encoder<'_, Lean>| {
            out.room(name.len()).copy_from_slice(name.as_bytes());
            Ok(())
        };
        client
            .lean()
            .call(lean_caller::ECHO.into(), put, |_| Ok(()))
            .unwrap();
    };
    for round in 0..ROUNDS {
        mark(format!("{label}-{round}-begin"));
        (0..CALLS as u32).for_each(|number| lean_steady::call(&client, number));
        mark(format!("{label}-{round}-end"));
    }
}

#[test]
fn two_system_calls_per_lean_call() {
    expect_two_per_call(watch_lean_calls);
}

fn watch_lean_calls() -> BTreeMap<String, usize> {
    let _alone = alone();
    let watched = Watched::start("server::lean_process");
    let addresses = watched.addresses.clone();
    let transports = ["tcp", "unix", "udp"];
    for (transport, address) in transports.iter().zip(&addresses) {
        run_lean_rounds(address, transport);
    }
    let trace = watched.finish();
    let kinds = transports.iter().map(ToString::to_string);
    kinds.map(|kind| fewest(&trace, kind)).collect()
}
