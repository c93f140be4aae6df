//! Where servers of the benchmarks listen, in the form that servers print and clients take:
//! `tcp HOST PORT`, `udp HOST PORT`, `unix PATH`,
//! `shm PATH`, `xdp HOST PORT`.

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
    /// Memory that both ends share.
    Shm,
    /// UDP datagrams over loopback, in which the packet exchange carries messages of every size.
    Exchange,
    /// The same over a veth pair, past the kernel's stack.
    Xdp,
}

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 6] = [
        Transport::Tcp,
        Transport::Udp,
        Transport::Unix,
        Transport::Shm,
        Transport::Exchange,
        Transport::Xdp,
    ];

    /// Whether it carries messages of every size, and not what a datagram holds.
    pub fn is_stream(self) -> bool {
        match self {
            Transport::Tcp
            | Transport::Unix
            | Transport::Shm
            | Transport::Exchange
            | Transport::Xdp => true,
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
            Transport::Shm => "shm",
            Transport::Exchange => "exchange",
            Transport::Xdp => "xdp",
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
    /// A path.
    Shm(String),
    /// `HOST:PORT`.
    Xdp(String),
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
            [word, host, port] if word == "xdp" => Ok(Address::Xdp(format!("{host}:{port}"))),
            [word, path] if word == "unix" => Ok(Address::Unix(path.clone())),
            [word, path] if word == "shm" => Ok(Address::Shm(path.clone())),
            other => Err(format!("no address: {other:?}")),
        }
    }
}
