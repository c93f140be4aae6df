//! The systems of others.

use std::path::Path;
use std::str::FromStr;

use tenon_bench_common::address::Transport;
use tenon_bench_common::operation::Operation;

use super::mode::Mode;
use super::row::Row;

/// Bytes of a message that libtirpc carries over UDP.
const LIBTIRPC_DATAGRAM_MAX: usize = 8000;

/// One of them, in its recommended configuration; it waits as it does by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// rpcgen's stubs on libtirpc, TCP_NODELAY set on both ends.
    Libtirpc,
    /// gRPC in Rust.
    Tonic,
    /// gRPC in C++, of Debian: a callback server, and clients with a blocking stub or a completion
    /// queue.
    GrpcCpp,
    /// tarpc in bincode.
    Tarpc,
    /// Cap'n Proto in Rust; every member is built and owned, as with the others.
    Capnp,
    /// volo: Thrift in Rust; in shared memory by its shmipc.
    Volo,
    /// iceoryx2: requests and responses in shared memory, which it moves and does not marshal.
    Iceoryx2,
}

impl Peer {
    /// In the order of their turns.
    pub const ALL: [Peer; 7] = [
        Peer::Libtirpc,
        Peer::Tonic,
        Peer::GrpcCpp,
        Peer::Tarpc,
        Peer::Capnp,
        Peer::Volo,
        Peer::Iceoryx2,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Peer::Libtirpc => "libtirpc",
            Peer::Tonic => "tonic",
            Peer::GrpcCpp => "grpccpp",
            Peer::Tarpc => "tarpc",
            Peer::Capnp => "capnp",
            Peer::Volo => "volo",
            Peer::Iceoryx2 => "iceoryx2",
        }
    }

    /// What starts its server or client, but for the arguments; programs are under `target`.
    pub fn command(self, target: &Path, role: &str) -> Vec<String> {
        let program = |name: String| target.join(name).display().to_string();
        let name = self.name();
        match self {
            Peer::Libtirpc | Peer::GrpcCpp => vec![program(format!("rpc/{name}_{role}"))],
            Peer::Tonic | Peer::Tarpc | Peer::Capnp | Peer::Volo | Peer::Iceoryx2 => {
                vec![program(format!("release/peer_{name}")), role.to_owned()]
            }
        }
    }

    /// Whether its server is called by ONC RPC.
    pub fn speaks_onc(self) -> bool {
        self == Peer::Libtirpc
    }

    /// Whether its server looks all the time, even when it has nothing to do.
    pub fn spins(self) -> bool {
        self == Peer::Iceoryx2
    }

    /// Why it does not take part in a row.
    pub fn left_out(self, row: &Row) -> Option<&'static str> {
        match row.mode {
            Mode::Clients(_) => return self.left_out_of_clients(),
            Mode::Threads(_) => return Some("is compared over many connections"),
            _ => {}
        }
        let no_datagrams = (!row.transport.is_stream()).then_some("does not speak UDP");
        match self {
            Peer::Iceoryx2 if row.transport != Transport::Shm => {
                Some("goes through shared memory alone")
            }
            Peer::Iceoryx2 if row.mode != Mode::Spin => Some("is made to look all the time here"),
            Peer::Iceoryx2 => None,
            Peer::Tarpc if row.is_greetings_in_memory() => None,
            _ if row.transport == Transport::Shm && self != Peer::Volo => {
                Some("goes through sockets")
            }
            _ if [Transport::Exchange, Transport::Xdp].contains(&row.transport) => {
                Some("does not speak the packet exchange")
            }
            Peer::Libtirpc if !row.fits_datagram(LIBTIRPC_DATAGRAM_MAX) => {
                Some("carries no more than 8000 bytes over UDP")
            }
            Peer::Libtirpc if row.mode.in_flight() > 1 => {
                Some("has one call at a time on a connection")
            }
            Peer::Libtirpc => None,
            Peer::GrpcCpp if members(row) > 4096 => Some("does not compile over 4096 members"),
            Peer::Tarpc | Peer::Capnp if members(row) > 1024 => {
                Some("takes rustc too long over more than 1024 members")
            }
            Peer::Volo if row.transport == Transport::Unix => {
                Some("refuses a connection over Unix sockets now and then")
            }
            Peer::Volo if members(row) > 128 => {
                Some("takes rustc too long over more than 128 members")
            }
            Peer::Tonic | Peer::GrpcCpp | Peer::Tarpc | Peer::Capnp | Peer::Volo => no_datagrams,
        }
    }

    fn left_out_of_clients(self) -> Option<&'static str> {
        match self {
            Peer::Libtirpc | Peer::Tonic | Peer::Tarpc | Peer::Capnp => None,
            Peer::GrpcCpp | Peer::Volo | Peer::Iceoryx2 => {
                Some("has no client of many connections")
            }
        }
    }
}

/// Members of the record of a row.
fn members(row: &Row) -> u32 {
    match row.operation {
        Operation::Large(members) => members,
        Operation::Null
        | Operation::MaxResult
        | Operation::SayHello
        | Operation::Average(_)
        | Operation::GetRandNums(_) => 0,
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = Peer::ALL.into_iter();
        all.find(|peer| peer.name() == name)
            .ok_or_else(|| format!("no peer is called {name}"))
    }
}
