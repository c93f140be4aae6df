//! Counts system calls: what a child process makes, as strace sees it.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Says to a test that it is the child, and how many calls it is to make.
const CALLS: &str = "TENON_TEST_CALLS";
/// Says to the child where its peer is.
const ADDRESS: &str = "TENON_TEST_ADDRESS";

/// What a child is to do.
pub struct Orders {
    pub address: String,
    pub calls: u32,
}

/// The orders, if the present process is a child that was given some.
pub fn orders() -> Option<Orders> {
    let address = std::env::var(ADDRESS).ok()?;
    let calls = std::env::var(CALLS).ok()?.parse().unwrap();
    Some(Orders { address, calls })
}

/// Waits until no other test of this process counts: whatever is late, as another one takes the processor, waits or
/// repeats what it has sent, which counts.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// System calls by name.
pub type Counts = BTreeMap<String, u64>;

/// How long a round is waited for that is free of noise.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes rounds of `calls` calls until the system calls of one are as they are to be. On a machine that is
/// busy with something else a thread may get to run so late that a call is sent again, or that the
/// connection has rested and is looked at first: what every call costs, every round shows.
#[track_caller]
pub fn expect_system_calls(
    child: &str,
    address: &str,
    calls: u32,
    is_well: impl Fn(&Counts) -> bool,
) {
    let _alone = alone();
    let end = Instant::now() + PATIENCE;
    loop {
        let counts = system_calls_of(child, address, calls);
        if is_well(&counts) {
            return;
        }
        assert!(Instant::now() < end, "{address}: {counts:?}");
    }
}

/// Whether `calls` calls cost no more than that each sends and receives once. The scheduler of a busy
/// machine may cause a few others, never one per call.
pub fn sends_and_receives_once(counts: &Counts, calls: u32) -> bool {
    let (sent, received) = (count(counts, "sendto"), count(counts, "recvfrom"));
    sent == u64::from(calls) && received == sent && all(counts) - sent - received < 20
}

pub fn all(counts: &Counts) -> u64 {
    counts.values().sum()
}

pub fn count(counts: &Counts, name: &str) -> u64 {
    counts.get(name).copied().unwrap_or(0)
}

/// What `calls` calls to `address` cost beyond what the same child does without them. The child is
/// the test called `child` in the running test binary; it follows its [`orders`].
pub fn system_calls_of(child: &str, address: &str, calls: u32) -> Counts {
    /// Calls until everything is set up.
    const WARM: u32 = 100;
    let warm = traced(child, address, WARM);
    let mut counts = traced(child, address, WARM + calls);
    for (name, count) in warm {
        let entry = counts.entry(name).or_default();
        *entry = entry.saturating_sub(count);
    }
    counts.retain(|_, count| *count > 0);
    counts
}

fn traced(child: &str, address: &str, calls: u32) -> Counts {
    let summary = strace(&["-c"], child, address, calls);
    let counts = parse_summary(&summary);
    assert!(!counts.is_empty(), "strace counted nothing: {summary}");
    counts
}

/// Counts the system calls of one name whose arguments contain a word, of all that the child makes for `calls` calls.
pub fn count_in_trace(
    child: &str,
    address: &str,
    calls: u32,
    (name, argument): (&str, &str),
) -> usize {
    let trace = strace(&["-e", &format!("trace={name}")], child, address, calls);
    let lines = trace.lines();
    lines.filter(|line| line.contains(argument)).count()
}

/// Runs the child under strace, and returns what that says.
fn strace(options: &[&str], child: &str, address: &str, calls: u32) -> String {
    let output = Command::new("strace")
        .args(["-f", "-o", "/dev/stderr", "-qq"])
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", child, "--test-threads=1"])
        .env(ADDRESS, address)
        .env(CALLS, calls.to_string())
        .output()
        .expect("this test needs strace: apt-get install strace");
    let (told, trace) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}\n{trace}");
    assert!(
        told.contains("1 passed"),
        "no test is called {child}: {told}"
    );
    trace
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads strace's table: share, seconds, microseconds per call, calls, perhaps errors, name.
fn parse_summary(summary: &str) -> Counts {
    let rows = summary.lines().map(|line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let count = columns.get(3)?.parse().ok()?;
        let name = *columns.last()?;
        (name != "total").then(|| (name.to_owned(), count))
    });
    rows.flatten().collect()
}
