//! Protocols, as addresses name them.

use std::fmt;

/// The RPC protocol that is spoken over a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// ONC RPC (RFC 5531).
    Onc,
    /// The lean protocol, between two ends that are both Tenon.
    Lean,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Onc => "ONC RPC",
            Self::Lean => "the lean protocol",
        })
    }
}
