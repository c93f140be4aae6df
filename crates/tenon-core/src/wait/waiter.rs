//! The receiving end of a connection, as it waits: it looks as long as its policy says, then sleeps.

use std::hint;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::context::WaitContext;
use super::learned::{SpinBackoff, SpinEstimator};
use super::yielding_look::YieldingLook;
use super::{Waiting, processors};

/// An offer that takes longer than this was taken.
const TAKEN: Duration = Duration::from_micros(3);

/// Other tasks that have taken longer than this between two polls have calls of their own, and do not wait for looks.
const OTHERS_RAN: Duration = Duration::from_micros(10);

/// Attempts to receive the rest of a message before sleeping. Others may run between them: this takes some
/// ten microseconds.
const ATTEMPTS_AT_REST: u64 = 8;

/// Outcome of looking.
pub enum Spun<T> {
    /// The attempt succeeded, or failed for another reason than that nothing was there.
    Ready(io::Result<T>),
    /// The time for the wait is over.
    Late,
    /// The rest of the wait is to be slept through.
    Sleep,
}

/// Outcome of looking within one poll of a task.
pub enum Polled<T> {
    /// The attempt succeeded, or failed for another reason than that nothing was there.
    Ready(io::Result<T>),
    /// Others have their turn, and the look goes on in the next poll.
    Yields,
    /// The rest of the wait is to be slept through.
    Sleep,
}

/// A phase of looking that goes on, over several polls of a task perhaps.
#[derive(Debug, Clone, Copy)]
struct SpinPhase {
    begin: Instant,
    /// `None` for one without an end.
    end: Option<Instant>,
    attempts: u64,
    /// True if others have taken the processor.
    is_contended: bool,
}

/// Reason why a phase of looking has stopped.
enum SpinExit<T> {
    Ready(io::Result<T>),
    /// The moment has come that was set for it.
    Paused(Instant),
    /// The look has ended without a message, or with one that says nothing of whether looking pays.
    Missed(Option<io::Result<T>>),
}

/// The wait state of one connection: its policy, and what it has learned.
#[derive(Debug)]
pub struct Waiter {
    policy: Waiting,
    estimator: SpinEstimator,
    /// Back-off of waits for the rest of a message.
    rest: SpinBackoff,
    /// The look for room to send.
    pub room: YieldingLook,
    /// The look for further items of streams.
    pub items: YieldingLook,
    /// A look that goes on in the next poll of a task, and when the last one ended.
    polled: Option<(SpinPhase, Instant)>,
}

/// Bound of a phase of looking.
enum SpinLimit {
    None,
    For(Duration),
    Endless,
}

impl SpinPhase {
    fn begin(begin: Instant, patience: Option<Duration>) -> Self {
        Self {
            begin,
            end: patience.map(|patience| begin + patience),
            attempts: 1,
            is_contended: false,
        }
    }
}

impl Waiter {
    /// A waiter that has learned nothing yet.
    pub fn new(policy: Waiting) -> Self {
        Self {
            policy,
            estimator: SpinEstimator::new(processors()),
            rest: SpinBackoff::default(),
            room: YieldingLook::for_room(),
            items: YieldingLook::for_items(),
            polled: None,
        }
    }

    /// Returns whether waits for what has not begun to come are slept through, whatever was learned.
    #[inline]
    pub fn always_sleeps(&self) -> bool {
        self.policy == Waiting::Block
    }

    /// Repeats `attempt` for a moment, for the rest of a message that has begun: its sender is
    /// awake, and mostly at it. Sleeping takes longer than that, under any policy. None if it does
    /// not come, or mostly has not.
    #[cold]
    pub fn look_for_rest<T>(
        &mut self,
        context: &WaitContext<'_>,
        attempt: impl FnMut() -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        self.look_between(context, attempt, || offer_processor(Instant::now()))
    }

