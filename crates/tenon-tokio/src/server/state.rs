//! The state that all connections and ports of a server share.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tenon_core::serve::{DEPARTURE, DeferredCalls, ServerCounters, ServerShared};
use tenon_core::service::Origin;
use tenon_core::wait::{Spinners, Waiting};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::call_room::{CallPermit, CallPermits};
use super::call_target::CallTarget;
use super::mailbox::ReplyMailbox;
use super::running::CallHandler;

pub(super) struct ServerState {
    pub(super) shared: Arc<ServerShared>,
    /// By the numbers of the services.
    pub(super) handlers: Vec<CallHandler>,
    /// The calls that are carried out elsewhere than where they were received.
    pub(super) deferred: Arc<DeferredCalls<CallTarget>>,
    /// Wakes the task that looks at them, when there are some again.
    pub(super) deferred_again: Notify,
    /// The threads of the run time that carry calls out.
    pub(super) blocking_threads: BlockingThreads,
    /// For the calls that are carried out elsewhere than where they were received.
    pub(super) room: CallPermits,
    pub(super) waiting: Waiting,
    pub(super) spinners: Spinners,
    /// Polls of connections so far: one that is polled several times in a row is the only one that says something.
    pub(super) polls: AtomicUsize,
    next_id: AtomicUsize,
    is_stopping: AtomicBool,
    open: Mutex<OpenSockets>,
}

/// Counts the threads of the run time for what blocks that carry calls out.
#[derive(Default)]
pub(super) struct BlockingThreads(AtomicUsize);

/// A thread that carries a call out, until this is dropped.
pub(super) struct BusyThread<'t>(&'t BlockingThreads);

impl BlockingThreads {
    /// Counts the calling thread.
    pub(super) fn enter(&self) -> BusyThread<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        BusyThread(self)
    }

    fn busy(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for BusyThread<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections and ports that are open.
#[derive(Default)]
pub(super) struct OpenSockets {
    pub(super) connections: HashMap<usize, Arc<ReplyMailbox>>,
    pub(super) ports: HashMap<usize, Arc<ReplyMailbox>>,
    /// Tasks that wait until something is closed.
    waiting: Vec<Waker>,
}

impl OpenSockets {
    fn is_empty(&self) -> bool {
        self.connections.is_empty() && self.ports.is_empty()
    }

    /// Returns the connections that have had calls with streams.
    fn with_streams(&self) -> impl Iterator<Item = &Arc<ReplyMailbox>> {
        let connections = self.connections.values();
        connections.filter(|mailbox| mailbox.has_had_streams())
    }

    fn all(&self) -> impl Iterator<Item = &Arc<ReplyMailbox>> {
        self.connections.values().chain(self.ports.values())
    }
}

impl ServerState {
    pub(super) fn new(shared: ServerShared, handlers: Vec<CallHandler>, waiting: Waiting) -> Self {
        let room = CallPermits::new(shared.limits.calls, shared.limits.call_bytes);
        Self {
            deferred: DeferredCalls::new(&shared.limits),
            deferred_again: Notify::new(),
            shared: Arc::new(shared),
            handlers,
            blocking_threads: BlockingThreads::default(),
            room,
            waiting,
            spinners: Spinners::new(),
            polls: AtomicUsize::new(0),
            next_id: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
            open: Mutex::default(),
        }
    }

    /// Returns whether nothing further is to be begun.
    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Returns what has been counted so far, of all that is open or was, and beside.
    pub(super) fn counters(&self) -> ServerCounters {
        let open = self.lock();
        let counters = self.shared.tally.snapshot();
        let counters = open.all().fold(counters, |counters, mailbox| {
            counters.with_connection(&mailbox.tally)
        });
        drop(open);
        let mut counters = self.deferred.count(counters);
        counters.threads_busy = self.blocking_threads.busy() as u64;
        counters
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, OpenSockets> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn new_mailbox(&self, origin: Origin) -> Arc<ReplyMailbox> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Arc::new(ReplyMailbox::new(id, &self.shared, origin))
    }

    /// A connection has ended.
    pub(super) fn remove_connection(&self, id: usize) {
        let mut open = self.lock();
        if let Some(mailbox) = open.connections.remove(&id) {
            // Under the lock, so that what it has counted is counted once.
            self.shared.tally.absorb(&mailbox.tally);
            self.shared.tally.connections_open.down();
        }
        self.wake_waiting(open);
    }

    /// A port is closed.
    pub(super) fn remove_port(&self, id: usize) {
        let mut open = self.lock();
        if let Some(mailbox) = open.ports.remove(&id) {
            self.shared.tally.absorb(&mailbox.tally);
        }
        self.wake_waiting(open);
    }

    fn wake_waiting(&self, mut open: MutexGuard<'_, OpenSockets>) {
        let waiting = std::mem::take(&mut open.waiting);
        drop(open);
        waiting.into_iter().for_each(Waker::wake);
    }

    // ---- Room for calls that are carried out elsewhere ----

    /// Returns room for one call more with so many bytes that count, if there is some.
    #[inline]
    pub(super) fn room_now(&self, bytes: usize) -> Option<CallPermit> {
        self.room.try_take(bytes)
    }

    /// Waits for room for one call more with so many bytes that count.
    pub(super) async fn room(self: Arc<Self>, bytes: usize) -> Option<CallPermit> {
        self.shared.tally.calls_waited.up();
        self.room.take(bytes).await
    }

    // ---- The end ----

    /// Has every connection and port end when it has answered what it has begun.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.all().iter().for_each(|mailbox| mailbox.wake());
    }

    /// Waits until no connection and no port is open; has those end that still are after `limit`.
    pub(super) async fn drain(&self, limit: Duration) {
        if self.are_closed_within(limit).await {
            return;
        }
        self.end_streaming_calls().await;
        // A port goes on until all has arrived that its connections in packets have sent.
        let connections: Vec<_> = self.lock().connections.values().cloned().collect();
        connections.iter().for_each(|mailbox| mailbox.abandon());
        if self.are_closed_within(DEPARTURE).await {
            return;
        }
        self.all().iter().for_each(|mailbox| mailbox.abandon());
        if !self.are_closed_within(DEPARTURE).await {
            tracing::warn!("connections are still open behind a server that has stopped");
        }
    }

    /// Waits until no connection and no port is open, but not for longer than `limit`; returns whether that is so.
    async fn are_closed_within(&self, limit: Duration) -> bool {
        let closed = self.wait_until(OpenSockets::is_empty);
        timeout(limit, closed).await.is_ok()
    }

    fn all(&self) -> Vec<Arc<ReplyMailbox>> {
        self.lock().all().cloned().collect()
    }

    /// Answers the calls with streams that still run, and waits a moment until their connections have ended.
    async fn end_streaming_calls(&self) {
        let mailboxes: Vec<_> = self.lock().with_streams().cloned().collect();
        mailboxes.iter().for_each(|mailbox| mailbox.end_streams());
        let have_ended = |open: &OpenSockets| open.with_streams().next().is_none();
        // Those that are still there are abandoned.
        let _ = timeout(DEPARTURE, self.wait_until(have_ended)).await;
    }

    async fn wait_until(&self, is_so: impl Fn(&OpenSockets) -> bool) {
        poll_fn(|cx| {
            let mut open = self.lock();
            if is_so(&open) {
                return Poll::Ready(());
            }
            open.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
