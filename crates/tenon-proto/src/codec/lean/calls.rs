//! The calls that a server carries out beside the thread that receives: which there are, until
//! when, and which were cancelled.

use std::collections::HashMap;
use std::time::Instant;

/// Calls of one connection that are carried out elsewhere. `W` is what the owner needs to find
/// whoever carries a call out.
///
/// Each call is answered exactly once, whatever becomes of it: [`finish`](Self::finish) says whether
/// its answer is still to be sent. Calls that are carried out where they are received need not be
/// here.
#[derive(Debug)]
pub struct Calls<W> {
    calls: HashMap<u32, Running<W>>,
    limit: usize,
}

#[derive(Debug)]
struct Running<W> {
    worker: W,
    deadline: Option<Instant>,
    state: CallState,
}

/// What is known of a call that is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// Its result is waited for.
    Awaited,
    /// The client no longer waits for it.
    Cancelled,
    /// Its time has run out.
    Expired,
}

impl<W> Calls<W> {
    /// None yet, and never more than `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            calls: HashMap::new(),
            limit,
        }
    }

    /// Takes a call in; it comes back if there are too many, and is to be refused with
    /// [`Status::OVERLOADED`](super::Status::OVERLOADED). So does one whose number is here already: three calls
    /// that are as far ahead of each other as they may be come round, and who is counted by number would have
    /// any number of calls at once.
    ///
    /// # Errors
    /// There are too many, or one of this number.
    pub fn begin(&mut self, id: u32, deadline: Option<Instant>, worker: W) -> Result<(), W> {
        if self.calls.len() >= self.limit || self.calls.contains_key(&id) {
            return Err(worker);
        }
        let running = Running {
            worker,
            deadline,
            state: CallState::Awaited,
        };
        self.calls.insert(id, running);
        Ok(())
    }

    /// What was handed in for whoever carries a call out. None if it is not here: it was answered already.
    pub fn worker(&mut self, id: u32) -> Option<&mut W> {
        self.calls.get_mut(&id).map(|running| &mut running.worker)
    }

    /// The client no longer waits for a call. None if it is not here: it was answered already.
    pub fn cancel(&mut self, id: u32) -> Option<&mut W> {
        let running = self.calls.get_mut(&id)?;
        running.state = CallState::Cancelled;
        Some(&mut running.worker)
    }

    /// What is known of a call. None if it is not here.
    pub fn state(&self, id: u32) -> Option<CallState> {
        self.calls.get(&id).map(|running| running.state)
    }

    /// A call is done; None if it is not here.
    pub fn finish(&mut self, id: u32) -> Option<(W, CallState)> {
        let running = self.calls.remove(&id)?;
        Some((running.worker, running.state))
    }

    /// When the time of the next call runs out.
    pub fn next_timeout(&self) -> Option<Instant> {
        let awaited = self.calls.values().filter(|running| running.is_awaited());
        awaited.filter_map(|running| running.deadline).min()
    }

    /// A call whose time has run out by `now` and that was not returned before. It stays here until
    /// it is [finished](Self::finish).
    pub fn poll_expired(&mut self, now: Instant) -> Option<(u32, &mut W)> {
        let mut running = self.calls.iter_mut();
        let (id, expired) = running.find(|(_, running)| {
            running.is_awaited() && running.deadline.is_some_and(|deadline| deadline <= now)
        })?;
        expired.state = CallState::Expired;
        Some((*id, &mut expired.worker))
    }

    /// How many there are.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }
}

impl<W> Running<W> {
    fn is_awaited(&self) -> bool {
        self.state == CallState::Awaited
    }
}
