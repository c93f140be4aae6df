//! A state that one thread at a time has, and what others have to tell it.

use std::fmt;

use crate::sync::{AtomicU8, BoxCell, Ordering};

/// A state that one thread at a time has, or none; and signals for that thread, which are bits.
///
/// A thread that gives a signal while no other has the state gets it, and is to act on the signal. Otherwise the thread
/// that has the state finds the signal, at the latest when it [puts the state back](Self::put_back). So no signal is
/// forgotten while the state lies here.
///
/// The state is exchanged, to put it here, too: a thread that has given a signal and found no state is ordered before
/// the one that puts the state here next, which so sees the signal without a fence.
pub struct Baton<T> {
    state: BoxCell<T>,
    /// Signals since a thread has last looked.
    signals: AtomicU8,
}

impl<T> Default for Baton<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Baton<T> {
    /// A place without a state, which is to be [put](Self::put_back) there.
    pub fn new() -> Self {
        Self {
            state: BoxCell::new(),
            signals: AtomicU8::new(0),
        }
    }

    /// Takes the state, unless a thread has it.
    #[inline]
    pub fn claim(&self) -> Option<Box<T>> {
        self.state.take()
    }

    /// Lets another thread claim the state, while this one does something else.
    #[inline]
    pub fn lend(&self, state: Box<T>) {
        self.state.store(state);
    }

    /// Puts the state back; returns it if something has happened meanwhile that is to be looked at.
    #[inline]
    pub fn put_back(&self, state: Box<T>) -> Option<Box<T>> {
        self.state.store(state);
        // A signal that is not seen here is given by a thread that finds the state.
        if self.signals.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.claim()
    }

    /// Says that something has happened, and takes the state, unless a thread has it, which will see the signal. A
    /// state that is taken is told by `note`.
    #[inline]
    pub fn signal(&self, signal: u8, note: impl FnOnce(&mut T)) -> Option<Box<T>> {
        if let Some(mut state) = self.claim() {
            // No other thread has the state now, so the signal need not be shared.
            note(&mut state);
            return Some(state);
        }
        self.signals.fetch_or(signal, Ordering::Release);
        self.claim()
    }

    /// Returns whether something has happened since a thread has looked.
    #[inline]
    pub fn has_signals(&self) -> bool {
        self.signals.load(Ordering::Relaxed) != 0
    }

    /// Returns what has happened since this was asked last, beside what the state was [told](Self::signal).
    #[inline]
    pub fn take_signals(&self) -> u8 {
        if self.signals.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.signals.swap(0, Ordering::AcqRel)
    }
}

impl<T> fmt::Debug for Baton<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Baton")
            .field("signals", &self.signals)
            .finish_non_exhaustive()
    }
}
