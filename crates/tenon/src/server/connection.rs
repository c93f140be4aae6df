//! A connection and the thread that attends it: receive, execute, send, receive again.
//!
//! In the steady state a call costs two system calls, one receive and one send, and no allocation:
//! the buffers belong to the connection, and calls that arrived together are answered together.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tenon_proto::lean::Reason as Farewell;
use tenon_proto::onc::server::Call;
use tenon_wire::Buffer;

use super::LINGER;
use super::arrival::Arrival;
use super::core::Core;
use super::lean::{self, Answered};
use super::limits::ServerLimits;
use super::line::Line;
use super::lock;
use super::memory::Share;
use super::reason::Reason;
use super::reception::Reception;
use super::request::Request;
use super::services::Execution;
use super::workers::{Job, ReplyTo};
use crate::waiting::{LOOKS, Looking, Waiter};

/// How long a thread stays with a peer that sends, but never a complete request.
const PATIENCE: Duration = Duration::from_millis(20);

/// Bytes of replies that are sent before further calls that arrived with theirs are executed.
const REPLIES_MAX: usize = 64 << 10;

/// A connection's receiving side. Whoever has it attends it; nobody else touches it.
#[derive(Debug)]
pub(super) struct Connection {
    reception: Reception,
    /// The memory that the reader has beyond its first.
    share: Share,
    replies: Buffer,
    /// Whether among the replies are some that say when they are sent.
    has_stamps: bool,
    /// A call for which there was no room among the workers.
    held: Option<Job>,
    waiter: Waiter,
    looking: Looking,
    /// Since when no complete request has come, as of the last parking.
    silent_since: Instant,
    /// Of a request that takes memory of all, as of the last parking.
    arrival: Arrival,
    /// Dropped last: whoever finds the connection gone finds its memory there again.
    pub(super) line: Arc<Line>,
}

/// What is to become of a connection that a thread has done with.
#[derive(Debug)]
pub(super) enum Fate {
    /// It waits for bytes.
    Park,
    /// It waits until there is room among the workers.
    Stall,
    /// It is over.
    Close(Reason),
}

impl Connection {
    pub(super) fn new(line: Arc<Line>, record_bytes: usize, share: Share, waiter: Waiter) -> Self {
        Self {
            looking: Looking::at(line.stream.transport()),
            line,
            reception: Reception::new(record_bytes),
            share,
            replies: Buffer::default(),
            has_stamps: false,
            held: None,
            waiter,
            silent_since: Instant::now(),
            arrival: Arrival::default(),
        }
    }

    /// Serves the connection until it has been silent for a while, others need the thread more, or
    /// it ends.
    pub(super) fn attend(&mut self, core: &Core) -> Fate {
        let line = &self.line;
        let span = tracing::debug_span!("connection", id = line.id, peer = ?line.stream.peer());
        let _entered = span.enter();
        let fate = self.serve(core).unwrap_or_else(Fate::Close);
        if matches!(fate, Fate::Park) {
            self.release_memory();
            self.note_arrival(core.limits.receive);
        }
        fate
    }

    /// Why the connection is to end by now, which waits for bytes.
    pub(super) fn lateness(&self, limits: &ServerLimits, now: Instant) -> Option<Reason> {
        if self.arrival.end().is_some_and(|end| now >= end) {
            return Some(Reason::SlowSender);
        }
        let is_idle = !limits.idle.is_zero() && self.is_idle(limits.idle, now);
        is_idle.then_some(Reason::Idle)
    }

    /// When the time is over of a large request that has begun to come, if there is one.
    pub(super) fn end_of_arrival(&self) -> Option<Instant> {
        self.arrival.end()
    }

    /// Whether no complete request has come for `limit` and no reply is due.
    fn is_idle(&self, limit: Duration, now: Instant) -> bool {
        let silence = now.saturating_duration_since(self.silent_since);
        silence >= limit && self.line.in_flight.load(Ordering::Relaxed) == 0
    }

    fn note_arrival(&mut self, limit: Duration) {
        match self.share.is_empty() {
            true => self.arrival.clear(),
            false => self.arrival.note_waiting(self.reception.kept(), limit),
        }
    }

    /// Gives back what an idle connection does not need.
    fn release_memory(&mut self) {
        self.reception.shrink_to(0);
        self.share.fit(self.reception.capacity());
        self.replies.shrink_to(0);
    }

    fn serve(&mut self, core: &Core) -> Result<Fate, Reason> {
        let mut patience = Patience::default();
        loop {
            let progress = self.answer_what_came(core)?;
            if core.is_stopping() {
                return Err(self.stop());
            }
            match progress {
                Progress::NoRoom => return Ok(Fate::Stall),
                Progress::Complete => patience.renew(),
                Progress::Partial => {}
            }
            if patience.is_over(progress, core) || !self.receive(core)? {
                break;
            }
        }
        if core.is_stopping() {
            return Err(self.stop());
        }
        if patience.was_renewed {
            self.silent_since = Instant::now();
            self.arrival.clear();
        }
        Ok(Fate::Park)
    }

    fn stop(&mut self) -> Reason {
        self.say_goodbye(Farewell::STOPPING);
        Reason::Stopping
    }

