//! Finding the service that a message is for, and executing its calls.

use std::any::Any;
use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use tenon_net::Transport;
use tenon_proto::lean;
use tenon_proto::lean::server::Catalog;
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::Refused;
use tenon_proto::onc::server::{Call, Programs, Received, Reply, ServerCounters};
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Limits};

use super::counters::Tally;
use super::lean::LeanJob;
use crate::lean_input::LeanInput;
use crate::service::{CallInfo, Refusal, Service};

/// Where a call came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) transport: Transport,
    pub(super) peer: Option<SocketAddr>,
}

impl Origin {
    fn describe<'a>(&self, call: &Call<'a>) -> CallInfo<'a> {
        self.with_peer(CallInfo::new(
            call.procedure,
            call.credential,
            self.transport,
        ))
    }

    fn describe_lean(&self, procedure: u16) -> CallInfo<'static> {
        self.with_peer(CallInfo::new(
            procedure.into(),
            Credential::None,
            self.transport,
        ))
    }

    fn with_peer<'a>(&self, info: CallInfo<'a>) -> CallInfo<'a> {
        match self.peer {
            Some(peer) => info.from_peer(peer),
            None => info,
        }
    }
}

/// Who executes the calls of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Execution {
    /// The thread that received the call.
    Inline,
    /// A worker; replies may overtake each other.
    Workers,
}

struct Entry {
    service: Box<dyn Service>,
    execution: Execution,
}

/// All services of a server.
#[derive(Default)]
pub(super) struct Services {
    programs: Programs,
    entries: Vec<Entry>,
    /// Those of them that lean clients may bind, and which entries they are.
    catalog: Catalog,
    lean_entries: Vec<usize>,
    pub(super) mode: DecodeMode,
    pub(super) limits: Limits,
}

impl Services {
    /// Adds a service; `false` if this version of the program is there already.
    pub(super) fn add(&mut self, service: Box<dyn Service>, execution: Execution) -> bool {
        let (program, version) = (service.program(), service.version());
        if self.programs.add(program, version).is_none() {
            return false;
        }
        if let Some(lean) = service.lean() {
            let interface = lean::Interface {
                program,
                version,
                ..lean.interface()
            };
            self.catalog.add(Arc::new(interface));
            self.lean_entries.push(self.entries.len());
        }
        self.entries.push(Entry { service, execution });
        true
    }

    /// The programs and versions there are.
    pub(super) fn programs(&self) -> Vec<(u32, u32)> {
        let services = self.entries.iter().map(|entry| &entry.service);
        let programs = services.map(|service| (service.program(), service.version()));
        programs.collect()
    }

    /// Whether a service asks for workers.
    pub(super) fn need_workers(&self) -> bool {
        let mut executions = self.entries.iter().map(|entry| entry.execution);
        executions.any(|execution| execution == Execution::Workers)
    }

