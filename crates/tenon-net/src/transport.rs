//! Transports, and the properties by which the layers above decide. Each property is one exhaustive match, so that a new
//! transport has to state all of them.

use std::fmt;

use crate::Protocol;

/// The transport that carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A TCP connection.
    Tcp,
    /// A connection over a Unix domain socket.
    Unix,
    /// UDP datagrams.
    Udp,
    /// Memory that both ends share.
    Shm,
    /// UDP datagrams past the kernel's stack.
    Xdp,
}

impl Transport {
    /// All of them. One that is missing here has no address that could be written.
    pub const ALL: [Self; 5] = [Self::Tcp, Self::Udp, Self::Unix, Self::Shm, Self::Xdp];

    /// Returns its name in addresses, such as `tcp`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Udp => "udp",
            Self::Shm => "shm",
            Self::Xdp => "xdp",
        }
    }

    /// Returns the transport of this name; none if there is no such transport.
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|transport| transport.name() == name)
    }

    /// Returns the default protocol, of an address that names none.
    pub(crate) fn default_protocol(self) -> Protocol {
        match self {
            Self::Tcp | Self::Unix | Self::Udp => Protocol::Onc,
            Self::Shm | Self::Xdp => Protocol::Lean,
        }
    }

    /// Returns whether ONC RPC goes over it. The lean protocol goes over every transport.
    pub fn carries_onc(self) -> bool {
        match self {
            Self::Tcp | Self::Unix | Self::Udp | Self::Xdp => true,
            Self::Shm => false,
        }
    }

    /// Returns whether it carries single datagrams, and no stream of bytes.
    pub fn is_datagram(self) -> bool {
        match self {
            Self::Udp | Self::Xdp => true,
            Self::Tcp | Self::Unix | Self::Shm => false,
        }
    }

    /// Returns whether both ends are on one machine: no network is between them, on which others could read along, and
    /// the kernel knows the user of the peer's process.
    pub fn stays_on_host(self) -> bool {
        match self {
            Self::Unix | Self::Shm => true,
            Self::Tcp | Self::Udp | Self::Xdp => false,
        }
    }

    /// Returns whether bytes that arrive at an end which receives no more are answered by a reset, by which the peer
    /// loses what it was sent and has not read (RFC 9293, section 3.10.7). Such a connection is half-closed first.
    pub fn resets(self) -> bool {
        match self {
            Self::Tcp => true,
            Self::Unix | Self::Udp | Self::Shm | Self::Xdp => false,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
