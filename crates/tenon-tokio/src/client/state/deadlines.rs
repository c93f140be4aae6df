//! Deadlines of a channel: ends calls that are late, gives up a peer that is silent, and notes when the driver has to
//! look again.

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use tenon_core::client::{Outcome, Outgoing};
use tenon_core::error::CallError;

use super::{Calls, ChannelState};
use crate::client::waiters::WaiterId;

impl ChannelState {
    /// Gives up the calls that are out of time by `now`, and does what else is due. Returns whether the peer has taken
    /// nothing for so long that the connection is of no use.
    pub(in crate::client) fn handle_timeout(&mut self, now: Instant) -> bool {
        self.alarm = None;
        self.end_drained_link(now);
        let mut is_stuck = false;
        match &mut self.calls {
            Calls::Stream(_) => is_stuck = self.end_late_calls(now),
            Calls::Datagram(calls) => {
                calls.endpoint.handle_timeout(now);
                self.end_failed_calls();
                self.leave_lost_peer();
            }
        }
        self.end_late_queued(now);
        self.handle_silence(now);
        self.expect_next();
        is_stuck
    }

    /// Asks the peer whether it is there, if that is due at `now`, or gives it up as it has not answered.
    fn handle_silence(&mut self, now: Instant) {
        if let Some(link) = &self.link
            && let Err(silence) = self.calls.handle_silence(now)
        {
            let socket = Arc::clone(&link.socket);
            self.break_link(&socket, &silence);
        }
    }

    /// Notes when it is to be looked whether the peer is there; returns whether that was to be later.
    pub(in crate::client) fn expect_silence(&mut self) -> bool {
        let Calls::Stream(connection) = &self.calls else {
            return false;
        };
        connection
            .silence_timeout()
            .is_some_and(|at| self.expect(at))
    }

    /// Has a peer by ONC RPC be asked by this program whether it is there, unless another was named before.
    pub(in crate::client) fn ping_by(&mut self, program: u32, version: u32) {
        self.calls.ping_by(program, version);
        if self.expect_silence() {
            self.wake_driver();
        }
    }

    /// Gives up the calls of a stream that are out of time by `now`. Returns whether the peer has a part of one of
    /// them, and there is no other: nothing else can be sent behind it.
    fn end_late_calls(&mut self, now: Instant) -> bool {
        let Calls::Stream(connection) = &mut self.calls else {
            return false;
        };
        let outgoing = self.link.as_mut().and_then(|link| link.outgoing.as_mut());
        let mut rest = outgoing.and_then(Outgoing::batch_mut);
        // What was not begun to be sent is taken back, so that calls that are given up are not sent.
        let rest = rest.take_if(|batch| !batch.is_sent() && !connection.put_back(batch));
        let late: Vec<_> = iter::from_fn(|| connection.poll_late_call(now)).collect();
        let is_over = !late.is_empty() && connection.in_flight() == 0;
        let stuck = rest.filter(|_| is_over);
        let unsent: Vec<_> = stuck
            .iter()
            .flat_map(|batch| batch.unsent_calls())
            .collect();
        let is_stuck = stuck.is_some();
        for call in late {
            let was_sent = call.was_sent && !unsent.contains(&call.number);
            let error = self.waiters.get(call.waiter).timer.error(was_sent);
            self.end(call.waiter, Outcome::Answered(Err(Box::new(error))));
        }
        is_stuck
    }

    /// Ends the calls of the queue that are out of time by `now`.
    pub(super) fn end_late_queued(&mut self, now: Instant) {
        let mut next = None;
        let mut late = Vec::new();
        for waiter in &self.queue {
            let deadline = self.waiters.get(*waiter).timer.deadline();
            if deadline <= now {
                late.push(*waiter);
            } else {
                next = next.into_iter().chain([deadline]).min();
            }
        }
        if !late.is_empty() {
            self.queue.retain(|waiter| !late.contains(waiter));
        }
        for waiter in late {
            let error = self.queued_error(waiter);
            self.end(waiter, Outcome::Answered(Err(Box::new(error))));
        }
        if let Some(next) = next {
            self.expect(next);
        }
    }

    /// Notes when the calls in flight are to be looked after.
    pub(in crate::client) fn expect_next(&mut self) {
        let next = match &self.calls {
            Calls::Stream(connection) => connection.poll_timeout(),
            Calls::Datagram(calls) => calls.endpoint.poll_timeout(),
        };
        if let Some(next) = next {
            self.expect(next);
        }
    }

    /// Ends the link if nothing can be sent over it, and what the peer still sends was received for long enough.
    fn end_drained_link(&mut self, now: Instant) {
        let Some(link) = &self.link else { return };
        let Some(failure) = &link.send_failure else {
            return;
        };
        if failure.until() > now {
            self.expect(failure.until());
            return;
        }
        let (socket, failure) = (Arc::clone(&link.socket), failure.failure().clone());
        self.break_link(&socket, &failure);
    }

    /// Returns the error of a call that runs out of time in the queue.
    fn queued_error(&mut self, waiter: WaiterId) -> CallError {
        let timer = self.waiters.get(waiter).timer;
        if self.link.is_some() {
            return timer.unsent_error(self.calls.full_at());
        }
        match (self.back_off.error(), &self.lost) {
            (Some(unreachable), _) => unreachable,
            (None, Some(cause)) => CallError::Disconnected {
                cause: Arc::clone(cause),
                may_have_executed: false,
            },
            (None, None) => timer.error(false),
        }
    }

    /// Returns until when the last call of the queue waits for a connection.
    pub(in crate::client) fn last_deadline(&mut self) -> Option<Instant> {
        let queue = self.queue.iter();
        queue
            .map(|waiter| self.waiters.get(*waiter).timer.deadline())
            .max()
    }
}
