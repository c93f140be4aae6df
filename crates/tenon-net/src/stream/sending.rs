//! Sends into a stream what finds room at once.

use std::io::{self, IoSlice};

use super::{Stream, StreamKind};

impl Stream {
    /// Sends as many of `bytes` as fit at once and returns their number.
    ///
    /// # Errors
    /// `WouldBlock` when nothing fits; `BrokenPipe` or `ConnectionReset` when the peer is gone.
    /// No signal is raised.
    #[inline]
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            StreamKind::Socket { socket, family } => family.note(socket.try_send(bytes)),
            StreamKind::Shm(shm) => shm.try_send(bytes),
        }
    }

    /// Sends as much as fits at once of `pieces`, one behind the other, and returns the number of
    /// bytes.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    #[inline]
    pub fn try_send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.0 {
            StreamKind::Socket { socket, family } => family.note(socket.try_send_pieces(pieces)),
            StreamKind::Shm(shm) => shm.try_send_pieces(pieces),
        }
    }
}
