//! Looks, under any policy, for what a peer that is awake and at it does in a moment.

use std::thread;
use std::time::{Duration, Instant};

use super::context::WaitContext;
use super::learned::SpinBackoff;

/// Longest look for room to send the rest of what is being sent. A peer that is at it takes some hundred kilobytes
/// meanwhile; waking up once the room is there takes about as long, each time that the socket is full.
const ROOM_PATIENCE: Duration = Duration::from_micros(500);

/// Longest look for further items of a stream: sleeping takes about as long, and other connections wait meanwhile.
const ITEM_PATIENCE: Duration = Duration::from_micros(50);

/// A look that lets others run between its attempts, and learns whether it pays.
#[derive(Debug, Clone, Copy)]
pub struct YieldingLook {
    patience: Duration,
    backoff: SpinBackoff,
}

impl YieldingLook {
    /// The look for room to send, of one connection.
    pub fn for_room() -> Self {
        Self::new(ROOM_PATIENCE)
    }

    /// The look for the items that come next over one connection.
    pub fn for_items() -> Self {
        Self::new(ITEM_PATIENCE)
    }

    fn new(patience: Duration) -> Self {
        Self {
            patience,
            backoff: SpinBackoff::default(),
        }
    }

    /// Repeats `attempt` for a moment, until it returns true; returns whether it has. It is not repeated if mostly it has
    /// not in this time.
    ///
    /// # Errors
    /// What `attempt` reports.
    #[cold]
    pub fn look<E>(
        &mut self,
        context: &WaitContext<'_>,
        mut attempt: impl FnMut() -> Result<bool, E>,
    ) -> Result<bool, E> {
        if !self.backoff.should_spin() {
            return Ok(false);
        }
        let Some(_spinner) = context.spinners.enter(context.looking) else {
            return Ok(false);
        };
        let begin = Instant::now();
        loop {
            // On the same processor, the peer goes on only when others may run.
            thread::yield_now();
            if attempt()? {
                self.backoff.found();
                return Ok(true);
            }
            if begin.elapsed() >= self.patience {
                self.backoff.missed();
                return Ok(false);
            }
        }
    }
}
