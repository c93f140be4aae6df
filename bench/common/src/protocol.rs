//! The protocols that Tenon speaks, and how many bytes their messages have.

use std::str::FromStr;

use crate::address::{Address, Transport};

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// ONC RPC, with AUTH_NONE.
    Onc,
    /// The lean protocol.
    Lean,
}

/// Bytes of ONC RPC's calls and replies in front of arguments and results (RFC 5531 section 9).
const ONC_CALL_BYTES: usize = 40;
const ONC_REPLY_BYTES: usize = 24;

/// Bytes of ONC RPC's record mark in streams (RFC 5531 section 11).
const ONC_MARK_BYTES: usize = 4;

/// Bytes of the header of a packet of the exchange, in front of a lean message that is one packet.
const PACKET_HEADER_BYTES: usize = 32;

/// Bytes of the lean protocol's header.
const LEAN_HEADER_BYTES: usize = 16;

impl Protocol {
    /// By which clients know it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Onc => "onc",
            Protocol::Lean => "lean",
        }
    }

    /// Bytes of a call with so many bytes of arguments.
    pub fn call_bytes(self, arguments: usize, transport: Transport) -> usize {
        self.message_bytes(ONC_CALL_BYTES, arguments, transport)
    }

    /// Bytes of a reply with so many bytes of results.
    pub fn reply_bytes(self, results: usize, transport: Transport) -> usize {
        self.message_bytes(ONC_REPLY_BYTES, results, transport)
    }

    fn message_bytes(self, onc_header: usize, body: usize, transport: Transport) -> usize {
        match (self, transport.is_stream()) {
            (Protocol::Onc, true) => ONC_MARK_BYTES + onc_header + body,
            (Protocol::Onc, false) => onc_header + body,
            (Protocol::Lean, _) if [Transport::Exchange, Transport::Xdp].contains(&transport) => {
                PACKET_HEADER_BYTES + LEAN_HEADER_BYTES + body.next_multiple_of(8)
            }
            (Protocol::Lean, _) => LEAN_HEADER_BYTES + body.next_multiple_of(8),
        }
    }

    /// Tenon's form of an address.
    pub fn url(self, address: &Address) -> String {
        let (transport, place) = match address {
            Address::Tcp(socket) => ("tcp", socket),
            Address::Udp(socket) => ("udp", socket),
            Address::Unix(path) => ("unix", path),
            Address::Shm(path) => return format!("shm://{path}"),
            Address::Xdp(socket) => return format!("xdp://{socket}"),
        };
        match self {
            Protocol::Onc => format!("{transport}://{place}"),
            Protocol::Lean => format!("lean+{transport}://{place}"),
        }
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = [Protocol::Onc, Protocol::Lean].into_iter();
        all.find(|protocol| protocol.name() == name)
            .ok_or_else(|| format!("{name} is no protocol"))
    }
}
