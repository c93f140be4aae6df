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
pub struct Origin {
    /// What the call came over.
    pub transport: Transport,
    /// Where the caller is; none on a Unix socket.
    pub peer: Option<SocketAddr>,
}

impl Origin {
    /// What a service is told of a call.
    pub fn describe<'a>(&self, call: &Call<'a>) -> CallInfo<'a> {
        self.with_peer(CallInfo::new(
            call.procedure,
            call.credential,
            self.transport,
        ))
    }

    /// What a service is told of a call of `procedure` by the lean protocol.
    pub fn describe_lean(&self, procedure: u16) -> CallInfo<'static> {
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
pub enum Execution {
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
pub struct Services {
    programs: Programs,
    entries: Vec<Entry>,
    /// Those of them that lean clients may bind, and which entries they are.
    catalog: Catalog,
    lean_entries: Vec<usize>,
    /// How much is forgiven in arguments.
    pub mode: DecodeMode,
    /// What the arguments of one call may cost to decode.
    pub limits: Limits,
}

impl Services {
    /// Adds a service; `false` if this version of the program is there already.
    pub fn add(&mut self, service: Box<dyn Service>, execution: Execution) -> bool {
        let (program, version) = (service.program(), service.version());
        if self.programs.add(program, version).is_none() {
            return false;
        }
        if let Some(lean) = service.lean() {
            let interface = lean::Interface {
                program,
                version,
                ..lean::Interface::clone(&lean.interface())
            };
            self.catalog.add(Arc::new(interface));
            self.lean_entries.push(self.entries.len());
        }
        self.entries.push(Entry { service, execution });
        true
    }

    /// The programs and versions there are.
    pub fn programs(&self) -> Vec<(u32, u32)> {
        let services = self.entries.iter().map(|entry| &entry.service);
        let programs = services.map(|service| (service.program(), service.version()));
        programs.collect()
    }

    /// Who executes each of them, in the same order.
    pub fn executions(&self) -> impl Iterator<Item = Execution> {
        self.entries.iter().map(|entry| entry.execution)
    }

    /// Whether a service asks for workers.
    pub fn need_workers(&self) -> bool {
        self.executions()
            .any(|execution| execution == Execution::Workers)
    }

    /// Finds out what a message that just arrived asks for, and counts it.
    pub fn receive<'m>(&self, message: &'m [u8], tally: &Tally) -> Received<'m> {
        let mut seen = ServerCounters::default();
        let received = self.programs.handle_message(message, &mut seen);
        tally.add(seen);
        if let Received::Refuse(xid, refused) = &received {
            tracing::debug!(xid, %refused, "refused a call");
        }
        received
    }

    /// The call in a message that was received and copied for a worker.
    pub fn call_again<'m>(&self, message: &'m [u8]) -> Option<Call<'m>> {
        let mut seen_before = ServerCounters::default();
        match self.programs.handle_message(message, &mut seen_before) {
            Received::Call(call) => Some(call),
            _ => None,
        }
    }

    /// What lean clients may bind.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Who executes the calls of the service that has this number in the catalog.
    pub fn lean_execution(&self, service: usize) -> Execution {
        self.entries[self.lean_service(service)].execution
    }

    /// How many services were added before the one that has this number in the catalog.
    pub fn lean_service(&self, service: usize) -> usize {
        self.lean_entries[service]
    }

    /// Who executes `call`.
    pub fn execution(&self, call: &Call<'_>) -> Execution {
        self.entries[call.service].execution
    }

    /// Executes a call and appends its reply, not yet sealed. A handler that panics has refused.
    pub fn execute(
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
    pub fn execute_lean(
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
        let arguments = self.lean_input(arguments, job.order);
        let outcome = guarded(tally, || match entry.service.lean() {
            Some(service) => service.call_lean(&info, arguments, &mut Encoder::over(out)),
            None => Err(Refusal::ProcedureUnavailable),
        });
        match outcome {
            Ok(()) => reply,
            Err(refusal) => refuse_lean(reply, out, &refusal),
        }
    }

    /// The arguments of a call, to be decoded within the limits.
    pub fn input<'a>(&self, arguments: &'a [u8]) -> Decoder<'a> {
        Decoder::with(arguments, self.mode, self.limits)
    }

    /// The arguments of a lean call, to be decoded within the limits.
    pub fn lean_input<'a>(&self, arguments: &'a [u8], order: lean::ByteOrder) -> LeanInput<'a> {
        LeanInput::over(arguments, order, self.mode, self.limits)
    }

    fn hand_to_service(
        &self,
        call: &Call<'_>,
        origin: Origin,
        out: &mut Buffer,
    ) -> Result<(), Refusal> {
        let mut arguments = self.input(call.arguments);
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
            note_refusal(&refusal, tally);
            Err(refusal)
        }
        Err(panic) => Err(note_panic(panic_text(&*panic), tally)),
    }
}

/// Counts that a service refused a call.
pub fn note_refusal(refusal: &Refusal, tally: &Tally) {
    tally.service_refusals.up();
    tracing::debug!(%refusal, "the service refused the call");
}

/// Counts that a handler panicked; it has refused the call so.
pub fn note_panic(panic: &str, tally: &Tally) -> Refusal {
    tally.panics.up();
    tracing::error!(panic, "the handler panicked");
    Refusal::SystemError("the handler panicked".to_owned())
}

/// Tells a lean caller of a refusal. Why a service failed stays in the server's log.
#[cold]
#[must_use]
pub fn refuse_lean(
    reply: lean::server::Reply,
    out: &mut Buffer,
    refusal: &Refusal,
) -> lean::server::Reply {
    let (status, message, details): (_, _, &[u8]) = match refusal {
        Refusal::ProcedureUnavailable => (lean::Status::NO_PROCEDURE, String::new(), &[]),
        Refusal::GarbageArguments(error) => (lean::Status::ARGUMENTS, error.to_string(), &[]),
        Refusal::UnfitArguments(reason) => (lean::Status::ARGUMENTS, reason.clone(), &[]),
        Refusal::SystemError(_) => (lean::Status::FAILED, String::new(), &[]),
        Refusal::Authentication(status) => (lean::Status::FORBIDDEN, status.to_string(), &[]),
        Refusal::Raised { message, details } => {
            (lean::Status::RAISED, message.clone(), details.as_slice())
        }
    };
    let exception = lean::Exception {
        details,
        ..lean::Exception::new(status, &message)
    };
    reply.refuse(out, &exception)
}

/// What a caller is told of a refusal (RFC 5531 section 9).
pub fn status(refusal: &Refusal) -> Refused {
    match refusal {
        Refusal::ProcedureUnavailable => Refused::ProcedureUnavailable,
        Refusal::GarbageArguments(_) | Refusal::UnfitArguments(_) => Refused::GarbageArguments,
        Refusal::SystemError(_) | Refusal::Raised { .. } => Refused::SystemError,
        Refusal::Authentication(status) => Refused::Authentication(*status),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
