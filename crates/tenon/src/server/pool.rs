//! The threads that serve. All are alike: each takes the next task, and there are two kinds.
//!
//! To *attend* is to serve one connection or port for as long as it has something to say. To
//! *watch* is to wait for all the others, and one thread at a time does it. A thread that is handed
//! a connection by its own watching attends it itself, without waking anybody first; only then is
//! another thread woken, or started, to watch. There is always one more thread than may attend, so
//! that somebody can watch. Threads that find nothing to do for a while leave.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tenon_proto::lean::Reason as Farewell;

use super::connection::{Connection, Fate};
use super::core::Core;
use super::limits::ServerLimits;
use super::lock;
use super::port::Port;
use super::reason::Reason;
use super::watcher::Watcher;

/// How long a thread without a task stays.
const STAY: Duration = Duration::from_secs(2);

/// Who can be attended.
#[derive(Debug)]
pub(super) enum Guest {
    Connection(Box<Connection>),
    Port(Box<Port>),
}

impl Guest {
    pub(super) fn id(&self) -> usize {
        match self {
            Self::Connection(connection) => connection.line.id,
            Self::Port(port) => port.id,
        }
    }

    pub(super) fn fd(&self) -> RawFd {
        match self {
            Self::Connection(connection) => connection.line.stream.as_raw_fd(),
            Self::Port(port) => port.socket.carrier.as_raw_fd(),
        }
    }

    /// Why it is to end by now, if it is a connection whose peer sends nothing, or too slowly.
    pub(super) fn lateness(&self, limits: &ServerLimits, now: Instant) -> Option<Reason> {
        match self {
            Self::Connection(connection) => connection.lateness(limits, now),
            Self::Port(_) => None,
        }
    }

    /// When the time is over of a request that has begun to come, if it is a connection with such a one.
    pub(super) fn end_of_arrival(&self) -> Option<Instant> {
        match self {
            Self::Connection(connection) => connection.end_of_arrival(),
            Self::Port(_) => None,
        }
    }

    /// Tells the peer of a connection that it ends, if it can be told.
    pub(super) fn say_goodbye(&mut self, reason: Farewell) {
        if let Self::Connection(connection) = self {
            connection.say_goodbye(reason);
        }
    }

    /// Ends a connection, and logs and counts that.
    pub(super) fn end(mut self, reason: &Reason, core: &Core) {
        self.say_goodbye(reason.farewell());
        if let Self::Connection(connection) = self {
            connection.line.report(reason, core);
        }
    }
}

enum Task {
    Attend(Guest),
    Watch(Box<Watcher>),
}

#[derive(Debug)]
pub(super) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    departures: Condvar,
    attendants_max: usize,
    is_crowded: AtomicBool,
}

#[derive(Debug)]
struct State {
    ready: VecDeque<Guest>,
    /// There while nobody watches.
    watcher: Option<Box<Watcher>>,
    threads: usize,
    attending: usize,
    idle: usize,
    is_closed: bool,
}

