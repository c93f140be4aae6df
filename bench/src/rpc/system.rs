//! The systems that take part, and the commands that start them.

use std::path::{Path, PathBuf};

use tenon_bench_common::address::Transport;
use tenon_bench_common::protocol::Protocol;

use super::networks;
use super::peer::Peer;
use super::row::{Mode, Row};

/// A system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Somebody else's.
    Peer(Peer),
    /// Generated stubs on Tenon's run time.
    Tenon(Variant),
    /// The same bytes over the same kind of socket, and nothing else.
    Raw,
}

/// What of Tenon's is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The lean protocol where there is one, ONC RPC over UDP. Calls one at a time wait as the row says,
    /// others adaptively.
    Main,
    /// ONC RPC over streams.
    Onc,
    /// As the main one, but waiting as Tenon does if nothing is said.
    Adaptive,
    /// The lean protocol on tokio, at both ends.
    Tokio,
    /// The lean protocol over TCP, beside the packet exchange.
    Tcp,
    /// The packet exchange by the kernel's sockets, beside the one past them.
    Udp,
}

impl Variant {
    const ALL: [Variant; 6] = [
        Variant::Main,
        Variant::Onc,
        Variant::Adaptive,
        Variant::Tokio,
        Variant::Tcp,
        Variant::Udp,
    ];

    fn name(self) -> &'static str {
        match self {
            Variant::Main => "tenon",
            Variant::Onc => "tenon_onc",
            Variant::Adaptive => "tenon_adaptive",
            Variant::Tokio => "tenon_tokio",
            Variant::Tcp => "tenon_tcp",
            Variant::Udp => "tenon_udp",
        }
    }

    fn protocol(self, transport: Transport) -> Protocol {
        match (self, transport.is_stream()) {
            (Variant::Tcp | Variant::Udp, _)
            | (Variant::Main | Variant::Adaptive | Variant::Tokio, true) => Protocol::Lean,
            (Variant::Main | Variant::Adaptive | Variant::Tokio, false) | (Variant::Onc, _) => {
                Protocol::Onc
            }
        }
    }
}

impl System {
    /// Those that take part beside some peers, in the order of their turns.
    pub fn beside(peers: &[Peer]) -> Vec<System> {
        let peers = peers.iter().map(|peer| System::Peer(*peer));
        let own = Variant::ALL.map(System::Tenon);
        peers.chain(own).chain([System::Raw]).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            System::Peer(peer) => peer.name(),
            System::Tenon(variant) => variant.name(),
            System::Raw => "raw",
        }
    }

    /// Why it does not take part in a row.
    pub fn left_out(self, row: &Row) -> Option<&'static str> {
        match self {
            System::Peer(peer) => peer.left_out(row),
            System::Tenon(Variant::Udp) if row.transport != Transport::Xdp => {
                Some("stands beside what goes past the kernel")
            }
            System::Tenon(Variant::Main | Variant::Udp) if row.transport == Transport::Xdp => None,
            System::Tenon(Variant::Tokio) if row.transport == Transport::Xdp => {
                Some("would need the interface, which tenon has")
            }
            System::Tenon(_) | System::Raw if row.transport == Transport::Xdp => {
                Some("does not go past the kernel, or is tenon there")
            }
            System::Tenon(Variant::Onc) if !row.transport.is_stream() => Some("is tenon there"),
            System::Tenon(Variant::Onc) if row.transport == Transport::Shm => {
                Some("goes through sockets")
            }
            System::Tenon(Variant::Onc) if row.transport == Transport::Exchange => {
                Some("does not speak the packet exchange")
            }
            System::Tenon(Variant::Tcp) if row.transport != Transport::Exchange => {
                Some("stands beside the packet exchange")
            }
            System::Raw if !row.is_datagram() => Some("is one datagram"),
            System::Raw if row.transport == Transport::Shm && row.mode != Mode::Spin => {
                Some("never sleeps in shared memory")
            }
            System::Tenon(Variant::Adaptive) if row.mode.waiting() == "adaptive" => {
                Some("is tenon there")
            }
            System::Tenon(Variant::Tokio) if !row.transport.is_stream() => {
                Some("speaks the packet exchange in datagrams")
            }
            System::Tenon(_) => None,
            System::Raw if row.mode.in_flight() > 1 => Some("has one call at a time"),
            System::Raw if row.mode.clients() > 1 => Some("has one client"),
            System::Raw => None,
        }
    }

    /// Whether what it puts on the wire is neither what others do nor known beforehand.
    pub fn has_bytes_of_its_own(self) -> bool {
        match self {
            // Nothing of it can be seen on a wire.
            System::Peer(Peer::Iceoryx2) => false,
            System::Peer(_) | System::Tenon(Variant::Main | Variant::Onc) => true,
            System::Tenon(Variant::Adaptive | Variant::Tokio | Variant::Tcp | Variant::Udp)
            | System::Raw => false,
        }
    }

    /// Whether its server spins in a row, even when it has nothing to do.
    pub fn spins(self, row: &Row) -> bool {
        match self {
            System::Peer(peer) => peer.spins(),
            System::Tenon(Variant::Tokio) => false,
            System::Tenon(_) | System::Raw => self.waiting(row) == "spin",
        }
    }

    /// What starts the server.
    pub fn server(self, row: &Row) -> Vec<String> {
        let mut command = place(row, "server");
        command.extend(self.command("server"));
        match self {
            System::Peer(_) | System::Tenon(Variant::Tokio) => {}
            System::Tenon(_) => command.push(self.waiting(row).to_owned()),
            System::Raw => {
                command.push(self.waiting(row).to_owned());
                command.extend(raw_sizes(row));
            }
        }
        command.push(match self.transport(row) {
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
        });
        command
    }

    /// What starts the client, but for the address behind it.
    pub fn client(self, row: &Row) -> Vec<String> {
        let mut command = place(row, "client");
        command.extend(self.command("client"));
        match self {
            System::Peer(_) | System::Tenon(Variant::Tokio) => command.extend(task(row)),
            System::Tenon(variant) => {
                let protocol = variant.protocol(self.transport(row)).name();
                command.extend([protocol, self.waiting(row)].map(str::to_owned));
                command.extend(task(row));
            }
            System::Raw => {
                command.push(self.waiting(row).to_owned());
                command.extend(raw_sizes(row));
            }
        }
        command
    }

    /// What it goes through.
    fn transport(self, row: &Row) -> Transport {
        match self {
            System::Tenon(Variant::Tcp) => Transport::Tcp,
            System::Tenon(Variant::Udp) => Transport::Udp,
            System::Peer(_) | System::Tenon(_) | System::Raw => row.transport,
        }
    }

    fn waiting(self, row: &Row) -> &'static str {
        match self {
            System::Tenon(Variant::Adaptive) => "adaptive",
            System::Peer(_) | System::Tenon(_) | System::Raw => row.mode.waiting(),
        }
    }

    fn command(self, role: &str) -> Vec<String> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
        let program = |name: &str| target.join("release").join(name).display().to_string();
        let own = |name| vec![program(&format!("{name}_{role}"))];
        match self {
            System::Peer(peer) => peer.command(&target, role),
            System::Tenon(Variant::Tokio) => vec![program("tenon_tokio"), role.to_owned()],
            System::Tenon(_) => own("tenon"),
            System::Raw => own("raw"),
        }
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
    arguments.push(row.mode.in_flight().to_string());
    arguments
}

/// As many bytes as Tenon sends.
fn raw_sizes(row: &Row) -> [String; 2] {
    let protocol = Variant::Main.protocol(row.transport);
    row.message_bytes(protocol).map(|bytes| bytes.to_string())
}
