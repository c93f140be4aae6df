//! The sending side of a connection, shared by the thread that attends it, the workers that execute
//! its calls and the shutdown. The socket closes when the last of them lets go.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tenon_net::{Ready, Stream, is_deadline};
use tenon_proto::lean::Calls;

use super::core::Core;
use super::counters::{LineTally, ServerCounters, Tally};
use super::grace::Grace;
use super::lock;
use super::reason::Reason;
use super::services::Origin;

/// How long a reply may wait for a peer that does not read while others wait for a thread.
const PATIENCE_IN_A_CROWD: Duration = Duration::from_millis(100);

/// A connection as those see it who answer its calls.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) id: usize,
    pub(super) stream: Stream,
    /// Calls that wait for a worker or are executed by one; the workers' queue keeps it.
    pub(super) in_flight: AtomicUsize,
    /// Of a lean client: its calls that wait for a worker or are executed by one.
    pub(super) lean_calls: Mutex<Calls<()>>,
    /// Taken by whoever sends, as others might.
    sending: Mutex<()>,
    /// A record was cut off in the middle: whatever followed would be taken for its rest.
    is_broken: AtomicBool,
    pub(super) tally: Arc<LineTally>,
    registry: Arc<Lines>,
}

impl Line {
    pub(super) fn origin(&self) -> Origin {
        Origin {
            transport: self.stream.transport(),
            peer: self.stream.peer(),
        }
    }

    /// Sends what may as well remain unsaid, if nobody else sends and there is room for it at once.
    pub(super) fn send_at_once(&self, bytes: &[u8]) {
        let Ok(_turn) = self.sending.try_lock() else {
            return;
        };
        if self.is_broken.load(Ordering::Relaxed) {
            return;
        }
        // Whoever has gone need not be told.
        if matches!(self.stream.try_send(bytes), Ok(sent) if sent < bytes.len()) {
            self.is_broken.store(true, Ordering::Relaxed);
        }
    }

    /// Sends whole records, waiting for a slow reader for as long as the limits grant, or only
    /// briefly while others wait for a thread. Afterwards the connection is dead: whoever receives
    /// on it wakes up, and whoever waits to send on it too goes on.
    ///
    /// # Errors
    /// `TimedOut` when patience has run out; what the socket reports.
    pub(super) fn send(&self, records: &[u8], core: &Core) -> io::Result<()> {
        let _turn = lock(&self.sending);
        self.send_in_turn(records, core)
    }

    /// The same for the thread that attends the connection: it need not wait for its turn if nobody else has the line.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub(super) fn send_attended(self: &Arc<Self>, records: &[u8], core: &Core) -> io::Result<()> {
        match self.is_shared() {
            true => self.send(records, core),
            false => self.send_in_turn(records, core),
        }
    }

    /// Whether somebody may send beside the one who asks and attends the connection: a worker, who has a clone of
    /// the line for each call. Nobody else makes clones but who hangs up or ends the receiving, and sends nothing.
    #[inline]
    fn is_shared(self: &Arc<Self>) -> bool {
        let is_shared = Arc::strong_count(self) > 1;
        // What a worker did before it let go is seen.
        fence(Ordering::Acquire);
        is_shared
    }

    #[inline]
    fn send_in_turn(&self, records: &[u8], core: &Core) -> io::Result<()> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match self.stream.try_send(records) {
            Ok(sent) if sent == records.len() => Ok(()),
            begun => self.send_on(records, begun, core),
        }
    }

    /// Sends what was not sent at once.
    #[cold]
    fn send_on(&self, records: &[u8], begun: io::Result<usize>, core: &Core) -> io::Result<()> {
        let sent = self.send_rest(records, begun, core);
        if sent.is_err() {
            self.is_broken.store(true, Ordering::Relaxed);
            self.hang_up();
        }
        sent
    }

    fn send_rest(&self, records: &[u8], begun: io::Result<usize>, core: &Core) -> io::Result<()> {
        let mut step = begun;
        let mut grace = Grace::default();
        let mut sent = 0;
        loop {
            match step {
                Ok(bytes) => {
                    sent += bytes;
                    grace.note_sent(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let end = grace.note_blocked(core.limits.send);
                    self.wait_for_room(end, core)?;
                }
                Err(error) => return Err(error),
            }
            match sent < records.len() {
                true => step = self.stream.try_send(&records[sent..]),
                false => return Ok(()),
            }
        }
    }

    /// Waits until more can be sent. Looks now and then whether others need the thread more, this
    /// one or one that waits to send on this line too.
    #[cold]
    fn wait_for_room(&self, deadline: Instant, core: &Core) -> io::Result<()> {
        loop {
            let look = Instant::now() + PATIENCE_IN_A_CROWD;
            match self.stream.wait(Ready::WRITABLE, look.min(deadline)) {
                Err(error) if is_deadline(&error) && look < deadline && !core.is_crowded() => {}
                waited => return waited.map(drop),
            }
        }
    }

    /// Logs and counts the end of the connection.
    pub(super) fn report(&self, reason: &Reason, core: &Core) {
        reason.report(self.id, self.stream.peer(), &core.tally);
    }

    /// Ends both directions.
    pub(super) fn hang_up(&self) {
        // Whoever is not connected any more need not be told.
        let _ = self.stream.shutdown();
    }

    /// Makes a thread that waits for requests wake up with the end of the stream.
    pub(super) fn stop_receiving(&self) {
        let _ = self.stream.shutdown_recv();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut open = lock(&self.registry.open);
        open.remove(&self.id);
        // Under the lock: whoever asks finds it counted once.
        self.registry.tally.add_line(&self.tally);
        drop(open);
        self.registry.tally.connections_open.down();
    }
}

/// The connections that are open.
#[derive(Debug)]
pub(super) struct Lines {
    open: Mutex<HashMap<usize, Open>>,
    tally: Arc<Tally>,
}

#[derive(Debug)]
struct Open {
    line: Weak<Line>,
    tally: Arc<LineTally>,
}

impl Lines {
    pub(super) fn new(tally: Arc<Tally>) -> Arc<Self> {
        let open = Mutex::default();
        Arc::new(Self { open, tally })
    }

    /// Takes in a connection; it comes back if `limit` are open already.
    pub(super) fn open(
        self: &Arc<Self>,
        id: usize,
        stream: Stream,
        limit: usize,
        calls_max: usize,
    ) -> Result<Arc<Line>, Stream> {
        let mut open = lock(&self.open);
        if open.len() >= limit {
            return Err(stream);
        }
        let line = Arc::new(Line {
            id,
            stream,
            in_flight: AtomicUsize::new(0),
            lean_calls: Mutex::new(Calls::new(calls_max)),
            sending: Mutex::default(),
            is_broken: AtomicBool::new(false),
            tally: Arc::default(),
            registry: Arc::clone(self),
        });
        let entry = Open {
            line: Arc::downgrade(&line),
            tally: Arc::clone(&line.tally),
        };
        open.insert(id, entry);
        self.tally.connections_open.up();
        Ok(line)
    }

    /// Everything that is open now. The lock is free again when the lines are let go, as a line
    /// takes itself off the list.
    pub(super) fn all(&self) -> Vec<Arc<Line>> {
        let open = lock(&self.open);
        let lines = open.values().filter_map(|open| open.line.upgrade());
        lines.collect()
    }

    /// What has been counted so far, of all connections that there are and were, and beside them.
    pub(super) fn counters(&self) -> ServerCounters {
        let open = lock(&self.open);
        let lines = open.values();
        lines.fold(self.tally.snapshot(), |counters, open| {
            counters.with_line(&open.tally)
        })
    }
}