impl Pool {
    pub(super) fn new(watcher: Watcher, attendants_max: usize) -> Self {
        Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                watcher: Some(Box::new(watcher)),
                threads: 0,
                attending: 0,
                idle: 0,
                is_closed: false,
            }),
            work: Condvar::new(),
            departures: Condvar::new(),
            attendants_max: attendants_max.max(1),
            is_crowded: AtomicBool::new(false),
        }
    }

    /// Starts the first thread.
    pub(super) fn start(&self, core: &Arc<Core>) -> io::Result<()> {
        self.spawn(&mut lock(&self.state), core)
    }

    /// Whether somebody waits to be attended and every thread is busy.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// Has a guest attended as soon as a thread is free.
    pub(super) fn push(&self, core: &Arc<Core>, guest: Guest) {
        let mut state = lock(&self.state);
        state.ready.push_back(guest);
        self.reinforce(&mut state, core);
    }

    fn run(&self, core: &Arc<Core>) {
        while let Some(task) = self.next(core) {
            match task {
                Task::Attend(guest) => {
                    attend(core, guest);
                    lock(&self.state).attending -= 1;
                }
                Task::Watch(mut watcher) => {
                    let guests = watcher.watch(core);
                    let mut state = lock(&self.state);
                    state.ready.extend(guests);
                    state.watcher = Some(watcher).filter(|_| !state.is_closed);
                }
            }
        }
    }

    /// The next task; none when it is time to leave.
    fn next(&self, core: &Arc<Core>) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if let Some(task) = state.take_task(self.attendants_max) {
                self.reinforce(&mut state, core);
                return Some(task);
            }
            if state.is_closed {
                break;
            }
            let (woken, in_vain) = self.rest(state);
            state = woken;
            if in_vain {
                break;
            }
        }
        state.threads -= 1;
        self.departures.notify_all();
        None
    }

    /// Waits for a task; says whether in vain.
    fn rest<'a>(&self, mut state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        state.idle += 1;
        let waited = self.work.wait_timeout(state, STAY);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        let in_vain = waited.timed_out() && !state.has_task(self.attendants_max);
        (state, in_vain)
    }

    /// Wakes or starts one thread if there is a task. That one does the same before it begins, so
    /// all tasks are taken as far as there may be threads.
    fn reinforce(&self, state: &mut State, core: &Arc<Core>) {
        let everybody_is_busy = state.attending == self.attendants_max;
        let is_crowded = everybody_is_busy && !state.ready.is_empty();
        self.is_crowded.store(is_crowded, Ordering::Relaxed);
        if !state.has_task(self.attendants_max) {
            return;
        }
        if state.idle > 0 {
            self.work.notify_one();
        } else if state.threads <= self.attendants_max
            && let Err(error) = self.spawn(state, core)
        {
            // The task waits for one of the threads there are.
            tracing::warn!(%error, "cannot start a thread");
        }
    }

    fn spawn(&self, state: &mut State, core: &Arc<Core>) -> io::Result<()> {
        let core = Arc::clone(core);
        let builder = thread::Builder::new().name("tenon-serve".to_owned());
        builder.spawn(move || core.pool.run(&core))?;
        state.threads += 1;
        Ok(())
    }

    /// Ends the watching; the threads leave when they are done with their guests. Nothing listens
    /// any more once the one that watches has noticed.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.watcher = None;
        self.work.notify_all();
    }

    /// Says that a thread beside this pool's own has left.
    pub(super) fn announce_departure(&self) {
        let _state = lock(&self.state);
        self.departures.notify_all();
    }

    /// Waits until all threads have left, and whatever else `are_others_gone` looks at; says
    /// whether they have by `deadline`.
    pub(super) fn wait_for_departure(
        &self,
        are_others_gone: impl Fn() -> bool,
        deadline: Instant,
    ) -> bool {
        let mut state = lock(&self.state);
        while state.threads > 0 || !are_others_gone() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.departures.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl State {
    fn may_attend(&self, attendants_max: usize) -> bool {
        !self.ready.is_empty() && self.attending < attendants_max
    }

    fn has_task(&self, attendants_max: usize) -> bool {
        self.watcher.is_some() || self.may_attend(attendants_max)
    }

    fn take_task(&mut self, attendants_max: usize) -> Option<Task> {
        if self.may_attend(attendants_max) {
            self.attending += 1;
            return self.ready.pop_front().map(Task::Attend);
        }
        self.watcher.take().map(Task::Watch)
    }
}

fn attend(core: &Arc<Core>, guest: Guest) {
    match guest {
        Guest::Port(mut port) => {
            port.attend(core);
            core.park(Guest::Port(port));
        }
        Guest::Connection(mut connection) => match connection.attend(core) {
            // Whoever sends a byte now and then is seldom found parked.
            Fate::Park => match connection.lateness(&core.limits, Instant::now()) {
                Some(reason) => Guest::Connection(connection).end(&reason, core),
                None if connection.line.stream.park() => core.park(Guest::Connection(connection)),
                // Something came meanwhile, and the poller would not see it.
                None => core.pool.push(core, Guest::Connection(connection)),
            },
            Fate::Stall => {
                if let Some(connection) = core.workers.stall(connection) {
                    core.pool.push(core, Guest::Connection(connection));
                }
            }
            Fate::Close(reason) => connection.line.report(&reason, core),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use super::super::{Server, ServerLimits};
    use super::*;

    /// A server without threads, and where it listens.
    fn without_threads(name: &str, idle: Duration) -> (Arc<Core>, Box<Watcher>, PathBuf) {
        let place = format!("tenon-pool-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(place);
        let builder = Server::builder().listen(&format!("unix://{}", path.display()));
        let limits = ServerLimits {
            idle,
            ..ServerLimits::default()
        };
        let prepared = builder.unwrap().limits(limits).prepare().unwrap();
        let (core, _) = prepared.assemble().unwrap();
        let watcher = lock(&core.pool.state).watcher.take().unwrap();
        (core, watcher, path)
    }

    #[test]
    fn a_peer_that_never_sends_a_whole_request_is_silent_though_it_is_attended() {
        let idle = Duration::from_millis(1);
        let (core, mut watcher, path) = without_threads("silent", idle);
        let mut client = UnixStream::connect(&path).unwrap();
        assert!(watcher.watch(&core).is_empty());
        client.write_all(b"\x80\0\0\x20four").unwrap();
        // Ids are given from behind those of listeners.
        let guest = core.parking.take(1).unwrap();
        thread::sleep(idle);
        attend(&core, guest);
        assert_eq!(core.lines.counters().idle_connections, 1);
        assert_eq!(core.lines.counters().connections_open, 0);
    }

    #[test]
    fn guests_are_handed_out_between_connections_that_are_taken_in() {
        const MANY: u64 = 100;
        let (core, mut watcher, path) = without_threads("turns", Duration::ZERO);
        let connect = |_| UnixStream::connect(&path).unwrap();
        let mut first = connect(0);
        assert!(watcher.watch(&core).is_empty());
        first.write_all(b"four").unwrap();
        let others: Vec<_> = (1..MANY).map(connect).collect();
        let guests = watcher.watch(&core);
        let accepted = || core.lines.counters().connections_accepted;
        assert_eq!(guests.len(), 1, "the first has something to say");
        assert!(accepted() < MANY, "all others were taken in before");
        while accepted() < MANY {
            watcher.watch(&core);
        }
        drop(others);
    }
}
