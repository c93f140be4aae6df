//! What can be chosen of a channel and a server of Tenon: the protocol and the way to wait.

use std::str::FromStr;

use tenon::{ConnectError, ServerBuilder};

use crate::address::Address;
use crate::stubs::BenchVersionClient;

/// Which protocol a channel speaks; servers speak both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// ONC RPC.
    Onc,
}

impl Protocol {
    /// Tenon's form of an address.
    pub fn url(self, address: &Address) -> String {
        let (transport, place) = match address {
            Address::Tcp(socket) => ("tcp", socket),
            Address::Udp(socket) => ("udp", socket),
            Address::Unix(path) => ("unix", path),
        };
        match self {
            Protocol::Onc => format!("{transport}://{place}"),
        }
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "onc" => Ok(Protocol::Onc),
            other => Err(format!("{other} is no protocol")),
        }
    }
}

/// How an end waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Asleep, by default.
    Block,
}

impl Waiting {
    /// A client that waits so.
    ///
    /// # Errors
    /// Nobody answers at the address.
    pub fn connect(self, url: &str) -> Result<BenchVersionClient, ConnectError> {
        match self {
            Waiting::Block => BenchVersionClient::connect(url),
        }
    }

    /// A server that waits so.
    pub fn serve(self, builder: ServerBuilder) -> ServerBuilder {
        match self {
            Waiting::Block => builder,
        }
    }
}

impl FromStr for Waiting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "block" => Ok(Waiting::Block),
            other => Err(format!("{other} is no way to wait")),
        }
    }
}
