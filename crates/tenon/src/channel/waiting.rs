//! Waiting for the turn to send: until somebody else has sent, or until the peer takes the call.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::sending::GLANCE;
use super::state::State;
use super::{Channel, Timer};
use crate::error::CallError;

impl Channel {
    /// Waits until somebody else is done with sending or connecting.
    #[cold]
    pub(super) fn wait_to_send<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        timer: &Timer,
    ) -> Result<MutexGuard<'s, State>, CallError> {
        state.waiting_to_send += 1;
        let (mut state, _) = self
            .shared
            .turn
            .wait_timeout(state, timer.left())
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting_to_send -= 1;
        if timer.left().is_zero() {
            // The signal may have been for this caller, which no longer needs it.
            self.pass_turn(&state);
            return Err(timer.error(false));
        }
        Ok(state)
    }

    /// Lets the next caller send.
    #[inline]
    pub(super) fn pass_turn(&self, state: &State) {
        if state.waiting_to_send > 0 {
            self.shared.turn.notify_one();
        }
    }

    /// Waits until the peer has said something that may change whether it takes a call.
    #[cold]
    pub(super) fn wait_for_peer<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        timer: &Timer,
    ) -> Result<MutexGuard<'s, State>, CallError> {
        // A peer that was not told anything has no reason to say anything.
        let backlog = self.flush(&mut state);
        state = self.send_backlog_unlocked(state, backlog);
        if state.has_front() {
            state = self.send_front(state, timer.deadline);
        }
        let Some(line) = &state.line else {
            return Ok(state);
        };
        let connection = Arc::clone(&line.connection);
        // As long as the lock is held nothing is taken in: what this caller has seen still holds
        // when it becomes the reader.
        let Some(mut reader) = self.read_on(&mut state, &connection) else {
            return self.wait_for_reader(state, timer);
        };
        let until = state.next_look(timer.deadline);
        drop(state);
        let taken = reader.take_in_by(until);
        drop(reader);
        let mut state = self.look_at_time(self.lock());
        if let Err(broken) = taken {
            state.break_line(&connection, &broken);
        }
        match timer.left().is_zero() {
            false => Ok(state),
            true => {
                self.pass_turn(&state);
                Err(timer.error(false))
            }
        }
    }

    /// Waits until the reader has taken something in, or has perhaps left.
    fn wait_for_reader<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        timer: &Timer,
    ) -> Result<MutexGuard<'s, State>, CallError> {
        state.waiting_for_peer += 1;
        let (mut state, _) = self
            .shared
            .peer
            .wait_timeout(state, GLANCE.min(timer.left()))
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting_for_peer -= 1;
        match timer.left().is_zero() {
            false => Ok(state),
            true => {
                self.pass_turn(&state);
                Err(timer.error(false))
            }
        }
    }

    /// Lets a caller that waits for the peer look again: a call was answered.
    #[inline]
    pub(super) fn hint(&self, state: &State) {
        if state.waiting_for_peer > 0 {
            self.shared.peer.notify_one();
        }
    }

    /// Lets all that wait for the peer look again: it has said something else.
    pub(super) fn hint_all(&self, state: &State) {
        if state.waiting_for_peer > 0 {
            self.shared.peer.notify_all();
        }
    }
}
