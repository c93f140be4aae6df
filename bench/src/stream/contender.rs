//! The systems that take part, and in which rows.

use std::path::{Path, PathBuf};

use tenon_bench::contestant::Plan;
use tenon_bench_common::address::Transport;
use tenon_bench_common::transfer::Content;

use super::row::Row;

/// A system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// gRPC in Rust.
    Tonic,
    /// gRPC in C++, of Debian.
    GrpcCpp,
    /// Generated stubs on Tenon's threads.
    Tenon,
    /// Generated stubs on tokio.
    TenonTokio,
    /// As many bytes, and nothing else; in shared memory it never sleeps.
    Raw,
    /// The same over a socket, without ever sleeping.
    RawSpinning,
}

impl Contender {
    /// In the order of their turns.
    pub const ALL: [Contender; 6] = [
        Contender::Tonic,
        Contender::GrpcCpp,
        Contender::Tenon,
        Contender::TenonTokio,
        Contender::Raw,
        Contender::RawSpinning,
    ];

    /// The peer of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn peer(name: &str) -> Result<Contender, String> {
        let mut all = Contender::ALL.into_iter();
        all.find(|one| one.is_peer() && one.name() == name)
            .ok_or_else(|| format!("no peer with streams is called {name}"))
    }

    pub fn name(self) -> &'static str {
        match self {
            Contender::Tonic => "tonic",
            Contender::GrpcCpp => "grpccpp",
            Contender::Tenon => "tenon",
            Contender::TenonTokio => "tenon_tokio",
            Contender::Raw => "raw",
            Contender::RawSpinning => "raw_spinning",
        }
    }

    /// Whether it is somebody else's.
    pub fn is_peer(self) -> bool {
        matches!(self, Contender::Tonic | Contender::GrpcCpp)
    }

    /// Why it does not take part in a row.
    pub fn left_out(self, row: &Row) -> Option<&'static str> {
        match self {
            Contender::Tonic | Contender::GrpcCpp if row.transport != Transport::Tcp => {
                Some("is compared over TCP")
            }
            Contender::Tonic | Contender::GrpcCpp if row.content == Content::ArgumentBytes => {
                Some("is compared where the result is the stream")
            }
            Contender::Raw | Contender::RawSpinning if row.content == Content::Items => {
                Some("has no items")
            }
            Contender::RawSpinning if row.transport == Transport::Shm => Some("is raw there"),
            _ => None,
        }
    }

    /// How it takes part in a row.
    pub fn plan(self, row: &Row) -> Plan {
        let mut server = self.program("server");
        server.push(match row.transport {
            Transport::Unix | Transport::Shm => {
                self.remove_socket();
                format!("{}={}", row.transport, self.socket_path().display())
            }
            other => other.to_string(),
        });
        let mut client = self.program("client");
        client.push(row.content.to_string());
        Plan {
            server,
            server_core: 0,
            client,
            client_core: 1,
            clients: 1,
            spins: match self {
                Contender::RawSpinning => true,
                Contender::Raw => row.transport == Transport::Shm,
                _ => false,
            },
        }
    }

    /// What starts its server or client, but for the arguments.
    fn program(self, role: &str) -> Vec<String> {
        let program = match self {
            Contender::Tonic => "release/peer_tonic_stream",
            Contender::GrpcCpp => "rpc/grpccpp_stream",
            Contender::Tenon => "release/tenon_stream",
            Contender::TenonTokio => "release/tenon_tokio_stream",
            Contender::Raw | Contender::RawSpinning => "release/raw_stream",
        };
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
        let mut command = vec![target.join(program).display().to_string(), role.to_owned()];
        match self {
            Contender::Raw => command.push("block".to_owned()),
            Contender::RawSpinning => command.push("spin".to_owned()),
            _ => {}
        }
        command
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