    /// The same with `offer`, which says whether another thread took the processor.
    fn look_between<T>(
        &mut self,
        context: &WaitContext<'_>,
        mut attempt: impl FnMut() -> io::Result<T>,
        mut offer: impl FnMut() -> bool,
    ) -> Option<io::Result<T>> {
        if !self.rest.should_spin() {
            return None;
        }
        let mut attempts = 0;
        let mut is_contended = false;
        while attempts < ATTEMPTS_AT_REST && !is_contended {
            let outcome = attempt();
            if !is_nothing(&outcome) {
                if attempts > 0 {
                    context.tally.found(attempts);
                    self.rest.found();
                }
                return Some(outcome);
            }
            attempts += 1;
            // On the same processor, the sender goes on only when this thread sleeps.
            is_contended = offer();
        }
        context.tally.missed(attempts);
        self.rest.missed();
        None
    }

    /// Repeats `attempt`, which reports `WouldBlock` if nothing is there, as long as the policy says
    /// and `may_go_on`. `deadline` makes the end of the wait out of its begin.
    #[inline]
    pub fn look<T>(
        &mut self,
        context: &WaitContext<'_>,
        deadline: impl FnOnce(Instant) -> Instant,
        may_go_on: impl Fn() -> bool,
        attempt: impl FnMut() -> io::Result<T>,
    ) -> Spun<T> {
        match self.patience() {
            SpinLimit::None => Spun::Sleep,
            SpinLimit::Endless => self.spin(context, None, deadline, may_go_on, attempt),
            SpinLimit::For(time) => self.spin(context, Some(time), deadline, may_go_on, attempt),
        }
    }

