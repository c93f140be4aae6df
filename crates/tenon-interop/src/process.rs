//! Processes that cannot outlive or hang a test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Time that a process may take to do what a test asks of it.
const PATIENCE: Duration = Duration::from_secs(180);

/// A process in the background that is killed when this value is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Vec<String>,
}

impl Process {
    /// Starts `command`, the output of which is of no interest.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn background(mut command: Command) -> Process {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Process {
            child: spawn(&mut command),
            lines: Vec::new(),
        }
    }

    /// Starts `command` and waits until it prints a line `ready`.
    ///
    /// # Panics
    /// If it cannot be started, or ends or dawdles before it is ready.
    pub fn start(mut command: Command) -> Process {
        let mut child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()));
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Process {
            child,
            lines: Vec::new(),
        };
        process.lines = lines_before_ready(output)
            .unwrap_or_else(|why| panic!("{command:?} did not get ready: {why}"));
        process
    }

    /// Returns the lines that it printed before it was ready.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(command: &mut Command) -> Child {
    command
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

fn lines_before_ready(output: impl BufRead + Send + 'static) -> Result<Vec<String>, String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // Reads on after `ready`, so that the process never blocks on a full pipe.
        output
            .lines()
            .map_while(Result::ok)
            .for_each(|line| drop(sender.send(line)));
    });
    let deadline = Instant::now() + PATIENCE;
    let mut lines = Vec::new();
    loop {
        let line = receiver
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .map_err(|error| format!("{error}, after {lines:?}"))?;
        if line == "ready" {
            return Ok(lines);
        }
        lines.push(line);
    }
}

/// Runs `command` to its end and returns what it printed.
///
/// # Panics
/// If it cannot be started, fails, or takes longer than three minutes.
pub fn run(mut command: Command) -> String {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = spawn(&mut command);
    let id = child.id();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(PATIENCE) else {
        let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        panic!("{command:?} takes longer than {PATIENCE:?}");
    };
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}: {errors}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
