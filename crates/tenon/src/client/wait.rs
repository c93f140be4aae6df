//! Waiting: as the reader, which reads for all, or asleep until the reader has brought what is waited for or leaves.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_core::client::{CallId, Outcome};
use tenon_core::error::CallError;
use tenon_core::profile::{Probe, Step};
use tenon_core::timer::CallTimer;
use tenon_core::wait::{Looking, Spinners, WaitContext};
use tenon_net::Until;
use tenon_proto::connection::CallTimeout;

use super::call::{DeliveredReply, InFlightCall, ReceivedReply};
use super::channel::Channel;
use super::link::ActiveConnection;
use super::state::{Calls, ChannelState};
use super::wait_handle::WakeHandle;
use super::waiters::WaiterId;

impl Channel {
    /// Waits for the reply to a call, until `until` or the call's own deadline. `None` if it has not come by `until`.
    pub(super) fn wait_for_reply<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        flight: &mut InFlightCall,
        mut until: Until,
        probe: impl Probe,
    ) -> Result<Option<ReceivedReply<'s>>, CallError> {
        let Some(waiter) = flight.waiter else {
            return Ok(None);
        };
        loop {
            if state.waiters.has_outcome(waiter) {
                return self.finish(state, flight, waiter).map(Some);
            }
            let bound = until.or_earlier(state.next_timeout(waiter, flight.timer.deadline()));
            if state.needs_sender() {
                state = self.transmit(state, until.deadline());
            } else if state.link.is_none() && !flight.timer.is_over() {
                // The call was not sent before its connection was lost.
                state = self.reconnect(state, &flight.timer)?;
            } else if let Some(mut reader) = self.read(&mut state) {
                drop(state);
                // Without waiting, if the time is over.
                if reader.read(waiter, bound, probe) {
                    flight.waiter = None;
                    return Ok(Some(ReceivedReply::InPlace(reader)));
                }
                drop(reader);
                state = self.lock();
            } else if !bound.is_over() {
                let handle = state.waiters.fall_asleep(waiter);
                drop(state);
                handle.wait(&self.followers(), bound.deadline());
                probe.at(Step::Received);
                state = self.lock();
                state.waiters.note_awake(waiter);
            }
            let now = Instant::now();
            until = Until::seen(until.deadline(), now);
            if now < bound.deadline() || state.waiters.has_outcome(waiter) {
                continue;
            }
            state = self.handle_timeout(state, flight, waiter)?;
            if until.is_over() && !state.waiters.has_outcome(waiter) {
                drop(state);
                self.offer_reader_role();
                return Ok(None);
            }
        }
    }

    /// Returns the reply to a call that another caller has read already. Of several calls that were started together
    /// most are answered when they are waited for.
    ///
    /// # Errors
    /// It has not come.
    #[inline]
    pub(super) fn take_delivered<'s>(
        &'s self,
        state: MutexGuard<'s, ChannelState>,
        flight: &mut InFlightCall,
    ) -> Result<Result<ReceivedReply<'s>, CallError>, MutexGuard<'s, ChannelState>> {
        match flight.waiter {
            Some(waiter) if state.waiters.has_outcome(waiter) => {
                Ok(self.finish(state, flight, waiter))
            }
            _ => Err(state),
        }
    }

    /// Waits once for something that may let a call begin which could not: callers go on in the order in which they
    /// came.
    #[cold]
    pub(super) fn wait_for_peer<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        waiter: WaiterId,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        if !state.blocked.contains(&waiter) {
            state.blocked.push_back(waiter);
        }
        let mut state = self.wait_once(state, waiter, timer.deadline());
        self.check_blocked(&mut state, waiter, timer)?;
        if timer.is_over() {
            return Err(timer.unsent_error(state.calls.full_at()));
        }
        Ok(state)
    }

    /// Does the same for a call with streams of which the peer has as many as it takes. Other calls pass it.
    #[cold]
    pub(super) fn wait_for_streams<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        waiter: WaiterId,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        state.leave_blocked(waiter);
        state.awaiting_streams.push(waiter);
        let mut state = self.wait_once(state, waiter, timer.deadline());
        self.check_blocked(&mut state, waiter, timer)?;
        if timer.is_over() {
            return Err(timer.unsent_error(None));
        }
        Ok(state)
    }

    /// Looks whether the peer takes no calls: a call that does not wait for it to be ready fails then.
    fn check_blocked(
        &self,
        state: &mut ChannelState,
        waiter: WaiterId,
        timer: &CallTimer,
    ) -> Result<(), CallError> {
        match state.waiters.fetch(waiter) {
            Some(Outcome::Lost(failure, was_sent)) if !timer.waits_for_ready(self.options()) => {
                Err(failure.into_error(was_sent))
            }
            _ => Ok(()),
        }
    }

    /// Sends what waits, or reads once, or sleeps until there is something to do.
    #[cold]
    pub(super) fn wait_once<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        waiter: WaiterId,
        deadline: Instant,
    ) -> MutexGuard<'s, ChannelState> {
        // A peer that was not told anything has no reason to say anything.
        if state.needs_sender() {
            return self.transmit(state, deadline);
        }
        if state.link.is_none() {
            return state;
        }
        let until = state.next_timeout(waiter, deadline);
        match self.read(&mut state) {
            Some(mut reader) => {
                drop(state);
                reader.read_once(until);
            }
            None => {
                let handle = state.waiters.fall_asleep(waiter);
                drop(state);
                handle.wait(&self.followers(), until);
            }
        }
        let mut state = self.lock();
        state.waiters.note_awake(waiter);
        let now = Instant::now();
        state.handle_due(now);
        state.end_drained_link(now);
        state.handle_silence(now);
        state
    }

    /// Asks a server of the packet exchange for a conversation and waits until it has answered: so what is no server is
    /// found out when a channel is made, and calls that are started later go out without waiting.
    pub(super) fn greet(&self, timer: &CallTimer) -> Result<(), io::Error> {
        let mut state = self.lock();
        let Calls::Datagram(calls) = &mut state.calls else {
            return Ok(());
        };
        calls.endpoint.greet(timer.started());
        let waiter = state.waiters.take();
        let greeted = loop {
            let Calls::Datagram(calls) = &state.calls else {
                break Ok(());
            };
            match (calls.endpoint.is_greeting(), &calls.fault) {
                (true, _) if timer.is_over() => {
                    break Err(io::ErrorKind::TimedOut.into());
                }
                (true, _) => {}
                (false, None) => break Ok(()),
                (false, Some(fault)) => {
                    break Err(io::Error::new(fault.kind(), Arc::clone(fault)));
                }
            }
            state = self.wait_once(state, waiter, timer.deadline());
        };
        state.release(waiter);
        greeted
    }

    /// Returns the context of the callers that another caller reads for.
    fn followers(&self) -> WaitContext<'_> {
        WaitContext {
            spinners: Spinners::of_callers(),
            looking: Looking::AtFlag,
            tally: self.follower_waits(),
        }
    }

    /// Turns what another caller has left into the reply. The call is over.
    #[inline]
    fn finish<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        flight: &mut InFlightCall,
        waiter: WaiterId,
    ) -> Result<ReceivedReply<'s>, CallError> {
        let outcome = state.waiters.fetch(waiter);
        state.release(waiter);
        flight.waiter = None;
        let fault = state.calls.fault();
        drop(state);
        let Some(outcome) = outcome else {
            unreachable!("a call is over once");
        };
        let results = outcome.into_results(&flight.timer, || fault)?;
        Ok(ReceivedReply::Delivered(DeliveredReply {
            results,
            channel: self,
        }))
    }

    /// Does what is due for a call: it is given up, or something is sent again.
    #[cold]
    fn handle_timeout<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        flight: &mut InFlightCall,
        waiter: WaiterId,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        let now = Instant::now();
        state.end_drained_link(now);
        let call = state.waiters.call(waiter);
        let full_at = match call {
            None => state.calls.full_at(),
            Some(_) => None,
        };
        let was_sent = match (&mut state.calls, call) {
            (Calls::Stream(connection), Some(CallId::Stream(call))) => {
                match connection.handle_call_timeout(call.number, now) {
                    Some(CallTimeout::Expired(call)) => Some(call.was_sent),
                    Some(CallTimeout::Wait(_)) => None,
                    // It waits for another connection.
                    None => (now >= flight.timer.deadline()).then_some(false),
                }
            }
            // An event loop has put it off.
            (Calls::Stream(_), None) => (now >= flight.timer.deadline()).then_some(false),
            _ => {
                state.handle_due(now);
                None
            }
        };
        state.handle_silence(now);
        if state.needs_sender() {
            state = self.transmit(state, now);
        }
        let Some(was_sent) = was_sent else {
            return Ok(state);
        };
        flight.waiter = None;
        state.give_up(waiter);
        drop(state);
        self.offer_reader_role();
        Err(if was_sent {
            flight.timer.error(true)
        } else {
            flight.timer.unsent_error(full_at)
        })
    }

    /// Offers the role of the reader to another caller, in case it was offered to this one, which does not take it.
    #[cold]
    fn offer_reader_role(&self) {
        let mut state = self.lock();
        // A caller that reads now passes the role on.
        let is_free = state
            .link
            .as_ref()
            .is_some_and(|link| link.reader.is_some());
        let next = if is_free {
            state.waiters.wake_next()
        } else {
            None
        };
        drop(state);
        if let Some(next) = next {
            next.wake();
        }
    }

    /// Gives a call up that is not waited for any more.
    #[cold]
    pub(super) fn give_up(&self, waiter: WaiterId) {
        let mut state = self.lock();
        state.give_up(waiter);
        if state.needs_sender() && state.open_batches == 0 {
            drop(self.transmit(state, Instant::now()));
        }
    }
}

