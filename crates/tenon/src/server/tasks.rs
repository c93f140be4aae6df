//! The tasks of a server, and what decides which is next: data of the scheduler, which knows nothing of the server.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::call_room::CallAdmission;
use super::jobs::CallJob;
use super::poll_duty::PollDuty;
use super::slot::ReadySlot;

/// Times in a row that one connection has to be the only one before a thread stays with it, at most.
const STREAK_MAX: u32 = 1024;

/// The tasks of a server and the threads that do them.
#[derive(Debug)]
pub(super) struct Scheduler {
    pub(super) tasks: Mutex<RunQueue>,
    pub(super) work: Condvar,
    pub(super) departures: Condvar,
    /// Threads that serve at the same time at most.
    pub(super) serving_max: usize,
    /// For the calls that were handed over and are not answered.
    pub(super) room: CallAdmission,
    /// Threads that may run handlers which take long, at most.
    pub(super) handlers_max: usize,
    /// True if as many do: every call is handed over then, as a thread has to be left that receives.
    pub(super) is_busy: AtomicBool,
    /// True if several connections have something to say, so that no thread stays with one.
    pub(super) is_crowded: AtomicBool,
    /// True if the program [steps](Self::step) instead of threads.
    pub(super) is_stepped: AtomicBool,
}

/// The work that is ready, and the numbers of threads that do it.
#[derive(Debug)]
pub(super) struct RunQueue {
    pub(super) ready: VecDeque<ReadySlot>,
    pub(super) jobs: VecDeque<Box<CallJob>>,
    /// There while no thread polls.
    pub(super) poll: Option<Box<PollDuty>>,
    pub(super) threads: usize,
    pub(super) threads_max: usize,
    pub(super) idle: usize,
    /// Threads that serve and are not replaced.
    pub(super) serving: usize,
    /// Threads that stay with one connection each.
    pub(super) staying: usize,
    /// Threads in handlers that take long, or that carry out what was handed over.
    pub(super) busy: usize,
    /// Turns that may begin before those that have nothing to say are asked again.
    pub(super) turns_left: usize,
    /// The average time of a turn, in nanoseconds.
    pub(super) turn_nanos: u64,
    /// The end of the last poll, and the number of turns that were to follow.
    pub(super) last_poll: Option<(Instant, usize)>,
    pub(super) lone: LoneSlot,
    /// Open connections that have had calls with streams.
    pub(super) streaming: usize,
    /// The listeners are to be closed.
    pub(super) accepts_last: bool,
    /// The listeners are closed.
    pub(super) has_accepted_last: bool,
    pub(super) is_closed: bool,
}

/// The connection that alone has had something to say for a while.
#[derive(Debug)]
pub(super) struct LoneSlot {
    pub(super) id: usize,
    /// Times in a row.
    pub(super) streak: u32,
    /// Times in a row after which a thread stays with it.
    pub(super) needed: u32,
}

/// The next piece of work of a thread.
pub(super) enum WorkItem {
    Serve(ReadySlot, bool),
    Run(Box<CallJob>),
    /// Waits only if no connection is to be served.
    Poll(Box<PollDuty>, bool),
}

impl Scheduler {
    /// Makes a scheduler of at most so many threads in handlers that take long, and of calls as far as there is `room`.
    pub(super) fn new(threads_max: usize, room: CallAdmission) -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let handlers_max = threads_max.max(1);
        let serving_max = processors.min(handlers_max);
        Self {
            tasks: Mutex::new(RunQueue {
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
                turns_left: 0,
                turn_nanos: 0,
                last_poll: None,
                lone: LoneSlot {
                    id: 0,
                    streak: 0,
                    needed: 1,
                },
                streaming: 0,
                accepts_last: false,
                has_accepted_last: false,
                is_closed: false,
            }),
            work: Condvar::new(),
            departures: Condvar::new(),
            serving_max,
            room,
            handlers_max,
            is_busy: AtomicBool::new(false),
            is_crowded: AtomicBool::new(false),
            is_stepped: AtomicBool::new(false),
        }
    }
}

impl RunQueue {
    /// Returns whether connections are waited for. A server that stops waits only for what the streams of its calls need.
    pub(super) fn polls(&self) -> bool {
        !self.is_closed || self.streaming > 0
    }

    /// Returns whether a thread is to poll, and none does.
    pub(super) fn is_poll_free(&self) -> bool {
        self.polls() && self.poll.is_some()
    }

    pub(super) fn has_task(&self, scheduler: &Scheduler) -> bool {
        let may_serve = !self.ready.is_empty() && self.serving < scheduler.serving_max;
        let may_work = !self.jobs.is_empty() && self.busy < scheduler.handlers_max;
        may_serve || may_work || self.is_poll_free()
    }

    pub(super) fn take(&mut self, scheduler: &Scheduler) -> Option<WorkItem> {
        let is_poll_free = self.is_poll_free();
        let is_due = self.turns_left == 0 && is_poll_free;
        if self.serving < scheduler.serving_max
            && !is_due
            && let Some(ready) = self.ready.pop_front()
        {
            self.turns_left = self.turns_left.saturating_sub(1);
            let is_lone = self.ready.is_empty();
            return Some(WorkItem::Serve(ready, is_lone));
        }
        let may_work = !self.jobs.is_empty() && self.busy < scheduler.handlers_max;
        // A thread polls as long as none does, and the others carry calls out.
        if is_poll_free
            && (self.serving == 0 || !may_work)
            && let Some(poll) = self.poll.take()
        {
            self.note_turns();
            return Some(WorkItem::Poll(poll, self.ready.is_empty()));
        }
        if may_work {
            self.jobs.pop_front().map(WorkItem::Run)
        } else {
            None
        }
    }

    /// Learns from the turns since the last poll how long one takes.
    pub(super) fn note_turns(&mut self) {
        if let Some((at, turns @ 1..)) = self.last_poll.take()
            && self.ready.is_empty()
        {
            let nanos = at.elapsed().as_nanos() as u64 / turns as u64;
            self.turn_nanos = (self.turn_nanos * 7 + nanos) / 8;
        }
    }

    /// Returns how long those that wait to be served have to wait if no further thread serves them.
    pub(super) fn backlog(&self) -> Duration {
        Duration::from_nanos(self.turn_nanos * self.ready.len() as u64)
    }
}

impl LoneSlot {
    pub(super) fn note_alone(&mut self, id: usize) {
        if self.id == id {
            self.streak = self.streak.saturating_add(1);
        } else {
            (self.id, self.streak) = (id, 1);
        }
    }

    pub(super) fn is_due(&self, id: usize) -> bool {
        self.id == id && self.streak >= self.needed
    }

    /// A thread has stayed for so many turns, and left as others had something to say or it was silent.
    pub(super) fn note_stayed(&mut self, id: usize, is_crowded: bool, turns: u64) {
        if is_crowded && turns < u64::from(STREAK_MAX) {
            self.needed = (self.needed * 2).min(STREAK_MAX);
            self.streak = 0;
        } else {
            self.needed = (self.needed / 2).max(1);
            (self.id, self.streak) = (id, self.needed);
        }
    }
}
