//! When a blocking receive gives up, without telling the kernel every time.
//!
//! A deadline differs with every call, `SO_RCVTIMEO` need not: a receive may return early as long as the real deadline
//! is checked afterwards. So the kernel's limit is lowered when it is longer than what is left, and raised only once it
//! has woken a thread for nothing. Calls with like deadlines cost no system call here.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// The receive limit that the kernel knows, in milliseconds; `u64::MAX` is none.
#[derive(Debug)]
pub(crate) struct ReceiveTimeout(AtomicU64);

impl ReceiveTimeout {
    pub(crate) const fn unset() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Makes sure that a receive returns within `left`, or a millisecond if that is longer.
    /// One thread at a time receives, so there is no race to win.
    #[inline]
    pub(crate) fn lower(&self, fd: BorrowedFd<'_>, left: Duration) -> rustix::io::Result<()> {
        match self.0.load(Ordering::Relaxed) <= millis(left).max(1) {
            true => Ok(()),
            false => self.set(fd, coarse_ms(left)),
        }
    }

    /// Makes a receive wait for `left`, as coarsely as [`lower`](Self::lower) does.
    pub(crate) fn set_to(&self, fd: BorrowedFd<'_>, left: Duration) -> rustix::io::Result<()> {
        let wanted = coarse_ms(left);
        if self.0.load(Ordering::Relaxed) == wanted {
            return Ok(());
        }
        self.set(fd, wanted)
    }

    /// Makes a receive wait for `limit`, in whole milliseconds and at least one.
    #[inline]
    pub(crate) fn set_exactly(
        &self,
        fd: BorrowedFd<'_>,
        limit: Duration,
    ) -> rustix::io::Result<()> {
        let wanted = millis(limit).clamp(1, u64::MAX - 1);
        if self.0.load(Ordering::Relaxed) == wanted {
            return Ok(());
        }
        self.set(fd, wanted)
    }

    #[cold]
    fn set(&self, fd: BorrowedFd<'_>, limit_ms: u64) -> rustix::io::Result<()> {
        set_socket_timeout(fd, Timeout::Recv, Some(Duration::from_millis(limit_ms)))?;
        self.0.store(limit_ms, Ordering::Relaxed);
        Ok(())
    }
}

#[inline]
fn millis(time: Duration) -> u64 {
    let whole = time.as_secs().saturating_mul(1000);
    whole.saturating_add(time.subsec_millis().into())
}

/// Returns the greatest power of two of milliseconds within `left`, so that neighbouring deadlines share one limit; at
/// least one, because the kernel takes zero for "no limit".
fn coarse_ms(left: Duration) -> u64 {
    const DAY_MS: u128 = 24 * 3600 * 1000;
    let left_ms = left.as_millis().clamp(1, DAY_MS) as u64;
    1 << left_ms.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_deadlines_share_a_limit_that_is_never_longer() {
        assert_eq!(coarse_ms(Duration::from_secs(25)), 16_384);
        assert_eq!(coarse_ms(Duration::from_millis(24_999)), 16_384);
        assert_eq!(coarse_ms(Duration::from_micros(1500)), 1);
        assert_eq!(coarse_ms(Duration::ZERO), 1);
        assert!(coarse_ms(Duration::MAX) <= 24 * 3600 * 1000);
    }
}
