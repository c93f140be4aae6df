//! Bounds how long replies wait for a peer that reads slowly, or not at all.

use std::time::{Duration, Instant};

use super::limits::PROGRESS_BYTES;

/// Time limit of a connection that waits for its peer to read.
#[derive(Debug, Default)]
pub struct SlowReader {
    /// Time at which the wait ends, once there was no room for something.
    end: Option<Instant>,
    /// Bytes that there was room for since the time was set.
    sent: usize,
}

impl SlowReader {
    /// Notes that there is no room. The wait ends `limit` after this was first said of the next
    /// [`PROGRESS_BYTES`]; without a limit it does not.
    pub fn note_blocked(&mut self, limit: Option<Duration>, now: Instant) {
        if let Some(limit) = limit {
            self.end.get_or_insert(now + limit);
        }
    }

    /// Notes that there was room for so many bytes.
    #[inline]
    pub fn note_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= PROGRESS_BYTES {
            *self = Self::default();
        }
    }

    /// Notes that nothing waits any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns when the wait ends, if the peer is waited for.
    pub fn end(&self) -> Option<Instant> {
        self.end
    }
}
