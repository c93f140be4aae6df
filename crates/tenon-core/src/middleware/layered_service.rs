//! A service of functions with middleware around it.

use std::sync::Arc;

use tenon_net::Protocol;
use tenon_proto::lean::{Interface, Metadata};
use tenon_wire::{Decoder, Encoder, Lean};

use super::wait::wait_until_released;
use super::{CallOutcome, CallRun, CallScope, Layered, Middleware, Rejection};
use crate::error_kind::CallErrorKind;
use crate::lean_input::LeanInput;
use crate::procedure::ProcedureInfo;
use crate::refusal::Refusal;
use crate::service::{CallInfo, LeanService, Service};
use crate::streams::ServedStreams;

impl<S: Service, M: Middleware> Layered<S, M> {
    /// Has `serve` carry a call out, in the middle of the middleware.
    #[inline]
    fn run(
        &self,
        call: &CallInfo<'_>,
        protocol: Protocol,
        serve: impl FnOnce(&CallInfo<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let service = self.inner();
        let numbers = (service.program(), service.version());
        let procedure = procedure_of(service.procedure(call.procedure()), call.procedure());
        let scope = CallScope::at_server(procedure, numbers, protocol, call);
        let begun = CallRun::begin(&**self.middleware(), scope);
        let begun = begun.and_then(|mut run| wait_until_released(&mut run).map(|()| run));
        let mut run = match begun {
            Ok(run) => run,
            Err(rejection) => return Err(refusal_of(&rejection, call)),
        };
        let served = match run.scope_mut().take_changes() {
            (None, None) => serve(call),
            (deadline, metadata) => {
                let call = call.changed(deadline, metadata.as_ref());
                let _entered = call.context().enter();
                serve(&call)
            }
        };
        run.end(&outcome_of(&served));
        served
    }
}

/// Returns what is known of a procedure.
#[doc(hidden)]
#[inline]
pub fn procedure_of(known: Option<ProcedureInfo<'_>>, number: u32) -> ProcedureInfo<'_> {
    known.unwrap_or(ProcedureInfo::new("", "", number))
}

#[inline]
fn outcome_of(served: &Result<(), Refusal>) -> CallOutcome<'_> {
    match served {
        Ok(()) => CallOutcome::Success,
        Err(refusal) => CallOutcome::Refused(refusal),
    }
}

/// Returns what the caller is told of a rejection, and when it may try again.
#[doc(hidden)]
#[cold]
pub fn refusal_of(rejection: &Rejection, call: &CallInfo<'_>) -> Refusal {
    if let Some(retry_after) = rejection.get_retry_after() {
        // Rounded up: a caller that comes in the millisecond before its turn would be refused again.
        let milliseconds = retry_after.as_nanos().div_ceil(1_000_000).to_string();
        // Without room for it, it is not said.
        let _ = call.append_reply_metadata(Metadata::RETRY_AFTER, milliseconds);
    }
    let reason = rejection.reason().to_owned();
    match rejection.kind() {
        CallErrorKind::Busy => Refusal::Overloaded(reason),
        CallErrorKind::Unauthenticated => Refusal::Unauthenticated(reason),
        CallErrorKind::Denied => Refusal::Denied(reason),
        CallErrorKind::TimedOut => Refusal::TimedOut(reason),
        CallErrorKind::Cancelled => Refusal::Cancelled(reason),
        CallErrorKind::Stopping => Refusal::Stopping(reason),
        CallErrorKind::InvalidArguments | CallErrorKind::InvalidCall => {
            Refusal::InvalidArguments(reason)
        }
        CallErrorKind::NoProcedure => Refusal::ProcedureUnavailable,
        _ => Refusal::SystemError(reason),
    }
}

impl<S: Service, M: Middleware> Service for Layered<S, M> {
    fn program(&self) -> u32 {
        self.inner().program()
    }

    fn version(&self) -> u32 {
        self.inner().version()
    }

    fn procedure(&self, number: u32) -> Option<ProcedureInfo<'_>> {
        self.inner().procedure(number)
    }

    fn keeps_order(&self) -> bool {
        self.inner().keeps_order()
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        self.run(call, Protocol::Onc, |call| {
            self.inner().call(call, arguments, result)
        })
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        self.inner().lean().map(|_| self as &dyn LeanService)
    }
}

impl<S: Service, M: Middleware> LeanService for Layered<S, M> {
    fn interface(&self) -> Arc<Interface> {
        match self.inner().lean() {
            Some(service) => service.interface(),
            None => Arc::new(Interface::unknown(self.program(), self.version())),
        }
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let Some(service) = self.inner().lean() else {
            return Err(Refusal::ProcedureUnavailable);
        };
        self.run(call, Protocol::Lean, |call| {
            service.call_lean(call, arguments, result)
        })
    }

    fn call_streaming(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        streams: &ServedStreams,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let Some(service) = self.inner().lean() else {
            return Err(Refusal::ProcedureUnavailable);
        };
        self.run(call, Protocol::Lean, |call| {
            service.call_streaming(call, arguments, streams, result)
        })
    }
}
