//! The worker pool: calls of services that asked for it, copied out of the connection's buffer and
//! executed by a fixed number of threads. Replies leave as they are done, so they may overtake each
//! other.
//!
//! A connection whose call finds no room *stalls*: it is neither read nor parked, it waits here,
//! and so its peer sooner or later finds that it cannot send. Each call that is done lets one
//! stalled connection go on that may; it has a call in hand, so the room is used.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use tenon_proto::exchange::server::CallKey as ExchangeKey;
use tenon_proto::onc::duplicates::CallKey;
use tenon_wire::Buffer;

use super::connection::Connection;
use super::core::Core;
use super::lean::{self, LeanJob};
use super::limits::ServerLimits;
use super::line::Line;
use super::lock;
use super::pool::Guest;
use super::port::Socket;
use super::reason::Reason;

/// Bytes of a buffer that is kept for the next call; larger ones go back to the allocator.
const SPARE_BYTES_MAX: usize = 64 << 10;

/// Buffers that are kept for the next calls.
const SPARES_MAX: usize = 256;

/// A call that was received: the message of an ONC call, the arguments of a lean one.
#[derive(Debug)]
pub(super) struct Job {
    message: Buffer,
    reply_to: ReplyTo,
}

/// Where the reply to a call goes.
#[derive(Debug)]
pub(super) enum ReplyTo {
    Line(Arc<Line>),
    Lean(Arc<Line>, LeanJob),
    Datagram(Arc<Socket>, CallKey<SocketAddr>, SocketAddr),
    Exchange(Arc<Socket>, ExchangeKey, LeanJob, SocketAddr),
}

#[derive(Debug)]
pub(super) struct Workers {
    queue: Mutex<Queue>,
    work: Condvar,
    calls_max: usize,
    connection_calls_max: usize,
    threads: AtomicUsize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Job>,
    /// Calls that wait or are executed.
    in_flight: usize,
    /// Workers without a call.
    idle: usize,
    stalled: VecDeque<Box<Connection>>,
    spares: Vec<Buffer>,
    is_closed: bool,
}