    /// Receives what comes within the linger time, or what is there already when others wait for
    /// this thread; `false` if nothing is.
    fn receive(&mut self, core: &Core) -> Result<bool, Reason> {
        let has_begun = !self.reception.may_end();
        let share = &mut self.share;
        let Some(room) = self.reception.room_within(|bytes| share.fit(bytes)) else {
            self.say_goodbye(Farewell::LIMITS);
            return Err(Reason::Memory);
        };
        let stream = &self.line.stream;
        let mut looks = 0;
        let receive = |limit| match limit {
            None => {
                stream.look(looks);
                looks = LOOKS;
                stream.try_recv(room)
            }
            Some(limit) => stream.recv_within(room, limit),
        };
        match core.linger(&mut self.waiter, self.looking, has_begun, LINGER, receive) {
            Ok(0) => Err(self.end_of_stream(core)),
            Ok(bytes) => {
                self.reception.filled(bytes, &core.limits)?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(Reason::Socket(error)),
        }
    }

    fn end_of_stream(&self, core: &Core) -> Reason {
        if core.is_stopping() {
            Reason::Stopping
        } else if self.reception.may_end() {
            Reason::PeerClosed
        } else {
            Reason::CutOff
        }
    }

    /// Answers all requests that are complete. Those before one that breaks the protocol are
    /// answered too.
    fn answer_what_came(&mut self, core: &Core) -> Result<Progress, Reason> {
        let progress = self.execute_what_came(core);
        self.send_replies(core)?;
        progress
    }

    fn execute_what_came(&mut self, core: &Core) -> Result<Progress, Reason> {
        let mut progress = Progress::Partial;
        if let Some(job) = self.held.take() {
            self.held = core.workers.submit(job);
            progress = Progress::Complete;
        }
        while self.held.is_none() {
            if self.reception.may_end() {
                return Ok(progress);
            }
            match self.reception.next_common_call(&self.line.tally) {
                Some((call, _)) if call.is_null() => call.answer_null(&mut self.replies),
                Some((call, arguments)) => {
                    let replies = &mut self.replies;
                    self.held = lean::answer_common(call, arguments, core, &self.line, replies)?;
                }
                None => match self.answer_next(core)? {
                    Some(Answered::Done) => {}
                    Some(Answered::NoRoom(job)) => self.held = Some(job),
                    None => return Ok(progress),
                },
            }
            progress = Progress::Complete;
            if self.replies.len() > REPLIES_MAX {
                self.send_replies(core)?;
            }
        }
        Ok(Progress::NoRoom)
    }

    /// Answers the next request, whatever it is; none if none has come whole.
    fn answer_next(&mut self, core: &Core) -> Result<Option<Answered>, Reason> {
        let (line, replies) = (&self.line, &mut self.replies);
        Ok(Some(match self.reception.next_request(core, replies)? {
            Request::None => return Ok(None),
            Request::Handled => Answered::Done,
            Request::HandledStamped => {
                self.has_stamps = true;
                Answered::Done
            }
            Request::Onc(call, record) => answer(core, line, &call, record, replies),
            Request::Lean(call) => {
                self.has_stamps |= call.wants_stamps;
                lean::answer(&call, core, line, replies)?
            }
            Request::Cancel(id) => {
                lock(&line.lean_calls).cancel(id);
                Answered::Done
            }
        }))
    }

    /// Tells a peer that can be told that nothing further is accepted. What does not fit at once is
    /// not said.
    pub(super) fn say_goodbye(&mut self, reason: Farewell) {
        self.replies.clear();
        self.reception.goodbye(reason, &mut self.replies);
        if !self.replies.is_empty() {
            self.line.send_at_once(self.replies.as_slice());
            self.replies.clear();
        }
    }

    fn send_replies(&mut self, core: &Core) -> Result<(), Reason> {
        if self.replies.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.has_stamps) {
            lean::stamp_replies(&mut self.replies);
        }
        let sent = self.line.send_attended(self.replies.as_slice(), core);
        self.replies.clear();
        sent.map_err(Reason::of_sending)
    }
}

/// How far the requests that arrived have been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// All of them, and there was at least one.
    Complete,
    /// None was complete.
    Partial,
    /// There is no room for the next among the workers.
    NoRoom,
}

/// Appends the reply to a call, or hands it to the workers; if they have no room, it comes back.
#[inline]
fn answer(
    core: &Core,
    line: &Arc<Line>,
    call: &Call<'_>,
    record: &[u8],
    replies: &mut Buffer,
) -> Answered {
    if core.services.execution(call) == Execution::Workers {
        let job = core.workers.job(record, ReplyTo::Line(Arc::clone(line)));
        return match core.workers.submit(job) {
            Some(job) => Answered::NoRoom(job),
            None => Answered::Done,
        };
    }
    let (services, tally) = (&core.services, &core.tally);
    let reply = services.execute(call, line.origin(), replies, tally);
    reply.seal(replies, core.fragment_max);
    Answered::Done
}

/// Whether a thread stays with a connection that still sends: for [`PATIENCE`] while no request
/// becomes complete, and after one that did unless others wait for the thread. The clock is asked
/// only after a receive that completed nothing.
#[derive(Debug, Default)]
struct Patience {
    waiting_since: Option<Instant>,
    was_renewed: bool,
}

impl Patience {
    fn renew(&mut self) {
        self.waiting_since = None;
        self.was_renewed = true;
    }

    fn is_over(&mut self, progress: Progress, core: &Core) -> bool {
        match progress {
            Progress::Complete => core.pool.is_crowded(),
            Progress::Partial | Progress::NoRoom => {
                let since = self.waiting_since.get_or_insert_with(Instant::now);
                since.elapsed() > PATIENCE
            }
        }
    }
}
