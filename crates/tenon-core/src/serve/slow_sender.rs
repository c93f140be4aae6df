//! Bounds how long a large request may take to arrive, as the memory for all requests is held meanwhile.

use std::time::{Duration, Instant};

use super::end_reason::EndReason;
use super::limits::PROGRESS_BYTES;

/// A request that is waited for: the first one of a connection, or a large one that has not arrived whole.
#[derive(Debug, Default)]
pub struct SlowSender(Option<ReceiveProgress>);

/// Progress of a request that is waited for, and its time limit.
#[derive(Debug)]
struct ReceiveProgress {
    /// Time at which it is too late.
    end: Instant,
    /// Bytes that were kept when it began.
    from: usize,
    /// True if the first request of the connection is waited for.
    is_first: bool,
}

impl SlowSender {
    /// Waits for the first request of a connection, which was accepted at `now`.
    pub fn awaiting_first(limit: Option<Duration>, now: Instant) -> Self {
        Self(limit.map(|limit| ReceiveProgress {
            end: now + limit,
            from: 0,
            is_first: true,
        }))
    }

    /// Notes that more of the request is waited for, of which `kept` bytes are there. Without a limit it may take as
    /// long as it likes.
    pub fn note_waiting(&mut self, kept: usize, limit: Option<Duration>, now: Instant) {
        let goes_on = |progress: &ReceiveProgress| {
            !progress.is_first && (progress.from..progress.from + PROGRESS_BYTES).contains(&kept)
        };
        if let Some(limit) = limit
            && !self.0.as_ref().is_some_and(goes_on)
        {
            self.0 = Some(ReceiveProgress {
                end: now + limit,
                from: kept,
                is_first: false,
            });
        }
    }

    /// Returns whether the first request of the connection is waited for.
    #[inline]
    pub fn awaits_first(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.is_first)
    }

    /// Notes that there is no such request any more, or nothing is waited for.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Returns why the connection ends if too little has arrived by the [end](Self::end).
    pub fn end_reason(&self) -> EndReason {
        if self.awaits_first() {
            EndReason::LateFirstRequest
        } else {
            EndReason::SlowSender
        }
    }

    /// Returns when it is too late if too little of it has arrived.
    pub fn end(&self) -> Option<Instant> {
        self.0.as_ref().map(|progress| progress.end)
    }
}
