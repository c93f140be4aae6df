//! Starting a call: it is put in flight and behind what waits to be sent, once there is a connection that takes it.

use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Instant;

use tenon_core::client::{CallId, ReadyPauses, seal};
use tenon_core::error::CallError;
use tenon_core::profile::{Probe, Step};
use tenon_core::timer::{CallLimit, CallTimer};
use tenon_proto::connection::{CallDraft, StartError, UnsentCall};
use tenon_wire::Buffer;

use super::call::{BlockingCall, CallHandle, InFlightCall, ReceivedReply};
use super::channel::Channel;
use super::fast_path::SlowPath;
use super::link::SenderState;
use super::state::{Calls, ChannelState};
use super::waiters::WaiterId;

/// Bytes of calls that are gathered at most while a batch is open.
const GATHERED_MAX: usize = 32 << 10;

impl Channel {
    /// Makes a call: sends it and waits for its reply. It is given up if none comes within `limit`.
    #[inline(never)]
    pub(super) fn call(
        &self,
        mut message: Buffer,
        draft: &CallDraft<'_>,
        limit: CallLimit,
        probe: impl Probe,
    ) -> Result<ReceivedReply<'_>, CallError> {
        let timer = self.timer(limit);
        seal(&mut message, draft, self.address(), self.options())?;
        let mut reply = match self.call_directly(&mut message, draft, &timer, probe) {
            Ok(reader) => ReceivedReply::InPlace(reader),
            Err(slow_path) => self.call_slow_path(slow_path, message, draft, timer, probe)?,
        };
        reply.tell(probe);
        Ok(reply)
    }

    /// Makes a call until the peer is ready for it, within `limit`.
    #[cold]
    pub(super) fn call_when_ready(
        &self,
        message: &Buffer,
        draft: &CallDraft<'_>,
        limit: CallLimit,
        probe: impl Probe,
    ) -> Result<ReceivedReply<'_>, CallError> {
        let mut pauses = ReadyPauses::begin(limit);
        loop {
            let left = CallLimit {
                timeout: pauses.left(),
                ..limit
            };
            match self.call(message.clone(), draft, left, probe) {
                Err(error) => match pauses.after(&error) {
                    Some(pause) => thread::sleep(pause),
                    None => return Err(error),
                },
                replied => return replied,
            }
        }
    }

    /// Makes a call that cannot go directly, or was sent and has got something else than its reply.
    #[inline(never)]
    fn call_slow_path<'c>(
        &'c self,
        slow_path: SlowPath<'c>,
        message: Buffer,
        draft: &CallDraft<'_>,
        timer: CallTimer,
        probe: impl Probe,
    ) -> Result<ReceivedReply<'c>, CallError> {
        let mut call = BlockingCall {
            channel: self,
            flight: InFlightCall::new(timer),
        };
        let flight = &mut call.flight;
        let state = match slow_path {
            SlowPath::Unsent(state) => self.start_and_send(state, flight, message, draft, probe)?,
            SlowPath::InFlight(waiter) => {
                flight.waiter = Some(waiter);
                flight.timer.look();
                self.lock()
            }
        };
        let until = flight.timer.until();
        let reply = self.wait_for_reply(state, flight, until, probe)?;
        reply.ok_or_else(|| flight.timer.error(true))
    }

    /// Sends a call; its reply is fetched later.
    pub(super) fn start(
        &self,
        mut message: Buffer,
        draft: &CallDraft<'_>,
        limit: CallLimit,
        probe: impl Probe,
    ) -> Result<CallHandle, CallError> {
        let timer = self.timer(limit);
        seal(&mut message, draft, self.address(), self.options())?;
        let mut call = BlockingCall {
            channel: self,
            flight: InFlightCall::new(timer),
        };
        let state = self.lock();
        drop(self.start_and_send(state, &mut call.flight, message, draft, probe)?);
        let flight = InFlightCall {
            waiter: call.flight.waiter.take(),
            timer: call.flight.timer,
        };
        Ok(CallHandle::new(self.clone(), flight))
    }

    /// Starts a call, and sends what waits unless another caller does, or a batch is open.
    #[inline]
    pub(super) fn start_and_send<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        flight: &mut InFlightCall,
        mut message: Buffer,
        draft: &CallDraft<'_>,
        probe: impl Probe,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        let waiter = state.waiters.take();
        flight.waiter = Some(waiter);
        loop {
            match self.try_start(&mut state, waiter, &mut message, draft, &flight.timer) {
                Ok(()) => break,
                Err(SendBlocked::PeerIsBusy) if state.may_put_off(draft) => {
                    state.put_off(waiter, &mut message, draft, &flight.timer);
                    break;
                }
                Err(obstacle) => {
                    state = self.overcome(state, obstacle, waiter, &flight.timer)?;
                    flight.timer.look();
                    if let CallDraft::Lean(call) = draft {
                        call.draft.set_time_left(&mut message, flight.timer.left());
                    }
                }
            }
        }
        state.buffers.keep(message);
        probe.at(Step::Sending);
        if !state.gathers() {
            let deadline = if state.is_stepped {
                flight.timer.started()
            } else {
                flight.timer.deadline()
            };
            state = self.transmit(state, deadline);
        }
        probe.at(Step::Sent);
        Ok(state)
    }

    #[inline]
    fn try_start(
        &self,
        state: &mut ChannelState,
        waiter: WaiterId,
        message: &mut Buffer,
        draft: &CallDraft<'_>,
        timer: &CallTimer,
    ) -> Result<(), SendBlocked> {
        state.check_start(self, waiter, timer)?;
        match state.start(waiter, message, draft, timer) {
            Ok(()) => {}
            Err(
                StartError::AwaitsPreamble { .. }
                | StartError::AwaitsBinding { .. }
                | StartError::TooManyCalls { .. },
            ) => {
                return Err(SendBlocked::PeerIsBusy);
            }
            Err(StartError::TooManyStreams { .. }) => return Err(SendBlocked::TooManyStreams),
            Err(StartError::NoStreams) => {
                let reason = "the peer takes no calls with streams";
                return Err(CallError::NoStreams { reason }.into());
            }
            Err(StartError::TooLarge { size, limit }) => {
                let own_limit = Some(self.options().send_max);
                let error = CallError::TooLargeForPeer {
                    size,
                    limit,
                    own_limit,
                };
                return Err(error.into());
            }
            Err(StartError::TooLargeForDatagram { size, limit }) => {
                let error = CallError::TooLarge {
                    size,
                    limit,
                    datagram: true,
                };
                return Err(error.into());
            }
            Err(StartError::OtherProtocol) => {
                let spoken = self.address().protocol();
                return Err(CallError::OtherProtocol { spoken }.into());
            }
            Err(StartError::Bind(error)) => return Err(CallError::Unbound(error).into()),
            // Of the reasons there may be one day all are of this connection.
            Err(_) => return Err(SendBlocked::Closing),
        }
        if !state.blocked.is_empty() || !state.awaiting_streams.is_empty() {
            state.leave_blocked(waiter);
        }
        Ok(())
    }

    /// Does what there is to do about an obstacle; the call may be tried again then.
    #[cold]
    fn overcome<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        obstacle: SendBlocked,
        waiter: WaiterId,
        timer: &CallTimer,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        match obstacle {
            SendBlocked::NoConnection => self.reconnect(state, timer),
            SendBlocked::Stale => Ok(self.look_after_rest(state)),
            SendBlocked::PeerIsBusy | SendBlocked::Ending => {
                self.wait_for_peer(state, waiter, timer)
            }
            SendBlocked::TooManyStreams => self.wait_for_streams(state, waiter, timer),
            SendBlocked::Closing if state.calls.in_flight() > 0 => {
                self.wait_for_peer(state, waiter, timer)
            }
            SendBlocked::Closing => {
                state.close_link();
                Ok(state)
            }
            SendBlocked::Error(error) => Err(*error),
        }
    }

    /// Finds out whether the peer closed the connection while no caller looked.
    #[cold]
    fn look_after_rest<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
    ) -> MutexGuard<'s, ChannelState> {
        let Some(link) = &mut state.link else {
            return state;
        };
        link.used_at = Instant::now();
        let socket = Arc::clone(&link.socket);
        let Some(mut reader) = self.read(&mut state) else {
            return state;
        };
        drop(state);
        socket.socket.refresh();
        let looked = reader.receive_now();
        drop(reader);
        let mut state = self.lock();
        match looked {
            // It may be known to be of no use: no caller has looked since.
            Ok(_) => state.handle_silence(Instant::now()),
            Err(failure) => state.break_link(&socket, &failure),
        }
        state
    }
}

