//! Where servers of the benchmarks listen, in the form that servers print and clients take:
//! `tcp HOST PORT`, `udp HOST PORT`, `unix PATH`.

use std::fmt;

/// A kind of socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A TCP connection over loopback.
    Tcp,
    /// UDP datagrams over loopback.
    Udp,
    /// A Unix stream socket.
    Unix,
}

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 3] = [Transport::Tcp, Transport::Udp, Transport::Unix];

    /// Whether it carries bytes rather than datagrams.
    pub fn is_stream(self) -> bool {
        match self {
            Transport::Tcp | Transport::Unix => true,
            Transport::Udp => false,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Unix => "unix",
        })
    }
}

/// An address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `HOST:PORT`.
    Tcp(String),
    /// `HOST:PORT`.
    Udp(String),
    /// A path.
    Unix(String),
}

impl Address {
    /// From the arguments of a client.
    ///
    /// # Errors
    /// They are no address.
    pub fn from_arguments(arguments: &[String]) -> Result<Address, String> {
        match arguments {
            [word, host, port] if word == "tcp" => Ok(Address::Tcp(format!("{host}:{port}"))),
            [word, host, port] if word == "udp" => Ok(Address::Udp(format!("{host}:{port}"))),
            [word, path] if word == "unix" => Ok(Address::Unix(path.clone())),
            other => Err(format!("no address: {other:?}")),
        }
    }
}
