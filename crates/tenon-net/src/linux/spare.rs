//! A descriptor that is kept for the time when the process, or the system, has none left. The process has one for all
//! of its listeners: with one for each, what a listener gave up to accept a connection could be what another renewed its
//! own by, and the first had none from then on.

use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

static SPARE: Mutex<Spare> = Mutex::new(Spare {
    descriptor: None,
    is_lent: false,
    listeners: 0,
});

/// Notified when the spare is given back.
static GIVEN_BACK: Condvar = Condvar::new();

struct Spare {
    descriptor: Option<OwnedFd>,
    /// True while a connection is refused by it.
    is_lent: bool,
    /// Listeners that may need it. Without any there is no spare.
    listeners: usize,
}

impl Spare {
    fn lock() -> MutexGuard<'static, Self> {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the spare is not lent.
    fn lock_when_given_back() -> MutexGuard<'static, Self> {
        let mut spare = Self::lock();
        while spare.is_lent {
            spare = GIVEN_BACK
                .wait(spare)
                .unwrap_or_else(PoisonError::into_inner);
        }
        spare
    }

    fn renew(&mut self) {
        if self.descriptor.is_none() && self.listeners > 0 {
            self.descriptor = eventfd(0, EventfdFlags::CLOEXEC).ok();
        }
    }
}

/// The share of a listener in the spare, which there is as long as there are listeners.
#[derive(Debug)]
pub(crate) struct SpareShare(());

impl SpareShare {
    /// Opens the spare, if there is a descriptor for it.
    pub(crate) fn new() -> Self {
        let mut spare = Spare::lock_when_given_back();
        spare.listeners += 1;
        spare.renew();
        Self(())
    }

    /// Opens the spare if there is none and there is a descriptor for it.
    pub(crate) fn renew(&self) {
        Spare::lock_when_given_back().renew();
    }

    /// Accepts a connection by `accept`, which does not wait, while the spare is not lent: what is free then is kept for
    /// the connection that it was lent for.
    pub(crate) fn accept_beside<T>(&self, accept: impl FnOnce() -> T) -> T {
        let _kept = Spare::lock_when_given_back();
        accept()
    }
}

impl Drop for SpareShare {
    fn drop(&mut self) {
        let mut spare = Spare::lock();
        spare.listeners -= 1;
        if spare.listeners == 0 {
            spare.descriptor = None;
        }
    }
}

/// The descriptor that is free as the spare was closed, for a connection that is to be refused by it. When this is
/// dropped, behind the connection, the spare is opened again; others that need it wait until then.
#[derive(Debug)]
pub(crate) struct LentDescriptor(());

impl LentDescriptor {
    /// Closes the spare, so that one descriptor is free; `None` if there is no spare.
    pub(crate) fn lend() -> Option<Self> {
        let mut spare = Spare::lock_when_given_back();
        spare.descriptor.take()?;
        spare.is_lent = true;
        Some(Self(()))
    }
}

impl Drop for LentDescriptor {
    fn drop(&mut self) {
        let mut spare = Spare::lock();
        spare.is_lent = false;
        spare.renew();
        drop(spare);
        GIVEN_BACK.notify_all();
    }
}
