//! How the owner of a call waits while another caller reads: it looks at a bell or sleeps, and both
//! end when the bell is rung.

use std::hint;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::waiting::{Company, LOOKS, Spun, Waiter, Waiting};

/// What wakes the owner of a slot.
#[derive(Debug)]
pub(super) struct Bell {
    is_rung: AtomicBool,
    /// The owner's, whom nobody disturbs.
    waiter: Mutex<Waiter>,
}

/// An owner that is to be woken.
#[derive(Debug)]
pub(super) struct Sleeper {
    thread: Thread,
    bell: Arc<Bell>,
}

impl Sleeper {
    /// Wakes it, whichever way it waits.
    pub(super) fn wake(&self) {
        self.thread.unpark();
        self.bell.is_rung.store(true, Ordering::Release);
    }
}

impl Bell {
    pub(super) fn new(waiting: Waiting) -> Self {
        Self {
            is_rung: AtomicBool::new(false),
            waiter: Mutex::new(Waiter::new(waiting)),
        }
    }

    /// The present thread, which is going to [`wait`](Self::wait).
    pub(super) fn sleeper(self: &Arc<Self>) -> Sleeper {
        self.is_rung.store(false, Ordering::Relaxed);
        Sleeper {
            thread: thread::current(),
            bell: Arc::clone(self),
        }
    }

    /// Waits until `until` or until somebody wakes this thread; both may be for nothing.
    pub(super) fn wait(&self, company: &Company<'_>, until: Instant) {
        let mut waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looks = 0;
        let look = || {
            let is_rung = self.is_rung_within(looks);
            looks = LOOKS;
            is_rung
                .then_some(())
                .ok_or(io::Error::from(io::ErrorKind::WouldBlock))
        };
        match waiter.look(company, |_| until, || true, look) {
            // Who rang has left this for a thread that sleeps.
            Spun::Came(_) => thread::park_timeout(Duration::ZERO),
            Spun::Late => {}
            Spun::Sleep => {
                let slept = waiter.sleep(company, || {
                    thread::park_timeout(until.saturating_duration_since(Instant::now()));
                    Ok(())
                });
                debug_assert!(slept.is_ok());
            }
        }
    }

    fn is_rung_within(&self, looks: u32) -> bool {
        for _ in 0..looks {
            if self.is_rung.load(Ordering::Relaxed) {
                break;
            }
            hint::spin_loop();
        }
        self.is_rung.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::{Looking, Spinners, WaitTally};

    /// A thread waits, again and again, and another wakes it each time: nobody waits for ever.
    #[test]
    fn whoever_waits_is_woken() {
        const TIMES: u32 = 2000;
        for (_, waiting) in Waiting::ALL {
            let (spinners, tally) = (Spinners::new(), WaitTally::default());
            let company = Company {
                spinners: &spinners,
                looking: Looking::AtSocket,
                tally: &tally,
            };
            let bell = Arc::new(Bell::new(waiting));
            let (send, receive) = std::sync::mpsc::channel::<(Sleeper, Arc<AtomicBool>)>();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for (sleeper, is_done) in receive {
                        is_done.store(true, Ordering::Relaxed);
                        sleeper.wake();
                    }
                });
                for _ in 0..TIMES {
                    let is_done = Arc::new(AtomicBool::new(false));
                    send.send((bell.sleeper(), Arc::clone(&is_done))).unwrap();
                    let until = Instant::now() + Duration::from_secs(60);
                    while !is_done.load(Ordering::Relaxed) {
                        bell.wait(&company, until);
                        assert!(Instant::now() < until, "{waiting}: nobody was woken");
                    }
                }
                drop(send);
            });
        }
    }

    #[test]
    fn waiting_ends_when_it_is_to() {
        for (_, waiting) in Waiting::ALL {
            let (spinners, tally) = (Spinners::new(), WaitTally::default());
            let company = Company {
                spinners: &spinners,
                looking: Looking::AtSocket,
                tally: &tally,
            };
            let bell = Arc::new(Bell::new(waiting));
            let _sleeper = bell.sleeper();
            bell.wait(&company, Instant::now());
            // Who does not get to run while it looks finds that it is late, and does not sleep.
            let sleeps = || {
                bell.wait(&company, Instant::now() + Duration::from_millis(100));
                tally.snapshot().blocks > 0
            };
            let slept = match waiting {
                Waiting::Spin => sleeps(),
                Waiting::Block | Waiting::Adaptive => (0..100).any(|_| sleeps()),
            };
            let waits = tally.snapshot();
            assert_eq!(waits.spins, 0, "{waits:?}");
            assert_eq!(slept, waiting != Waiting::Spin, "{waits:?}");
        }
    }
}
