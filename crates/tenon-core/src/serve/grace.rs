//! How long replies wait for a peer that reads slowly, or not at all.

use std::time::{Duration, Instant};

use super::limits::STRETCH;

/// How long a connection still waits for its peer to read.
#[derive(Debug, Default)]
pub struct Grace {
    /// When it ends, once there was no room for something of the stretch that is being sent.
    end: Option<Instant>,
    /// Bytes of the stretch that there was room for.
    sent: usize,
}

impl Grace {
    /// There is no room. Gives when the grace ends, `limit` after this was first said of the stretch.
    pub fn note_blocked(&mut self, limit: Duration) -> Instant {
        *self.end.get_or_insert_with(|| Instant::now() + limit)
    }

    /// There was room for so many bytes.
    pub fn note_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= STRETCH {
            *self = Self::default();
        }
    }

    /// When it ends, if the peer is waited for.
    pub fn end(&self) -> Option<Instant> {
        self.end
    }
}
