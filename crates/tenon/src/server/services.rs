//! Finding the service that a message is for, and executing its calls.

use std::any::Any;
use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};

use tenon_net::Transport;
use tenon_proto::onc::message::Refused;
use tenon_proto::onc::server::{Call, Programs, Received, Reply, ServerCounters};
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Limits};

use super::counters::Tally;
use crate::service::{CallInfo, Refusal, Service};

/// Where a call came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) transport: Transport,
    pub(super) peer: Option<SocketAddr>,
}

impl Origin {
    fn describe<'a>(&self, call: &Call<'a>) -> CallInfo<'a> {
        let info = CallInfo::new(call.procedure, call.credential, self.transport);
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
        // What a panicking handler leaves half-changed is its own; the buffer is cut back.
        let outcome =
            panic::catch_unwind(AssertUnwindSafe(|| self.hand_to_service(call, origin, out)));
        match outcome {
            Ok(Ok(())) => reply,
            Ok(Err(refusal)) => {
                tally.service_refusals.up();
                tracing::debug!(%refusal, "the service refused the call");
                reply.refuse(out, status(&refusal))
            }
            Err(panic) => {
                tally.panics.up();
                tracing::error!(panic = panic_text(&*panic), "the handler panicked");
                reply.refuse(out, Refused::SystemError)
            }
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
