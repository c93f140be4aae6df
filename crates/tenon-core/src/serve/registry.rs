//! The services of a server, and how their calls are carried out.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Instant;

use tenon_net::Protocol;
use tenon_proto::connection::{
    CallAttachments, Caller, IncomingCall, ReceivedCall, ReplyDraft, ServiceTable,
};
use tenon_proto::endpoint::ReplyTooLarge;
use tenon_proto::lean::{self, ByteOrder, Exception, Extensions, PacketTimes, Stamps, Status};
use tenon_proto::onc::auth::AuthStat;
use tenon_proto::onc::message::Refused;
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Limits};

use super::counters::ServerTally;
use crate::callbacks::CallbackSource;
use crate::lean_input::LeanInput;
use crate::profile;
use crate::refusal::Refusal;
use crate::reply_metadata::ReplyMetadata;
use crate::service::{CallInfo, Cancellation, Origin, Service};
use crate::streams::ServedStreams;

/// The services of a server.
#[derive(Default)]
pub struct ServiceRegistry {
    table: ServiceTable,
    services: Vec<Box<dyn Service>>,
    /// Mode of decoding arguments: strict, or lenient.
    pub mode: DecodeMode,
    /// Limits of decoding the arguments of one call.
    pub limits: Limits,
}

/// A call that is carried out, beside its arguments.
#[derive(Debug, Clone, Copy)]
pub struct CallToServe {
    /// The index of the service.
    pub service: usize,
    /// Procedure number; 0 if only the time stamps are asked for.
    pub procedure: u32,
    /// The order of the bytes of the arguments.
    pub order: ByteOrder,
    /// Protocol and number of the call, for which the answer is written.
    pub caller: Caller,
    /// Time at which the caller stops waiting.
    pub deadline: Option<Instant>,
    /// Time at which it was found among what was received, if its client asks when it passed which place.
    pub found_at: Option<u64>,
    /// Bytes of the extensions of a lean call in a datagram, which stand in front of its arguments.
    extensions: usize,
}

/// Context of a call that its handler gets beside the arguments.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    /// What the call carries beside its arguments.
    pub attachments: CallAttachments<'a>,
    /// Origin of the call.
    pub origin: Origin,
    /// Source from which the handler learns whether the caller has stopped waiting.
    pub cancellation: Cancellation<'a>,
    /// The streams of the call, if it has some.
    pub streams: Option<&'a ServedStreams>,
    /// Opens the channel back to the caller, if there may be one.
    pub callbacks: Option<&'a dyn CallbackSource>,
}

impl CallToServe {
    /// A call that was received just now.
    #[inline]
    pub fn received(call: &ReceivedCall) -> Self {
        Self {
            service: call.service,
            procedure: call.procedure,
            order: call.order,
            caller: call.caller,
            deadline: match call.time_left {
                Some(_) => call.deadline(Instant::now()),
                None => None,
            },
            found_at: call.wants_stamps.then(profile::now),
            extensions: 0,
        }
    }

    /// A call that was received in a datagram just now.
    #[inline]
    pub fn incoming(call: &IncomingCall<'_>) -> Self {
        Self {
            service: call.service,
            procedure: call.procedure,
            order: call.order,
            caller: call.caller,
            deadline: match call.time_left {
                Some(_) => call.deadline(Instant::now()),
                None => None,
            },
            found_at: call.wants_stamps.then(profile::now),
            extensions: call.extensions.size(),
        }
    }

