//! The sending side of a connection, shared by the thread that attends it, the workers that execute
//! its calls and the shutdown. The socket closes when the last of them lets go.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tenon_net::{Ready, Stream, is_deadline};
use tenon_proto::lean::Calls;

use super::core::Core;
use super::counters::Tally;
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
    sending: Mutex<Sending>,
    registry: Arc<Lines>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    Possible,
    /// A record was cut off in the middle: whatever followed would be taken for its rest.
    Broken,
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
        let Ok(mut sending) = self.sending.try_lock() else {
            return;
        };
        if *sending == Sending::Broken {
            return;
        }
        // Whoever has gone need not be told.
        if matches!(self.stream.try_send(bytes), Ok(sent) if sent < bytes.len()) {
            *sending = Sending::Broken;
        }
    }

    /// Sends whole records, waiting for a slow reader for as long as the limits grant, or only
    /// briefly while others wait for a thread. Afterwards the connection is dead: whoever receives
    /// on it wakes up, and whoever waits to send on it too goes on.
    ///
    /// # Errors
    /// `TimedOut` when patience has run out; what the socket reports.
    pub(super) fn send(&self, records: &[u8], core: &Core) -> io::Result<()> {
        let mut sending = lock(&self.sending);
        if *sending == Sending::Broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let sent = self.send_all(records, core);
        if sent.is_err() {
            *sending = Sending::Broken;
            self.hang_up();
        }
        sent
    }

    fn send_all(&self, records: &[u8], core: &Core) -> io::Result<()> {
        let mut since = None;
        let mut sent = 0;
        while sent < records.len() {
            match self.stream.try_send(&records[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let since = *since.get_or_insert_with(Instant::now);
                    self.wait_for_room(since, core)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until more can be sent. Looks now and then whether others need the thread more, this
    /// one or one that waits to send on this line too.
    #[cold]
    fn wait_for_room(&self, since: Instant, core: &Core) -> io::Result<()> {
        let deadline = since + core.limits.send;
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
        lock(&self.registry.open).remove(&self.id);
        self.registry.tally.connections_open.down();
    }
}

/// The connections that are open.
#[derive(Debug)]
pub(super) struct Lines {
    open: Mutex<HashMap<usize, Weak<Line>>>,
    tally: Arc<Tally>,
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
            sending: Mutex::new(Sending::Possible),
            registry: Arc::clone(self),
        });
        open.insert(id, Arc::downgrade(&line));
        self.tally.connections_open.up();
        Ok(line)
    }

    /// Everything that is open now. The lock is free again when the lines are let go, as a line
    /// takes itself off the list.
    pub(super) fn all(&self) -> Vec<Arc<Line>> {
        let open = lock(&self.open);
        open.values().filter_map(Weak::upgrade).collect()
    }
}
