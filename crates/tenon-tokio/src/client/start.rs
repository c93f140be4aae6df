//! Starting a call: it is put in flight and behind what waits to be sent, or in the queue if there is no connection
//! that takes it.

use std::sync::MutexGuard;
use std::task::Waker;

use tenon_core::client::{CallId, STALE_AFTER};
use tenon_core::error::CallError;
use tenon_core::timer::CallTimer;
use tenon_proto::connection::{CallDraft, StartError};
use tenon_wire::Buffer;

use super::channel::SharedChannel;
use super::look::is_of_same_channel;
use super::send::SendProgress;
use super::state::{ChannelPhase, ChannelState, ReaderState, closed_error, final_error};
use super::waiters::{CallStage, OwnedDraft, QueuedCall, WaiterId};

/// A call that was started.
pub(super) struct CallStart {
    pub(super) waiter: WaiterId,
    /// The reader's role, if the future is to look for its reply.
    pub(super) reader: Option<Box<ReaderState>>,
}

impl SharedChannel {
    /// Starts a call of a task, if a task polls it already. One that is the only one in flight is sent at once; others
    /// are left to the driver.
    pub(super) fn start(
        &self,
        message: &mut Buffer,
        draft: &CallDraft<'_>,
        timer: &CallTimer,
        task: Option<&Waker>,
    ) -> Result<CallStart, CallError> {
        let mut state = self.look_after_rest(self.lock(), timer);
        if state.phase != ChannelPhase::Open {
            return Err(closed_error());
        }
        let waiter = state.waiters.take(*timer);
        let is_same_task = state.note_caller(task);
        let is_started = match state.try_start(waiter, message, draft, timer) {
            Ok(is_started) => is_started,
            Err(error) => {
                state.waiters.release(waiter);
                return Err(error);
            }
        };
        let is_alone = is_started && state.calls.in_flight() == 1;
        let minded = state.alarm;
        let mut reader = None;
        let mut needs_driver = !is_alone;
        if is_alone {
            let sending;
            (state, sending) = self.transmit(state);
            // Another task that sends takes the call along.
            needs_driver = sending == SendProgress::Blocked || state.needs_sender();
            if !needs_driver {
                reader = self.take_reader(&mut state, is_same_task);
            }
        }
        // What the driver has not parked it does not hear of.
        needs_driver |= reader.is_none() && !state.is_parked;
        state.expect(timer.deadline());
        // Its deadline, or the time at which what was just sent is sent again, may come before that for which the driver
        // has set its alarm, if it has.
        needs_driver |= state.alarm != minded;
        if needs_driver {
            state.wake_driver();
        }
        self.wake(state);
        Ok(CallStart { waiter, reader })
    }

    /// Takes the reader's role for a future that is to look for its reply, if it is to and the role is free.
    fn take_reader(
        &self,
        state: &mut ChannelState,
        is_same_task: bool,
    ) -> Option<Box<ReaderState>> {
        let is_same = is_of_same_channel(self) && is_same_task;
        let link = state.link.as_mut()?;
        let half = link.reader.as_ref()?;
        if half.waiter.always_sleeps() || !is_same {
            return None;
        }
        link.reader.take()
    }

    /// Finds out whether the peer closed the connection while it was not used for long.
    #[inline]
    fn look_after_rest<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        timer: &CallTimer,
    ) -> MutexGuard<'s, ChannelState> {
        match &mut state.link {
            Some(link) if timer.started() > link.used_at + STALE_AFTER => {
                link.used_at = timer.started();
            }
            _ => return state,
        }
        self.receive_now(state)
    }

    #[cold]
    fn receive_now<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
    ) -> MutexGuard<'s, ChannelState> {
        let Some(mut half) = state.link.as_mut().and_then(|link| link.reader.take()) else {
            return state;
        };
        drop(state);
        half.socket.get_ref().refresh();
        let received = self.receive(&mut half);
        let mut state = self.lock();
        state.is_parked = false;
        if let Err(failure) = received {
            state.break_link(&half.socket, &failure);
        }
        state.put_reader(half);
        state
    }
}

impl ChannelState {
    /// Notes which task calls; returns whether it is the one that has called last. Where several tasks call by turns,
    /// one that looks for its reply would keep the calls of the others from going out together.
    #[inline]
    fn note_caller(&mut self, task: Option<&Waker>) -> bool {
        // A number that a later task has again costs one look.
        let task = task.map(|task| task.data().addr());
        std::mem::replace(&mut self.last_caller, task) == task && task.is_some()
    }

    /// Puts a call in flight, or in the queue; returns whether it is in flight.
    #[inline]
    fn try_start(
        &mut self,
        waiter: WaiterId,
        message: &mut Buffer,
        draft: &CallDraft<'_>,
        timer: &CallTimer,
    ) -> Result<bool, CallError> {
        let is_linked = self.link.as_ref().is_some_and(|link| !link.has_failed());
        if is_linked && self.queue.is_empty() {
            match self.calls.start(draft, message, timer, waiter) {
                Ok(call) => {
                    if Self::has_streams(draft) {
                        self.open_streams(waiter, &call);
                    }
                    self.note_started(waiter, call, message);
                    return Ok(true);
                }
                Err(
                    StartError::AwaitsPreamble { .. }
                    | StartError::AwaitsBinding { .. }
                    | StartError::TooManyCalls { .. }
                    | StartError::TooManyStreams { .. },
                ) => {}
                Err(error) => {
                    if let Some(error) = final_error(error, &self.located, self.send_max) {
                        return Err(error);
                    }
                }
            }
        }
        self.enqueue(waiter, message, draft);
        Ok(false)
    }

    #[inline]
    fn note_started(&mut self, waiter: WaiterId, call: CallId, message: &mut Buffer) {
        self.waiters.get(waiter).stage = CallStage::InFlight(call);
        self.buffers.keep(std::mem::take(message));
    }

    #[cold]
    fn enqueue(&mut self, waiter: WaiterId, message: &mut Buffer, draft: &CallDraft<'_>) {
        self.waiters.get(waiter).stage = CallStage::Queued(QueuedCall::Fresh {
            message: std::mem::take(message),
            draft: OwnedDraft::from(draft),
        });
        self.queue.push_back(waiter);
    }
}
