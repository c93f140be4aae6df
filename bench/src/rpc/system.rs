//! The systems that take part, and the commands that start them.

use std::path::{Path, PathBuf};

use tenon_bench::address::Transport;

use super::row::Row;

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

    /// Why it does not take part in a row.
    pub fn left_out(self, row: &Row) -> Option<&'static str> {
        let bytes = row.operation.call_bytes().max(row.operation.reply_bytes());
        let too_large = row.transport == Transport::Udp && bytes > LIBTIRPC_DATAGRAM_MAX;
        (self == System::Libtirpc && too_large)
            .then_some("libtirpc carries no more than 8000 bytes over UDP")
    }

    /// What starts the server: it prints its address and `ready`.
    pub fn server(self, row: &Row) -> Vec<String> {
        let listen = match row.transport {
            Transport::Unix => format!("unix={}", self.socket().display()),
            other => other.to_string(),
        };
        let mut command = vec![self.program("server")];
        if self == System::Raw {
            command.extend(raw_sizes(row));
        }
        command.push(listen);
        command
    }

    /// What starts the client, but for the address behind it.
    pub fn client(self, row: &Row) -> Vec<String> {
        let mut command = vec![self.program("client")];
        match self {
            System::Raw => command.extend(raw_sizes(row)),
            _ => command.extend(row.operation.arguments()),
        }
        command
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

fn raw_sizes(row: &Row) -> [String; 2] {
    let mark = row.transport.mark_bytes();
    let sizes = [row.operation.call_bytes(), row.operation.reply_bytes()];
    sizes.map(|bytes| (bytes + mark).to_string())
}
