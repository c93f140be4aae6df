//! One that waits: looks as long as its policy says, then sleeps.

use std::hint;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::counters::WaitTally;
use super::learned::Learned;
use super::spinners::{Looking, Spinners};
use super::{Waiting, processors};

/// Attempts after which a thread that looks offers its processor to others. A short reply has come
/// before.
const ATTEMPTS_AT_A_TIME: u64 = 16;

/// An offer that takes longer than this was taken.
const TAKEN: Duration = Duration::from_micros(3);

/// Those who wait at the same end.
#[derive(Debug)]
pub(crate) struct Company<'w> {
    pub(crate) spinners: &'w Spinners,
    pub(crate) looking: Looking,
    pub(crate) tally: &'w WaitTally,
}

/// What has come of looking.
pub(crate) enum Spun<T> {
    /// The attempt succeeded, or failed for another reason than that nothing was there.
    Came(io::Result<T>),
    /// The time for the wait is over.
    Late,
    /// The rest of the wait is to be slept through.
    Sleep,
}

/// Whoever waits on one connection.
#[derive(Debug)]
pub(crate) struct Waiter {
    policy: Waiting,
    learned: Learned,
}

impl Waiter {
    pub(crate) fn new(policy: Waiting) -> Self {
        Self {
            policy,
            learned: Learned::new(processors()),
        }
    }

    /// Repeats `attempt`, which reports `WouldBlock` if nothing is there, as long as the policy says
    /// and `may_go_on`. `deadline` makes the end of the wait out of its begin.
    #[inline]
    pub(crate) fn look<T>(
        &mut self,
        company: &Company<'_>,
        deadline: impl FnOnce(Instant) -> Instant,
        may_go_on: impl Fn() -> bool,
        attempt: impl FnMut() -> io::Result<T>,
    ) -> Spun<T> {
        let patience = match self.policy {
            Waiting::Block => return Spun::Sleep,
            Waiting::Spin => None,
            Waiting::Adaptive => match self.learned.patience() {
                None => return Spun::Sleep,
                patience => patience,
            },
        };
        self.spin(company, patience, deadline, may_go_on, attempt)
    }

    fn spin<T>(
        &mut self,
        company: &Company<'_>,
        patience: Option<Duration>,
        deadline: impl FnOnce(Instant) -> Instant,
        may_go_on: impl Fn() -> bool,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> Spun<T> {
        // What is there already says nothing of whether looking for it would have paid.
        let first = attempt();
        if !is_nothing(&first) {
            return Spun::Came(first);
        }
        let Some(_spinner) = company.spinners.enter(company.looking) else {
            return Spun::Sleep;
        };
        let begin = Instant::now();
        let deadline = deadline(begin);
        if begin >= deadline {
            return Spun::Late;
        }
        let end = patience.map_or(deadline, |patience| deadline.min(begin + patience));
        let mut attempts = 1;
        let mut is_contended = false;
        loop {
            hint::spin_loop();
            let outcome = attempt();
            let now = Instant::now();
            let has_come = !is_nothing(&outcome);
            if has_come && !is_contended {
                company.tally.found(attempts);
                self.learned.found(now.saturating_duration_since(begin));
                return Spun::Came(outcome);
            }
            attempts += u64::from(!has_come);
            if is_contended || now >= end || !may_go_on() {
                company.tally.missed(attempts);
                self.learned.missed();
                return match has_come {
                    true => Spun::Came(outcome),
                    false if now >= deadline => Spun::Late,
                    false => Spun::Sleep,
                };
            }
            if attempts % ATTEMPTS_AT_A_TIME == 0 {
                thread::yield_now();
                is_contended = patience.is_some() && now.elapsed() > TAKEN;
            }
        }
    }

    /// Waits in `receive`, which sleeps.
    #[inline]
    pub(crate) fn sleep<T>(
        &mut self,
        company: &Company<'_>,
        receive: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        company.tally.blocks();
        match self.policy {
            Waiting::Adaptive if self.learned.wants_to_know() => {
                let begin = Instant::now();
                let received = receive();
                if received.is_ok() {
                    self.learned.slept(begin.elapsed());
                }
                received
            }
            Waiting::Adaptive | Waiting::Block | Waiting::Spin => receive(),
        }
    }
}

fn is_nothing<T>(outcome: &io::Result<T>) -> bool {
    matches!(outcome, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
