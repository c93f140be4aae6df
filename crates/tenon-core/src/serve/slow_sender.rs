//! Bounds how long a large request may take to arrive, as the memory for all requests is held meanwhile.

use std::time::{Duration, Instant};

use super::limits::PROGRESS_BYTES;

/// A large request that has not arrived whole, if there is one.
#[derive(Debug, Default)]
pub struct SlowSender(Option<Progress>);

#[derive(Debug)]
struct Progress {
    /// When the time for it is over.
    end: Instant,
    /// Bytes that were kept when it began.
    from: usize,
}

impl SlowSender {
    /// Notes that more of the request is waited for, of which `kept` bytes are there. Without a limit it may take as
    /// long as it likes.
    pub fn note_waiting(&mut self, kept: usize, limit: Option<Duration>, now: Instant) {
        let goes_on =
            |progress: &Progress| (progress.from..progress.from + PROGRESS_BYTES).contains(&kept);
        if let Some(limit) = limit
            && !self.0.as_ref().is_some_and(goes_on)
        {
            self.0 = Some(Progress {
                end: now + limit,
                from: kept,
            });
        }
    }

    /// Notes that there is no such request any more, or nothing is waited for.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// When too little of it has arrived.
    pub fn end(&self) -> Option<Instant> {
        self.0.as_ref().map(|progress| progress.end)
    }
}
