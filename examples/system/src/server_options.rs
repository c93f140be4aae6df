//! The options that the three servers share.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tenon::ServerLimits;

/// Bytes of a message beside its largest argument: names, numbers and the header.
const MESSAGE_OVERHEAD: usize = 4096;

/// Options of a server.
#[derive(Debug, Args)]
pub struct ServerOptions {
    /// Folder of the journal, and of all that outlives the server
    #[arg(long, default_value = ".")]
    data: PathBuf,

    /// Addresses to listen at: tcp://HOST:PORT, unix:///PATH, shm:///PATH
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,

    /// Wait for the disk before a change is acknowledged, so that it survives the death of the machine, too
    #[arg(long)]
    pub sync: bool,

    /// Seconds that calls which have begun may still take after SIGTERM
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    drain: u64,
}

impl ServerOptions {
    /// Returns where to listen: the addresses of the command line, or `default` if it has none.
    pub fn addresses(&self, default: &str) -> Vec<String> {
        if self.listen.is_empty() {
            vec![default.to_owned()]
        } else {
            self.listen.clone()
        }
    }

    /// Returns the path of `name` in the data folder, and makes the folder.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn data(&self, name: &str) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.data)?;
        Ok(self.data.join(name))
    }

    /// Returns the time for calls that have begun when the server stops.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }
}

/// Returns the limits of a server whose largest argument has `bytes`.
pub fn limits(bytes: u32) -> ServerLimits {
    ServerLimits {
        connections: 1000,
        message_bytes: bytes as usize + MESSAGE_OVERHEAD,
        idle_timeout: Some(Duration::from_secs(5 * 60)),
        ..ServerLimits::default()
    }
}
