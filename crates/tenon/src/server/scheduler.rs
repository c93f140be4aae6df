//! Scheduling of the server's threads. All are alike, and each takes the next task:
//!
//! - to *serve* a connection or port that has something to say, for a turn;
//! - to carry a call out that was *handed over*, as its procedure takes long;
//! - to *poll*: to wait for all connections and ports that have nothing to say, and to accept new ones. One thread at
//!   a time does it.
//!
//! A thread that has polled serves what it has found, one after the other, and polls again; no other thread is woken
//! for that unless there is much to do and a processor for it. A connection that is the only one which says something
//! keeps its thread, which waits for it alone: a call costs two system calls then. A thread in a handler that takes
//! long is replaced by another. Threads that find nothing to do for a while leave.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::activity::{ThreadActivity, ThreadRole};
use super::jobs::CallJob;
use super::lock;
use super::poll_duty::PollDuty;
use super::slot::{READY, ROOM, SlotState, SocketSlot};
use super::state::ServerState;
use super::tasks::{RunQueue, Scheduler, WorkItem};
use super::thread::ThreadContext;
use super::turn;
use crate::spawn::spawn;

/// Time that a thread without a task stays.
const IDLE_THREAD_TTL: Duration = Duration::from_secs(2);

/// How long it is waited for the thread that polls to accept what still waits; it does little else.
const LAST_ACCEPT: Duration = Duration::from_secs(1);

/// Another thread is woken when so much time is needed for those that wait to be served.
const BACKLOG_MAX: Duration = Duration::from_micros(150);

/// Turns between two polls, beside those of the connections that the last one has found.
const TURNS_BESIDE: usize = 8;

