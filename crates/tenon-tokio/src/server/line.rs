//! What the task of a connection shares with the tasks that carry out its calls.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;

use tenon::Refusal;
use tenon::lean::server::Reply as LeanReply;
use tenon::lean::{CallState, Calls, Exception, Status};
use tenon::runtime::{
    Buffers, LeanJob, Offer, Origin, note_panic, note_refusal, refuse_lean, status,
};
use tenon::wire::Buffer;
use tenon_proto::onc::server::Reply as OncReply;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;

use super::service::{Answer, Asked};

/// A connection as those see it who answer its calls.
pub(super) struct Line {
    pub(super) id: usize,
    pub(super) origin: Origin,
    pub(super) offer: Arc<Offer>,
    /// Of a lean client: its calls that have tasks.
    pub(super) lean_calls: Mutex<Calls<AbortHandle>>,
    answers: Mutex<Answers>,
    /// Whether the server waits for nothing any more.
    is_abandoned: AtomicBool,
}

/// What the tasks of calls leave for the task of the connection.
#[derive(Default)]
struct Answers {
    replies: Buffer,
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

    /// A copy of what was received, and an empty buffer.
    pub(super) fn copy(&self, received: &[u8]) -> (Buffer, Buffer) {
        let buffers = &mut lock(&self.answers).buffers;
        let (mut copy, empty) = (buffers.take(), buffers.take());
        copy.extend(received);
        (copy, empty)
    }

    /// Notes that a call gets a task.
    pub(super) fn begin(self: &Arc<Self>, asked: Asked, room: OwnedSemaphorePermit) -> Completion {
        lock(&self.answers).in_flight += 1;
        Completion {
            line: Arc::clone(self),
            asked,
            is_done: false,
            _room: room,
        }
    }

    /// Leaves the answer of a call that is over.
    fn done(&self, answer: Buffer, used: Buffer) {
        let mut answers = lock(&self.answers);
        answers.in_flight -= 1;
        answers.replies.extend(answer.as_slice());
        answers.buffers.put(answer);
        answers.buffers.put(used);
        let connection = answers.connection.take();
        drop(answers);
        connection.into_iter().for_each(Waker::wake);
    }

    /// Gives up a lean call for which nobody waits any more.
    pub(super) fn cancel(&self, id: u32) {
        let task = lock(&self.lean_calls).cancel(id).map(|task| task.clone());
        task.inspect(AbortHandle::abort);
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
    is_done: bool,
    /// Room among the calls of the server.
    _room: OwnedSemaphorePermit,
}

impl Completion {
    /// Why the call is not begun, if nobody waits for it any more.
    pub(super) fn why_not(&self) -> Option<Exception<'static>> {
        match &self.asked {
            Asked::Onc(..) => None,
            Asked::Lean(job) => job.why_not(self.state(job)),
        }
    }

    fn state(&self, job: &LeanJob) -> Option<CallState> {
        lock(&self.line.lean_calls).state(job.caller.id)
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
        if let Asked::Lean(job) = &self.asked {
            lock(&self.line.lean_calls).finish(job.caller.id);
        }
        self.line.done(reply, used);
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
                let fragment_max = self.line.offer.fragment_max;
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
                Asked::Lean(_) => self.except(&Exception::new(Status::CANCELLED, "")),
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
