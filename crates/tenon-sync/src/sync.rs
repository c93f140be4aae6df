//! The one door to atomics, locks and threads, so that loom can try every order of what is done by them.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
};

#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
};

use std::sync::PoisonError;

/// Locks; every change under a lock of this crate is a single step, so that one of a thread that panicked is in order.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place for a box that threads exchange.
#[cfg(not(loom))]
pub(crate) struct BoxCell<T>(crossbeam_utils::atomic::AtomicCell<Option<Box<T>>>);

#[cfg(not(loom))]
impl<T> BoxCell<T> {
    pub(crate) const fn new() -> Self {
        Self(crossbeam_utils::atomic::AtomicCell::new(None))
    }

    #[inline]
    pub(crate) fn take(&self) -> Option<Box<T>> {
        self.0.take()
    }

    #[inline]
    pub(crate) fn store(&self, content: Box<T>) {
        // Not a plain store: that would not see what was done by those that have found nothing here.
        drop(self.0.swap(Some(content)));
    }
}

/// The same for loom: to take and to store are exchanges, which acquire and release, as above. What is in the place is
/// under a lock that loom does not see, and that a thread takes only when the flag is its.
#[cfg(loom)]
pub(crate) struct BoxCell<T> {
    is_full: AtomicBool,
    content: std::sync::Mutex<Option<Box<T>>>,
}

#[cfg(loom)]
impl<T> BoxCell<T> {
    pub(crate) fn new() -> Self {
        Self {
            is_full: AtomicBool::new(false),
            content: std::sync::Mutex::new(None),
        }
    }

    pub(crate) fn take(&self) -> Option<Box<T>> {
        if !self.is_full.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.take()
    }

    pub(crate) fn store(&self, content: Box<T>) {
        let mut place = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(content);
        drop(place);
        self.is_full.swap(true, Ordering::AcqRel);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Two atomic exchanges for each handler are what the bound on slow handlers costs.
    #[test]
    fn a_box_is_exchanged_without_a_lock() {
        type Cell = crossbeam_utils::atomic::AtomicCell<Option<Box<u8>>>;
        assert!(Cell::is_lock_free());
        let cell = BoxCell::new();
        assert!(cell.take().is_none());
        cell.store(Box::new(7));
        assert_eq!(cell.take(), Some(Box::new(7)));
        assert!(cell.take().is_none());
    }
}
