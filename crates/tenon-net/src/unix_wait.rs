//! How a receiver on a Unix socket sleeps.
//!
//! Linux keeps the threads that wait for bytes and those that wait for room in one queue of the socket, and a receive
//! that blocks does not say which it waits for: it is woken, too, when the peer takes what this end has sent
//! (`sock_wfree`, `unix_write_space`). Where the reply follows at once, that is an early start, and a call with short
//! messages takes 8 % longer without it. But a peer that has longer messages to move is not that quick: the receiver
//! finds nothing, sleeps again, and is woken again, for which both ends pay. `poll` says what it waits for: a system
//! call more, and a call that takes 8 to 12 % less.

use std::sync::atomic::{AtomicBool, Ordering};

/// A piece from which on being woken early is no help: between 2 and 3 KB here, either way.
const LONG: usize = 2500;

/// State that decides whether one end of a connection polls before it sleeps.
#[derive(Debug, Default)]
pub(crate) struct UnixWait {
    /// Since it last slept, something long was sent or received. No more than a guess at what comes next, so that
    /// no order with the bytes themselves is needed.
    long: AtomicBool,
}

impl UnixWait {
    /// Notes that `bytes` were sent or received in one piece.
    #[inline]
    pub fn moved(&self, bytes: usize) {
        if bytes >= LONG {
            self.long.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a thread that is about to sleep should poll first.
    #[inline]
    pub fn polls(&self) -> bool {
        let long = self.long.load(Ordering::Relaxed);
        if long {
            self.long.store(false, Ordering::Relaxed);
        }
        long
    }
}
