//! Making the connection again after it was lost.

use std::io;
use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use tenon_core::error::{CallError, ConnectError};
use tenon_core::timer::CallTimer;

use super::channel::Channel;
use super::link::LinkSocket;
use super::state::ChannelState;

impl Channel {
    /// Makes one attempt to connect, or waits for the one that another caller makes. The lock is released meanwhile.
    #[cold]
    pub(super) fn reconnect<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
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
            let waited = self.connected().wait_timeout(state, timer.left());
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            return match timer.is_over() {
                true => Err(timer.error(false)),
                false => Ok(state),
            };
        }
        state.is_connecting = true;
        let pause = state.back_off.left(Instant::now());
        drop(state);
        thread::sleep(pause.min(timer.left()));
        let socket = LinkSocket::connect(self.address(), self.waits(), timer.deadline());
        let mut state = self.lock();
        state.is_connecting = false;
        self.connected().notify_all();
        state.back_off.attempt(Instant::now());
        match socket {
            Ok(socket) => {
                tracing::debug!(address = %self.address(), "connected again");
                state.handle_connected(socket, self.options());
                Ok(state)
            }
            Err(error) => self.handle_not_connected(state, error, timer),
        }
    }

    /// Lets the caller try again if there is time and hope.
    fn handle_not_connected<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        error: io::Error,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        tracing::debug!(address = %self.address(), %error, "cannot connect");
        let is_final = state.back_off.failed(error) || timer.is_over();
        match state.back_off.error(self.address()) {
            Some(error) if is_final => Err(error),
            _ => Ok(state),
        }
    }
}
