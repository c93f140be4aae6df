//! Making the connection again after it was lost, or for the first call of a channel that connects lazily.

use std::io;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenon_core::back_off::NextAttempt;
use tenon_core::error::{CallError, ConnectError};
use tenon_core::timer::CallTimer;

use super::channel::Channel;
use super::link::LinkSocket;
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
        if !self.reconnects() {
            let lost = io::Error::new(
                io::ErrorKind::NotConnected,
                "the connection is lost, and its socket was connected by the program",
            );
            return Err(ConnectError::unreachable(self.address(), lost).into());
        }
        if state.is_connecting {
            return self.wait_for_attempt(state, timer.left(), timer);
        }
        let now = Instant::now();
        let waits_for_ready = timer.waits_for_ready(self.options());
        match state
            .back_off
            .next_attempt(now, waits_for_ready, self.address())
        {
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
        let error = state.back_off.error(self.address());
        Err(error.unwrap_or_else(|| timer.error(false)))
    }

    fn connect_again<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        state.is_connecting = true;
        drop(state);
        let liveness = self.options().liveness;
        let socket = LinkSocket::connect(self.address(), self.waits(), timer.deadline(), liveness);
        let mut state = self.lock();
        state.is_connecting = false;
        self.connected().notify_all();
        state.back_off.attempt(Instant::now());
        match socket {
            Ok(socket) => {
                tracing::debug!(address = %self.address(), "connected again");
                state.back_off.succeeded();
                state.handle_connected(socket, self.options());
                Ok(state)
            }
            Err(error) => self.handle_not_connected(state, error, timer),
        }
    }

    /// Lets the caller try again if it waits for that, and there is time and hope.
    fn handle_not_connected<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        error: io::Error,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        tracing::debug!(address = %self.address(), %error, "cannot connect");
        let is_hopeless = state.back_off.failed(Instant::now(), error);
        let is_final = is_hopeless || !timer.waits_for_ready(self.options()) || timer.is_over();
        match state.back_off.error(self.address()) {
            Some(error) if is_final => Err(error),
            _ => Ok(state),
        }
    }
}
