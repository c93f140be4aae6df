//! An entry of rpcbind's table, in the terms of all versions.

use tenon_net::Address;
use tenon_wire::BString;

use super::error::RpcbindError;
use super::generated::{IPPROTO_TCP, IPPROTO_UDP, Mapping, Rpcb};
use super::universal;

/// An entry of rpcbind's table: a program's version at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registration {
    /// The program's number.
    pub program: u32,
    /// The version's number.
    pub version: u32,
    /// The transport by its network identifier: `tcp`, `udp6`, `local`, ... A number that version 2
    /// does not define stands here as its digits.
    pub netid: BString,
    /// The universal address (RFC 1833 section 2.1.1).
    pub universal: BString,
    /// The user that registered it; empty in version 2.
    pub owner: BString,
}

impl Registration {
    /// The address, if this crate has the transport.
    pub fn address(&self) -> Option<Address> {
        universal::address(self.netid.as_ref(), self.universal.as_ref()).ok()
    }

    /// Converts an entry of version 2, which knows no address but the port.
    pub(super) fn from_v2(mapping: &Mapping) -> Result<Self, RpcbindError> {
        let netid = match mapping.prot {
            IPPROTO_TCP => "tcp".into(),
            IPPROTO_UDP => "udp".into(),
            other => other.to_string().into(),
        };
        let port = universal::port(mapping.port)?;
        Ok(Self {
            program: mapping.prog,
            version: mapping.vers,
            netid,
            universal: universal::with_port("0.0.0.0", port).into(),
            owner: BString::default(),
        })
    }
}

impl From<Rpcb> for Registration {
    fn from(entry: Rpcb) -> Self {
        Self {
            program: entry.r_prog,
            version: entry.r_vers,
            netid: entry.r_netid,
            universal: entry.r_addr,
            owner: entry.r_owner,
        }
    }
}
