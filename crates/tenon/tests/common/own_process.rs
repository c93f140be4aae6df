//! Runs a test in a process of its own, which counts nothing of other tests.

use std::env;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Says to a test that it is in a process of its own.
const OWN_PROCESS: &str = "TENON_TEST_OWN_PROCESS";

/// What is counted in one process may depend on what the processor does for another, so there is one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs the body of the test called `name` in another process of the same program, with no other such test beside it.
///
/// # Panics
/// If it fails there.
#[track_caller]
pub fn run(name: &str, body: impl FnOnce()) {
    if env::var_os(OWN_PROCESS).is_some() {
        return body();
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(OWN_PROCESS, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{errors}");
    assert!(
        told.contains("1 passed"),
        "no test is called {name}: {told}"
    );
}
