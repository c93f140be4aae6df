//! Reassembly, outside of the engine, of messages that come in several packets.

use super::PREFIX_MAX;
use super::reassembly::{Reassembly, whole};
use crate::config::{ConnectionConfig, Role};
use crate::connection::framing::ReceiveBuffer;
use crate::lean::Preamble;

/// A message that comes in several packets and is put together outside of the engine: an answer, or a request.
#[derive(Debug)]
pub struct ReassembledMessage(pub(super) ReceiveBuffer);

impl ReassembledMessage {
    /// For messages to an end that says of itself what `preamble` says.
    pub fn new(preamble: &Preamble) -> Self {
        Self(Reassembly::receiver(content_max(preamble)))
    }

    /// For messages to an end with these limits.
    pub fn of(config: &ConnectionConfig, role: Role) -> Self {
        Self::new(&config.preamble(role))
    }

    /// The message; empty if the last one came in a single packet.
    pub fn message(&self) -> &[u8] {
        whole(&self.0)
    }

    /// Forgets the message.
    #[inline]
    pub fn clear(&mut self) {
        self.0.truncate(self.0.base());
    }

    /// Gives memory back if it has more than so many bytes. The message is forgotten then.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.0.capacity() > bytes {
            self.0.release();
        }
    }
}

/// Bytes of the largest content of packets for an end that says of itself what `preamble` says: a message, and what
/// stands in front of it.
pub(super) fn content_max(preamble: &Preamble) -> usize {
    preamble.message_max as usize + PREFIX_MAX
}