impl ChannelState {
    /// Returns when there is something to do for a caller, at `deadline` at the latest.
    #[inline]
    fn next_timeout(&self, waiter: WaiterId, deadline: Instant) -> Instant {
        // The reader looks at the time for all.
        let is_read = self.link.as_ref().is_none_or(|link| link.reader.is_none());
        let next = match (&self.calls, self.waiters.call(waiter)) {
            (Calls::Datagram(calls), Some(CallId::Datagram(id))) if is_read => {
                calls.endpoint.call_timeout(id)
            }
            (Calls::Datagram(calls), _) => calls.endpoint.poll_timeout(),
            (Calls::Stream(_), _) => {
                let drained = self.link.as_ref().and_then(ActiveConnection::drained_at);
                let silent = if is_read {
                    None
                } else {
                    self.silence_timeout()
                };
                drained.into_iter().chain(silent).min()
            }
        };
        next.map_or(deadline, |next| next.min(deadline))
    }

    /// Does what is due for calls over datagrams.
    #[cold]
    pub(super) fn handle_due(&mut self, now: Instant) {
        let Calls::Datagram(calls) = &mut self.calls else {
            return;
        };
        if calls.endpoint.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        calls.endpoint.handle_timeout(now);
        while let Some((waiter, outcome)) = self.calls.poll_failure() {
            self.waiters
                .deliver(waiter, outcome)
                .inspect(WakeHandle::wake);
        }
        self.leave_lost_peer();
        self.wake_blocked();
    }
}
