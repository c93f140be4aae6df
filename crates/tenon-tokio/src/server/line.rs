//! What the task of a connection, or of a port, shares with the tasks that carry out its calls.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Instant;

use tenon::Refusal;
use tenon::lean::server::Reply as LeanReply;
use tenon::lean::{CallState, Calls, Exception, Status};
use tenon::runtime::{
    Buffers, LeanJob, Offer, Origin, note_panic, note_refusal, refuse_lean, status,
};
use tenon::wire::Buffer;
use tenon_proto::exchange::server::CallKey as ExchangeKey;
use tenon_proto::onc::duplicates::CallKey;
use tenon_proto::onc::server::Reply as OncReply;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;

use super::service::{Answer, Asked};

/// A connection or a port as those see it who answer its calls.
pub(super) struct Line {
    pub(super) id: usize,
    /// Where calls come from; those at a port have each a peer of its own.
    pub(super) origin: Origin,
    pub(super) offer: Arc<Offer>,
    /// Of a lean client: its calls that have tasks, each with its task once that was begun.
    pub(super) lean_calls: Mutex<Calls<Option<AbortHandle>>>,
    answers: Mutex<Answers>,
    /// Whether the server waits for nothing any more.
    is_abandoned: AtomicBool,
}

/// Where an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// Among the replies of a connection.
    Stream,
    /// Into packets of the exchange; whether it says when it is sent.
    Packet(ExchangeKey, bool),
    /// Into a datagram of ONC RPC: as the reply to this call, with this xid, for this peer.
    Datagram(CallKey<SocketAddr>, u32, SocketAddr),
}

/// An answer that goes by itself.
pub(super) struct Letter {
    pub(super) to: To,
    /// A reply that is sealed, and nothing else.
    pub(super) answer: Buffer,
}

/// What the tasks of calls leave for the task of the connection.
#[derive(Default)]
struct Answers {
    /// Those of a connection.
    replies: Buffer,
    /// Those of a port.
    letters: Vec<Letter>,
    /// Calls that have tasks.
    in_flight: usize,
    /// The task of the connection, while nobody has called it.
    connection: Option<Waker>,
    buffers: Buffers,
}

impl Line {
    pub(super) fn new(id: usize, origin: Origin, offer: Arc<Offer>, calls_max: usize) -> Self {
        Self {
            id,
            origin,
            offer,
            lean_calls: Mutex::new(Calls::new(calls_max)),
            answers: Mutex::default(),
            is_abandoned: AtomicBool::new(false),
        }
    }

    /// Has the task of the connection called when something is left for it.
    pub(super) fn attend(&self, connection: &Waker) {
        lock(&self.answers).connection = Some(connection.clone());
    }

    /// Calls the task of the connection.
    pub(super) fn call(&self) {
        let connection = lock(&self.answers).connection.take();
        connection.into_iter().for_each(Waker::wake);
    }

