//! The servers of the system as processes, in a folder of their own.
#![allow(dead_code, reason = "every test file uses its own part of this module")]
#![allow(clippy::unwrap_used)]

#[path = "../../../../crates/tenon/tests/common/place.rs"]
mod place;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A folder that goes away with this value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        let path = place::fresh_path();
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One of the three servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Kv,
    Jobs,
    Uploads,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Kv, Self::Jobs, Self::Uploads];

    fn binary(self) -> &'static str {
        match self {
            Self::Kv => env!("CARGO_BIN_EXE_kv-server"),
            Self::Jobs => env!("CARGO_BIN_EXE_jobs-server"),
            Self::Uploads => env!("CARGO_BIN_EXE_uploads-server"),
        }
    }

    /// Returns the path of the journal in the data folder.
    pub fn journal(self) -> &'static str {
        match self {
            Self::Kv => "kv.journal",
            Self::Jobs => "jobs.journal",
            Self::Uploads => "uploads/journal",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kv => "kv",
            Self::Jobs => "jobs",
            Self::Uploads => "uploads",
        }
    }
}

/// Ways to a server: schemes of addresses. Every server listens for all of them.
pub const WAYS: [&str; 5] = ["tcp", "unix", "lean+tcp", "lean+unix", "shm"];

/// A server that can be stopped and started again, at the same addresses, with the same data.
pub struct ServerPlace {
    pub kind: Kind,
    data: PathBuf,
    /// Of `tcp`, `unix` and `shm`.
    addresses: [String; 3],
    arguments: Vec<String>,
}

impl ServerPlace {
    pub fn new(kind: Kind, folder: &Folder, arguments: &[&str]) -> Self {
        let port = TcpListener::bind((place::fresh_host(), 0)).unwrap();
        let path = |name: &str| folder.0.join(format!("{}.{name}", kind.name()));
        let addresses = [
            format!("tcp://{}", port.local_addr().unwrap()),
            format!("unix://{}", path("unix").display()),
            format!("shm://{}", path("shm").display()),
        ];
        Self {
            kind,
            data: folder.0.join("data"),
            addresses,
            arguments: arguments.iter().copied().map(str::to_owned).collect(),
        }
    }

    /// The address by which a client reaches the server in one of the [`WAYS`].
    pub fn address(&self, way: &str) -> String {
        let [tcp, unix, shm] = &self.addresses;
        match way {
            "tcp" => tcp.clone(),
            "unix" => unix.clone(),
            "lean+tcp" => format!("lean+{tcp}"),
            "lean+unix" => format!("lean+{unix}"),
            _ => shm.clone(),
        }
    }

    pub fn journal(&self) -> PathBuf {
        self.data.join(self.kind.journal())
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(self.kind.binary());
        command.arg("--data").arg(&self.data);
        for address in &self.addresses {
            command.args(["--listen", address]);
        }
        command.args(&self.arguments);
        command
    }

    /// Starts the server, and returns when it listens.
    pub fn start(&self) -> ServerProcess {
        let mut child = self.command().stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        for address in &self.addresses {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            assert_eq!(line, format!("listening at {address}\n"));
        }
        ServerProcess { child, output }
    }
}

/// A server that runs. It is killed when this value is dropped.
pub struct ServerProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl ServerProcess {
    /// Ends the server in order, and returns what it says at the end.
    pub fn terminate(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut last_words = String::new();
        self.output.read_to_string(&mut last_words).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {last_words}");
        last_words
    }

    /// Kills the server, and returns when it is gone.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the client command, and returns what it prints, or the error that it reports.
pub fn run_client(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_system-client"));
    let output = command.args(arguments).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    if output.status.success() {
        assert_eq!(errors, "");
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(errors)
    }
}

/// Bytes of a file.
pub fn length_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}
