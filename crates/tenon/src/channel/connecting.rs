//! Making the connection again when it broke.

use std::io;
use std::sync::MutexGuard;
use std::thread;
use std::time::Instant;

use super::connection::Connection;
use super::state::State;
use super::{Channel, Timer};
use crate::error::CallError;

impl Channel {
    /// Makes one attempt to connect, or waits for the one that somebody else makes. The lock is
    /// released meanwhile.
    #[cold]
    pub(super) fn reconnect<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        timer: &Timer,
    ) -> Result<MutexGuard<'s, State>, CallError> {
        if state.is_connecting {
            return self.wait_to_send(state, timer);
        }
        state.is_connecting = true;
        let pause = state.back_off.left(Instant::now());
        drop(state);
        thread::sleep(pause.min(timer.left()));
        let opened = Connection::open(
            self.address(),
            self.options(),
            &self.shared.waits,
            timer.deadline,
        );
        let mut state = self.lock();
        state.is_connecting = false;
        self.shared.turn.notify_all();
        state.back_off.attempt(Instant::now());
        match opened {
            Ok(desk) => {
                tracing::debug!(address = %self.address(), "connected again");
                state.connected(desk);
                Ok(state)
            }
            Err(error) => self.not_connected(state, error, timer),
        }
    }

    /// Lets the caller try again if there is time and hope.
    fn not_connected<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        error: io::Error,
        timer: &Timer,
    ) -> Result<MutexGuard<'s, State>, CallError> {
        tracing::debug!(address = %self.address(), %error, "cannot connect");
        let is_final = state.back_off.failed(error) || timer.left().is_zero();
        match state.back_off.error(self.address()) {
            Some(error) if is_final => Err(error),
            _ => Ok(state),
        }
    }
}
