//! Running the command as a user would.
#![allow(dead_code)] // each test file uses its own part

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What a run of the command left behind.
#[derive(Debug)]
pub struct Run {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Stdout of a run that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.status, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Stderr of a run that must have failed with `status`.
    #[track_caller]
    pub fn fails_with(self, status: i32) -> String {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        self.stderr
    }
}

/// Runs `tenon` in the repository's root.
pub fn tenon(arguments: &[&str]) -> Run {
    tenon_reading(arguments, "")
}

/// Runs `tenon` in the repository's root with these variables of the environment.
pub fn tenon_with(arguments: &[&str], environment: &[(&str, &str)]) -> Run {
    let mut command = command(arguments);
    run(command.envs(environment.iter().copied()), "")
}

/// Runs `tenon` with `input` on stdin.
pub fn tenon_reading(arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
    run(&mut command(arguments), input)
}

/// Runs `tenon` with no capabilities but those that `bounds` leaves, in setpriv's words.
pub fn tenon_within(bounds: &str, arguments: &[&str]) -> Run {
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--bounding-set={bounds}"))
        .args(["--inh-caps=-all", "--ambient-caps=-all"])
        .arg(env!("CARGO_BIN_EXE_tenon"))
        .args(arguments)
        .current_dir(root());
    run(&mut command, "")
}

fn run(command: &mut Command, input: impl AsRef<[u8]>) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    // A command that fails early does not read its input.
    let _ = stdin.write_all(input.as_ref());
    drop(stdin);
    let output = child.wait_with_output().expect("the command ends");
    Run {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// The command, to be run in the repository's root.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    command.args(arguments).current_dir(root());
    command
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `tenon demo --serve`, which ends with this value.
pub struct DemoServer {
    child: Child,
    pub tcp: String,
    pub udp: String,
    pub unix: String,
    pub shm: String,
}

impl DemoServer {
    pub fn start() -> Self {
        let mut child = command(&["demo", "--serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let output = child.stdout.take().expect("stdout is a pipe");
        let mut lines = BufReader::new(output).lines();
        let mut address = || {
            let line = lines.next().expect("an address is announced");
            line.expect("the address is UTF-8")
        };
        Self {
            tcp: address(),
            udp: address(),
            unix: address(),
            shm: address(),
            child,
        }
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
