//! Gates: calls are held at them until a test lets them go on, however long that takes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A thread that is held goes on after so long, so that nothing hangs when a test has failed.
const LONGEST: Duration = Duration::from_secs(60);

static OPEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
static OPENED: Condvar = Condvar::new();

/// A gate that is closed.
pub fn fresh_gate() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Lets everybody through, for good.
pub fn open(gate: u32) {
    OPEN.lock().unwrap().insert(gate);
    OPENED.notify_all();
}

pub fn is_open(gate: u32) -> bool {
    OPEN.lock().unwrap().contains(&gate)
}

/// Waits until the gate is open.
pub fn hold(gate: u32) {
    let is_closed = |open: &mut BTreeSet<u32>| !open.contains(&gate);
    drop(OPENED.wait_timeout_while(OPEN.lock().unwrap(), LONGEST, is_closed));
}
