//! What the relay of a port needs of its driver.

use std::io;
use std::net::SocketAddr;

use tenon_net::{PacketTrain, Stream};

/// What a driver does for the relay of one of its ports.
pub trait RelayHost: Send + Sync {
    /// Sends packets from the port; returns how many bytes were sent.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; what the system reports.
    fn send(&self, train: PacketTrain<'_>, to: SocketAddr) -> io::Result<usize>;

    /// Takes a connection in, as one that was accepted; if there are too many, tells its peer and closes it. Returns
    /// whether it is taken in.
    fn admit(&self, connection: Stream) -> bool;

    /// The last connection has ended: a driver that waits for that, as the server stops, looks again.
    fn note_all_ended(&self);
}
