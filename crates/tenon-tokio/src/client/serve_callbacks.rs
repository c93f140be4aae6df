//! Calls of the server, which the driver of a channel hands to the services of the channel, and whose answers it sends.

use std::task::Context;

use tenon_proto::connection::ReceivedCall;

use super::channel::SharedChannel;
use super::state::{Calls, ChannelState};
use crate::server::CallbackHost;

impl SharedChannel {
    /// Has calls of the server carried out that have come, and answers those that were.
    #[cold]
    pub(super) fn serve_callbacks(&self, host: &CallbackHost, cx: &Context<'_>) {
        let mut state = self.lock();
        let called = std::mem::take(&mut state.called);
        drop(state);
        for job in called {
            host.carry_out(job);
        }
        let answers = host.take_answers(cx.waker());
        if answers.is_empty() {
            return;
        }
        let state = &mut *self.lock();
        if let Calls::Stream(connection) = &mut state.calls {
            for (id, mut reply) in answers {
                state.running.answer(connection, id, &mut reply);
            }
        }
    }
}

impl ChannelState {
    /// Takes in a call of the server, which the driver is to have carried out, unless it is refused.
    #[cold]
    pub(super) fn begin_callback(&mut self, received: ReceivedCall) {
        let Calls::Stream(connection) = &mut self.calls else {
            return;
        };
        self.called.extend(self.running.begin(connection, received));
        self.wake_driver();
    }
}