    /// Finds out what a message that just arrived asks for, and counts it.
    pub(super) fn receive<'m>(&self, message: &'m [u8], tally: &Tally) -> Received<'m> {
        let mut seen = ServerCounters::default();
        let received = self.programs.handle_message(message, &mut seen);
        tally.add(seen);
        if let Received::Refuse(xid, refused) = &received {
            tracing::debug!(xid, %refused, "refused a call");
        }
        received
    }

    /// The call in a message that was received and copied for a worker.
    pub(super) fn call_again<'m>(&self, message: &'m [u8]) -> Option<Call<'m>> {
        let mut seen_before = ServerCounters::default();
        match self.programs.handle_message(message, &mut seen_before) {
            Received::Call(call) => Some(call),
            _ => None,
        }
    }

    /// What lean clients may bind.
    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Who executes the calls of the service that has this number in the catalog.
    pub(super) fn lean_execution(&self, service: usize) -> Execution {
        self.entries[self.lean_entries[service]].execution
    }

    /// Who executes `call`.
    pub(super) fn execution(&self, call: &Call<'_>) -> Execution {
        self.entries[call.service].execution
    }

    /// Executes a call and appends its reply, not yet sealed. A handler that panics has refused.
    pub(super) fn execute(
        &self,
        call: &Call<'_>,
        origin: Origin,
        out: &mut Buffer,
        tally: &Tally,
    ) -> Reply {
        let span = tracing::debug_span!(
            "call",
            xid = call.xid,
            program = call.program,
            version = call.version,
            procedure = call.procedure,
            peer = ?origin.peer,
        );
        let _entered = span.enter();
        let reply = Reply::begin(out, call.xid);
        match guarded(tally, || self.hand_to_service(call, origin, out)) {
            Ok(()) => reply,
            Err(refusal) => reply.refuse(out, status(&refusal)),
        }
    }

    /// Executes a lean call whose reply was begun, and appends its result; the reply is not yet
    /// sealed. A handler that panics has refused.
    pub(super) fn execute_lean(
        &self,
        job: &LeanJob,
        arguments: &[u8],
        reply: lean::server::Reply,
        origin: Origin,
        out: &mut Buffer,
        tally: &Tally,
    ) -> lean::server::Reply {
        let info = origin.describe_lean(job.procedure);
        let entry = &self.entries[self.lean_entries[job.service]];
        let span = tracing::debug_span!(
            "call",
            id = job.caller.id,
            program = entry.service.program(),
            version = entry.service.version(),
            procedure = job.procedure,
            peer = ?origin.peer,
        );
        let _entered = span.enter();
        let (mode, limits) = (self.mode, self.limits);
        let arguments = LeanInput::over(arguments, job.order, mode, limits);
        let outcome = guarded(tally, || match entry.service.lean() {
            Some(service) => service.call(&info, arguments, &mut Encoder::over(out)),
            None => Err(Refusal::ProcedureUnavailable),
        });
        match outcome {
            Ok(()) => reply,
            Err(refusal) => refuse_lean(reply, out, &refusal),
        }
    }

    fn hand_to_service(
        &self,
        call: &Call<'_>,
        origin: Origin,
        out: &mut Buffer,
    ) -> Result<(), Refusal> {
        let mut arguments = Decoder::with(call.arguments, self.mode, self.limits);
        let info = origin.describe(call);
        let service = &self.entries[call.service].service;
        service.call(&info, &mut arguments, &mut Encoder::new(out))
    }
}

/// Runs a handler and counts how it ended. What one that panics leaves half-changed is its own; what
/// it wrote is dropped.
fn guarded(tally: &Tally, handler: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
    match panic::catch_unwind(AssertUnwindSafe(handler)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(refusal)) => {
            tally.service_refusals.up();
            tracing::debug!(%refusal, "the service refused the call");
            Err(refusal)
        }
        Err(panic) => {
            tally.panics.up();
            tracing::error!(panic = panic_text(&*panic), "the handler panicked");
            Err(Refusal::SystemError("the handler panicked".to_owned()))
        }
    }
}

/// Tells a lean caller of a refusal. Why a service failed stays in the server's log.
#[cold]
fn refuse_lean(
    reply: lean::server::Reply,
    out: &mut Buffer,
    refusal: &Refusal,
) -> lean::server::Reply {
    let (status, message) = match refusal {
        Refusal::ProcedureUnavailable => (lean::Status::NO_PROCEDURE, String::new()),
        Refusal::GarbageArguments(error) => (lean::Status::ARGUMENTS, error.to_string()),
        Refusal::SystemError(_) => (lean::Status::FAILED, String::new()),
        Refusal::Authentication(status) => (lean::Status::FORBIDDEN, status.to_string()),
    };
    reply.refuse(out, &lean::Exception::new(status, &message))
}

/// What a caller is told of a refusal (RFC 5531 section 9).
fn status(refusal: &Refusal) -> Refused {
    match refusal {
        Refusal::ProcedureUnavailable => Refused::ProcedureUnavailable,
        Refusal::GarbageArguments(_) => Refused::GarbageArguments,
        Refusal::SystemError(_) => Refused::SystemError,
        Refusal::Authentication(status) => Refused::Authentication(*status),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
