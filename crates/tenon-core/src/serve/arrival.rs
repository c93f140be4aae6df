//! How large requests arrive: whoever begins one and does not go on must not have the memory of all for long.

use std::time::{Duration, Instant};

use super::limits::STRETCH;

/// A large request that has not arrived whole, if there is one.
#[derive(Debug, Default)]
pub struct Arrival(Option<Stretch>);

#[derive(Debug)]
struct Stretch {
    /// When its time is over.
    end: Instant,
    /// Bytes that were kept when it began.
    from: usize,
}

impl Arrival {
    /// More of the request is waited for, of which `kept` bytes are there. With a `limit` of zero it may take for
    /// ever.
    pub fn note_waiting(&mut self, kept: usize, limit: Duration) {
        let goes_on = |stretch: &Stretch| (stretch.from..stretch.from + STRETCH).contains(&kept);
        if limit.is_zero() || self.0.as_ref().is_some_and(goes_on) {
            return;
        }
        self.0 = Some(Stretch {
            end: Instant::now() + limit,
            from: kept,
        });
    }

    /// There is no such request any more, or nothing is waited for.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// When too little of it has come.
    pub fn end(&self) -> Option<Instant> {
        self.0.as_ref().map(|stretch| stretch.end)
    }
}
