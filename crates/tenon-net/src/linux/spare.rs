//! A descriptor that is kept for the time when the process, or the system, has none left.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// A descriptor that is given up when one is needed to refuse a connection.
#[derive(Debug)]
pub(crate) struct SpareDescriptor(Mutex<Option<OwnedFd>>);

impl SpareDescriptor {
    /// Opens a spare, if there is a descriptor for it.
    pub(crate) fn open() -> Self {
        let spare = Self(Mutex::default());
        spare.renew();
        spare
    }

    /// Opens the spare again if it was given up and there is a descriptor for it.
    pub(crate) fn renew(&self) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.is_none() {
            *spare = eventfd(0, EventfdFlags::CLOEXEC).ok();
        }
    }

    /// Closes the spare, so that one descriptor is free; returns whether there was one.
    pub(crate) fn give_up(&self) -> bool {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        spare.is_some()
    }
}
