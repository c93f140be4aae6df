//! Sending of the replies of a connection.

use std::io;
use std::mem;

use tenon_proto::connection::TransmitBatch;

use super::ServedStream;
use crate::profile;
use crate::serve::end_reason::EndReason;

/// Extent to which the replies of a connection were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// All of them were.
    Done,
    /// The socket has no room.
    Blocked,
}

impl ServedStream {
    /// Returns whether something waits to be sent.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        !self.batch.is_sent() || self.connection.has_transmit()
    }

    /// Sends what there is to send by `send`, which sends as much of a batch as finds room and returns the number of
    /// bytes.
    ///
    /// # Errors
    /// Everything that `send` reports but `WouldBlock`.
    #[inline]
    pub fn transmit(
        &mut self,
        mut send: impl FnMut(&TransmitBatch) -> io::Result<usize>,
    ) -> Result<Sending, EndReason> {
        loop {
            if self.batch.is_sent() && !(self.connection.has_transmit() && self.fill_batch()) {
                return Ok(Sending::Done);
            }
            match send(&self.batch) {
                Ok(bytes) => {
                    self.batch.advance(bytes);
                    self.slow_reader.note_sent(bytes);
                    if self.batch.is_sent() {
                        self.connection.handle_transmitted(&mut self.batch);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Sending::Blocked);
                }
                Err(error) => return Err(EndReason::Socket(error)),
            }
        }
    }

    /// Fills the batch with what is to be sent now, which replies with time stamps say; returns whether there is
    /// anything.
    #[inline]
    fn fill_batch(&mut self) -> bool {
        if !self.connection.poll_transmit(&mut self.batch) {
            return false;
        }
        if !self.piped.is_empty() {
            self.push_backlogs();
        }
        if mem::take(&mut self.has_stamps) {
            self.batch.stamp_sent(profile::now());
        }
        true
    }
}