    /// Returns what a call that was received in datagrams carries beside its arguments, of the message that it was found
    /// in, which ends with so many bytes of `arguments`.
    #[inline]
    pub fn attachments_in<'m>(&self, message: &'m [u8], arguments: usize) -> CallAttachments<'m> {
        match self.caller {
            Caller::Onc { .. } => CallAttachments::of_onc(message),
            Caller::Lean(_) if self.extensions == 0 => CallAttachments::default(),
            Caller::Lean(_) => CallAttachments::of_lean(self.extensions_in(message, arguments)),
        }
    }

    /// Returns the extensions of a lean call, of the message that it was found in.
    #[inline]
    fn extensions_in<'m>(&self, message: &'m [u8], arguments: usize) -> Extensions<'m> {
        let end = message.len() - arguments;
        let place = end.saturating_sub(self.extensions)..end;
        Extensions::checked(message.get(place).unwrap_or_default(), self.order)
    }

    /// Returns whether the client asks when its call passed which place.
    #[inline]
    pub fn is_followed(&self) -> bool {
        self.found_at.is_some()
    }

    /// Returns whether it also asks when the kernel had the packets of the call and of an earlier reply. The message is
    /// the one that the call was found in, which ends with so many bytes of `arguments`.
    #[cold]
    pub fn asks_packet_times(&self, message: &[u8], arguments: usize) -> bool {
        let asks = || PacketTimes::are_asked_for(self.extensions_in(message, arguments));
        self.is_followed() && self.extensions > 0 && asks()
    }

    /// Returns the protocol that the caller speaks.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        match self.caller {
            Caller::Onc { .. } => Protocol::Onc,
            Caller::Lean(_) => Protocol::Lean,
        }
    }

    /// Returns whether the caller has stopped waiting by now.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|at| at <= Instant::now())
    }

    /// Begins a reply, behind what is in `out`.
    #[inline]
    pub fn begin_reply(&self, out: &mut Buffer) -> ReplyDraft {
        if self.found_at.is_some() {
            ReplyDraft::begin_stamped(out, self.caller)
        } else {
            ReplyDraft::begin(out, self.caller)
        }
    }

    /// Makes a reply whole to which the result was appended. The handler was begun at `dispatched`, which counts if the
    /// client asks when its call passed which place.
    #[inline]
    pub fn seal_reply(&self, draft: ReplyDraft, dispatched: u64, out: &mut Buffer) {
        let Some(received) = self.found_at else {
            return draft.seal(out);
        };
        let clock = profile::clock();
        let (scale, done) = (clock.scale(), clock.now());
        let stamps = Stamps {
            clock: scale.identity,
            rate: scale.rate,
            received,
            dispatched,
            done,
            sent: done,
            packets: None,
        };
        draft.seal_stamped(out, &stamps);
    }

    /// Appends an answer that the call was not begun.
    #[cold]
    pub fn refuse(&self, status: Status, text: &str, out: &mut Buffer) {
        refuse(ReplyDraft::begin(out, self.caller), status, text, out).seal(out);
    }
}

impl ServiceRegistry {
    /// Adds a service; returns false if this version of the program is there already.
    pub fn add(&mut self, service: Box<dyn Service>) -> bool {
        let (program, version) = (service.program(), service.version());
        let interface = service.lean().map(|lean| {
            Arc::new(lean::Interface {
                program,
                version,
                ..lean::Interface::clone(&lean.interface())
            })
        });
        if self.table.add(program, version, interface).is_none() {
            return false;
        }
        self.services.push(service);
        true
    }

    /// Returns the table in which peers look services up.
    #[inline]
    pub fn table(&self) -> &ServiceTable {
        &self.table
    }

    /// Returns the number of services.
    pub fn len(&self) -> usize {
        self.services.len()
    }

    /// Returns whether there are no services.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Returns the programs and versions there are.
    pub fn programs(&self) -> Vec<(u32, u32)> {
        let services = self.services.iter();
        services
            .map(|service| (service.program(), service.version()))
            .collect()
    }

    /// Returns whether a service wants the calls of a connection one after the other.
    #[inline]
    pub fn keeps_order(&self, service: usize) -> bool {
        self.services[service].keeps_order()
    }

    /// Carries a call out and appends its whole reply. A handler that panics has refused.
    #[inline]
    pub fn execute(
        &self,
        call: &CallToServe,
        context: CallContext<'_>,
        arguments: &[u8],
        tally: &ServerTally,
        out: &mut Buffer,
    ) {
        if call.found_at.is_some() {
            return self.execute_stamped(call, context, arguments, tally, out);
        }
        let draft = ReplyDraft::begin(out, call.caller);
        self.run(call, context, arguments, draft, tally, out)
            .seal(out);
    }

    /// The same for a client that asks when its call passed which place.
    #[cold]
    fn execute_stamped(
        &self,
        call: &CallToServe,
        context: CallContext<'_>,
        arguments: &[u8],
        tally: &ServerTally,
        out: &mut Buffer,
    ) {
        let dispatched = profile::now();
        let mut draft = call.begin_reply(out);
        if call.procedure != 0 {
            draft = self.run(call, context, arguments, draft, tally, out);
        }
        call.seal_reply(draft, dispatched, out);
    }

