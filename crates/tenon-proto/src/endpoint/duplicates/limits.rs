//! Limits of the duplicate request cache.

use std::time::Duration;

/// Bounds of the duplicate request cache of a port. Change what you need and take the rest from [`Default`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateLimits {
    /// Bytes of memory, in which all is counted that the cache needs: calls, replies, addresses of peers, and the tables
    /// by which they are found. The tables, less than a tenth, are taken at once, but touched only as they are used; the rest
    /// is taken as calls come, and stays with the port. [`BYTES_MIN`](Self::BYTES_MIN) at least.
    pub bytes: usize,
    /// The longest time that a reply is kept: longer than clients go on repeating a call, and shorter than they take to
    /// come back to the same xid.
    pub age: Duration,
    /// The newest replies to each peer that are kept for [`protected_age`](Self::protected_age). Only when other memory
    /// is used up does one of them make way, which is counted.
    pub protected_calls: usize,
    /// The time for which these are kept.
    pub protected_age: Duration,
}

impl DuplicateLimits {
    /// The smallest number of [`bytes`](Self::bytes), which is enough for about a dozen calls.
    pub const BYTES_MIN: usize = 4096;

    /// Returns whether there is room for any call.
    pub fn have_room(&self) -> bool {
        self.bytes >= Self::BYTES_MIN
    }
}

impl Default for DuplicateLimits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            age: Duration::from_secs(120),
            protected_calls: 128,
            protected_age: Duration::from_secs(60),
        }
    }
}
