//! Calls of this end that end without an answer: given up, out of time, taken back, or lost with their connection.

use std::time::Instant;

use super::outgoing_calls::{AbandonedCall, CallDraft, LeanCall, StartError, UnsentCall};
use super::send_queue::RemovedCall;
use super::started_call::StartedCall;
use super::streams::StreamId;
use super::{CallTimeout, Connection};
use crate::codec::lean::MessageDraft;

impl<W> Connection<W> {
    /// Returns the action for a call at `now`; `None` if it is not in flight. A lean peer is told that a call that ran
    /// out of time is not waited for any more.
    pub fn handle_call_timeout(&mut self, number: u32, now: Instant) -> Option<CallTimeout<W>> {
        let deadline = self.outgoing.deadline(number)?;
        if now < deadline {
            return Some(CallTimeout::Wait(deadline));
        }
        self.give_up(number, Some(now)).map(CallTimeout::Expired)
    }

    /// Gives a call up: its answer will be ignored, and a lean peer is told so. `None` if it is not in flight.
    pub fn cancel_call(&mut self, number: u32) -> Option<AbandonedCall<W>> {
        self.give_up(number, None)
    }

    fn give_up(&mut self, number: u32, late_at: Option<Instant>) -> Option<AbandonedCall<W>> {
        let call = self.outgoing.abandon(number, late_at.is_some())?;
        if let Some(now) = late_at.filter(|_| call.was_sent) {
            self.liveness.note_late_call(number, now, &self.outgoing);
        }
        if call.was_sent {
            self.outgoing.note_given_up();
            self.give_up_streams(StreamId::own(number));
            self.tell_cancelled(number);
            return Some(call);
        }
        self.close_streams(StreamId::own(number));
        if self.send_queue.remove(number) == RemovedCall::Unfinished {
            self.tell_cancelled(number);
        }
        Some(call)
    }

    /// Takes a call back of which nothing was sent, even if it was [marked](Self::mark_sent) so. `None` if it is not in
    /// flight.
    pub fn withdraw_call(&mut self, number: u32) -> Option<AbandonedCall<W>> {
        let call = self.outgoing.abandon(number, false)?;
        self.send_queue.remove(number);
        self.close_streams(StreamId::own(number));
        Some(AbandonedCall {
            was_sent: false,
            ..call
        })
    }

    /// Takes all calls of this end out, for when the connection is lost. Those that were not sent whole were not
    /// carried out, and can be [started again](Self::restart_call), unless they have streams: items may be lost.
    #[cold]
    pub fn abandon_all(&mut self) -> Vec<AbandonedCall<W>> {
        self.closing.is_lost = true;
        self.liveness.end();
        let mut unsent = self.send_queue.take_unsent(self.own.order);
        if let Some(streams) = self.streams.take() {
            unsent.retain(|(number, _)| !streams.has(StreamId::own(*number)));
        }
        self.outgoing.abandon_all(unsent, &self.requested)
    }

    /// Starts a call again, and has it sent, after its connection was lost before it was sent whole.
    ///
    /// # Errors
    /// As [`start_call`](Self::start_call); the call is as it was.
    #[cold]
    pub fn restart_call(
        &mut self,
        call: &mut UnsentCall,
        waiter: W,
    ) -> Result<StartedCall, StartError> {
        let cut_off = call.cut_off();
        let UnsentCall {
            message,
            lean,
            deadline,
            ..
        } = call;
        let draft = match lean {
            None => CallDraft::Onc,
            Some((interface, procedure)) => {
                let draft = MessageDraft::of_whole(message, self.own.order);
                CallDraft::Lean(LeanCall {
                    draft: draft.ok_or(StartError::OtherProtocol)?,
                    interface,
                    procedure: *procedure,
                })
            }
        };
        let started = self.start_call(&draft, message, *deadline, waiter)?;
        self.outgoing.set_cut_off(started.number, cut_off);
        self.push_call(&started, message);
        Ok(started)
    }

    /// Takes out a call of this end that has run out of time by `now`.
    pub fn poll_late_call(&mut self, now: Instant) -> Option<AbandonedCall<W>> {
        let number = self.outgoing.expired(now)?;
        self.give_up(number, Some(now))
    }
}
