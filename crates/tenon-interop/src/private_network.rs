//! A network of one's own: a namespace with nothing but loopback, in which rpcbind may take its port and a capture sees
//! no other traffic.

use std::env;
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Process, run};

/// Set for the process inside.
const INSIDE: &str = "TENON_PRIVATE_NETWORK";

/// Gives the namespace its loopback and an empty `/run`, then becomes the test again.
const PREPARE: &str = "set -e; mount -t tmpfs tmpfs /run; mkdir -p /run/rpcbind; \
    ip link set lo up; exec \"$@\"";

/// Runs `body` in a private network: the test called `test` starts its own program again, for
/// itself alone, in new namespaces. Needs root, as the namespaces do.
///
/// # Panics
/// If `body` does, or if the namespaces cannot be made.
pub fn in_private_network(test: &str, body: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    let mut command = Command::new("unshare");
    command
        .args([
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ])
        .args(["bash", "-c", PREPARE, "bash"])
        .arg(env::current_exe().expect("a test knows its program"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1");
    let said = run(command);
    assert!(said.contains("1 passed"), "{test} did not run: {said}");
}

/// Starts rpcbind, which only makes sense in a private network, and waits until it answers.
///
/// # Panics
/// If it cannot be started.
pub fn start_rpcbind() -> Process {
    assert!(env::var_os(INSIDE).is_some(), "not in a private network");
    let mut command = Command::new("rpcbind");
    command.args(["-f", "-w", "-r"]);
    let rpcbind = Process::background(command);
    wait_for_port(111);
    rpcbind
}

/// Waits until something listens on a TCP port of loopback.
///
/// # Panics
/// If nothing does for a minute.
pub fn wait_for_port(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nothing listens on port {port}");
        thread::sleep(Duration::from_millis(20));
    }
}
