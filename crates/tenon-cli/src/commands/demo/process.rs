//! The demonstration's server process, and the private folder of its Unix socket.

use std::fs::{DirBuilder, remove_dir_all};
use std::io::{self, BufRead, BufReader};
#[cfg(unix)]
use std::os::unix::fs::DirBuilderExt;
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tenon::Waiting;

use super::service::addresses;
use crate::failure::CommandFailure;

/// The addresses at which a server listens.
#[derive(Clone, Copy)]
pub enum ListenAddresses<'a> {
    /// At what every process may listen at ([`addresses`]).
    Usual,
    /// At this address alone.
    Only(&'a str),
}

impl ListenAddresses<'_> {
    /// Returns the number of addresses that the server announces.
    fn count(self) -> usize {
        match self {
            Self::Usual => addresses(Path::new("")).len(),
            Self::Only(_) => 1,
        }
    }
}

/// A child that serves. It ends when this process does, for then its input ends.
pub struct ServerProcess {
    child: Child,
    addresses: Vec<String>,
}

impl ServerProcess {
    /// Starts this program again as the server, which waits so, and reads where it listens.
    pub fn start(waiting: Waiting, places: ListenAddresses<'_>) -> Result<Self, CommandFailure> {
        let at: &[&str] = match &places {
            ListenAddresses::Usual => &[],
            ListenAddresses::Only(address) => &["--at", address],
        };
        let mut command = Command::new(std::env::current_exe()?);
        let command = command
            .args(["demo", "--serve", "--wait", &waiting.to_string()])
            .args(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // So Ctrl-C ends this process alone, and the server, of which the input ends with it, takes its folder along.
        #[cfg(unix)]
        let command = command.process_group(0);
        let mut child = command.spawn().map_err(|error| {
            CommandFailure::new(format!("cannot start the server process: {error}"))
        })?;
        let mut addresses = Vec::new();
        if let Some(output) = child.stdout.take() {
            let lines = BufReader::new(output).lines().take(places.count());
            addresses = lines.collect::<io::Result<_>>()?;
        }
        let server = Self { child, addresses };
        match server.addresses.len() == places.count() {
            true => Ok(server),
            false => Err(CommandFailure::new(
                "the server process ended before it served",
            )),
        }
    }

    /// Returns the process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the addresses at which it listens.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Ends its input and waits for it.
    pub fn stop(mut self) -> Result<(), CommandFailure> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(CommandFailure::new(format!(
                "the server process failed: {status}"
            ))),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // A server that failed has said why itself.
        let _ = self.child.wait();
    }
}

/// A folder that goes away with the server.
pub struct PrivateDirectory(PathBuf);

#[cfg(unix)]
fn private_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// A user's folder for temporary files is private already.
#[cfg(windows)]
fn private_builder() -> DirBuilder {
    DirBuilder::new()
}

/// Makes a folder that only this user can enter.
pub fn private_directory() -> Result<PrivateDirectory, CommandFailure> {
    let mut number = 0_u32;
    loop {
        let name = format!("tenon-demo-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match private_builder().create(&path) {
            Ok(()) => return Ok(PrivateDirectory(path)),
            // Of a process that was killed and had the same number, or of one in another container.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => {
                let message = format!("cannot make the folder {}: {error}", path.display());
                return Err(CommandFailure::new(message));
            }
        }
    }
}

impl PrivateDirectory {
    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What is left over in the folder for temporary files does no harm.
        let _ = remove_dir_all(&self.0);
    }
}