/// A reason why a call cannot be sent now.
enum SendBlocked {
    /// There is no connection.
    NoConnection,
    /// The connection is to be looked at first.
    Stale,
    /// The peer has as many calls as it takes, or has not said how large they may be.
    PeerIsBusy,
    /// The peer has as many calls with streams as it takes; others may pass this one.
    TooManyStreams,
    /// The peer only answers what it has, and then closes.
    Closing,
    /// Nothing can be sent any more, and what the peer sent before is received.
    Ending,
    /// Nothing will help.
    Error(Box<CallError>),
}

impl From<CallError> for SendBlocked {
    #[cold]
    fn from(error: CallError) -> Self {
        Self::Error(Box::new(error))
    }
}

fn has_streams(draft: &CallDraft<'_>) -> bool {
    matches!(draft, CallDraft::Lean(call) if call.draft.streams().any())
}

impl ChannelState {
    /// Checks what does not depend on the call.
    #[inline]
    fn check_start(
        &mut self,
        channel: &Channel,
        waiter: WaiterId,
        timer: &CallTimer,
    ) -> Result<(), SendBlocked> {
        let limit = channel.options().calls_max;
        if self.calls.in_flight() + self.unsent.len() >= limit {
            return Err(CallError::TooManyCalls { limit }.into());
        }
        let Some(link) = &mut self.link else {
            return Err(SendBlocked::NoConnection);
        };
        if link.sending == SenderState::Failed {
            return Err(SendBlocked::Ending);
        }
        if link.failure.is_some() {
            return Err(SendBlocked::PeerIsBusy);
        }
        if link.is_stale(timer.started()) && link.socket.socket.stream().is_some() {
            return Err(SendBlocked::Stale);
        }
        let is_next = self.blocked.front().is_none_or(|first| *first == waiter);
        if !is_next || !self.unsent.is_empty() {
            return Err(SendBlocked::PeerIsBusy);
        }
        Ok(())
    }

