//! The systems that take part, and in which rows.

use std::path::PathBuf;

use tenon_bench_common::address::Transport;
use tenon_bench_common::operation::Operation;
use tenon_bench_common::protocol::Protocol;

use super::mode::Mode;
use super::peer::Peer;
use super::row::Row;

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
    /// The main one with metadata on every call, and on replies of a service.
    Metadata,
    /// The main one with five middlewares around the client, and as many around the service.
    Middleware,
}

impl Variant {
    const ALL: [Variant; 8] = [
        Variant::Main,
        Variant::Onc,
        Variant::Adaptive,
        Variant::Tokio,
        Variant::Tcp,
        Variant::Udp,
        Variant::Metadata,
        Variant::Middleware,
    ];

    fn name(self) -> &'static str {
        match self {
            Variant::Main => "tenon",
            Variant::Onc => "tenon_onc",
            Variant::Adaptive => "tenon_adaptive",
            Variant::Tokio => "tenon_tokio",
            Variant::Tcp => "tenon_tcp",
            Variant::Udp => "tenon_udp",
            Variant::Metadata => "tenon_metadata",
            Variant::Middleware => "tenon_middleware",
        }
    }

    pub fn protocol(self, transport: Transport) -> Protocol {
        match (self, transport.is_stream()) {
            (Variant::Tcp | Variant::Udp | Variant::Metadata | Variant::Middleware, _)
            | (Variant::Main | Variant::Adaptive | Variant::Tokio, true) => Protocol::Lean,
            (Variant::Main | Variant::Adaptive | Variant::Tokio, false) | (Variant::Onc, _) => {
                Protocol::Onc
            }
        }
    }

    fn left_out_of_many_callers(self, row: &Row) -> Option<&'static str> {
        match (self, row.mode) {
            (Variant::Main, _) | (Variant::Tokio, Mode::Clients(_)) => None,
            (Variant::Tokio, _) => Some("has tasks, which need no threads"),
            (Variant::Onc | Variant::Adaptive, _) => Some("is tenon there"),
            (Variant::Tcp, _) => Some("stands beside the packet exchange"),
            (Variant::Udp, _) => Some("stands beside what goes past the kernel"),
            (Variant::Metadata | Variant::Middleware, _) => Some(AROUND_ALONE),
        }
    }
}

/// Why calls with something around them take part in few rows.
const AROUND_ALONE: &str = "is compared where the cost of the software shows";

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
            System::Tenon(Variant::Metadata | Variant::Middleware) => {
                let is_compared = row.mode == Mode::OneCore
                    && matches!(row.transport, Transport::Tcp | Transport::Unix)
                    && matches!(row.operation, Operation::Null | Operation::SayHello);
                (!is_compared).then_some(AROUND_ALONE)
            }
            System::Tenon(variant) if row.mode.has_many_callers() => {
                variant.left_out_of_many_callers(row)
            }
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
            System::Raw if row.transport == Transport::Shm && self.waiting(row) != "spin" => {
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
            System::Raw if row.mode.processes() > 1 => Some("has one client"),
            System::Raw => None,
        }
    }

    /// Whether what it puts on the wire is neither what others do nor known beforehand.
    pub fn has_bytes_of_its_own(self) -> bool {
        match self {
            // Nothing of it can be seen on a wire.
            System::Peer(Peer::Iceoryx2) => false,
            System::Peer(_) | System::Tenon(Variant::Main | Variant::Onc) => true,
            System::Tenon(
                Variant::Adaptive
                | Variant::Tokio
                | Variant::Tcp
                | Variant::Udp
                | Variant::Metadata
                | Variant::Middleware,
            )
            | System::Raw => false,
        }
    }

    /// Whether its server spins in a row, even when it has nothing to do.
    pub fn spins(self, row: &Row) -> bool {
        match self {
            System::Peer(peer) => peer.spins(),
            System::Tenon(_) | System::Raw => self.waiting(row) == "spin",
        }
    }

    /// What it goes through.
    pub fn transport(self, row: &Row) -> Transport {
        match self {
            System::Tenon(Variant::Tcp) => Transport::Tcp,
            System::Tenon(Variant::Udp) => Transport::Udp,
            System::Peer(_) | System::Tenon(_) | System::Raw => row.transport,
        }
    }

    pub fn waiting(self, row: &Row) -> &'static str {
        match self {
            System::Tenon(Variant::Adaptive) => "adaptive",
            // What it would learn is known.
            System::Raw if row.mode == Mode::Adaptive => "spin",
            System::Peer(_) | System::Tenon(_) | System::Raw => row.mode.waiting(),
        }
    }

    /// A path where no socket is.
    pub fn socket(self) -> PathBuf {
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
