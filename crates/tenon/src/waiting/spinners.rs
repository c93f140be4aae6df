//! How many threads may look for messages at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::processors;

/// The threads that look for messages now. There is always room for one; beyond that they leave a
/// processor to everybody else, their peers perhaps.
#[derive(Debug)]
pub(crate) struct Spinners(AtomicUsize);

/// One who looks. Dropping it makes room for another.
#[derive(Debug)]
pub(super) struct Spinner<'s>(&'s Spinners);

impl Spinners {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Those of all channels of the process.
    pub(crate) fn of_callers() -> &'static Self {
        static CALLERS: Spinners = Spinners::new();
        &CALLERS
    }

    /// Takes one more, if there is room.
    #[inline]
    pub(super) fn enter(&self) -> Option<Spinner<'_>> {
        self.enter_below(processors().saturating_sub(1).max(1))
    }

    #[inline]
    fn enter_below(&self, most: usize) -> Option<Spinner<'_>> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let spinner = Spinner(self);
        (before < most).then_some(spinner)
    }
}

impl Drop for Spinner<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_finds_no_room_takes_none() {
        let spinners = Spinners::new();
        let first = spinners.enter_below(2);
        let second = spinners.enter_below(2);
        assert!(first.is_some() && second.is_some());
        assert!(spinners.enter_below(2).is_none());
        assert!(spinners.enter_below(2).is_none());
        drop(first);
        assert!(spinners.enter_below(2).is_some());
    }
}
