//! Making the connection again after it was lost, or for the first call of a channel that connects lazily.

use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tenon_core::back_off::NextAttempt;
use tenon_core::error::{CallError, ConnectError};
use tenon_core::timer::CallTimer;

use super::channel::Channel;
use super::state::ChannelState;

impl Channel {
    /// Makes one attempt to connect, or waits for the one that another caller makes, or for the time of the next. The
    /// lock is released meanwhile.
    ///
    /// # Errors
    /// The call ends without a connection.
    #[cold]
    pub(super) fn reconnect<'s>(
        &'s self,
        state: MutexGuard<'s, ChannelState>,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        if state.is_connecting {
            return self.wait_for_attempt(state, timer.left(), timer);
        }
        let now = Instant::now();
        let waits_for_ready = timer.waits_for_ready(self.options());
        match state.back_off.next_attempt(now, waits_for_ready) {
            NextAttempt::Now => self.connect_again(state, timer),
            NextAttempt::At(at) => self.wait_for_attempt(state, timer.left().min(at - now), timer),
            NextAttempt::Fail(error) => Err(error),
        }
    }

    /// Waits until an attempt has been made, or for as long as `limit`.
    fn wait_for_attempt<'s>(
        &'s self,
        state: MutexGuard<'s, ChannelState>,
        limit: Duration,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        let waited = self.connected().wait_timeout(state, limit);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !timer.is_over() {
            return Ok(state);
        }
        let error = state.back_off.error();
        Err(error.unwrap_or_else(|| timer.error(false)))
    }

    fn connect_again<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        state.is_connecting = true;
        drop(state);
        let attempt = ConnectAttempt(self);
        let connected = self.connect_socket(timer.deadline());
        drop(attempt);
        let mut state = self.lock();
        state.is_connecting = false;
        self.connected().notify_all();
        state.back_off.attempt(Instant::now());
        match connected {
            Ok((socket, located)) => {
                tracing::debug!(address = %located, "connected again");
                state.back_off.succeeded();
                state.handle_connected(socket, located, self.options());
                Ok(state)
            }
            Err(error) => self.handle_not_connected(state, error, timer),
        }
    }

    /// Lets the caller try again if it waits for that, and there is time and hope.
    fn handle_not_connected<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        error: ConnectError,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        tracing::debug!(%error, "not connected");
        let is_hopeless = state.back_off.failed(Instant::now(), error);
        let is_final = is_hopeless || !timer.waits_for_ready(self.options()) || timer.is_over();
        match state.back_off.error() {
            Some(error) if is_final => Err(error),
            _ => Ok(state),
        }
    }
}

/// The attempt of a caller to make a connection. If the program's resolver panics, another caller may make one.
struct ConnectAttempt<'c>(&'c Channel);

impl Drop for ConnectAttempt<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().is_connecting = false;
            self.0.connected().notify_all();
        }
    }
}
