//! What all connections and ports of a server share.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use tenon::DuplicateLimits;
use tenon::runtime::{Execution, Offer, Origin, preamble};
use tenon_net::{Carrier, Stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::connection::Connection;
use super::line::{Line, lock};
use super::port::Port;
use super::service::Spawn;
use crate::watch::Watched;

/// How long connections and ports have to end when nothing is waited for.
const DEPARTURE: Duration = Duration::from_millis(500);

/// Who executes the calls of a service.
pub(super) enum Handler {
    /// The task of the connection.
    Inline,
    /// A thread that may wait.
    Thread,
    /// A task of its own; whether the next call waits for it.
    Task(Arc<dyn Spawn>, bool),
}

impl Handler {
    pub(super) fn of(execution: Execution) -> Self {
        match execution {
            Execution::Inline => Self::Inline,
            Execution::Workers => Self::Thread,
        }
    }

    pub(super) fn is_in_order(&self) -> bool {
        match self {
            Self::Inline | Self::Thread => false,
            Self::Task(_, is_in_order) => *is_in_order,
        }
    }
}

pub(super) struct Shared {
    pub(super) offer: Arc<Offer>,
    /// By the numbers of the services.
    pub(super) handlers: Vec<Handler>,
    /// Whether some are not executed by the tasks of connections.
    pub(super) has_tasks: bool,
    /// For the calls that are not executed by the tasks of connections.
    pub(super) room: Arc<Semaphore>,
    next_id: AtomicUsize,
    is_stopping: AtomicBool,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    open: HashMap<usize, Arc<Line>>,
    ports: HashMap<usize, Arc<Line>>,
    /// Who waits until nothing is open.
    waiting: Vec<Waker>,
}

impl Lines {
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.ports.is_empty()
    }
}

impl Shared {
    pub(super) fn new(offer: Offer, handlers: Vec<Handler>) -> Self {
        let room = offer
            .limits
            .calls_in_flight
            .clamp(1, Semaphore::MAX_PERMITS);
        let is_inline = |handler: &Handler| matches!(handler, Handler::Inline);
        Self {
            offer: Arc::new(offer),
            has_tasks: !handlers.iter().all(is_inline),
            handlers,
            room: Arc::new(Semaphore::new(room)),
            next_id: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
            lines: Mutex::default(),
        }
    }

    /// Whether nothing further is to be begun.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Takes a new connection in, unless there are too many.
    pub(super) fn admit(self: &Arc<Self>, stream: Stream) {
        let origin = Origin {
            transport: stream.transport(),
            peer: stream.peer(),
        };
        let limits = &self.offer.limits;
        let line = self.new_line(origin);
        let id = line.id;
        let mut lines = lock(&self.lines);
        if lines.open.len() >= limits.connections {
            self.offer.tally.connections_refused.up();
            let (peer, limit) = (origin.peer, limits.connections);
            tracing::warn!(?peer, limit, "too many connections: closing the newest");
            return;
        }
        let socket = match Watched::new(stream) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::error!(id, %error, "the system cannot wait for one more: closed");
                return;
            }
        };
        lines.open.insert(id, Arc::clone(&line));
        drop(lines);
        self.offer.tally.connections_accepted.up();
        self.offer.tally.connections_open.up();
        let peer = origin.peer;
        tracing::debug!(id, ?peer, "a connection");
        tokio::spawn(Connection::new(Arc::clone(self), line, socket).serve());
    }

    /// A port at which packets come, still to be served.
    ///
    /// # Errors
    /// The system cannot wait for one more.
    pub(super) fn open_port(
        self: &Arc<Self>,
        carrier: Carrier,
        duplicates: DuplicateLimits,
    ) -> io::Result<Port> {
        let origin = Origin {
            transport: carrier.transport(),
            peer: None,
        };
        let line = self.new_line(origin);
        let port = Port::new(self, Arc::clone(&line), carrier, duplicates)?;
        lock(&self.lines).ports.insert(line.id, line);
        Ok(port)
    }

    fn new_line(&self, origin: Origin) -> Arc<Line> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let calls_max = preamble(&self.offer.limits).calls_max as usize;
        Arc::new(Line::new(id, origin, Arc::clone(&self.offer), calls_max))
    }

    /// Room among the calls of the server, if there is some at once.
    pub(super) fn room_at_once(&self) -> Option<OwnedSemaphorePermit> {
        Semaphore::try_acquire_owned(Arc::clone(&self.room)).ok()
    }

    /// A connection has ended.
    pub(super) fn left(&self, id: usize) {
        lock(&self.lines).open.remove(&id);
        self.offer.tally.connections_open.down();
        self.wake_if_all_left();
    }

    /// A port is closed.
    pub(super) fn closed(&self, id: usize) {
        lock(&self.lines).ports.remove(&id);
        self.wake_if_all_left();
    }

    fn wake_if_all_left(&self) {
        let mut lines = lock(&self.lines);
        let waiting = match lines.is_empty() {
            true => std::mem::take(&mut lines.waiting),
            false => Vec::new(),
        };
        drop(lines);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Has every connection and port end when it has answered what it has begun.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.all().iter().for_each(|line| line.call());
    }

    /// Waits until no connection and no port is open; has those end that still are after `limit`.
    pub(super) async fn drain(&self, limit: Duration) {
        if timeout(limit, self.wait_until_all_left()).await.is_ok() {
            return;
        }
        self.all().iter().for_each(|line| line.abandon());
        if timeout(DEPARTURE, self.wait_until_all_left())
            .await
            .is_err()
        {
            tracing::warn!("connections are still open behind a server that has stopped");
        }
    }

    fn all(&self) -> Vec<Arc<Line>> {
        let lines = lock(&self.lines);
        let all = lines.open.values().chain(lines.ports.values());
        all.cloned().collect()
    }

    /// Waits until no connection and no port is open.
    async fn wait_until_all_left(&self) {
        poll_fn(|cx| {
            let mut lines = lock(&self.lines);
            if lines.is_empty() {
                return Poll::Ready(());
            }
            lines.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
