//! A connection whose peer speaks the lean protocol.

use std::sync::Arc;
use std::time::Instant;

use tenon_proto::lean::server::{Call, Caller, Received, Reply, ServerEngine};
use tenon_proto::lean::{
    ByteOrder, CallState, Exception, Incoming, MessageReader, Preamble, Status, Violation,
};
use tenon_proto::lean::{Message, Reason as Farewell};
use tenon_wire::Buffer;

use super::core::Core;
use super::limits::ServerLimits;
use super::line::Line;
use super::lock;
use super::reason::Reason;
use super::services::Execution;
use super::workers::{Job, ReplyTo};

/// The receiving side of a lean connection.
#[derive(Debug)]
pub(super) struct LeanReception {
    pub(super) reader: MessageReader,
    engine: ServerEngine,
}

/// What has become of what came.
#[derive(Debug)]
pub(super) enum Answered {
    /// There was nothing whole.
    Nothing,
    /// It is answered, or will be.
    Done,
    /// There is no room for it among the workers.
    NoRoom(Job),
}

/// A call that a worker executes, beside its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeanJob {
    pub(super) service: usize,
    pub(super) procedure: u16,
    pub(super) order: ByteOrder,
    pub(super) caller: Caller,
    pub(super) deadline: Option<Instant>,
}

/// What the server tells a client of itself.
pub(super) fn preamble(limits: &ServerLimits) -> Preamble {
    let clamp = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
    Preamble::server(
        clamp(limits.record_bytes),
        clamp(limits.connection_calls_in_flight),
    )
}

impl LeanReception {
    /// `received` is what has come before it was known what the peer speaks, which is no more than
    /// [`FIRST_MAX`](super::reception::FIRST_MAX) and a few bytes: the first room of a reader.
    pub(super) fn new(limits: &ServerLimits, received: &[u8]) -> Self {
        let own = preamble(limits);
        let mut reader = MessageReader::new(own.message_max as usize);
        reader.room()[..received.len()].copy_from_slice(received);
        reader.filled(received.len());
        Self {
            reader,
            engine: ServerEngine::new(own),
        }
    }

    /// Answers the next that has come whole, or hands it to the workers.
    pub(super) fn answer_next(
        &mut self,
        core: &Core,
        line: &Arc<Line>,
        replies: &mut Buffer,
    ) -> Result<Answered, Reason> {
        let Self { reader, engine } = self;
        let received = match reader.next_message() {
            Ok(None) => return Ok(Answered::Nothing),
            Ok(Some(Incoming::Preamble(theirs))) => {
                let greeted = engine.handle_preamble(&theirs, replies);
                return greeted.map(|()| Answered::Done).map_err(Reason::Refused);
            }
            Ok(Some(Incoming::Message(message))) => take_in(engine, &message, core, replies),
            Err(violation) => Err(violation),
        };
        match received {
            Ok(received) => answer(received, core, line, replies),
            Err(violation) => {
                core.tally.violations.up();
                engine.goodbye(Farewell::VIOLATION, &violation.to_string(), replies);
                Err(Reason::Lean(violation))
            }
        }
    }

    /// Says that nothing further is accepted.
    pub(super) fn goodbye(&mut self, reason: Farewell, replies: &mut Buffer) {
        self.engine.goodbye(reason, "", replies);
    }
}

fn take_in<'m>(
    engine: &mut ServerEngine,
    message: &Message<'m>,
    core: &Core,
    replies: &mut Buffer,
) -> Result<Received<'m>, Violation> {
    let before = engine.counters();
    let received = engine.handle_message(core.services.catalog(), message, replies);
    core.tally.add_lean(before, engine.counters());
    received
}

fn answer(
    received: Received<'_>,
    core: &Core,
    line: &Arc<Line>,
    replies: &mut Buffer,
) -> Result<Answered, Reason> {
    match received {
        Received::Call(call) => match core.services.lean_execution(call.service) {
            Execution::Inline => execute_inline(&call, core, line, replies),
            Execution::Workers => return hand_to_worker(&call, core, line, replies),
        },
        Received::Cancel(id) => {
            lock(&line.lean_calls).cancel(id);
        }
        // What the client called before its goodbye is answered, and then it closes.
        Received::Goodbye(_) | Received::Pong(_) | Received::Handled => {}
    }
    Ok(Answered::Done)
}

fn execute_inline(call: &Call<'_>, core: &Core, line: &Line, replies: &mut Buffer) {
    let (job, arguments) = (job(call, None), call.arguments);
    let reply = Reply::begin(replies, call.caller);
    let services = &core.services;
    let reply = services.execute_lean(&job, arguments, reply, line.origin(), replies, &core.tally);
    reply.seal(replies);
}

fn job(call: &Call<'_>, deadline: Option<Instant>) -> LeanJob {
    LeanJob {
        service: call.service,
        procedure: call.procedure,
        order: call.order,
        caller: call.caller,
        deadline,
    }
}

fn hand_to_worker(
    call: &Call<'_>,
    core: &Core,
    line: &Arc<Line>,
    replies: &mut Buffer,
) -> Result<Answered, Reason> {
    let deadline = match call.time_left {
        Some(_) => call.deadline(Instant::now()),
        None => None,
    };
    let id = call.caller.id;
    if lock(&line.lean_calls).begin(id, deadline, ()).is_err() {
        core.tally.refusals.up();
        let reply = Reply::begin(replies, call.caller);
        let exception = Exception::new(Status::OVERLOADED, "");
        reply.refuse(replies, &exception).seal(replies);
        return Ok(Answered::Done);
    }
    // The worker's answer must not overtake the preamble, nor that its service is bound.
    if !replies.is_empty() {
        let sent = line.send(replies.as_slice(), core);
        replies.clear();
        sent.map_err(Reason::of_sending)?;
    }
    let reply_to = ReplyTo::Lean(Arc::clone(line), job(call, deadline));
    let job = core.workers.job(call.arguments, reply_to);
    Ok(match core.workers.submit(job) {
        None => Answered::Done,
        Some(job) => Answered::NoRoom(job),
    })
}

/// Executes a call on a worker, unless nobody waits for it any more, and appends its answer.
pub(super) fn execute(
    core: &Core,
    line: &Line,
    job: &LeanJob,
    arguments: &[u8],
    replies: &mut Buffer,
) {
    let id = job.caller.id;
    let is_late = job.deadline.is_some_and(|at| at <= Instant::now());
    let refusal = match lock(&line.lean_calls).state(id) {
        Some(CallState::Cancelled) => Some(Status::CANCELLED),
        _ if is_late => Some(Status::DEADLINE),
        _ => None,
    };
    let reply = Reply::begin(replies, job.caller);
    let reply = match refusal {
        Some(status) => reply.refuse(replies, &Exception::new(status, "it was not begun")),
        None => {
            let services = &core.services;
            services.execute_lean(job, arguments, reply, line.origin(), replies, &core.tally)
        }
    };
    reply.seal(replies);
    lock(&line.lean_calls).finish(id);
}
