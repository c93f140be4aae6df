//! Measuring what passing packets costs, where there are no time stamps of them.

use std::io;

use crate::packet_stamps::{PacketCosts, not_followed};

impl PacketCosts {
    /// Fails, as there are no time stamps of packets.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn measure(_: usize) -> io::Result<Self> {
        Err(not_followed())
    }
}
