//! Waiting of a caller while another caller reads: it looks at a flag or sleeps, and both end when the caller is woken.

use std::hint;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tenon_core::wait::{LOOKS, Spun, WaitContext, Waiter, Waiting};
use tenon_sync::WakeFlag;

pub(super) use tenon_sync::{WakeFlags, WakeHandle};

/// The wake flag and the waiter of one caller.
#[derive(Debug)]
pub(super) struct WaitHandle {
    flag: WakeFlag,
    /// Of the thread that waits, which nothing else locks.
    waiter: Mutex<Waiter>,
}

impl WaitHandle {
    /// Waits by `flag`, in this way.
    pub(super) fn new(flag: WakeFlag, waiting: Waiting) -> Self {
        Self {
            flag,
            waiter: Mutex::new(Waiter::new(waiting)),
        }
    }

    /// Returns what wakes the present thread, which is going to [`wait`](Self::wait).
    pub(super) fn wake_handle(&self) -> WakeHandle {
        self.flag.wake_handle()
    }

    /// Waits until `until` or until this thread is woken; both may be for nothing.
    pub(super) fn wait(&self, context: &WaitContext<'_>, until: Instant) {
        let mut waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looks = 0;
        let look = || {
            let is_woken = self.is_woken_within(looks);
            looks = LOOKS;
            if is_woken {
                Ok(())
            } else {
                Err(io::Error::from(io::ErrorKind::WouldBlock))
            }
        };
        match waiter.look(context, |_| until, || true, look) {
            Spun::Ready(_) | Spun::Late => {}
            Spun::Sleep => {
                let slept = waiter.sleep(context, || {
                    let limit = until.saturating_duration_since(Instant::now());
                    self.flag.sleep(limit);
                    Ok(())
                });
                debug_assert!(slept.is_ok());
            }
        }
    }

    fn is_woken_within(&self, looks: u32) -> bool {
        for _ in 0..looks {
            if self.flag.seems_woken() {
                break;
            }
            hint::spin_loop();
        }
        self.flag.is_woken()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use tenon_core::wait::{Looking, Spinners, WaitTally};

    /// A thread waits, again and again, and another wakes it each time: none waits for ever.
    #[test]
    fn a_caller_that_waits_is_woken() {
        const TIMES: u32 = 2000;
        for (_, waiting) in Waiting::ALL {
            let (spinners, tally) = (Spinners::new(), WaitTally::default());
            let context = WaitContext {
                spinners: &spinners,
                looking: Looking::AtSocket,
                tally: &tally,
            };
            let handle = WaitHandle::new(WakeFlags::default().add(), waiting);
            let (send, receive) = std::sync::mpsc::channel::<(WakeHandle, Arc<AtomicBool>)>();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for (waker, is_done) in receive {
                        is_done.store(true, Ordering::Relaxed);
                        waker.wake();
                    }
                });
                for _ in 0..TIMES {
                    let is_done = Arc::new(AtomicBool::new(false));
                    send.send((handle.wake_handle(), Arc::clone(&is_done)))
                        .unwrap();
                    let until = Instant::now() + Duration::from_secs(60);
                    while !is_done.load(Ordering::Relaxed) {
                        handle.wait(&context, until);
                        assert!(Instant::now() < until, "{waiting}: no thread was woken");
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
            let context = WaitContext {
                spinners: &spinners,
                looking: Looking::AtSocket,
                tally: &tally,
            };
            let handle = WaitHandle::new(WakeFlags::default().add(), waiting);
            let _waker = handle.wake_handle();
            handle.wait(&context, Instant::now());
            // A thread that does not get to run while it looks finds that it is late, and does not sleep.
            let sleeps = || {
                handle.wait(&context, Instant::now() + Duration::from_millis(100));
                tally.snapshot().blocks > 0
            };
            let slept = match waiting {
                Waiting::Spin => sleeps(),
                _ => (0..100).any(|_| sleeps()),
            };
            let waits = tally.snapshot();
            assert_eq!(waits.spins, 0, "{waits:?}");
            assert_eq!(slept, waiting != Waiting::Spin, "{waits:?}");
        }
    }
}
