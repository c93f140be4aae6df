//! The commands that start servers and clients.

use std::path::{Path, PathBuf};

use tenon_bench_common::address::Transport;

use super::mode::Mode;
use super::networks;
use super::peer::Peer;
use super::row::Row;
use super::system::{System, Variant};

impl System {
    /// What starts the server.
    pub fn server(self, row: &Row) -> Vec<String> {
        let mut command = place(row, "server");
        match self {
            System::Peer(peer) => command.extend(peer.command(&target(), "server")),
            System::Tenon(Variant::Tokio) => {
                command.extend([program("tenon_tokio"), "server".to_owned()]);
                command.push(self.waiting(row).to_owned());
            }
            System::Tenon(variant) => {
                let mut waiting = self.waiting(row).to_owned();
                if variant == Variant::Middleware {
                    waiting.push_str("+middleware");
                }
                command.extend([program("tenon_server"), waiting]);
            }
            System::Raw => {
                command.push(program(raw_server(row.mode)));
                command.push(self.waiting(row).to_owned());
                command.extend(raw_sizes(row));
            }
        }
        command.push(self.listen(row));
        command
    }

    /// Where the server listens.
    fn listen(self, row: &Row) -> String {
        match self.transport(row) {
            Transport::Exchange => Transport::Udp.to_string(),
            Transport::Xdp => format!("xdp={}", networks::PAST_KERNEL),
            Transport::Udp if row.transport == Transport::Xdp => {
                format!("udp={}", networks::BY_KERNEL)
            }
            // tarpc is what calls in memory are held against, too.
            Transport::Shm if self == System::Peer(Peer::Tarpc) => {
                format!("unix={}", self.socket().display())
            }
            path @ (Transport::Unix | Transport::Shm) => {
                format!("{path}={}", self.socket().display())
            }
            other => other.to_string(),
        }
    }

    /// What starts the client, but for the address behind it.
    pub fn client(self, row: &Row) -> Vec<String> {
        let mut command = place(row, "client");
        command.extend(match (row.mode, self) {
            (Mode::Clients(_), System::Peer(peer)) if !peer.speaks_onc() => {
                self.client_of_calls(row)
            }
            (Mode::Clients(count), _) => {
                vec![program("onc_connections_client"), count.to_string()]
            }
            (Mode::Threads(count), _) => self.client_of_threads(row, count),
            _ => self.client_of_calls(row),
        });
        command
    }

    /// One that is told an operation, and how many calls to have in flight.
    fn client_of_calls(self, row: &Row) -> Vec<String> {
        let waiting = self.waiting(row).to_owned();
        let mut command = match self {
            System::Peer(peer) => peer.command(&target(), "client"),
            System::Tenon(Variant::Tokio) => {
                vec![program("tenon_tokio"), "client".to_owned(), waiting]
            }
            System::Tenon(Variant::Metadata) => {
                vec![program("tenon_client"), "lean+metadata".to_owned(), waiting]
            }
            System::Tenon(Variant::Middleware) => {
                vec![
                    program("tenon_client"),
                    "lean+middleware".to_owned(),
                    waiting,
                ]
            }
            System::Tenon(variant) => {
                let protocol = variant.protocol(self.transport(row)).name();
                vec![program("tenon_client"), protocol.to_owned(), waiting]
            }
            System::Raw => vec![program("raw_client"), waiting],
        };
        match self {
            System::Raw => command.extend(raw_sizes(row)),
            System::Peer(_) | System::Tenon(_) => command.extend(task(row)),
        }
        command
    }

    fn client_of_threads(self, row: &Row, count: usize) -> Vec<String> {
        let mut command;
        if let System::Tenon(variant) = self {
            let protocol = variant.protocol(row.transport).name();
            command = vec![program("tenon_threads_client")];
            command.extend([protocol, self.waiting(row)].map(str::to_owned));
            command.push(count.to_string());
        } else {
            command = vec![program("raw_threads_client"), count.to_string()];
            command.extend(raw_sizes(row));
        }
        command
    }
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target")
}

/// One of our programs.
fn program(name: &str) -> String {
    target().join("release").join(name).display().to_string()
}

fn raw_server(mode: Mode) -> &'static str {
    if mode.has_many_callers() {
        "raw_echo_server"
    } else {
        "raw_server"
    }
}

/// What starts a command in the network that it belongs to.
fn place(row: &Row, role: &str) -> Vec<String> {
    match row.transport {
        Transport::Xdp => networks::inside(role),
        Transport::Tcp
        | Transport::Udp
        | Transport::Unix
        | Transport::Shm
        | Transport::Exchange => Vec::new(),
    }
}

/// What a client is to do, in front of the address; `tenon_bench_common::task` reads it.
fn task(row: &Row) -> Vec<String> {
    let mut arguments = row.operation.arguments().to_vec();
    arguments.push(match row.mode {
        Mode::Clients(count) => format!("1x{count}"),
        mode => mode.in_flight().to_string(),
    });
    arguments
}

/// As many bytes as Tenon sends.
fn raw_sizes(row: &Row) -> [String; 2] {
    let variant = match row.mode {
        Mode::Clients(_) => Variant::Onc,
        _ => Variant::Main,
    };
    let protocol = variant.protocol(row.transport);
    row.message_bytes(protocol).map(|bytes| bytes.to_string())
}