    /// Puts a call in flight and behind what waits to be sent.
    #[inline]
    fn start(
        &mut self,
        waiter: WaiterId,
        message: &mut Buffer,
        draft: &CallDraft<'_>,
        timer: &CallTimer,
    ) -> Result<(), StartError> {
        let call = self.calls.start(draft, message, timer, waiter)?;
        self.waiters.set_call(waiter, call);
        if let CallId::Stream(call) = call
            && has_streams(draft)
        {
            self.pipes.open(call.number, waiter);
        }
        Ok(())
    }

    /// Returns whether a call that the peer does not take yet is to wait for the steps of an event loop, and not its
    /// caller.
    #[cold]
    fn may_put_off(&self, draft: &CallDraft<'_>) -> bool {
        self.is_stepped && matches!(self.calls, Calls::Stream(_)) && !has_streams(draft)
    }

    /// Has a call started as soon as the peer takes it.
    #[cold]
    fn put_off(
        &mut self,
        waiter: WaiterId,
        message: &mut Buffer,
        draft: &CallDraft<'_>,
        timer: &CallTimer,
    ) {
        let call = UnsentCall::new(draft, message, timer.deadline());
        self.unsent.push_back((call, waiter));
    }

    /// Returns whether calls wait for others that are sent with them.
    #[inline]
    fn gathers(&self) -> bool {
        self.open_batches > 0
            && match &self.calls {
                Calls::Stream(connection) => connection.queued_bytes() < GATHERED_MAX,
                Calls::Datagram(calls) => {
                    calls.endpoint.is_exchange() && !calls.endpoint.in_flight().is_multiple_of(64)
                }
            }
    }

    /// Gives a connection up that takes no calls any more and has answered all it took.
    #[cold]
    fn close_link(&mut self) {
        if let Some(link) = self.link.take() {
            link.socket.shutdown();
        }
    }
}
