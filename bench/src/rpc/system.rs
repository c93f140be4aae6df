//! The systems that take part, and the commands that start them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use tenon_bench::address::Transport;
use tenon_bench::operation::Operation;

use super::row::{Mode, Row};

/// Bytes of a message that libtirpc carries over UDP.
const LIBTIRPC_DATAGRAM_MAX: usize = 8000;

/// A system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// rpcgen's stubs on libtirpc, TCP_NODELAY set on both ends.
    Libtirpc,
    /// Generated stubs on Tenon's run time.
    Tenon,
    /// The same bytes over the same kind of socket, and nothing else.
    Raw,
}

impl System {
    /// In the order of their turns.
    pub const ALL: [System; 3] = [System::Libtirpc, System::Tenon, System::Raw];

    pub fn name(self) -> &'static str {
        match self {
            System::Libtirpc => "libtirpc",
            System::Tenon => "tenon",
            System::Raw => "raw",
        }
    }

    /// Whether it is somebody else's, whom one may leave out.
    pub fn is_peer(self) -> bool {
        match self {
            System::Libtirpc => true,
            System::Tenon | System::Raw => false,
        }
    }

    /// Why it does not take part in a row.
    pub fn left_out(self, row: &Row) -> Option<&'static str> {
        match self {
            System::Libtirpc if !row.fits_datagram(LIBTIRPC_DATAGRAM_MAX) => {
                Some("carries no more than 8000 bytes over UDP")
            }
            System::Libtirpc | System::Raw if row.mode.in_flight() > 1 => {
                Some("has one call at a time on a connection")
            }
            System::Raw if row.mode.clients() > 1 => Some("has one client"),
            System::Libtirpc | System::Tenon | System::Raw => None,
        }
    }

    /// Whether its server spins in a row, even when it has nothing to do.
    pub fn spins(self, row: &Row) -> bool {
        let can = match self {
            System::Raw => true,
            System::Libtirpc | System::Tenon => false,
        };
        can && row.mode == Mode::Spin
    }

    /// What starts the server.
    pub fn server(self, row: &Row) -> Vec<String> {
        let listen = match row.transport {
            Transport::Unix => format!("unix={}", self.socket().display()),
            other => other.to_string(),
        };
        let mut command = vec![self.program("server")];
        match self {
            System::Libtirpc => {}
            System::Tenon => command.push(self.waiting(row)),
            System::Raw => {
                command.push(self.waiting(row));
                command.extend(raw_sizes(row));
            }
        }
        command.push(listen);
        command
    }

    /// What starts the client, but for the address behind it.
    pub fn client(self, row: &Row) -> Vec<String> {
        let mut command = vec![self.program("client")];
        match self {
            System::Libtirpc => command.extend(task(row)),
            System::Tenon => {
                command.extend(["onc".to_owned(), self.waiting(row)]);
                command.extend(task(row));
            }
            System::Raw => {
                command.push(self.waiting(row));
                command.extend(raw_sizes(row));
            }
        }
        command
    }

    fn waiting(self, row: &Row) -> String {
        match self.spins(row) {
            true => "spin".to_owned(),
            false => "block".to_owned(),
        }
    }

    fn program(self, role: &str) -> String {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
        let folder = match self {
            System::Libtirpc => "rpc",
            System::Tenon | System::Raw => "release",
        };
        let program = target.join(folder).join(format!("{}_{role}", self.name()));
        program.display().to_string()
    }

    /// A path where no socket is.
    fn socket(self) -> PathBuf {
        self.remove_socket();
        self.socket_path()
    }

    /// Removes the socket of the row before, if there was one: servers are killed.
    pub fn remove_socket(self) {
        let _ = std::fs::remove_file(self.socket_path());
    }

    fn socket_path(self) -> PathBuf {
        let name = format!("tenon-bench-{}-{}.sock", std::process::id(), self.name());
        std::env::temp_dir().join(name)
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = System::ALL.into_iter();
        all.find(|system| system.name() == name)
            .ok_or_else(|| format!("nobody is called {name}"))
    }
}

/// What a client is to do, in front of the address; `tenon_bench::task` reads it.
fn task(row: &Row) -> Vec<String> {
    let mut arguments = row.operation.arguments().to_vec();
    arguments.push(row.mode.in_flight().to_string());
    arguments
}

fn raw_sizes(row: &Row) -> [String; 2] {
    let mark = row.transport.mark_bytes();
    let operation: Operation = row.operation;
    let sizes = [operation.call_bytes(), operation.reply_bytes()];
    sizes.map(|bytes| (bytes + mark).to_string())
}
