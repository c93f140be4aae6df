//! Which thread does what. All threads are alike, and each takes the next task:
//!
//! - to *serve* a connection or port that has something to say, for a turn;
//! - to carry a call out that was *handed over*, as its procedure takes long;
//! - to *poll*: to wait for all connections and ports that have nothing to say, and to accept new ones. One thread at
//!   a time does it.
//!
//! A thread that has polled serves what it has found, one after the other, and polls again; no other thread is woken
//! for that unless there is much to do and a processor for it. A connection that is the only one which says something
//! keeps its thread, which waits for it alone: a call costs two system calls then. A thread whose handler takes long is
//! replaced by another. Threads that find nothing to do for a while leave.

use std::collections::VecDeque;
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::activity::{Activity, Role};
use super::jobs::Job;
use super::lock;
use super::poll::PollDuty;
use super::slot::{READY, ROOM, Slot, SlotState};
use super::state::ServerState;
use super::thread::Thread;
use super::turn;

/// How long a thread without a task stays.
const IDLE_THREAD_TTL: Duration = Duration::from_secs(2);

/// Another thread is woken when so much time is needed for those that wait to be served.
const BACKLOG_MAX: Duration = Duration::from_micros(150);

/// Turns between two polls, beside those of the connections that the last one has found.
const TURNS_BESIDE: usize = 8;

/// Times in a row that one connection has to be the only one before a thread stays with it, at most.
const STREAK_MAX: u32 = 1024;

/// A connection or port that has something to say, with its state.
pub(super) type ReadySlot = (Arc<Slot>, Box<SlotState>);

/// The tasks of a server and the threads that do them.
#[derive(Debug)]
pub(super) struct Scheduler {
    tasks: Mutex<Tasks>,
    work: Condvar,
    departures: Condvar,
    /// Threads that serve at the same time at most.
    serving_max: usize,
    /// Calls that were handed over and are not answered, at most.
    jobs_max: usize,
    jobs: AtomicUsize,
    /// Threads that may run handlers which take long, at most.
    handlers_max: usize,
    /// Whether as many do: every call is handed over then, as a thread has to be left that receives.
    is_busy: AtomicBool,
    /// Whether several connections have something to say, so that no thread stays with one.
    is_crowded: AtomicBool,
    /// Whether the program [steps](Self::step) instead of threads.
    is_stepped: AtomicBool,
}

#[derive(Debug)]
struct Tasks {
    ready: VecDeque<ReadySlot>,
    jobs: VecDeque<Box<Job>>,
    /// There while no thread polls.
    poll: Option<Box<PollDuty>>,
    threads: usize,
    threads_max: usize,
    idle: usize,
    /// Threads that serve and are not replaced.
    serving: usize,
    /// Threads that stay with one connection each.
    staying: usize,
    /// Threads whose handlers take long, or that carry out what was handed over.
    busy: usize,
    /// Connections with a call that can only be handed over, for which there was no room.
    held: VecDeque<Arc<Slot>>,
    /// Turns that may begin before those that have nothing to say are asked again.
    turns_left: usize,
    /// How long a turn takes, on average, in nanoseconds.
    turn_nanos: u64,
    /// When the last poll ended, and how many turns were to follow.
    last_poll: Option<(Instant, usize)>,
    lone: LoneSlot,
    is_closed: bool,
}

/// Whether one connection alone has had something to say for a while.
#[derive(Debug)]
struct LoneSlot {
    id: usize,
    /// Times in a row.
    streak: u32,
    /// Times in a row after which a thread stays with it.
    needed: u32,
}

enum Task {
    Serve(ReadySlot, bool),
    Run(Box<Job>),
    /// Waits only if no connection is to be served.
    Poll(Box<PollDuty>, bool),
}