    fn spin<T>(
        &mut self,
        context: &WaitContext<'_>,
        patience: Option<Duration>,
        deadline: impl FnOnce(Instant) -> Instant,
        may_go_on: impl Fn() -> bool,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> Spun<T> {
        // What is there already says nothing of whether looking for it would have paid.
        let first = attempt();
        if !is_nothing(&first) {
            return Spun::Ready(first);
        }
        let Some(_spinner) = context.spinners.enter(context.looking) else {
            return Spun::Sleep;
        };
        let begin = Instant::now();
        let deadline = deadline(begin);
        if begin >= deadline {
            return Spun::Late;
        }
        context.tally.begun();
        let mut look = SpinPhase::begin(begin, patience);
        let pause = Some(deadline);
        match self.look_on(context, &mut look, pause, may_go_on, attempt) {
            SpinExit::Ready(outcome) | SpinExit::Missed(Some(outcome)) => Spun::Ready(outcome),
            SpinExit::Missed(None) => Spun::Sleep,
            SpinExit::Paused(_) => {
                self.note_missed(context, &look);
                Spun::Late
            }
        }
    }

    /// Repeats `attempt` within one poll of a task, for at most `slice`. A look that takes longer by the policy goes on
    /// in the next poll, once other tasks have had their turn, unless they have taken long. One without an end takes
    /// `most` in all.
    pub fn look_within_poll<T>(
        &mut self,
        context: &WaitContext<'_>,
        slice: Duration,
        most: Duration,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> Polled<T> {
        let (mut look, now) = match self.polled.take() {
            Some((mut look, paused)) => {
                let now = Instant::now();
                look.is_contended = self.policy == Waiting::Adaptive
                    && now.saturating_duration_since(paused) > OTHERS_RAN;
                (look, now)
            }
            None => {
                let patience = match self.patience() {
                    SpinLimit::None => return Polled::Sleep,
                    SpinLimit::Endless => most,
                    SpinLimit::For(time) => time,
                };
                let first = attempt();
                if !is_nothing(&first) {
                    return Polled::Ready(first);
                }
                context.tally.begun();
                let now = Instant::now();
                (SpinPhase::begin(now, Some(patience)), now)
            }
        };
        let Some(_spinner) = context.spinners.enter(context.looking) else {
            self.note_missed(context, &look);
            return Polled::Sleep;
        };
        match self.look_on(context, &mut look, Some(now + slice), || true, attempt) {
            SpinExit::Ready(outcome) | SpinExit::Missed(Some(outcome)) => Polled::Ready(outcome),
            SpinExit::Missed(None) => Polled::Sleep,
            SpinExit::Paused(now) => {
                self.polled = Some((look, now));
                Polled::Yields
            }
        }
    }

    /// Returns whether the next wait is to be looked through, at least for a while.
    pub fn is_to_look(&self) -> bool {
        match self.policy {
            Waiting::Block => false,
            Waiting::Spin => true,
            Waiting::Adaptive => self.polled.is_some() || self.estimator.is_to_look(),
        }
    }

    /// Notes that something has come between two polls of a look.
    pub fn note_received(&mut self, context: &WaitContext<'_>) {
        if let Some((look, paused)) = self.polled.take() {
            context.tally.found_begun(look.attempts);
            self.estimator
                .found(paused.saturating_duration_since(look.begin));
        }
    }

    /// Returns how long the next wait is to be looked through.
    #[inline]
    fn patience(&mut self) -> SpinLimit {
        match self.policy {
            Waiting::Block => SpinLimit::None,
            Waiting::Spin => SpinLimit::Endless,
            Waiting::Adaptive => self
                .estimator
                .patience()
                .map_or(SpinLimit::None, SpinLimit::For),
        }
    }

    /// Repeats `attempt` until it succeeds, the look ends, or the moment to `pause` has come.
    #[inline]
    fn look_on<T>(
        &mut self,
        context: &WaitContext<'_>,
        look: &mut SpinPhase,
        pause: Option<Instant>,
        may_go_on: impl Fn() -> bool,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> SpinExit<T> {
        let mut now = look.begin;
        loop {
            let outcome = attempt();
            let has_come = !is_nothing(&outcome);
            if has_come && !look.is_contended {
                context.tally.found_begun(look.attempts);
                // As of the last look at the clock: a thread that has found something is in a hurry.
                if self.policy == Waiting::Adaptive {
                    self.estimator
                        .found(now.saturating_duration_since(look.begin));
                }
                return SpinExit::Ready(outcome);
            }
            now = Instant::now();
            let is_to_offer = (look.attempts).is_multiple_of(context.looking.attempts_at_a_time());
            look.attempts += u64::from(!has_come);
            let is_over = look.end.is_some_and(|end| now >= end);
            if !look.is_contended && !is_over && pause.is_some_and(|pause| now >= pause) {
                return SpinExit::Paused(now);
            }
            if look.is_contended || is_over || !may_go_on() {
                self.note_missed(context, look);
                return SpinExit::Missed(has_come.then_some(outcome));
            }
            if is_to_offer {
                let is_taken = offer_processor(now);
                look.is_contended = is_taken && self.policy == Waiting::Adaptive;
            }
            hint::spin_loop();
        }
    }

    fn note_missed(&mut self, context: &WaitContext<'_>, look: &SpinPhase) {
        context.tally.missed_begun(look.attempts);
        self.estimator.missed();
    }

    /// Notes that a wait was slept through that took so long.
    pub fn note_slept(&mut self, took: Duration) {
        if self.policy == Waiting::Adaptive {
            self.estimator.slept(took);
        }
    }

    /// Waits in `receive`, which sleeps.
    #[inline]
    pub fn sleep<T>(
        &mut self,
        context: &WaitContext<'_>,
        receive: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        context.tally.blocks();
        match self.policy {
            Waiting::Adaptive => {
                let begin = Instant::now();
                let received = receive();
                if received.is_ok() {
                    self.estimator.slept(begin.elapsed());
                }
                received
            }
            Waiting::Block | Waiting::Spin => receive(),
        }
    }
}

/// Lets other threads run; returns whether one did.
fn offer_processor(now: Instant) -> bool {
    thread::yield_now();
    now.elapsed() > TAKEN
}

fn is_nothing<T>(outcome: &io::Result<T>) -> bool {
    matches!(outcome, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests;
