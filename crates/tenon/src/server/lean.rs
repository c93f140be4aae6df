//! A connection whose peer speaks the lean protocol.

use std::sync::Arc;
use std::time::Instant;

use tenon_proto::lean::server::{Call, Caller, Common, Received, Reply, ServerEngine};
use tenon_proto::lean::{
    ByteOrder, CallState, Exception, Features, Flags, Incoming, MessageReader, Preamble, Stamps,
    Status, Violation, stamp_sent,
};
use tenon_proto::lean::{Message, Reason as Farewell};
use tenon_wire::Buffer;

use super::core::Core;
use super::counters::LineTally;
use super::limits::ServerLimits;
use super::line::Line;
use super::lock;
use super::offer::Offer;
use super::reason::Reason;
use super::request::Request;
use super::services::{Execution, Origin};
use super::workers::{Job, ReplyTo};
use crate::account;

/// The receiving side of a lean connection.
#[derive(Debug)]
pub struct LeanReception {
    /// Finds the messages.
    pub reader: MessageReader,
    engine: ServerEngine,
}

/// What has become of what came.
#[derive(Debug)]
pub(super) enum Answered {
    /// It is answered, or will be.
    Done,
    /// There is no room for it among the workers.
    NoRoom(Job),
}

/// A call that a worker executes, beside its arguments.
#[derive(Debug, Clone, Copy)]
pub struct LeanJob {
    /// The number of the service in the catalog.
    pub service: usize,
    /// Procedure number.
    pub procedure: u16,
    /// The order of the bytes of the arguments.
    pub order: ByteOrder,
    /// Whom to answer.
    pub caller: Caller,
    /// When its time runs out.
    pub deadline: Option<Instant>,
    /// When it was found, if the client wants to know when it passed which place.
    pub found_at: Option<u64>,
}

/// What the server tells a client of itself.
pub fn preamble(limits: &ServerLimits) -> Preamble {
    let clamp = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
    let grants = Preamble::server(
        clamp(limits.record_bytes),
        clamp(limits.connection_calls_in_flight),
    );
    Preamble {
        features: Features::STAMPS,
        ..grants
    }
}

impl LeanReception {
    /// The reception of a connection whose peer speaks the protocol. `received` is what has come before it was known what the peer speaks, which is no more than
    /// [`FIRST_MAX`](super::reception::FIRST_MAX) and a few bytes: the first room of a reader.
    pub fn new(limits: &ServerLimits, received: &[u8]) -> Self {
        let own = preamble(limits);
        let mut reader = MessageReader::new(own.message_max as usize);
        reader.room()[..received.len()].copy_from_slice(received);
        reader.filled(received.len());
        Self {
            reader,
            engine: ServerEngine::new(own),
        }
    }

    /// The next that has come whole, if it is a call of the commonest form, and its arguments: what it is shows
    /// without a look at all that it could be.
    #[inline]
    pub(super) fn next_common_call(&mut self, tally: &LineTally) -> Option<(Common, &[u8])> {
        let header = self.reader.find_common()?;
        let common = self.engine.handle_common(header)?;
        match common.is_null() {
            true => tally.pings.up_alone(),
            false => tally.calls.up_alone(),
        }
        Some((common, self.reader.take_common(header)))
    }

    /// What has come next as a whole. What can be answered without a service is, in `replies`.
    ///
    /// # Errors
    /// The connection is to end. What is in `replies` is still to be sent.
    #[inline]
    pub fn next_request(
        &mut self,
        offer: &Offer,
        replies: &mut Buffer,
    ) -> Result<Request<'_>, Reason> {
        let Self { reader, engine } = self;
        let mut found_at = 0;
        let received = match reader.next_message() {
            Ok(None) => return Ok(Request::None),
            Ok(Some(Incoming::Preamble(theirs))) => {
                let greeted = engine.handle_preamble(&theirs, replies);
                return greeted.map(|()| Request::Handled).map_err(Reason::Refused);
            }
            Ok(Some(Incoming::Message(message))) => {
                // Only of a message that has more than others, and at once.
                if message.header.flags.has(Flags::EXTENSIONS) {
                    found_at = account::now();
                }
                take_in(engine, &message, offer, replies)
            }
            Err(violation) => Err(violation),
        };
        match received {
            Ok(Received::Call(call)) => Ok(Request::Lean(Call { found_at, ..call })),
            Ok(Received::StampedNull(caller)) => {
                answer_stamped_null(caller, found_at, replies);
                Ok(Request::HandledStamped)
            }
            Ok(Received::Cancel(id)) => Ok(Request::Cancel(id)),
            // What the client called before its goodbye is answered, and then it closes.
            Ok(Received::Goodbye(_) | Received::Pong(_) | Received::Handled) => {
                Ok(Request::Handled)
            }
            Err(violation) => {
                offer.tally.violations.up();
                engine.goodbye(Farewell::VIOLATION, &violation.to_string(), replies);
                Err(Reason::Lean(violation))
            }
        }
    }

    /// Says that nothing further is accepted.
    pub fn goodbye(&mut self, reason: Farewell, replies: &mut Buffer) {
        self.engine.goodbye(reason, "", replies);
    }
}