    /// Has the connection end, whatever is still under way.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
        self.call();
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire)
    }

    /// Calls that have tasks.
    pub(super) fn in_flight(&self) -> usize {
        lock(&self.answers).in_flight
    }

    /// Whether every call is answered, and every answer taken.
    pub(super) fn is_quiet(&self) -> bool {
        let answers = lock(&self.answers);
        answers.in_flight == 0 && answers.replies.is_empty() && answers.letters.is_empty()
    }

    /// Appends the answers that are there.
    pub(super) fn collect(&self, replies: &mut Buffer) {
        let mut answers = lock(&self.answers);
        match replies.is_empty() {
            true => std::mem::swap(replies, &mut answers.replies),
            false => {
                replies.extend(answers.replies.as_slice());
                answers.replies.clear();
            }
        }
    }

    /// The same for those that go by themselves; `letters` is empty.
    pub(super) fn collect_letters(&self, letters: &mut Vec<Letter>) {
        std::mem::swap(letters, &mut lock(&self.answers).letters);
    }

    /// Keeps a buffer that is not needed for the next call.
    pub(super) fn give_back(&self, buffer: Buffer) {
        lock(&self.answers).buffers.put(buffer);
    }

    /// A copy of what was received, and an empty buffer.
    pub(super) fn copy(&self, received: &[u8]) -> (Buffer, Buffer) {
        let buffers = &mut lock(&self.answers).buffers;
        let (mut copy, empty) = (buffers.take(), buffers.take());
        copy.extend(received);
        (copy, empty)
    }

    /// Notes that a call gets a task.
    pub(super) fn begin(
        self: &Arc<Self>,
        asked: Asked,
        to: To,
        room: OwnedSemaphorePermit,
    ) -> Completion {
        lock(&self.answers).in_flight += 1;
        Completion {
            line: Arc::clone(self),
            asked,
            to,
            is_done: false,
            room: Some(room),
        }
    }

    /// Leaves the answer of a call that is over.
    fn done(&self, to: To, answer: Buffer, used: Buffer) {
        let mut answers = lock(&self.answers);
        answers.in_flight -= 1;
        match to {
            To::Stream => {
                answers.replies.extend(answer.as_slice());
                answers.buffers.put(answer);
            }
            To::Packet(..) | To::Datagram(..) => answers.letters.push(Letter { to, answer }),
        }
        answers.buffers.put(used);
        let connection = answers.connection.take();
        drop(answers);
        connection.into_iter().for_each(Waker::wake);
    }

    /// Gives up a lean call for which nobody waits any more.
    pub(super) fn cancel(&self, id: u32) {
        let mut calls = lock(&self.lean_calls);
        let task = calls.cancel(id).and_then(|task| task.clone());
        drop(calls);
        task.inspect(AbortHandle::abort);
    }

    /// When the time of a lean call that has a task runs out.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        lock(&self.lean_calls).next_timeout()
    }

    /// Gives up lean calls whose time has run out by `now`. Their clients say so, too, but perhaps behind a call for
    /// which there is no room before one of those ends.
    pub(super) fn give_up_expired(&self, now: Instant) {
        let next = || {
            lock(&self.lean_calls)
                .poll_expired(now)
                .map(|(_, task)| task.clone())
        };
        while let Some(task) = next() {
            task.inspect(AbortHandle::abort);
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The duty to answer a call that has a task, exactly once whatever becomes of the task.
pub(super) struct Completion {
    line: Arc<Line>,
    asked: Asked,
    to: To,
    is_done: bool,
    /// Room among the calls of the server.
    room: Option<OwnedSemaphorePermit>,
}

impl Completion {
    /// Why the call is not begun, if nobody waits for it any more.
    pub(super) fn why_not(&self) -> Option<Exception<'static>> {
        match &self.asked {
            Asked::Onc(..) => None,
            Asked::Lean(job) => job.why_not(self.state()),
        }
    }

    /// What is known of the call, if it is one of a lean connection. One of the exchange that is given up has no
    /// task any more.
    pub(super) fn state(&self) -> Option<CallState> {
        let job = self.lean_job()?;
        lock(&self.line.lean_calls).state(job.caller.id)
    }

    /// The call, if it is one of those of a lean connection.
    fn lean_job(&self) -> Option<&LeanJob> {
        match (&self.asked, &self.to) {
            (Asked::Lean(job), To::Stream) => Some(job),
            (Asked::Lean(_), To::Packet(..) | To::Datagram(..)) | (Asked::Onc(..), _) => None,
        }
    }

    /// Answers with what the service says.
    pub(super) fn finish(mut self, outcome: Result<Answer, Refusal>) {
        match outcome {
            Ok(answer) => {
                let (reply, received) = answer.into_parts();
                self.deliver(reply, received);
            }
            Err(refusal) => {
                note_refusal(&refusal, &self.line.offer.tally);
                self.tell(&refusal);
            }
        }
    }

    /// Answers with a reply that is sealed.
    pub(super) fn deliver(&mut self, reply: Buffer, used: Buffer) {
        self.is_done = true;
        // Whoever is answered finds the room that the call has left.
        self.room = None;
        if let Some(job) = self.lean_job() {
            lock(&self.line.lean_calls).finish(job.caller.id);
        }
        self.line.done(self.to, reply, used);
    }

    /// Answers a lean call with an exception.
    pub(super) fn refuse(mut self, exception: &Exception<'_>) {
        self.except(exception);
    }

    fn except(&mut self, exception: &Exception<'_>) {
        let mut out = Buffer::default();
        if let Asked::Lean(job) = &self.asked {
            let reply = LeanReply::begin(&mut out, job.caller);
            reply.refuse(&mut out, exception).seal(&mut out);
        }
        self.deliver(out, Buffer::default());
    }

    fn tell(&mut self, refusal: &Refusal) {
        let mut out = Buffer::default();
        match &self.asked {
            Asked::Onc(xid, _) => {
                let reply = OncReply::begin(&mut out, *xid);
                let transport = self.line.origin.transport;
                let fragment_max = self.line.offer.fragment_max_over(transport);
                reply
                    .refuse(&mut out, status(refusal))
                    .seal(&mut out, fragment_max);
            }
            Asked::Lean(job) => {
                let reply = LeanReply::begin(&mut out, job.caller);
                refuse_lean(reply, &mut out, refusal).seal(&mut out);
            }
        }
        self.deliver(out, Buffer::default());
    }
}

impl Drop for Completion {
    /// The task ended before it had an answer: it was given up, or it panicked.
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        match thread::panicking() {
            true => {
                let refusal = note_panic("see the output of the program", &self.line.offer.tally);
                self.tell(&refusal);
            }
            false => match self.asked {
                Asked::Lean(_) => {
                    let status = match self.state() {
                        Some(CallState::Expired) => Status::DEADLINE,
                        Some(CallState::Awaited | CallState::Cancelled) | None => Status::CANCELLED,
                    };
                    self.except(&Exception::new(status, ""));
                }
                Asked::Onc(..) => {
                    self.tell(&Refusal::SystemError("the run time has ended".to_owned()));
                }
            },
        }
    }
}

/// Locks; whoever panicked while it held the lock has left what it guards in order, as every change
/// here is a single step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
