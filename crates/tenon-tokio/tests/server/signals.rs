//! Servers that serve until a signal: in processes of their own, by threads and by tasks.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::gate::fresh_gate;
use crate::common::obliging;
use crate::common::obliging::{HOLD, PATIENCE, PROGRAM, SLEEP, VERSION, interface, obliging};
use crate::common::place::fresh_host;
use rustix::process::{Pid, Signal, kill_process};
use tenon::Client;

/// Tells a child of this test which server it is: "threads" or "tasks".
const DRIVER: &str = "TENON_TEST_SIGNALS_DRIVER";

/// The server process. Run as a test of its own, it does nothing.
#[test]
fn serve_until_a_signal() {
    let Ok(driver) = std::env::var(DRIVER) else {
        return;
    };
    let address = format!("tcp://{}:0", fresh_host());
    let ended_by = if driver == "threads" {
        let builder = tenon::Server::builder().listen(&address).unwrap();
        let server = builder.service(obliging()).start().unwrap();
        println!("at {}", server.addresses()[0]);
        server.serve_until_signal(PATIENCE).unwrap()
    } else {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let builder = tenon_tokio::Server::builder().listen(&address).unwrap();
            let server = builder.sync_service(obliging()).start().await.unwrap();
            println!("at {}", server.addresses()[0]);
            server.serve_until_signal(PATIENCE).await.unwrap()
        })
    };
    println!("ended by {ended_by:?}");
}

struct Served {
    child: Child,
    lines: BufReader<ChildStdout>,
    address: String,
}

impl Served {
    fn start(driver: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "signals::serve_until_a_signal", "--nocapture"])
            .env(DRIVER, driver)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let address = find(&mut lines, "at ");
        Self {
            child,
            lines,
            address,
        }
    }

    /// Sends a signal, once the process catches it.
    fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.child);
        let status = format!("/proc/{}/status", self.child.id());
        let catches = || {
            let status = std::fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
            // What comes behind the handlers of both signals is registered within a moment.
            [Signal::TERM, Signal::INT]
                .iter()
                .all(|signal| caught >> (signal.as_raw() - 1) & 1 == 1)
        };
        while !catches() {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(100));
        kill_process(process, signal).unwrap();
    }

    fn client(&self) -> Client {
        let client = Client::connect(&self.address, PROGRAM, VERSION).unwrap();
        let client = client.with_interface(Arc::new(interface()));
        client.with_timeout(PATIENCE)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns what follows `mark` in the first line that begins with it.
fn find(lines: &mut impl BufRead, mark: &str) -> String {
    let mut lines = lines.lines().map(Result::unwrap);
    let line = lines.find(|line| line.starts_with(mark));
    line.unwrap().trim_start_matches(mark).to_owned()
}

fn call(client: &Client, procedure: u16, number: u32) -> Result<Vec<u8>, tenon::CallError> {
    let bytes = number.to_be_bytes();
    let onc = client.onc();
    onc.call(procedure.into(), obliging::put(&bytes), |input| {
        Ok(input.rest().to_vec())
    })
}

#[test]
fn a_signal_ends_a_server_when_its_calls_are_answered() {
    for driver in ["threads", "tasks"] {
        for signal in [Signal::TERM, Signal::INT] {
            let mut server = Served::start(driver);
            let client = server.client();
            // Connected before the server stops listening.
            call(&client, SLEEP, 0).unwrap();
            let running = thread::spawn(move || call(&client, SLEEP, 1000));
            server.signal(signal);
            running.join().unwrap().unwrap();
            let ended_by = find(&mut server.lines, "ended by ");
            assert_eq!(ended_by, format!("Some({})", signal.as_raw()), "{driver}");
            assert!(server.child.wait().unwrap().success(), "{driver}");
        }
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    for driver in ["threads", "tasks"] {
        let mut server = Served::start(driver);
        let client = server.client();
        call(&client, SLEEP, 0).unwrap();
        let gate = fresh_gate();
        let hangs = thread::spawn(move || call(&client, HOLD, gate));
        // The call has arrived by then, or will not be waited for.
        thread::sleep(Duration::from_millis(100));
        server.signal(Signal::TERM);
        thread::sleep(Duration::from_millis(200));
        assert!(server.child.try_wait().unwrap().is_none(), "{driver}");
        server.signal(Signal::TERM);
        let status = server.child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{driver}");
        hangs.join().unwrap().unwrap_err();
    }
}

#[test]
fn a_server_that_is_shut_down_waits_for_no_signal() {
    let address = format!("tcp://{}:0", fresh_host());
    let builder = tenon::Server::builder().listen(&address).unwrap();
    let server = Arc::new(builder.service(obliging()).start().unwrap());
    let stopping = Arc::clone(&server);
    let stopping = thread::spawn(move || stopping.shutdown(PATIENCE));
    assert_eq!(server.serve_until_signal(PATIENCE).unwrap(), None);
    stopping.join().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let builder = tenon_tokio::Server::builder().listen(&address).unwrap();
        let server = builder.sync_service(obliging()).start().await.unwrap();
        let (ended_by, ()) = tokio::join!(
            server.serve_until_signal(PATIENCE),
            server.shutdown(PATIENCE)
        );
        assert_eq!(ended_by.unwrap(), None);
    });
}
