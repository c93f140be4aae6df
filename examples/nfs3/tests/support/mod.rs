//! What the tests share: a place for files, the server and the client as processes, and what is
//! missing on this machine.
#![allow(clippy::unwrap_used, dead_code)]

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_interop::{Process, run};

/// Bytes of the large file that is copied to and fro; no multiple of any size of message.
pub const LARGE: usize = 20_000_003;

/// A folder that is gone when this value is dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder that no other test uses.
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tenon-nfs3-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Its own path.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// The path of `name` in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a file of `len` bytes without a pattern, which `seed` chooses.
pub fn make_random_file(path: &Path, len: usize, seed: u64) {
    fs::write(path, random_bytes(len, seed)).unwrap();
}

/// Bytes without a pattern (xorshift64).
pub fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| next()).collect();
    bytes.truncate(len);
    bytes
}

/// Whether two files hold the same bytes; the bytes themselves would drown the message.
pub fn assert_same(one: &Path, other: &Path) {
    let (one_bytes, other_bytes) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    let differs = one_bytes.iter().zip(&other_bytes).position(|(a, b)| a != b);
    assert_eq!(
        differs,
        None,
        "{} and {} differ at that byte",
        one.display(),
        other.display()
    );
    assert_eq!(one_bytes.len(), other_bytes.len());
}

/// A running `nfs3-server`.
pub struct ServerProcess(Process);

impl ServerProcess {
    /// Starts one on a free TCP port and a free UDP port.
    pub fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nfs3-server"));
        command.args(["--listen", "tcp://127.0.0.1:0"]);
        command.args(["--listen", "udp://127.0.0.1:0"]);
        Self(Process::start(command))
    }

    /// Where it listens for TCP.
    pub fn tcp(&self) -> &str {
        &self.0.lines()[0]
    }

    /// Where it listens for UDP.
    pub fn udp(&self) -> &str {
        &self.0.lines()[1]
    }

    /// What libnfs calls `path` below the export.
    pub fn libnfs_url(&self, path: &str) -> String {
        let port = self.tcp().rsplit(':').next().unwrap();
        format!("nfs://127.0.0.1/export{path}?nfsport={port}&mountport={port}")
    }
}

/// Runs `nfs3-client` against `address` with `arguments` and returns what it printed.
pub fn client(address: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfs3-client"));
    command.arg(address).args(arguments);
    run(command)
}

/// Whether `programs` and, if asked for, the rights of root are here. Says loudly what is missing.
pub fn can_run(test: &str, programs: &[&str], as_root: bool) -> bool {
    let mut missing: Vec<_> = programs
        .iter()
        .filter(|name| !is_installed(name))
        .copied()
        .collect();
    if as_root && !rustix::process::geteuid().is_root() {
        missing.push("the rights of root");
    }
    if !missing.is_empty() {
        // Not by eprintln!, which the harness hides when a test passes.
        let notice = format!("SKIPPED: {test} needs {}\n", missing.join(", "));
        io::stderr().write_all(notice.as_bytes()).unwrap();
    }
    missing.is_empty()
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders
        .map(|folder| folder.join(program))
        .any(|file| file.is_file())
}
