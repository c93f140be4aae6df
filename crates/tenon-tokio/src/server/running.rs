//! A call that is carried out by a future.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tenon_core::Refusal;
use tenon_core::procedure::ProcedureInfo;
use tenon_core::profile;
use tenon_core::propagation::PropagatedContext;
use tenon_core::serve::{CallToServe, HandlerFailure, ServerShared, panic_text, refuse_by};
use tenon_core::service::{CallInfo, CancelFlag, LeanService, Service};
use tenon_proto::connection::framing::Detached;
use tenon_proto::lean::{Interface, Status};
use tenon_wire::{Buffer, Decoder, Encoder, Lean};
use tokio::time::{Instant, Sleep, sleep_until};

use super::call::{Answer, AsyncService, Call};

/// A reply that is sealed, and the memory that its call was received in.
#[derive(Debug)]
pub(super) struct FinishedCall {
    pub(super) reply: Buffer,
    pub(super) message: Option<Detached>,
}

/// A call while a service carries it out. It ends by its reply, whatever the service does.
pub(super) type CallFuture = Pin<Box<dyn Future<Output = FinishedCall> + Send>>;

/// The way in which the calls of a service are carried out.
pub(super) enum CallHandler {
    /// A function that may block.
    Sync,
    /// A future.
    Async(Arc<dyn BeginCall>),
}

/// A service of tasks, whichever it is.
pub(super) trait BeginCall: Send + Sync {
    /// Begins to carry a call out.
    fn begin(
        self: Arc<Self>,
        shared: Arc<ServerShared>,
        call: Call,
        to_serve: CallToServe,
    ) -> CallFuture;
}

impl<S: AsyncService> BeginCall for S {
    fn begin(
        self: Arc<Self>,
        shared: Arc<ServerShared>,
        call: Call,
        to_serve: CallToServe,
    ) -> CallFuture {
        let context = call.info().context_to_enter();
        Box::pin(async move {
            match guarded(self.call(call), context).await {
                Ok(Answer { reply, message, .. }) => FinishedCall {
                    reply,
                    message: message.into_detached(),
                },
                Err(failure) => {
                    let noted = shared
                        .registry
                        .note_failure(&to_serve, failure, &shared.tally);
                    refused(&to_serve, &noted)
                }
            }
        })
    }
}

/// Carries a call out, in the context of that call if it has one. What one that panics leaves half-changed is its own.
async fn guarded(
    call: impl Future<Output = Result<Answer, Refusal>>,
    context: Option<PropagatedContext>,
) -> Result<Answer, HandlerFailure> {
    let mut call = pin!(call);
    poll_fn(|cx| {
        let _entered = context.as_ref().map(PropagatedContext::enter);
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
            Ok(polled) => polled.map_err(HandlerFailure::Refused),
            Err(panic) => Poll::Ready(Err(HandlerFailure::Panicked(
                panic_text(&*panic).to_owned(),
            ))),
        }
    })
    .await
}

#[cold]
fn refused(call: &CallToServe, refusal: &Refusal) -> FinishedCall {
    let mut reply = Buffer::default();
    let draft = call.begin_reply(&mut reply);
    let draft = refuse_by(draft, refusal, &mut reply);
    call.seal_reply(draft, profile::now(), &mut reply);
    let message = None;
    FinishedCall { reply, message }
}

/// A call that waits, with what ends it early: its caller gives it up, or its time runs out.
pub(super) struct AbortableCall {
    future: CallFuture,
    call: CallToServe,
    cancelled: CancelFlag,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl AbortableCall {
    pub(super) fn new(future: CallFuture, call: CallToServe, cancelled: CancelFlag) -> Self {
        let deadline = call
            .deadline
            .map(|at| Box::pin(sleep_until(Instant::from(at))));
        Self {
            future,
            call,
            cancelled,
            deadline,
        }
    }
}

impl Future for AbortableCall {
    type Output = Buffer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Buffer> {
        let this = &mut *self;
        if let Poll::Ready(finished) = this.future.as_mut().poll(cx) {
            return Poll::Ready(finished.reply);
        }
        let status = if this.cancelled.poll_set(cx) {
            Status::CANCELLED
        } else if (this.deadline.as_mut()).is_some_and(|at| at.as_mut().poll(cx).is_ready()) {
            Status::DEADLINE
        } else {
            return Poll::Pending;
        };
        let mut reply = Buffer::default();
        this.call.refuse(status, "it was given up", &mut reply);
        Poll::Ready(reply)
    }
}

/// Polls a call once where it was received: one that does not wait needs no task. What it waits for wakes no one yet,
/// so that one that does wait is to be polled again.
pub(super) fn poll_once(future: &mut CallFuture) -> Option<FinishedCall> {
    let mut cx = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut cx) {
        Poll::Ready(finished) => Some(finished),
        Poll::Pending => None,
    }
}

/// A service of tasks as it stands in the list of services. It is not called there.
pub(super) struct ListedService<S>(pub(super) Arc<S>);

impl<S: AsyncService> Service for ListedService<S> {
    fn program(&self) -> u32 {
        self.0.program()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn procedure(&self, number: u32) -> Option<ProcedureInfo<'_>> {
        self.0.procedure(number)
    }

    fn keeps_order(&self) -> bool {
        self.0.keeps_order()
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        _arguments: &mut Decoder<'_>,
        _result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Err(not_by_tasks())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        self.0.interface().is_some().then_some(self)
    }
}

impl<S: AsyncService> LeanService for ListedService<S> {
    fn interface(&self) -> Arc<Interface> {
        let unknown = || Arc::new(Interface::unknown(self.0.program(), self.0.version()));
        self.0.interface().unwrap_or_else(unknown)
    }

    fn call_lean(
        &self,
        _call: &CallInfo<'_>,
        _arguments: tenon_core::LeanInput<'_>,
        _result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        Err(not_by_tasks())
    }
}

fn not_by_tasks() -> Refusal {
    Refusal::SystemError("the service is one of tasks".to_owned())
}
