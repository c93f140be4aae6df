//! When the kernel had the packets of a socket, and what passing them costs.

use std::io;

/// Times of the packets that a socket has sent and received last, in nanoseconds of the system's real-time clock.
/// `None` is a time that the kernel has not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketStamps {
    /// The last packet that was sent was handed to the queue of the network interface.
    pub scheduled: Option<u64>,
    /// It was handed to the driver.
    pub transmitted: Option<u64>,
    /// The last packet that was received came from the driver.
    pub received: Option<u64>,
}

/// Packets of a socket that the kernel stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowedPackets {
    /// None: what costs nothing.
    None,
    /// Those that are received.
    Received,
    /// Those that are received and those that are sent. Each that is sent leaves its times in the error queue of the
    /// socket until they are taken.
    All,
}

/// Times that the kernel takes for what has no time stamps, in nanoseconds, as they were measured on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCosts {
    /// A system call that does nothing: the way into the kernel and back.
    pub system_call: u64,
    /// From when a datagram has come from the driver until it lies in its socket.
    pub kernel_in: u64,
}

/// Returns the error of a socket that follows no packets.
pub(crate) fn not_followed() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "there are time stamps for datagrams of UDP sockets, by Linux, with the features `udp` and `account`",
    )
}
