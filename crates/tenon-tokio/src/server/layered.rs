//! A service of tasks with middleware around it.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use tenon_core::Refusal;
use tenon_core::middleware::{
    CallOutcome, CallRun, CallScope, Layered, Middleware, procedure_of, refusal_of,
};
use tenon_core::procedure::ProcedureInfo;
use tenon_core::propagation::PropagatedContext;
use tenon_proto::lean::Interface;
use tokio::time::timeout_at;

use super::call::{Answer, AsyncService, Call};
use crate::layered::wait_until_released;

impl<S: AsyncService, M: Middleware> AsyncService for Layered<S, M> {
    fn program(&self) -> u32 {
        self.inner().program()
    }

    fn version(&self) -> u32 {
        self.inner().version()
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        self.inner().interface()
    }

    fn procedure(&self, number: u32) -> Option<ProcedureInfo<'_>> {
        self.inner().procedure(number)
    }

    fn keeps_order(&self) -> bool {
        self.inner().keeps_order()
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let service = self.inner();
        let number = call.procedure();
        let procedure = procedure_of(service.procedure(number), number);
        let numbers = (service.program(), service.version());
        let mut call = call;
        let (run, changes) = {
            let info = call.info();
            let scope = CallScope::at_server(procedure, numbers, call.protocol(), &info);
            let released = match CallRun::begin(&**self.middleware(), scope) {
                Ok(mut run) => wait_until_released(&mut run).await.map(|()| run),
                Err(rejection) => Err(rejection),
            };
            match released {
                Ok(mut run) => {
                    let changes = run.scope_mut().take_changes();
                    (Ok(run.detached(&**self.middleware(), procedure)), changes)
                }
                Err(rejection) => (Err(refusal_of(&rejection, &info)), (None, None)),
            }
        };
        let run = match run {
            Ok(run) => run,
            Err(refusal) => return Ok(call.refuse(refusal)),
        };
        let answered = match changes {
            (None, None) => caught(service.call(call)).await,
            (deadline, metadata) => {
                call.change(deadline, metadata);
                let context = call.info().context();
                caught(within(deadline, context, service.call(call))).await
            }
        };
        run.end(&match &answered {
            Ok(Ok(answer)) => answer
                .refusal()
                .map_or(CallOutcome::Success, CallOutcome::Refused),
            Ok(Err(refusal)) => CallOutcome::Refused(refusal),
            Err(_) => CallOutcome::Panicked,
        });
        answered.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Has a call carried out in `context`, until `deadline` at most.
async fn within(
    deadline: Option<Instant>,
    context: PropagatedContext,
    call: impl Future<Output = Result<Answer, Refusal>>,
) -> Result<Answer, Refusal> {
    let call = context.scope(call);
    match deadline {
        None => call.await,
        Some(deadline) => timeout_at(deadline.into(), call)
            .await
            .unwrap_or_else(|_| Err(Refusal::TimedOut("the handler took too long".to_owned()))),
    }
}

/// Returns the panic of a call that panics, which goes on when the middleware has been told.
async fn caught<T>(call: impl Future<Output = T>) -> std::thread::Result<T> {
    let mut call = pin!(call);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}
