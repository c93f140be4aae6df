//! The receiving end of a connection, as it waits: it looks as long as its policy says, then sleeps.

use std::hint;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::counters::WaitTally;
use super::learned::{SpinBackoff, SpinEstimator};
use super::spinners::{Looking, Spinners};
use super::{Waiting, processors};

/// An offer that takes longer than this was taken.
const TAKEN: Duration = Duration::from_micros(3);

/// Other tasks that have taken longer than this between two polls have calls of their own, and do not wait for looks.
const OTHERS_RAN: Duration = Duration::from_micros(10);

/// Attempts to receive the rest of a message before sleeping. Others may run between them: this takes some
/// ten microseconds.
const ATTEMPTS_AT_REST: u64 = 8;

/// Longest look for room to send the rest of what is being sent. A peer that is at it takes some hundred kilobytes
/// meanwhile; waking up once the room is there takes about as long, each time that the socket is full.
const ROOM_PATIENCE: Duration = Duration::from_micros(500);

/// State that the waiters of one end share.
#[derive(Debug)]
pub struct WaitContext<'w> {
    /// Threads that look now.
    pub spinners: &'w Spinners,
    /// Object that is looked at.
    pub looking: Looking,
    /// Counters of the waits.
    pub tally: &'w WaitTally,
}

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
    /// Back-off of waits for room to send.
    room: SpinBackoff,
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
            room: SpinBackoff::default(),
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

    /// Repeats `send` for a moment while a peer that is awake takes what was sent before, under any policy; returns
    /// whether all is sent. It is not repeated if mostly the peer has not taken it in this time.
    ///
    /// # Errors
    /// What `send` reports.
    #[cold]
    pub fn look_for_room<E>(
        &mut self,
        context: &WaitContext<'_>,
        mut send: impl FnMut() -> Result<bool, E>,
    ) -> Result<bool, E> {
        if !self.room.should_spin() {
            return Ok(false);
        }
        let Some(_spinner) = context.spinners.enter(context.looking) else {
            return Ok(false);
        };
        let begin = Instant::now();
        loop {
            // On the same processor, the peer goes on only when others may run.
            thread::yield_now();
            if send()? {
                self.room.found();
                return Ok(true);
            }
            if begin.elapsed() >= ROOM_PATIENCE {
                self.room.missed();
                return Ok(false);
            }
        }
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
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::wait::WaitCounters;

    const FAR: Duration = Duration::from_secs(1000);

    struct WaitFixture {
        spinners: Spinners,
        tally: WaitTally,
    }

    impl WaitFixture {
        fn new() -> Self {
            Self {
                spinners: Spinners::new(),
                tally: WaitTally::default(),
            }
        }

        fn wait_context(&self) -> WaitContext<'_> {
            WaitContext {
                spinners: &self.spinners,
                looking: Looking::AtSocket,
                tally: &self.tally,
            }
        }

        /// Looks until `limit` is over, with an attempt that fails so often before it succeeds.
        fn look(&self, waiter: &mut Waiter, limit: Duration, failures: u64) -> &'static str {
            let attempt = succeeds_after(failures);
            told(&waiter.look(
                &self.wait_context(),
                |begin| begin + limit,
                || true,
                attempt,
            ))
        }

        /// Spins, misses and attempts.
        fn counts(&self) -> (u64, u64, u64) {
            let WaitCounters {
                spins,
                misses,
                attempts,
                ..
            } = self.tally.snapshot();
            (spins, misses, attempts)
        }
    }

    /// An attempt that finds nothing so often before it succeeds.
    fn succeeds_after(mut failures: u64) -> impl FnMut() -> io::Result<()> {
        move || match failures {
            0 => Ok(()),
            _ => {
                failures -= 1;
                Err(io::Error::from(ErrorKind::WouldBlock))
            }
        }
    }

    fn told<T>(spun: &Spun<T>) -> &'static str {
        match spun {
            Spun::Ready(Ok(_)) => "came",
            Spun::Ready(Err(_)) => "failed",
            Spun::Late => "late",
            Spun::Sleep => "sleep",
        }
    }

    #[test]
    fn room_is_looked_for_unless_the_peer_mostly_takes_nothing() {
        let fixture = WaitFixture::new();
        let context = fixture.wait_context();
        let mut waiter = Waiter::new(Waiting::Block);
        let sent = waiter.look_for_room(&context, || Ok::<bool, ()>(true));
        assert_eq!(sent, Ok(true));
        let mut attempts = 0;
        let sent = waiter.look_for_room(&context, || {
            attempts += 1;
            Ok::<bool, ()>(false)
        });
        assert_eq!(sent, Ok(false));
        assert!(attempts > 0);
        let sent = waiter.look_for_room(&context, || -> Result<bool, ()> { panic!("not again") });
        assert_eq!(sent, Ok(false));
        let failed = waiter.look_for_room(&context, || Err("the socket is gone"));
        assert_eq!(failed, Err("the socket is gone"));
    }

    fn adaptive() -> Waiter {
        Waiter {
            policy: Waiting::Adaptive,
            estimator: SpinEstimator::new(2),
            rest: SpinBackoff::default(),
            room: SpinBackoff::default(),
            polled: None,
        }
    }

    #[test]
    fn who_blocks_does_not_look() {
        let place = WaitFixture::new();
        let mut waiter = Waiter::new(Waiting::Block);
        assert_eq!(place.look(&mut waiter, FAR, 0), "sleep");
        assert_eq!(place.counts(), (0, 0, 0));
    }

    #[test]
    fn what_is_there_at_once_teaches_nothing() {
        for mut waiter in [Waiter::new(Waiting::Spin), adaptive()] {
            let place = WaitFixture::new();
            let before = waiter.estimator.clone();
            assert_eq!(place.look(&mut waiter, FAR, 0), "came");
            assert_eq!(place.counts(), (0, 0, 0));
            assert_eq!(waiter.estimator, before);
        }
    }

    #[test]
    fn attempts_in_vain_are_counted() {
        let place = WaitFixture::new();
        let mut waiter = Waiter::new(Waiting::Spin);
        assert_eq!(place.look(&mut waiter, FAR, 1), "came");
        assert_eq!(place.look(&mut waiter, FAR, 100), "came");
        assert_eq!(place.counts(), (2, 0, 101));
    }

    #[test]
    fn who_spins_looks_until_it_is_late() {
        let place = WaitFixture::new();
        let mut waiter = Waiter::new(Waiting::Spin);
        let moment = Duration::from_millis(1);
        assert_eq!(place.look(&mut waiter, moment, u64::MAX), "late");
        assert_eq!(place.look(&mut waiter, Duration::ZERO, u64::MAX), "late");
        let (spins, misses, attempts) = place.counts();
        assert_eq!((spins, misses), (0, 1), "no time is no wait");
        assert!(attempts > 1);
    }

    #[test]
    fn who_adapts_looks_for_a_while_and_then_not_the_next_time() {
        let place = WaitFixture::new();
        let mut waiter = adaptive();
        assert_eq!(place.look(&mut waiter, FAR, u64::MAX), "sleep");
        let counts = place.counts();
        assert_eq!((counts.0, counts.1), (0, 1));
        assert_eq!(place.look(&mut waiter, FAR, u64::MAX), "sleep");
        assert_eq!(place.counts(), counts);
    }

    #[test]
    fn the_rest_of_a_message_is_looked_for_unless_it_mostly_takes_long() {
        let place = WaitFixture::new();
        let mut waiter = Waiter::new(Waiting::Block);
        let mut look = |failures: u64, is_taken: bool| {
            let attempt = succeeds_after(failures);
            let came = waiter.look_between(&place.wait_context(), attempt, || is_taken);
            came.is_some()
        };
        assert!(look(0, false), "it is there");
        assert!(look(ATTEMPTS_AT_REST - 1, false), "it comes at once");
        assert_eq!(place.counts(), (1, 0, ATTEMPTS_AT_REST - 1));
        assert!(!look(ATTEMPTS_AT_REST, false), "it takes long");
        assert_eq!(place.counts(), (1, 1, 2 * ATTEMPTS_AT_REST - 1));
        assert!(!look(0, false), "then nobody looks");
        assert!(look(0, false));
        assert!(!look(1, true), "others need the processor");
        assert_eq!(place.counts(), (1, 2, 2 * ATTEMPTS_AT_REST));
    }

    fn told_of_poll<T>(polled: &Polled<T>) -> &'static str {
        match polled {
            Polled::Ready(_) => "came",
            Polled::Yields => "yields",
            Polled::Sleep => "sleep",
        }
    }

    const SLICE: Duration = Duration::from_micros(1);

    #[test]
    fn a_look_of_a_task_goes_on_over_several_polls() {
        let place = WaitFixture::new();
        let mut waiter = Waiter::new(Waiting::Spin);
        let mut polls = 1;
        let begin = Instant::now();
        let most = Duration::from_secs(1);
        let mut poll = |attempt: &dyn Fn() -> io::Result<()>| {
            let polled = waiter.look_within_poll(&place.wait_context(), SLICE, most, attempt);
            told_of_poll(&polled)
        };
        let nothing = || Err(io::Error::from(ErrorKind::WouldBlock));
        while poll(&nothing) == "yields" {
            polls += 1;
        }
        assert!(polls > 1 && begin.elapsed() >= most);
        let counts = place.counts();
        assert_eq!((counts.0, counts.1), (0, 1), "it is one look");
        assert_eq!(poll(&nothing), "yields");
        assert_eq!(poll(&|| Ok(())), "came");
        let counts = place.counts();
        assert_eq!((counts.0, counts.1), (1, 1));
    }

    #[test]
    fn a_look_ends_where_other_tasks_take_long() {
        let place = WaitFixture::new();
        // A busy machine may stand still between any two steps.
        let is_well = || {
            let before = place.counts().1;
            let mut waiter = adaptive();
            let mut poll = || {
                let attempt = succeeds_after(u64::MAX);
                told_of_poll(&waiter.look_within_poll(&place.wait_context(), SLICE, FAR, attempt))
            };
            let first = poll();
            std::thread::sleep(2 * OTHERS_RAN);
            let second = poll();
            let misses = place.counts().1 - before;
            // The next wait is slept through.
            (first, second, misses, poll()) == ("yields", "sleep", 1, "sleep")
        };
        assert!((0..1000).any(|_| is_well()));
    }

    #[test]
    fn what_comes_between_two_polls_was_found_by_looking() {
        let place = WaitFixture::new();
        let mut waiter = Waiter::new(Waiting::Spin);
        let attempt = succeeds_after(u64::MAX);
        let polled = waiter.look_within_poll(&place.wait_context(), SLICE, FAR, attempt);
        assert_eq!(told_of_poll(&polled), "yields");
        waiter.note_received(&place.wait_context());
        waiter.note_received(&place.wait_context());
        let counts = place.counts();
        assert_eq!((counts.0, counts.1), (1, 0));
    }

    #[test]
    fn an_error_ends_the_wait() {
        let place = WaitFixture::new();
        let mut waiter = Waiter::new(Waiting::Spin);
        let mut kinds = [ErrorKind::WouldBlock, ErrorKind::ConnectionReset].into_iter();
        let attempt = || Err::<(), _>(io::Error::from(kinds.next().unwrap()));
        let spun = waiter.look(&place.wait_context(), |begin| begin + FAR, || true, attempt);
        assert_eq!(told(&spun), "failed");
    }

    #[test]
    fn looking_ends_when_it_may_not_go_on() {
        let place = WaitFixture::new();
        let mut waiter = Waiter::new(Waiting::Spin);
        let attempt = || Err::<(), _>(io::Error::from(ErrorKind::WouldBlock));
        let spun = waiter.look(
            &place.wait_context(),
            |begin| begin + FAR,
            || false,
            attempt,
        );
        assert_eq!(told(&spun), "sleep");
        assert_eq!(place.counts(), (0, 1, 2));
    }

    #[test]
    fn who_finds_no_room_sleeps() {
        let place = WaitFixture::new();
        let mut others = Vec::new();
        while let Some(other) = place.spinners.enter(Looking::AtSocket) {
            others.push(other);
        }
        let mut waiter = Waiter::new(Waiting::Spin);
        assert_eq!(place.look(&mut waiter, FAR, 5), "sleep");
        drop(others);
        assert_eq!(place.look(&mut waiter, FAR, 5), "came");
    }
}
