//! Dispatch of calls. A call is tried by the task that received it; a procedure that is known to take long is
//! carried out elsewhere at once, so that no other call waits for it: by a thread that may block, or by a task of its
//! own.
//!
//! A handler that blocks the task which received its call cannot be helped: so a procedure is taken for slow until it
//! was quick for a while elsewhere, and again as soon as it was slow once.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use tenon_core::callbacks::CallbackSource;
use tenon_core::serve::{CallContext, CallToServe, DeferredCall, LOOK_INTERVAL};
use tenon_core::service::{CancelFlag, Cancellation, Origin};
use tenon_core::streams::ServedStreams;
use tenon_proto::lean::Status;
use tenon_wire::Buffer;
use tokio::runtime::Handle;
use tokio::time::sleep_until;

use super::call::{Call, CallMessage};
use super::call_room::CallPermit;
use super::call_target::CallTarget;
use super::mailbox::{ReplyMailbox, ReplyTarget};
use super::mailbox_callbacks::MailboxCallbacks;
use super::running::{AbortableCall, CallFuture, CallHandler, FinishedCall, poll_once};
use super::state::ServerState;
use crate::erased;

/// What a blocking handler has beside its call: how it learns that it is cancelled, its streams, and the channel back.
type HandlerMeans<'c> = (
    Cancellation<'c>,
    Option<&'c ServedStreams>,
    Option<&'c dyn CallbackSource>,
);

/// The time at which the last handler ended, of those that a task carries out one after the other: the next begins then,
/// and the clock is read once for both.
#[derive(Debug, Default)]
pub(super) struct HandlerClock {
    ended_at: Option<Instant>,
}

/// The outcome of a call that was tried where it was received.
pub(super) enum InlineOutcome {
    Finished(FinishedCall),
    /// It waits, and is to be [carried on](OffloadedCall::carry_on).
    Waits(CallFuture),
}

/// A call that is carried out elsewhere than where it was received.
pub(super) struct OffloadedCall {
    state: Arc<ServerState>,
    call: CallToServe,
    origin: Origin,
    progress: DeferredCall<CallTarget>,
}

impl ServerState {
    /// Returns whether a call is to be carried out elsewhere at once.
    #[inline]
    pub(super) fn is_slow(&self, call: &CallToServe) -> bool {
        self.shared.times.is_slow(call.service, call.procedure)
    }

    /// Carries a call out where it was received, as far as it does not wait.
    pub(super) fn try_call(
        self: &Arc<Self>,
        call: CallToServe,
        (mailbox, origin): (&Arc<ReplyMailbox>, Origin),
        message: CallMessage,
        reply: &mut Buffer,
        clock: &mut HandlerClock,
    ) -> InlineOutcome {
        let begin = clock.ended_at.unwrap_or_else(Instant::now);
        let tried = match &self.handlers[call.service] {
            // Only the time stamps are asked for.
            _ if call.procedure == 0 => self.execute(&call, origin, message, reply),
            CallHandler::Sync => self.execute(&call, origin, message, reply),
            CallHandler::Async(service) => {
                let asked = Call::new(mailbox, origin, call, message);
                let mut future = Arc::clone(service).begin(Arc::clone(&self.shared), asked, call);
                match poll_once(&mut future) {
                    Some(finished) => InlineOutcome::Finished(finished),
                    None => {
                        (self.shared.times).note_slow(call.service, call.procedure);
                        InlineOutcome::Waits(future)
                    }
                }
            }
        };
        let end = Instant::now();
        (self.shared.times).note_inline(call.service, call.procedure, end - begin);
        clock.ended_at = Some(end);
        tried
    }

    fn execute(
        &self,
        call: &CallToServe,
        origin: Origin,
        message: CallMessage,
        reply: &mut Buffer,
    ) -> InlineOutcome {
        let mut reply = std::mem::take(reply);
        let beside = (Cancellation::None, None, None);
        self.run_handler(call, origin, &message, beside, &mut reply);
        InlineOutcome::Finished(FinishedCall {
            reply,
            message: message.into_detached(),
        })
    }

    fn run_handler(
        &self,
        call: &CallToServe,
        origin: Origin,
        message: &CallMessage,
        (cancellation, streams, callbacks): HandlerMeans<'_>,
        reply: &mut Buffer,
    ) {
        let context = CallContext {
            cancellation,
            streams,
            callbacks,
            ..message.context(call, origin)
        };
        let (registry, tally) = (&self.shared.registry, &self.shared.tally);
        registry.execute(call, context, message.arguments(), tally, reply);
    }
}

impl ServerState {
    /// Answers the calls that have taken too long, now and whenever there are some.
    pub(super) async fn expire_calls(self: Arc<Self>) {
        loop {
            let now = Instant::now();
            let expired = self.deferred.expire(&self.shared, now);
            for (call, reply) in expired.answers {
                call.target().answer(reply);
            }
            match expired.next {
                Some(at) => sleep_until(at.max(now + LOOK_INTERVAL).into()).await,
                None => self.deferred_again.notified().await,
            }
        }
    }
}