impl Workers {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        Self {
            queue: Mutex::default(),
            work: Condvar::new(),
            calls_max: limits.calls_in_flight.max(1),
            connection_calls_max: limits.connection_calls_in_flight.max(1),
            threads: AtomicUsize::new(0),
        }
    }

    /// Starts `count` workers.
    pub(super) fn start(core: &Arc<Core>, count: usize) -> io::Result<()> {
        for _ in 0..count {
            let builder = thread::Builder::new().name("tenon-work".to_owned());
            let counted = Counted::new(core);
            builder.spawn(move || counted.0.workers.run(&counted.0))?;
        }
        Ok(())
    }

    /// Copies a call out of its connection's buffer.
    pub(super) fn job(&self, message: &[u8], reply_to: ReplyTo) -> Job {
        let spare = lock(&self.queue).spares.pop();
        let mut copy = spare.unwrap_or_default();
        copy.extend(message);
        Job {
            message: copy,
            reply_to,
        }
    }

    /// Takes a call in; it comes back if there is no room.
    pub(super) fn submit(&self, job: Job) -> Option<Job> {
        let mut queue = lock(&self.queue);
        if queue.is_closed || !self.has_room(&queue, job.reply_to.line()) {
            return Some(job);
        }
        queue.in_flight += 1;
        if let Some(line) = job.reply_to.line() {
            line.in_flight.fetch_add(1, Ordering::Relaxed);
        }
        queue.waiting.push_back(job);
        drop(queue);
        self.work.notify_one();
        None
    }

    fn has_room(&self, queue: &Queue, line: Option<&Line>) -> bool {
        let calls_of_line = line.map_or(0, |line| line.in_flight.load(Ordering::Relaxed));
        queue.in_flight < self.calls_max && calls_of_line < self.connection_calls_max
    }

    /// Keeps a connection until there is room for its call; it comes back if there already is.
    pub(super) fn stall(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return None;
        }
        if self.has_room(&queue, Some(&connection.line)) {
            return Some(connection);
        }
        queue.stalled.push_back(connection);
        None
    }

    fn run(&self, core: &Arc<Core>) {
        let mut replies = Buffer::default();
        while let Some(job) = self.next() {
            execute(core, &job, &mut replies);
            replies.clear();
            replies.shrink_to(SPARE_BYTES_MAX);
            if let Some(connection) = self.done(job) {
                core.pool.push(core, Guest::Connection(connection));
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.waiting.pop_front() {
                return Some(job);
            }
            if queue.is_closed {
                return None;
            }
            queue.idle += 1;
            queue = self
                .work
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// Whether calls wait for which there is no worker.
    pub(super) fn are_crowded(&self) -> bool {
        let queue = lock(&self.queue);
        queue.waiting.len() > queue.idle
    }

    /// Makes room again; says which stalled connection may go on.
    fn done(&self, job: Job) -> Option<Box<Connection>> {
        let mut queue = lock(&self.queue);
        queue.in_flight -= 1;
        if let Some(line) = job.reply_to.line() {
            line.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        keep_spare(&mut queue, job.message);
        let mut stalled = queue.stalled.iter();
        let next = stalled.position(|connection| self.has_room(&queue, Some(&connection.line)))?;
        queue.stalled.remove(next)
    }

    /// Takes nothing in any more; the workers leave when they are done with what waits.
    pub(super) fn close(&self) {
        let stalled = {
            let mut queue = lock(&self.queue);
            queue.is_closed = true;
            std::mem::take(&mut queue.stalled)
        };
        drop(stalled);
        self.work.notify_all();
    }

    /// Drops the calls that wait.
    pub(super) fn abandon(&self) {
        let abandoned = std::mem::take(&mut lock(&self.queue).waiting);
        drop(abandoned);
    }

    /// Workers that have not left yet.
    pub(super) fn threads(&self) -> usize {
        self.threads.load(Ordering::Acquire)
    }
}

/// A worker's thread, which counts from before it is started until it has left, or could not be started.
struct Counted(Arc<Core>);

impl Counted {
    fn new(core: &Arc<Core>) -> Self {
        core.workers.threads.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(core))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.workers.threads.fetch_sub(1, Ordering::Release);
        self.0.pool.announce_departure();
    }
}

fn keep_spare(queue: &mut Queue, mut message: Buffer) {
    if message.capacity() <= SPARE_BYTES_MAX && queue.spares.len() < SPARES_MAX {
        message.clear();
        queue.spares.push(message);
    }
}

fn execute(core: &Core, job: &Job, replies: &mut Buffer) {
    let message = job.message.as_slice();
    match &job.reply_to {
        ReplyTo::Lean(line, call) => {
            lean::execute(core, line, call, message, replies);
            if call.found_at.is_some() {
                lean::stamp_replies(replies);
            }
            send(core, line, replies);
        }
        ReplyTo::Line(line) => {
            if let Some(call) = core.services.call_again(message) {
                let services = &core.services;
                let reply = services.execute(&call, line.origin(), replies, &core.tally);
                reply.seal(replies, core.fragment_max);
                send(core, line, replies);
            }
        }
        ReplyTo::Datagram(socket, key, peer) => {
            if let Some(call) = core.services.call_again(message) {
                socket.execute(core, &call, key, *peer, replies);
            }
        }
        ReplyTo::Exchange(socket, key, call, peer) => {
            socket.answer_late(core, *key, call, message, *peer, replies);
        }
    }
}

fn send(core: &Core, line: &Line, replies: &Buffer) {
    if let Err(error) = line.send(replies.as_slice(), core) {
        line.report(&Reason::of_sending(error), core);
    }
}

impl ReplyTo {
    fn line(&self) -> Option<&Line> {
        match self {
            Self::Line(line) | Self::Lean(line, _) => Some(line),
            Self::Datagram(..) | Self::Exchange(..) => None,
        }
    }
}