impl Scheduler {
    pub(super) fn new(threads_max: usize, jobs_max: usize) -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let handlers_max = threads_max.max(1);
        let serving_max = processors.min(handlers_max);
        Self {
            tasks: Mutex::new(Tasks {
                ready: VecDeque::new(),
                jobs: VecDeque::new(),
                poll: None,
                threads: 0,
                // While all others run handlers, one polls, and others serve or stay with a connection.
                threads_max: handlers_max + 2 * serving_max + 1,
                idle: 0,
                serving: 0,
                staying: 0,
                busy: 0,
                held: VecDeque::new(),
                turns_left: 0,
                turn_nanos: 0,
                last_poll: None,
                lone: LoneSlot {
                    id: 0,
                    streak: 0,
                    needed: 1,
                },
                is_closed: false,
            }),
            work: Condvar::new(),
            departures: Condvar::new(),
            serving_max,
            jobs_max: jobs_max.max(1),
            jobs: AtomicUsize::new(0),
            handlers_max,
            is_busy: AtomicBool::new(false),
            is_crowded: AtomicBool::new(false),
            is_stepped: AtomicBool::new(false),
        }
    }

    /// Starts the first thread and the watchdog.
    pub(super) fn start(&self, server: &Arc<ServerState>, poll: PollDuty) -> io::Result<()> {
        let watching = Arc::clone(server);
        let builder = thread::Builder::new().name("tenon-watchdog".to_owned());
        let mut tasks = lock(&self.tasks);
        builder.spawn(move || {
            watching.watchdog.run(&watching);
            watching.scheduler.leave();
        })?;
        tasks.threads += 1;
        tasks.threads_max += 1;
        tasks.poll = Some(Box::new(poll));
        self.spawn(&mut tasks, server)
    }

    /// Has the program step: no thread is started, not even for calls that take long.
    pub(super) fn start_stepped(&self, poll: PollDuty) {
        self.is_stepped.store(true, Ordering::Relaxed);
        let mut tasks = lock(&self.tasks);
        tasks.threads_max = 0;
        tasks.poll = Some(Box::new(poll));
    }

    /// Whether the program steps, and asks each time when it has to step again.
    pub(super) fn is_stepped(&self) -> bool {
        self.is_stepped.load(Ordering::Relaxed)
    }

    /// Polls without waiting and serves what has something to say, each for a turn. The next poll returns at once if
    /// something is left to do. Returns false once the server is stopped.
    pub(super) fn step(&self, server: &Arc<ServerState>, thread: &mut Thread) -> bool {
        let mut tasks = lock(&self.tasks);
        let Some(mut poll) = tasks.poll.take() else {
            return false;
        };
        // So that a shutdown waits for the handlers that run.
        tasks.threads += 1;
        drop(tasks);
        poll.wait(server, false);
        self.end_poll(poll);
        let turns = lock(&self.tasks).ready.len();
        for _ in 0..turns {
            let ready = lock(&self.tasks).ready.pop_front();
            let Some((slot, state)) = ready else { break };
            turn::serve(server, &slot, state, thread, false);
        }
        let tasks = lock(&self.tasks);
        let (is_left, serves) = (!tasks.ready.is_empty(), !tasks.is_closed);
        drop(tasks);
        self.leave();
        if is_left {
            server.wake_poller();
        }
        serves
    }

    /// Returns after which time the program has to step even if nothing happens.
    pub(super) fn next_timeout(&self, server: &ServerState) -> Option<Duration> {
        let now = Instant::now();
        let mut tasks = lock(&self.tasks);
        let at = if tasks.ready.is_empty() {
            tasks.poll.as_mut()?.next_duty(server, now)?
        } else {
            now
        };
        Some(at.saturating_duration_since(now))
    }

    // ---- What there is to do ----

    /// Has a connection or port served as soon as a thread is free.
    pub(super) fn push_ready(
        &self,
        server: &Arc<ServerState>,
        slot: &Arc<Slot>,
        state: Box<SlotState>,
    ) {
        let mut tasks = lock(&self.tasks);
        tasks.ready.push_back((Arc::clone(slot), state));
        self.note_crowd(&tasks);
        self.reinforce(&mut tasks, server);
    }

    /// Lets others have their turn first; returns the state if there are none.
    pub(super) fn requeue(
        &self,
        server: &Arc<ServerState>,
        slot: &Arc<Slot>,
        state: Box<SlotState>,
    ) -> Option<Box<SlotState>> {
        let mut tasks = lock(&self.tasks);
        if tasks.ready.is_empty() && tasks.turns_left > 0 {
            tasks.turns_left -= 1;
            return Some(state);
        }
        tasks.ready.push_back((Arc::clone(slot), state));
        self.reinforce(&mut tasks, server);
        None
    }

    /// Whether one more call may be handed over.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.jobs.load(Ordering::Relaxed) < self.jobs_max
    }

    /// Whether every call is to be handed over.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Has a connection served again when there is room for a call of it.
    #[cold]
    pub(super) fn wait_for_room(&self, server: &Arc<ServerState>, slot: &Arc<Slot>) {
        lock(&self.tasks).held.push_back(Arc::clone(slot));
        if self.has_room() {
            self.serve_held(server);
        }
    }

    #[cold]
    fn serve_held(&self, server: &Arc<ServerState>) {
        let held = lock(&self.tasks).held.pop_front();
        if let Some(slot) = held
            && let Some(state) = slot.signal(ROOM)
        {
            self.push_ready(server, &slot, state);
        }
    }

    /// A call that was handed over is answered.
    fn end_job(&self, server: &Arc<ServerState>) {
        self.jobs.fetch_sub(1, Ordering::Relaxed);
        if !lock(&self.tasks).held.is_empty() {
            self.serve_held(server);
        }
    }

    /// Has a call carried out by another thread.
    pub(super) fn push_job(&self, server: &Arc<ServerState>, job: Job) {
        let tally = &server.shared.tally;
        tally.calls_handed_over.up();
        self.jobs.fetch_add(1, Ordering::Relaxed);
        let mut tasks = lock(&self.tasks);
        if tasks.busy + tasks.jobs.len() >= self.handlers_max {
            tally.calls_waited.up();
        }
        tasks.jobs.push_back(Box::new(job));
        self.wake_one(&mut tasks, server);
    }

    /// Has a connection or port served by the calling thread, which takes a task next, unless another is free before.
    pub(super) fn push_ready_here(&self, slot: &Arc<Slot>, state: Box<SlotState>) {
        let mut tasks = lock(&self.tasks);
        tasks.ready.push_back((Arc::clone(slot), state));
        self.note_crowd(&tasks);
    }

    /// Whether a thread may wait for one connection alone.
    #[inline]
    pub(super) fn may_stay(&self) -> bool {
        !self.is_crowded.load(Ordering::Relaxed)
    }

    // ---- Threads ----

    fn run(&self, server: &Arc<ServerState>) {
        let mut thread = Thread::default();
        server.watchdog.watch(&thread.activity);
        while let Some(task) = self.next(server, &thread.activity) {
            match task {
                Task::Serve((slot, state), is_lone) => {
                    thread.activity.set_slot(slot.id);
                    turn::serve(server, &slot, state, &mut thread, is_lone);
                }
                Task::Run(job) => {
                    job.run(server);
                    self.end_job(server);
                }
                Task::Poll(mut poll, waits) => {
                    poll.wait(server, waits);
                    self.end_poll(poll);
                }
            }
        }
        self.leave();
    }

    /// Puts back what only one thread has, and what it has found.
    fn end_poll(&self, mut poll: Box<PollDuty>) {
        let mut tasks = lock(&self.tasks);
        let found = &mut poll.ready;
        if let [(slot, _)] = &found[..]
            && tasks.ready.is_empty()
        {
            tasks.lone.note_alone(slot.id);
        } else if !found.is_empty() {
            tasks.lone.streak = 0;
        }
        tasks.ready.extend(found.drain(..));
        tasks.turns_left = tasks.ready.len() + TURNS_BESIDE;
        tasks.last_poll = Some((Instant::now(), tasks.ready.len()));
        self.note_crowd(&tasks);
        tasks.poll = Some(poll).filter(|_| !tasks.is_closed);
    }

    /// Threads do not stay with one connection each while there are more that have something to say than threads that
    /// serve: all of them share the threads then.
    fn note_crowd(&self, tasks: &Tasks) {
        let has_crowd = !tasks.ready.is_empty()
            && tasks.staying > 0
            && tasks.staying + tasks.ready.len() > self.serving_max;
        self.is_crowded.store(has_crowd, Ordering::Relaxed);
    }

    /// Returns the next task; `None` when it is time to leave.
    fn next(&self, server: &Arc<ServerState>, activity: &Activity) -> Option<Task> {
        let mut tasks = lock(&self.tasks);
        self.set_role(&mut tasks, activity, Role::Other);
        loop {
            if let Some(task) = tasks.take(self) {
                let role = match &task {
                    Task::Serve(..) => Role::Serving,
                    Task::Run(_) => Role::Working,
                    Task::Poll(..) => Role::Other,
                };
                self.set_role(&mut tasks, activity, role);
                self.reinforce(&mut tasks, server);
                return Some(task);
            }
            if tasks.is_closed && tasks.jobs.is_empty() && tasks.ready.is_empty() {
                return None;
            }
            let in_vain;
            (tasks, in_vain) = self.rest(tasks);
            if in_vain && !tasks.has_task(self) {
                return None;
            }
        }
    }

    /// Waits for a task; returns whether in vain.
    fn rest<'a>(&self, mut tasks: MutexGuard<'a, Tasks>) -> (MutexGuard<'a, Tasks>, bool) {
        tasks.idle += 1;
        let waited = self.work.wait_timeout(tasks, IDLE_THREAD_TTL);
        let (mut tasks, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        tasks.idle -= 1;
        (tasks, waited.timed_out())
    }

    /// Wakes or starts a thread if there is a task that should not wait for those that are awake.
    fn reinforce(&self, tasks: &mut Tasks, server: &Arc<ServerState>) {
        let has_jobs = !tasks.jobs.is_empty() && tasks.busy < self.handlers_max;
        let may_serve = tasks.serving < self.serving_max && !tasks.ready.is_empty();
        let is_alone = tasks.serving == 0;
        if has_jobs
            || may_serve && (is_alone || tasks.backlog() > BACKLOG_MAX)
            || is_alone && tasks.poll.is_some()
        {
            self.wake_one(tasks, server);
        }
    }

    fn wake_one(&self, tasks: &mut Tasks, server: &Arc<ServerState>) {
        if tasks.idle > 0 {
            self.work.notify_one();
        } else if tasks.threads < tasks.threads_max
            && let Err(error) = self.spawn(tasks, server)
        {
            // The task waits for one of the threads that there are.
            tracing::warn!(%error, "cannot start a thread");
        }
    }

    fn spawn(&self, tasks: &mut Tasks, server: &Arc<ServerState>) -> io::Result<()> {
        let server = Arc::clone(server);
        let builder = thread::Builder::new().name("tenon-serve".to_owned());
        builder.spawn(move || server.scheduler.run(&server))?;
        tasks.threads += 1;
        Ok(())
    }

    fn leave(&self) {
        let mut tasks = lock(&self.tasks);
        tasks.threads -= 1;
        self.departures.notify_all();
    }

    /// A thread counts as something else from now on.
    fn set_role(&self, tasks: &mut Tasks, activity: &Activity, role: Role) {
        for (change, role) in [(-1, activity.role()), (1, role)] {
            let count = match role {
                Role::Serving => &mut tasks.serving,
                Role::Staying => &mut tasks.staying,
                Role::Replaced | Role::Working => &mut tasks.busy,
                Role::Other => continue,
            };
            *count = count.saturating_add_signed(change);
        }
        activity.set_role(role);
        let is_busy = tasks.busy >= self.handlers_max;
        self.is_busy.store(is_busy, Ordering::Relaxed);
    }

    // ---- Connections that keep their thread ----

    /// Whether the thread that has served this connection is to stay with it; another thread polls then.
    pub(super) fn begin_stay(
        &self,
        server: &Arc<ServerState>,
        slot: &Slot,
        activity: &Activity,
    ) -> bool {
        let mut tasks = lock(&self.tasks);
        let is_lone = tasks.ready.is_empty()
            && tasks.jobs.is_empty()
            && tasks.staying < self.serving_max
            && tasks.lone.is_due(slot.id)
            && activity.role() == Role::Serving
            && !tasks.is_closed;
        if !is_lone {
            return false;
        }
        self.set_role(&mut tasks, activity, Role::Staying);
        self.reinforce(&mut tasks, server);
        true
    }

    /// The thread does not stay any longer, and serves as any other. It has served so many turns meanwhile.
    pub(super) fn end_stay(&self, slot: &Slot, activity: &Activity, turns: u64) {
        let mut tasks = lock(&self.tasks);
        if activity.role() == Role::Staying {
            self.set_role(&mut tasks, activity, Role::Serving);
        }
        let is_crowded = self.is_crowded.load(Ordering::Relaxed);
        tasks.lone.note_stayed(slot.id, is_crowded, turns);
        self.note_crowd(&tasks);
    }

    // ---- Handlers that take long ----

    /// Has another thread go on in place of one whose handler takes long, with its connection, too.
    pub(super) fn take_over(&self, server: &Arc<ServerState>, activity: &Activity) {
        let mut tasks = lock(&self.tasks);
        if !matches!(activity.role(), Role::Serving | Role::Staying) {
            return;
        }
        self.set_role(&mut tasks, activity, Role::Replaced);
        server.shared.tally.takeovers.up();
        // At once: others of the kind may be waiting behind this one.
        let (service, procedure) = activity.procedure();
        server.shared.times.note_slow(service, procedure);
        // What the thread has left in the slot while its handler runs.
        if let Some(slot) = server.slots.get(activity.slot())
            && let Some(state) = slot.signal(READY)
        {
            tasks.ready.push_back((slot, state));
        }
        self.note_crowd(&tasks);
        if tasks.serving == 0 || !tasks.ready.is_empty() {
            self.wake_one(&mut tasks, server);
        }
    }

    // ---- The end ----

    /// Nothing is polled any more once the thread that polls has noticed. Threads leave when nothing is left to do.
    pub(super) fn close(&self) {
        let mut tasks = lock(&self.tasks);
        tasks.is_closed = true;
        let poll = tasks.poll.take();
        self.work.notify_all();
        drop(tasks);
        drop(poll);
    }

    /// Drops the calls that wait for a thread.
    pub(super) fn abandon_jobs(&self) {
        let abandoned = std::mem::take(&mut lock(&self.tasks).jobs);
        drop(abandoned);
    }

    /// Waits until all threads have left; returns whether they have by `deadline`.
    pub(super) fn wait_for_departure(&self, deadline: Instant) -> bool {
        let mut tasks = lock(&self.tasks);
        while tasks.threads > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.departures.wait_timeout(tasks, left);
            tasks = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Tasks {
    fn has_task(&self, scheduler: &Scheduler) -> bool {
        let may_serve = !self.ready.is_empty() && self.serving < scheduler.serving_max;
        let may_work = !self.jobs.is_empty() && self.busy < scheduler.handlers_max;
        may_serve || may_work || self.poll.is_some()
    }

    fn take(&mut self, scheduler: &Scheduler) -> Option<Task> {
        let is_due = self.turns_left == 0 && self.poll.is_some();
        if self.serving < scheduler.serving_max
            && !is_due
            && let Some(ready) = self.ready.pop_front()
        {
            self.turns_left = self.turns_left.saturating_sub(1);
            let is_lone = self.ready.is_empty();
            return Some(Task::Serve(ready, is_lone));
        }
        let may_work = !self.jobs.is_empty() && self.busy < scheduler.handlers_max;
        // A thread polls as long as none does, and the others carry calls out.
        if (self.serving == 0 || !may_work)
            && let Some(poll) = self.poll.take()
        {
            self.note_turns();
            return Some(Task::Poll(poll, self.ready.is_empty()));
        }
        if may_work {
            self.jobs.pop_front().map(Task::Run)
        } else {
            None
        }
    }

    /// Learns from the turns since the last poll how long one takes.
    fn note_turns(&mut self) {
        if let Some((at, turns @ 1..)) = self.last_poll.take()
            && self.ready.is_empty()
        {
            let nanos = at.elapsed().as_nanos() as u64 / turns as u64;
            self.turn_nanos = (self.turn_nanos * 7 + nanos) / 8;
        }
    }

    /// How long those that wait to be served have to wait if no further thread serves them.
    fn backlog(&self) -> Duration {
        Duration::from_nanos(self.turn_nanos * self.ready.len() as u64)
    }
}

impl LoneSlot {
    fn note_alone(&mut self, id: usize) {
        if self.id == id {
            self.streak = self.streak.saturating_add(1);
        } else {
            (self.id, self.streak) = (id, 1);
        }
    }

    fn is_due(&self, id: usize) -> bool {
        self.id == id && self.streak >= self.needed
    }

    /// A thread has stayed for so many turns, and left as others had something to say or it was silent.
    fn note_stayed(&mut self, id: usize, is_crowded: bool, turns: u64) {
        if is_crowded && turns < u64::from(STREAK_MAX) {
            self.needed = (self.needed * 2).min(STREAK_MAX);
            self.streak = 0;
        } else {
            self.needed = (self.needed / 2).max(1);
            (self.id, self.streak) = (id, self.needed);
        }
    }
}