    /// Runs a handler after its reply was begun, and appends its result; the reply is not sealed yet.
    #[inline]
    fn run(
        &self,
        call: &CallToServe,
        context: CallContext<'_>,
        arguments: &[u8],
        draft: ReplyDraft,
        tally: &ServerTally,
        out: &mut Buffer,
    ) -> ReplyDraft {
        let service = &*self.services[call.service];
        let _entered = tracing::debug_span!(
            "call",
            number = call.caller.number(),
            program = service.program(),
            version = service.version(),
            procedure = call.procedure,
            peer = ?context.origin.peer,
        )
        .entered();
        let CallContext {
            attachments,
            origin,
            cancellation,
            streams,
            callbacks,
        } = context;
        let reply_metadata = ReplyMetadata::new();
        let info = CallInfo::received(
            call.procedure,
            attachments,
            origin,
            call.deadline,
            cancellation,
            &reply_metadata,
            callbacks,
        );
        let context = info.context_to_enter();
        let entered = context.as_ref().map(|context| context.enter());
        let outcome = guarded(|| match call.caller {
            Caller::Onc { .. } => {
                let mut arguments = Decoder::with(arguments, self.mode, self.limits);
                service.call(&info, &mut arguments, &mut Encoder::new(out))
            }
            Caller::Lean(_) => match service.lean() {
                Some(service) => {
                    let arguments = self.lean_input(arguments, call.order);
                    let result = &mut Encoder::over(out);
                    match streams {
                        None => service.call_lean(&info, arguments, result),
                        Some(streams) => service.call_streaming(&info, arguments, streams, result),
                    }
                }
                None => Err(Refusal::ProcedureUnavailable),
            },
        });
        drop(entered);
        let draft = match outcome {
            Ok(()) => draft,
            Err(failure) => {
                let refusal = self.note_failure(call, failure, tally);
                refuse_by(draft, &refusal, out)
            }
        };
        match reply_metadata.into_metadata() {
            None => draft,
            Some(metadata) => draft.with_metadata(out, &metadata),
        }
    }

    /// Counts and logs that a handler refused a call or panicked; returns the refusal that its caller is told.
    #[cold]
    pub fn note_failure(
        &self,
        call: &CallToServe,
        failure: HandlerFailure,
        tally: &ServerTally,
    ) -> Refusal {
        let service = &*self.services[call.service];
        let (program, version) = (service.program(), service.version());
        let procedure = self.procedure_name(call.service, call.procedure);
        match failure {
            HandlerFailure::Refused(refusal) => {
                tally.service_refusals.up();
                if let Refusal::SystemError(reason) = &refusal {
                    tracing::warn!(program, version, procedure, reason, "a procedure failed");
                } else {
                    tracing::debug!(program, version, procedure, %refusal, "a call was refused");
                }
                refusal
            }
            HandlerFailure::Panicked(panic) => {
                tally.panics.up();
                tracing::error!(program, version, procedure, panic, "a handler panicked");
                Refusal::SystemError("the handler panicked".to_owned())
            }
        }
    }

    /// Returns the name of a procedure, or its number where the service does not know what it was built from.
    pub(super) fn procedure_name(&self, service: usize, procedure: u32) -> String {
        let interface = self.table.interface(service);
        let part = interface.and_then(|interface| {
            let mut parts = interface.parts.iter();
            parts.find(|part| part.procedure == procedure && procedure != 0)
        });
        match part {
            Some(part) => {
                let name = part.name.to_string();
                name.strip_prefix("procedure ").unwrap_or(&name).to_owned()
            }
            None => procedure.to_string(),
        }
    }

    /// Logs that a result was not sent because it does not fit into a datagram.
    #[cold]
    pub fn log_too_large(&self, reply: &ReplyTooLarge) {
        let service = &*self.services[reply.service];
        tracing::warn!(
            program = service.program(),
            version = service.version(),
            procedure = self.procedure_name(reply.service, reply.procedure),
            size = reply.size,
            limit = reply.limit,
            "a reply is too large for a datagram, and its client was told SYSTEM_ERR; tcp:// carries it",
        );
    }

    /// The arguments of a call of ONC RPC, to be decoded within the limits.
    pub fn input<'a>(&self, arguments: &'a [u8]) -> Decoder<'a> {
        Decoder::with(arguments, self.mode, self.limits)
    }

    /// The arguments of a lean call, to be decoded within the limits.
    #[inline]
    pub fn lean_input<'a>(&self, arguments: &'a [u8], order: ByteOrder) -> LeanInput<'a> {
        LeanInput::over(arguments, order, self.mode, self.limits)
    }
}

