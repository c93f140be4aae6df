//! The place of the processor's counter where accounts are left out: the kernel's clock is read.

/// The processor's counter, which is not read.
#[derive(Debug)]
pub(super) enum Counter {}

impl Counter {
    /// Returns none.
    pub(super) fn find() -> Option<Self> {
        None
    }

    pub(super) fn read(&self) -> u64 {
        match *self {}
    }

    pub(super) fn rate(&self) -> u64 {
        match *self {}
    }
}
