//! Limits of the results of a server.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a result may have by default.
const SEND_MAX: usize = 64 << 20;

/// Limits that a program may change as long as its server does not serve.
#[derive(Debug)]
pub struct ResultLimits {
    send_max: AtomicUsize,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self {
            send_max: AtomicUsize::new(SEND_MAX),
        }
    }
}

impl ResultLimits {
    /// Returns how many bytes a result may have.
    #[inline]
    pub fn send_max(&self) -> usize {
        self.send_max.load(Ordering::Relaxed)
    }

    /// Sets how many bytes a result may have; 0 is the default.
    pub fn set_send_max(&self, bytes: usize) {
        let bytes = if bytes == 0 { SEND_MAX } else { bytes };
        self.send_max.store(bytes, Ordering::Relaxed);
    }
}