/// Failure of a handler to return a result.
#[derive(Debug)]
pub enum HandlerFailure {
    /// It refused the call.
    Refused(Refusal),
    /// It panicked, with this text.
    Panicked(String),
}

/// Runs a handler. What one that panics leaves half-changed is its own; what it wrote is dropped.
#[inline]
fn guarded(handler: impl FnOnce() -> Result<(), Refusal>) -> Result<(), HandlerFailure> {
    match panic::catch_unwind(AssertUnwindSafe(handler)) {
        Ok(outcome) => outcome.map_err(HandlerFailure::Refused),
        Err(panic) => Err(HandlerFailure::Panicked(panic_text(&*panic).to_owned())),
    }
}

/// Returns the text of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Drops what was written of a result and tells the caller of a refusal instead. Why a service failed stays in the
/// server's log.
#[cold]
#[must_use]
pub fn refuse_by(draft: ReplyDraft, refusal: &Refusal, out: &mut Buffer) -> ReplyDraft {
    match draft {
        ReplyDraft::Onc {
            reply,
            fragment_max,
        } => ReplyDraft::Onc {
            reply: reply.refuse(out, onc_status(refusal)),
            fragment_max,
        },
        ReplyDraft::Lean(reply) => {
            let (status, text, details) = lean_status(refusal);
            let exception = Exception {
                details,
                ..Exception::new(status, &text)
            };
            ReplyDraft::Lean(reply.refuse(out, &exception))
        }
    }
}

/// The same of a call that no service has seen: ONC RPC knows no better word for it than a failure of the system.
fn refuse(draft: ReplyDraft, status: Status, text: &str, out: &mut Buffer) -> ReplyDraft {
    match draft {
        ReplyDraft::Onc { .. } => {
            let refusal = Refusal::SystemError(text.to_owned());
            refuse_by(draft, &refusal, out)
        }
        ReplyDraft::Lean(reply) => {
            ReplyDraft::Lean(reply.refuse(out, &Exception::new(status, text)))
        }
    }
}

/// Returns what a lean client is told of a refusal: the status, the text and the details.
pub(crate) fn lean_status(refusal: &Refusal) -> (Status, String, &[u8]) {
    match refusal {
        Refusal::ProcedureUnavailable => (Status::NO_PROCEDURE, String::new(), &[]),
        Refusal::GarbageArguments(error) => (Status::ARGUMENTS, error.to_string(), &[]),
        Refusal::InvalidArguments(reason) => (Status::INVALID_ARGUMENTS, reason.clone(), &[]),
        Refusal::SystemError(_) => (Status::FAILED, String::new(), &[]),
        Refusal::Authentication(status) => (Status::FORBIDDEN, status.to_string(), &[]),
        Refusal::Unauthenticated(reason) => (Status::UNAUTHENTICATED, reason.clone(), &[]),
        Refusal::Denied(reason) => (Status::FORBIDDEN, reason.clone(), &[]),
        Refusal::Overloaded(reason) => (Status::OVERLOADED, reason.clone(), &[]),
        Refusal::Cancelled(reason) => (Status::CANCELLED, reason.clone(), &[]),
        Refusal::TimedOut(reason) => (Status::DEADLINE, reason.clone(), &[]),
        Refusal::Stopping(reason) => (Status::STOPPING, reason.clone(), &[]),
        Refusal::Raised { message, details } => (Status::RAISED, message.clone(), details),
    }
}

/// Returns what a client of ONC RPC is told of a refusal (RFC 5531 section 9).
pub(crate) fn onc_status(refusal: &Refusal) -> Refused {
    match refusal {
        Refusal::ProcedureUnavailable => Refused::ProcedureUnavailable,
        Refusal::GarbageArguments(_) | Refusal::InvalidArguments(_) => Refused::GarbageArguments,
        Refusal::SystemError(_)
        | Refusal::Raised { .. }
        | Refusal::Overloaded(_)
        | Refusal::Cancelled(_)
        | Refusal::Stopping(_)
        | Refusal::TimedOut(_) => Refused::SystemError,
        Refusal::Unauthenticated(_) => Refused::Authentication(AuthStat::REJECTED_CRED),
        Refusal::Denied(_) => Refused::Authentication(AuthStat::TOO_WEAK),
        Refusal::Authentication(status) => Refused::Authentication(*status),
    }
}
