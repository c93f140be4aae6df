//! Calls that end without an answer: their time runs out, or nobody waits any more.

use std::time::Instant;

use super::ClientEngine;
use crate::lean::header::Kind;

/// What a call is to do at a given time.
#[derive(Debug, PartialEq, Eq)]
pub enum Timeout<W> {
    /// Nothing before this time.
    Wait(Instant),
    /// Give up: the time of the call ran out, and it is no longer in flight.
    Expired(W),
}

impl<W> ClientEngine<W> {
    /// When the call is to be given up. `None` if it is no longer in flight.
    #[inline]
    pub fn next_timeout(&self, id: u32) -> Option<Instant> {
        self.calls.get(id).map(|call| call.deadline)
    }

    /// What the call is to do at `now`. `None` if it is no longer in flight. One whose time ran out is
    /// cancelled at the server.
    pub fn handle_timeout(&mut self, id: u32, now: Instant) -> Option<Timeout<W>> {
        let deadline = self.next_timeout(id)?;
        if now < deadline {
            return Some(Timeout::Wait(deadline));
        }
        self.counters.timeouts += 1;
        self.give_up(id).map(Timeout::Expired)
    }

    /// Gives a call up; the server is told so, and its answer will be ignored. `None` if it is no
    /// longer in flight.
    pub fn cancel(&mut self, id: u32) -> Option<W> {
        let waiter = self.give_up(id)?;
        self.counters.cancellations += 1;
        Some(waiter)
    }

    fn give_up(&mut self, id: u32) -> Option<W> {
        let call = self.calls.take(id)?;
        self.given_up += 1;
        self.owe(Kind::Cancel, id);
        Some(call.waiter)
    }

    /// Takes a call back that was started and not sent at all, not even in part.
    pub fn withdraw(&mut self, id: u32) -> Option<W> {
        let call = self.calls.take(id)?;
        self.counters.cancellations += 1;
        Some(call.waiter)
    }

    /// Gives all calls up, for when the connection is lost. None is in flight any more, even before
    /// the iterator has come to it.
    pub fn cancel_all(&mut self) -> impl Iterator<Item = (u32, W)> + use<W> {
        self.counters.cancellations += self.calls.len() as u64;
        self.is_closed = true;
        let calls = self.calls.take_all();
        calls.map(|(id, call)| (id, call.waiter))
    }

    /// Once the server has said goodbye: the calls that it did not begin, in the order in which they
    /// were sent. They are no longer in flight, and may be sent over another connection.
    pub fn take_unbegun(&mut self) -> Vec<(u32, W)> {
        let Some(last) = self.last_accepted else {
            return Vec::new();
        };
        let behind = |id: u32| match last {
            Some(last) => id.wrapping_sub(last).wrapping_sub(1) < i32::MAX as u32,
            None => true,
        };
        let mut ids: Vec<u32> = self.calls.numbers().filter(|id| behind(*id)).collect();
        let first = last.map_or(ids.first().copied().unwrap_or(0), |last| last);
        ids.sort_unstable_by_key(|id| id.wrapping_sub(first) as i32);
        let calls = ids.into_iter();
        calls
            .filter_map(|id| self.calls.take(id).map(|call| (id, call.waiter)))
            .collect()
    }
}
