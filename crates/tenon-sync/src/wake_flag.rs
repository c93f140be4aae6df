//! How threads are woken by another, whether they look or sleep: one of them, or several at once.
//!
//! A thread that wakes one after the other asks the system for each, and on its own processor is preempted by the first
//! of them. So flags are bits of a word that the system can wait for, and those of a word are woken together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::futex::{FutexWord, WAITERS_MAX};
use crate::sync::{AtomicU32, Ordering, fence};

/// The flags of the threads that wait for the same thing, such as the replies of one connection.
#[derive(Debug, Default)]
pub struct WakeFlags {
    word: Arc<WakeWord>,
    /// Number of flags of the word that are taken.
    taken: u32,
}

/// The bits of up to [`WAITERS_MAX`] threads.
#[derive(Debug, Default)]
struct WakeWord {
    /// Of the threads that were woken.
    woken: FutexWord,
    /// Of those that sleep, or are about to: looking threads are woken without a system call.
    sleepers: AtomicU32,
}

/// Flag by which one thread at a time waits: it looks whether it [was woken](Self::is_woken), or
/// [sleeps](Self::sleep).
#[derive(Debug, Clone)]
pub struct WakeFlag {
    word: Arc<WakeWord>,
    /// The bit of the word that is this flag.
    bit: u32,
}

/// Wakes a thread that waits.
#[derive(Debug)]
pub struct WakeHandle(WakeFlag);

impl WakeFlags {
    /// Adds a flag.
    pub fn add(&mut self) -> WakeFlag {
        if self.taken == WAITERS_MAX {
            *self = Self::default();
        }
        let bit = 1 << self.taken;
        self.taken += 1;
        WakeFlag {
            word: Arc::clone(&self.word),
            bit,
        }
    }
}

impl WakeWord {
    /// Wakes the threads of these bits.
    fn wake(&self, bits: u32) {
        // Release: behind what the threads are woken for.
        self.woken.value().fetch_or(bits, Ordering::Release);
        // With the one in `sleep`: either this sees the sleeper, or the sleeper sees that it was woken.
        fence(Ordering::SeqCst);
        let sleepers = self.sleepers.load(Ordering::Relaxed) & bits;
        if sleepers != 0 {
            self.woken.wake(sleepers);
        }
    }

    /// Returns whether the thread of this bit was woken.
    #[inline]
    fn is_woken(&self, bit: u32, order: Ordering) -> bool {
        self.woken.value().load(order) & bit != 0
    }

    /// Sleeps until the thread of this bit is woken, or for `limit`.
    fn sleep(&self, bit: u32, limit: Duration) {
        let began = Instant::now();
        self.sleepers.fetch_or(bit, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        loop {
            let seen = self.woken.value().load(Ordering::Acquire);
            let left = limit.saturating_sub(began.elapsed());
            if seen & bit != 0 || left.is_zero() {
                break;
            }
            self.woken.wait(seen, bit, left);
        }
        self.sleepers.fetch_and(!bit, Ordering::Relaxed);
    }
}

impl WakeHandle {
    /// Wakes the thread, whichever way it waits.
    pub fn wake(&self) {
        self.0.word.wake(self.0.bit);
    }

    /// Wakes all the threads, with one system call for as many flags as a word has, and leaves no handle.
    pub fn wake_all(handles: &mut Vec<Self>) {
        while let Some(Self(last)) = handles.pop() {
            let mut bits = last.bit;
            handles.retain(|Self(flag)| {
                let is_together = Arc::ptr_eq(&flag.word, &last.word);
                if is_together {
                    bits |= flag.bit;
                }
                !is_together
            });
            last.word.wake(bits);
        }
    }
}

impl WakeFlag {
    /// Returns the handle that wakes the present thread, which is going to wait.
    pub fn wake_handle(&self) -> WakeHandle {
        let woken = self.word.woken.value();
        woken.fetch_and(!self.bit, Ordering::Relaxed);
        WakeHandle(self.clone())
    }

    /// Returns whether the thread is to go on, for a loop: [`is_woken`](Self::is_woken) says what was seen behind it.
    #[inline]
    pub fn seems_woken(&self) -> bool {
        self.word.is_woken(self.bit, Ordering::Relaxed)
    }

    /// Returns whether the thread is to go on.
    #[inline]
    pub fn is_woken(&self) -> bool {
        self.word.is_woken(self.bit, Ordering::Acquire)
    }

    /// Sleeps until the thread is woken, or for `limit`.
    pub fn sleep(&self, limit: Duration) {
        self.word.sleep(self.bit, limit);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Long after every wake-up.
    const LATE: Duration = Duration::from_secs(120);

    /// More flags than a word has: each is a flag of its own.
    #[test]
    fn flags_are_woken_and_no_others() {
        let mut flags = WakeFlags::default();
        let all: Vec<WakeFlag> = (0..2 * WAITERS_MAX + 2).map(|_| flags.add()).collect();
        let handles: Vec<WakeHandle> = all.iter().map(WakeFlag::wake_handle).collect();
        let (mut some, mut others) = (Vec::new(), Vec::new());
        for (at, handle) in handles.into_iter().enumerate() {
            if at % 3 == 0 {
                some.push(handle);
            } else {
                others.push(handle);
            }
        }
        WakeHandle::wake_all(&mut some);
        assert!(some.is_empty());
        for (at, flag) in all.iter().enumerate() {
            assert_eq!(flag.is_woken(), at % 3 == 0, "{at}");
        }
        others.iter().for_each(WakeHandle::wake);
        assert!(all.iter().all(WakeFlag::is_woken));
        let again = all[0].wake_handle();
        assert!(!all[0].is_woken() && all[1].is_woken());
        again.wake();
        assert!(all[0].is_woken());
    }

    /// Threads of two words sleep, again and again, and one wakes all of them: none sleeps for ever.
    #[test]
    fn threads_that_sleep_are_woken_together() {
        let (threads, times) = if cfg!(miri) { (4, 5) } else { (40, 200) };
        let mut flags = WakeFlags::default();
        thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            for _ in 0..threads {
                let (flag, send) = (flags.add(), send.clone());
                scope.spawn(move || {
                    for _ in 0..times {
                        send.send(flag.wake_handle())
                            .expect("the handle is received");
                        flag.sleep(LATE);
                        assert!(flag.is_woken(), "a wake-up was lost");
                    }
                });
            }
            drop(send);
            let mut handles = Vec::new();
            while let Ok(handle) = receive.recv() {
                handles.push(handle);
                handles.extend(receive.try_iter());
                WakeHandle::wake_all(&mut handles);
            }
        });
    }

    #[test]
    fn a_sleep_ends_when_it_is_to() {
        let flag = WakeFlags::default().add();
        let _handle = flag.wake_handle();
        let (began, limit) = (Instant::now(), Duration::from_millis(20));
        flag.sleep(limit);
        assert!(began.elapsed() >= limit);
        assert!(!flag.is_woken());
        flag.sleep(Duration::ZERO);
    }
}