#[inline]
fn take_in<'m>(
    engine: &mut ServerEngine,
    message: &Message<'m>,
    offer: &Offer,
    replies: &mut Buffer,
) -> Result<Received<'m>, Violation> {
    let before = engine.counters();
    let received = engine.handle_message(offer.services.catalog(), message, replies);
    offer.tally.add_lean(before, engine.counters());
    received
}

/// Appends the answer to a call, or hands it to the workers; if they have no room, it comes back.
#[inline]
pub(super) fn answer(
    call: &Call<'_>,
    core: &Core,
    line: &Arc<Line>,
    replies: &mut Buffer,
) -> Result<Answered, Reason> {
    match core.services.lean_execution(call.service) {
        Execution::Inline => execute_inline(call, core, line.origin(), replies),
        Execution::Workers => return hand_to_worker(call, core, line, replies),
    }
    Ok(Answered::Done)
}

/// The same for a call of the commonest form, which is not of procedure 0, and its arguments.
#[inline]
pub(super) fn answer_common(
    common: Common,
    arguments: &[u8],
    core: &Core,
    line: &Arc<Line>,
    replies: &mut Buffer,
) -> Result<Option<Job>, Reason> {
    match core.services.lean_execution(common.service) {
        Execution::Inline => {
            let Common { service, caller } = common;
            let job = LeanJob {
                service,
                procedure: caller.procedure(),
                order: ByteOrder::NATIVE,
                caller,
                deadline: None,
                found_at: None,
            };
            execute_plain(&job, arguments, core, line.origin(), replies);
            Ok(None)
        }
        Execution::Workers => match hand_to_worker(&common.call(arguments), core, line, replies)? {
            Answered::Done => Ok(None),
            Answered::NoRoom(job) => Ok(Some(job)),
        },
    }
}

/// Executes a call where it was received, and appends its answer.
pub fn execute_inline(call: &Call<'_>, offer: &Offer, origin: Origin, replies: &mut Buffer) {
    let job = LeanJob::new(call, None);
    if let Some(passed) = job.dispatch() {
        return execute_stamped(&job, passed, call.arguments, offer, origin, replies);
    }
    execute_plain(&job, call.arguments, offer, origin, replies);
}

#[inline]
fn execute_plain(
    job: &LeanJob,
    arguments: &[u8],
    offer: &Offer,
    origin: Origin,
    replies: &mut Buffer,
) {
    let (services, tally) = (&offer.services, &offer.tally);
    let reply = Reply::begin(replies, job.caller);
    let reply = services.execute_lean(job, arguments, reply, origin, replies, tally);
    reply.seal(replies);
}

/// Executes a call whose client wants to know when it passed which place, and appends its answer. When
/// it is sent is said once more [then](stamp_replies).
#[cold]
fn execute_stamped(
    job: &LeanJob,
    passed: Passed,
    arguments: &[u8],
    offer: &Offer,
    origin: Origin,
    replies: &mut Buffer,
) {
    let reply = Reply::begin_stamped(replies, job.caller);
    let (services, tally) = (&offer.services, &offer.tally);
    let reply = services.execute_lean(job, arguments, reply, origin, replies, tally);
    passed.seal(reply, replies);
}

/// Answers procedure 0 for a client that wants to know when it passed which place.
#[cold]
pub(super) fn answer_stamped_null(caller: Caller, found_at: u64, replies: &mut Buffer) {
    let passed = Passed::by_now(found_at);
    let reply = Reply::begin_stamped(replies, caller);
    passed.seal(reply, replies);
}

/// When a call passed the places before its service.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    found_at: u64,
    dispatched_at: u64,
}

impl Passed {
    /// Of a call that is handed to its service now.
    #[cold]
    fn by_now(found_at: u64) -> Self {
        Self {
            found_at,
            dispatched_at: account::now(),
        }
    }