impl OffloadedCall {
    /// A call that is to be answered by a mailbox, and for which there is room.
    pub(super) fn new(
        state: &Arc<ServerState>,
        (mailbox, to): (&Arc<ReplyMailbox>, ReplyTarget),
        (call, origin): (CallToServe, Origin),
        cancelled: CancelFlag,
        room: CallPermit,
    ) -> Self {
        let target = CallTarget::new(mailbox, to, room);
        let (progress, due) = state.deferred.add(call, cancelled, target);
        if due.is_some() {
            state.deferred_again.notify_one();
        }
        Self {
            state: Arc::clone(state),
            call,
            origin,
            progress,
        }
    }

    /// Returns which call it is.
    pub(super) fn to(&self) -> ReplyTarget {
        self.progress.target().to()
    }

    /// Returns whether the call was given up before it was begun.
    pub(super) fn is_given_up(&self) -> bool {
        self.progress.is_given_up()
    }

    /// Carries a call out from its begin on.
    pub(super) fn carry_out(self, message: CallMessage) {
        let state = Arc::clone(&self.state);
        state.shared.tally.calls_handed_over.up();
        match &state.handlers[self.call.service] {
            CallHandler::Sync => {
                erased::spawn_blocking(move || self.block(&message, None));
            }
            CallHandler::Async(service) => {
                let mailbox = self.progress.target().mailbox();
                let asked = Call::new(mailbox, self.origin, self.call, message);
                let future = Arc::clone(service).begin(Arc::clone(&state.shared), asked, self.call);
                self.carry_on(future);
            }
        }
    }

    /// Carries a call with streams out.
    #[cold]
    pub(super) fn carry_out_streaming(self, message: CallMessage, streams: ServedStreams) {
        let state = Arc::clone(&self.state);
        state.shared.tally.calls_handed_over.up();
        match &state.handlers[self.call.service] {
            CallHandler::Sync => self.block_streaming(message, streams),
            CallHandler::Async(service) => {
                let mailbox = self.progress.target().mailbox();
                let asked = Call::new(mailbox, self.origin, self.call, message);
                let asked = asked.with_streams(streams);
                let future = Arc::clone(service).begin(Arc::clone(&state.shared), asked, self.call);
                self.carry_on(future);
            }
        }
    }

    /// Has a call with streams carried out by a thread of its own: it may take as long as its peer likes, and the run time
    /// has a limited number of threads for what blocks. If there is no other thread it waits for one of those.
    fn block_streaming(self, message: CallMessage, streams: ServedStreams) {
        let run_time = Handle::current();
        let job = Arc::new(Mutex::new(Some((self, message, streams))));
        let carry_out = |job: &Mutex<Option<(Self, CallMessage, ServedStreams)>>| {
            let job = job.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((call, message, streams)) = job {
                call.block(&message, Some(&streams));
            }
        };
        let (handed, entered) = (Arc::clone(&job), run_time.clone());
        let builder = thread::Builder::new().name("tenon-stream".to_owned());
        let spawned = builder.spawn(move || {
            let _entered = entered.enter();
            carry_out(&handed);
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "cannot start a thread for a call with streams");
            erased::spawn_blocking(move || carry_out(&job));
        }
    }

    /// Carries on with a call that waits.
    pub(super) fn carry_on(self, future: CallFuture) {
        erased::spawn(async move {
            let begin = Instant::now();
            if !self.progress.begin() {
                return;
            }
            let cancelled = self.progress.cancelled().clone();
            let reply = match self.refusal() {
                Some(refusal) => refusal,
                None => AbortableCall::new(future, self.call, cancelled).await,
            };
            self.finish(begin, reply);
        });
    }

    fn block(self, message: &CallMessage, streams: Option<&ServedStreams>) {
        let begin = Instant::now();
        if !self.progress.begin() {
            return;
        }
        let reply = self.refusal().unwrap_or_else(|| {
            let _busy = self.state.blocking_threads.enter();
            let mut reply = Buffer::default();
            let callbacks = MailboxCallbacks {
                mailbox: self.progress.target().mailbox(),
                origin: &self.origin,
                call: &self.call,
            };
            let cancellation = Cancellation::Flag(self.progress.cancelled());
            let beside = (cancellation, streams, Some(&callbacks as _));
            (self.state).run_handler(&self.call, self.origin, message, beside, &mut reply);
            reply
        });
        self.finish(begin, reply);
    }

    /// Returns the answer to a call that is not waited for any more.
    fn refusal(&self) -> Option<Buffer> {
        let status = if self.call.is_late() {
            Status::DEADLINE
        } else if self.progress.cancelled().is_set() {
            Status::CANCELLED
        } else {
            return None;
        };
        let mut reply = Buffer::default();
        self.call.refuse(status, "it was not begun", &mut reply);
        Some(reply)
    }

    fn finish(self, begin: Instant, reply: Buffer) {
        let times = &self.state.shared.times;
        times.note_elsewhere(self.call.service, self.call.procedure, begin.elapsed());
        if self.progress.claim_answer() {
            self.progress.target().answer(reply);
        } else {
            tracing::debug!("a handler has ended after its call was given up");
        }
    }
}