impl Scheduler {
    /// Starts the first thread and the watchdog.
    pub(super) fn start(&self, server: &Arc<ServerState>, poll: PollDuty) -> io::Result<()> {
        let watching = Arc::clone(server);
        let mut tasks = lock(&self.tasks);
        spawn("tenon-watchdog", move || {
            let scheduler = &watching.scheduler;
            (watching.watchdog)
                .run(|activity, handlers| scheduler.take_over(&watching, activity, handlers));
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

    /// Returns whether the program steps, and asks each time when it has to step again.
    pub(super) fn is_stepped(&self) -> bool {
        self.is_stepped.load(Ordering::Relaxed)
    }

    /// Polls without waiting and serves what has something to say, each for a turn. The next poll returns at once if
    /// something is left to do. Returns false once the server is stopped.
    pub(super) fn step(&self, server: &Arc<ServerState>, thread: &mut ThreadContext) -> bool {
        let mut tasks = lock(&self.tasks);
        if tasks.is_closed {
            return false;
        }
        let Some(mut poll) = tasks.poll.take() else {
            return false;
        };
        // So that a shutdown waits for the handlers that run.
        tasks.threads += 1;
        drop(tasks);
        poll.wait(server, false);
        self.end_poll(server, poll);
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
            let is_closed = tasks.is_closed;
            let poll = tasks.poll.as_mut().filter(|_| !is_closed);
            poll?.next_duty(server, now)?
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
        slot: &Arc<SocketSlot>,
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
        slot: &Arc<SocketSlot>,
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

    /// Returns whether every call is to be handed over.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Has the connection served again that has waited longest for room for a call of it, if there may be some.
    #[cold]
    pub(super) fn serve_held(&self, server: &Arc<ServerState>) {
        while let Some(slot) = self.room.next() {
            if let Some(state) = slot.signal(ROOM) {
                return self.push_ready(server, &slot, state);
            }
            if server.slots.get(slot.id).is_some() {
                // Its thread finds the signal, or says that it is over.
                return;
            }
            self.room.note_decided(&slot);
        }
    }

    /// Has the next connection look for room, as this one has decided whether it needs what there is, or is over.
    #[cold]
    pub(super) fn note_decided(&self, server: &Arc<ServerState>, slot: &Arc<SocketSlot>) {
        self.room.note_decided(slot);
        self.serve_held(server);
    }

    /// Drops the calls that were given up while they waited for a thread. They have waited for longest.
    pub(super) fn drop_given_up(&self, server: &Arc<ServerState>) {
        loop {
            let mut tasks = lock(&self.tasks);
            if !(tasks.jobs.front()).is_some_and(|job| job.progress.is_given_up()) {
                return;
            }
            let job = tasks.jobs.pop_front();
            drop(tasks);
            drop(job);
            self.room.end_call();
            self.serve_held(server);
        }
    }

    /// Has a call carried out by another thread.
    pub(super) fn push_job(&self, server: &Arc<ServerState>, job: CallJob) {
        let tally = &server.shared.tally;
        tally.calls_handed_over.up();
        self.room.begin_call();
        let mut tasks = lock(&self.tasks);
        if tasks.busy + tasks.jobs.len() >= self.handlers_max {
            tally.calls_waited.up();
        }
        tasks.jobs.push_back(Box::new(job));
        self.wake_one(&mut tasks, server);
    }

    /// Has a call with streams carried out by a thread of its own, as it may take as long as its peer likes. If there is
    /// none, it waits for one of those that carry calls out.
    pub(super) fn push_streaming_job(&self, server: &Arc<ServerState>, job: CallJob) {
        let job = Arc::new(Mutex::new(Some(job)));
        let (running, handed) = (Arc::clone(server), Arc::clone(&job));
        let mut tasks = lock(&self.tasks);
        let spawned = spawn("tenon-stream", move || {
            let scheduler = &running.scheduler;
            let job = lock(&handed).take();
            if let Some(job) = job {
                job.run(&running);
                scheduler.room.end_call();
                scheduler.serve_held(&running);
            }
            lock(&scheduler.tasks).threads_max -= 1;
            scheduler.leave();
        });
        match spawned {
            Ok(()) => {
                server.shared.tally.calls_handed_over.up();
                self.room.begin_call();
                tasks.threads += 1;
                tasks.threads_max += 1;
            }
            Err(error) => {
                drop(tasks);
                tracing::warn!(%error, "cannot start a thread for a call with streams");
                let job = lock(&job).take();
                if let Some(job) = job {
                    self.push_job(server, job);
                }
            }
        }
    }

    /// Notes that a connection has its first call with streams.
    #[cold]
    pub(super) fn begin_streams(&self, server: &Arc<ServerState>) {
        let mut tasks = lock(&self.tasks);
        tasks.streaming += 1;
        self.reinforce(&mut tasks, server);
    }

    /// Notes that such a connection is over.
    #[cold]
    pub(super) fn end_streams(&self, server: &ServerState) {
        let mut tasks = lock(&self.tasks);
        tasks.streaming = tasks.streaming.saturating_sub(1);
        let is_last = !tasks.polls();
        drop(tasks);
        self.departures.notify_all();
        if is_last {
            server.wake_poller();
        }
    }

    /// Returns whether connections are waited for.
    pub(super) fn polls(&self) -> bool {
        lock(&self.tasks).polls()
    }

    /// Has a connection or port served by the calling thread, which takes a task next, unless another is free before.
    pub(super) fn push_ready_here(&self, slot: &Arc<SocketSlot>, state: Box<SlotState>) {
        let mut tasks = lock(&self.tasks);
        tasks.ready.push_back((Arc::clone(slot), state));
        self.note_crowd(&tasks);
    }

    /// Returns whether a thread may wait for one connection alone.
    #[inline]
    pub(super) fn may_stay(&self) -> bool {
        !self.is_crowded.load(Ordering::Relaxed)
    }

    /// Returns the number of threads in handlers that take long, or that carry out what was handed over.
    pub(super) fn busy(&self) -> usize {
        lock(&self.tasks).busy
    }

    // ---- Threads ----

    fn run(&self, server: &Arc<ServerState>) {
        let mut thread = ThreadContext::of(server);
        while let Some(task) = self.next(server, &thread.activity) {
            match task {
                WorkItem::Serve((slot, state), is_lone) => {
                    thread.activity.set_slot(slot.id);
                    turn::serve(server, &slot, state, &mut thread, is_lone);
                }
                WorkItem::Run(job) => {
                    job.run(server);
                    self.room.end_call();
                    self.serve_held(server);
                }
                WorkItem::Poll(mut poll, waits) => {
                    poll.wait(server, waits);
                    self.end_poll(server, poll);
                }
            }
        }
        self.leave();
    }

    /// Puts back what only one thread has, and what it has found.
    fn end_poll(&self, server: &Arc<ServerState>, mut poll: Box<PollDuty>) {
        let mut tasks = lock(&self.tasks);
        if tasks.accepts_last && !tasks.has_accepted_last {
            drop(tasks);
            poll.accept_last(server);
            tasks = lock(&self.tasks);
            tasks.has_accepted_last = true;
            self.departures.notify_all();
        }
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
        tasks.poll = Some(poll);
    }

    /// Threads do not stay with one connection each while there are more that have something to say than threads that
    /// serve: all of them share the threads then.
    fn note_crowd(&self, tasks: &RunQueue) {
        let has_crowd = !tasks.ready.is_empty()
            && tasks.staying > 0
            && tasks.staying + tasks.ready.len() > self.serving_max;
        self.is_crowded.store(has_crowd, Ordering::Relaxed);
    }

    /// Returns the next task; `None` when it is time to leave.
    fn next(&self, server: &Arc<ServerState>, activity: &ThreadActivity) -> Option<WorkItem> {
        let mut tasks = lock(&self.tasks);
        self.set_role(&mut tasks, activity, ThreadRole::Other);
        loop {
            if let Some(task) = tasks.take(self) {
                let role = match &task {
                    WorkItem::Serve(..) => ThreadRole::Serving,
                    WorkItem::Run(_) => ThreadRole::Working,
                    WorkItem::Poll(..) => ThreadRole::Other,
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
    fn rest<'a>(&self, mut tasks: MutexGuard<'a, RunQueue>) -> (MutexGuard<'a, RunQueue>, bool) {
        tasks.idle += 1;
        let waited = self.work.wait_timeout(tasks, IDLE_THREAD_TTL);
        let (mut tasks, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        tasks.idle -= 1;
        (tasks, waited.timed_out())
    }

    /// Wakes or starts a thread if there is a task that should not wait for those that are awake.
    fn reinforce(&self, tasks: &mut RunQueue, server: &Arc<ServerState>) {
        let has_jobs = !tasks.jobs.is_empty() && tasks.busy < self.handlers_max;
        let may_serve = tasks.serving < self.serving_max && !tasks.ready.is_empty();
        let is_alone = tasks.serving == 0;
        if has_jobs
            || may_serve && (is_alone || tasks.backlog() > BACKLOG_MAX)
            || is_alone && tasks.is_poll_free()
        {
            self.wake_one(tasks, server);
        }
    }

    fn wake_one(&self, tasks: &mut RunQueue, server: &Arc<ServerState>) {
        if tasks.idle > 0 {
            self.work.notify_one();
        } else if tasks.threads < tasks.threads_max
            && let Err(error) = self.spawn(tasks, server)
        {
            // The task waits for one of the threads that there are.
            tracing::warn!(%error, "cannot start a thread");
        }
    }

    fn spawn(&self, tasks: &mut RunQueue, server: &Arc<ServerState>) -> io::Result<()> {
        let server = Arc::clone(server);
        spawn("tenon-serve", move || server.scheduler.run(&server))?;
        tasks.threads += 1;
        Ok(())
    }

    fn leave(&self) {
        let mut tasks = lock(&self.tasks);
        tasks.threads -= 1;
        if tasks.is_closed {
            // Those that rest because others served have nothing to wait for, either.
            self.work.notify_all();
        }
        self.departures.notify_all();
    }

    /// A thread counts as something else from now on.
    fn set_role(&self, tasks: &mut RunQueue, activity: &ThreadActivity, role: ThreadRole) {
        for (change, role) in [(-1, activity.role()), (1, role)] {
            let count = match role {
                ThreadRole::Serving => &mut tasks.serving,
                ThreadRole::Staying => &mut tasks.staying,
                ThreadRole::Replaced | ThreadRole::Working => &mut tasks.busy,
                ThreadRole::Other => continue,
            };
            *count = count.saturating_add_signed(change);
        }
        activity.set_role(role);
        let is_busy = tasks.busy >= self.handlers_max;
        self.is_busy.store(is_busy, Ordering::Relaxed);
    }

    // ---- Connections that keep their thread ----

    /// Returns whether the thread that has served this connection is to stay with it; another thread polls then.
    pub(super) fn begin_stay(
        &self,
        server: &Arc<ServerState>,
        slot: &SocketSlot,
        activity: &ThreadActivity,
    ) -> bool {
        let mut tasks = lock(&self.tasks);
        let is_lone = tasks.ready.is_empty()
            && tasks.jobs.is_empty()
            && tasks.staying < self.serving_max
            && tasks.lone.is_due(slot.id)
            && activity.role() == ThreadRole::Serving
            && !tasks.is_closed;
        if !is_lone {
            return false;
        }
        self.set_role(&mut tasks, activity, ThreadRole::Staying);
        self.reinforce(&mut tasks, server);
        true
    }

    /// The thread does not stay any longer, and serves as any other. It has served so many turns meanwhile.
    pub(super) fn end_stay(&self, slot: &SocketSlot, activity: &ThreadActivity, turns: u64) {
        let mut tasks = lock(&self.tasks);
        if activity.role() == ThreadRole::Staying {
            self.set_role(&mut tasks, activity, ThreadRole::Serving);
        }
        let is_crowded = self.is_crowded.load(Ordering::Relaxed);
        tasks.lone.note_stayed(slot.id, is_crowded, turns);
        self.note_crowd(&tasks);
    }

    // ---- Handlers that take long ----

    /// Has another thread go on in place of one that is in a handler which takes long, with its connection, too. That
    /// handler was the one that runs while the thread counts so many `handlers`.
    fn take_over(&self, server: &Arc<ServerState>, activity: &ThreadActivity, handlers: u64) {
        let mut tasks = lock(&self.tasks);
        match activity.role() {
            ThreadRole::Serving | ThreadRole::Staying => {
                self.set_role(&mut tasks, activity, ThreadRole::Replaced);
                server.shared.tally.takeovers.up();
            }
            // For an earlier handler: it returned just then, and the thread began the next before it noticed.
            ThreadRole::Replaced => {}
            ThreadRole::Working | ThreadRole::Other => return,
        }
        activity.note_taken_over(handlers);
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

    /// Nothing is polled any more, unless calls have streams, once the thread that polls has noticed. Threads leave when
    /// nothing is left to do.
    pub(super) fn close(&self) {
        lock(&self.tasks).is_closed = true;
        self.work.notify_all();
    }

    /// Takes in the connections that still wait, and closes the listeners. It comes before the connections are told that
    /// the server stops, whose clients would come back at once.
    pub(super) fn accept_last(&self, server: &Arc<ServerState>) {
        let mut tasks = lock(&self.tasks);
        tasks.accepts_last = true;
        if let Some(poll) = tasks.poll.take() {
            drop(tasks);
            self.end_poll(server, poll);
            return self.reinforce(&mut lock(&self.tasks), server);
        }
        server.wake_poller();
        let waited = (self.departures)
            .wait_timeout_while(tasks, LAST_ACCEPT, |tasks| !tasks.has_accepted_last);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes the connections and ports that waited for a thread when the last one left.
    pub(super) fn take_ready(&self) -> impl IntoIterator<Item = (Arc<SocketSlot>, Box<SlotState>)> {
        std::mem::take(&mut lock(&self.tasks).ready)
    }

    /// Drops the calls that wait for a thread, and waits for no streams any more.
    pub(super) fn abandon_jobs(&self) {
        let mut tasks = lock(&self.tasks);
        tasks.streaming = 0;
        let abandoned = std::mem::take(&mut tasks.jobs);
        drop(tasks);
        drop(abandoned);
    }

    /// Waits until no connection is left that has had calls with streams, or the deadline.
    pub(super) fn wait_for_streams(&self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        let tasks = lock(&self.tasks);
        let waited = (self.departures).wait_timeout_while(tasks, left, |tasks| tasks.streaming > 0);
        drop(waited);
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