    /// Ends a [stamped](Reply::begin_stamped) reply whose result is encoded now.
    #[cold]
    pub fn seal(self, reply: Reply, replies: &mut Buffer) {
        let clock = account::clock();
        let (scale, done) = (clock.scale(), clock.now());
        let stamps = Stamps {
            clock: scale.identity,
            rate: scale.rate,
            received: self.found_at,
            dispatched: self.dispatched_at,
            done,
            sent: done,
        };
        reply.seal_stamped(replies, &stamps);
    }
}

/// Writes into the replies with stamps that they are sent now.
#[cold]
pub fn stamp_replies(replies: &mut Buffer) {
    stamp_sent(replies, ByteOrder::NATIVE, account::now());
}

impl LeanJob {
    /// What a call asks for whose time runs out at `deadline`.
    pub fn new(call: &Call<'_>, deadline: Option<Instant>) -> Self {
        Self {
            service: call.service,
            procedure: call.procedure,
            order: call.order,
            caller: call.caller,
            deadline,
            found_at: call.wants_stamps.then_some(call.found_at),
        }
    }

    /// The call is handed to its service now; says when it passed what, if the client wants to know.
    #[inline]
    pub fn dispatch(&self) -> Option<Passed> {
        self.found_at.map(Passed::by_now)
    }

    /// What a call asks for that was received just now.
    pub fn received_now(call: &Call<'_>) -> Self {
        let deadline = match call.time_left {
            Some(_) => call.deadline(Instant::now()),
            None => None,
        };
        Self::new(call, deadline)
    }
}

fn hand_to_worker(
    call: &Call<'_>,
    core: &Core,
    line: &Arc<Line>,
    replies: &mut Buffer,
) -> Result<Answered, Reason> {
    let job = LeanJob::received_now(call);
    let (id, deadline) = (call.caller.id, job.deadline);
    if lock(&line.lean_calls).begin(id, deadline, ()).is_err() {
        refuse_for_number(call.caller, core, replies);
        return Ok(Answered::Done);
    }
    // The worker's answer must not overtake the preamble, nor that its service is bound.
    if !replies.is_empty() {
        let sent = line.send(replies.as_slice(), core);
        replies.clear();
        sent.map_err(Reason::of_sending)?;
    }
    let reply_to = ReplyTo::Lean(Arc::clone(line), job);
    let job = core.workers.job(call.arguments, reply_to);
    Ok(match core.workers.submit(job) {
        None => Answered::Done,
        Some(job) => Answered::NoRoom(job),
    })
}

/// Refuses a call because there are too many.
#[cold]
pub fn refuse_for_number(caller: Caller, offer: &Offer, replies: &mut Buffer) {
    offer.tally.refusals.up();
    let exception = Exception::new(Status::OVERLOADED, "");
    let reply = Reply::begin(replies, caller);
    reply.refuse(replies, &exception).seal(replies);
}

/// Executes a call on a worker, unless nobody waits for it any more, and appends its answer.
pub(super) fn execute(
    core: &Core,
    line: &Line,
    job: &LeanJob,
    arguments: &[u8],
    replies: &mut Buffer,
) {
    let state = lock(&line.lean_calls).state(job.caller.id);
    execute_known(core, state, line.origin(), job, arguments, replies);
    lock(&line.lean_calls).finish(job.caller.id);
}

/// Executes a call that has waited and is in this state, unless nobody waits for it any more, and appends its
/// answer.
pub fn execute_known(
    offer: &Offer,
    state: Option<CallState>,
    origin: Origin,
    job: &LeanJob,
    arguments: &[u8],
    replies: &mut Buffer,
) {
    match (job.why_not(state), job.dispatch()) {
        (None, Some(passed)) => {
            execute_stamped(job, passed, arguments, offer, origin, replies);
        }
        (None, None) => execute_plain(job, arguments, offer, origin, replies),
        (Some(exception), _) => {
            let reply = Reply::begin(replies, job.caller);
            reply.refuse(replies, &exception).seal(replies);
        }
    }
}

impl LeanJob {
    /// Why a call that has waited is not begun, if nobody waits for it any more.
    pub fn why_not(&self, state: Option<CallState>) -> Option<Exception<'static>> {
        let is_late = self.deadline.is_some_and(|at| at <= Instant::now());
        let status = match state {
            Some(CallState::Cancelled) => Status::CANCELLED,
            _ if is_late => Status::DEADLINE,
            _ => return None,
        };
        Some(Exception::new(status, "it was not begun"))
    }
}
