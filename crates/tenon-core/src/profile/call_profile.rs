//! The account of the calls that are followed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenon_net::PacketCosts;

use super::IfAccount;
use super::steps::{CallTimestamps, StepRecorder};

/// An account of calls. Clones are the same account; any number of
/// clients may share it, and any number of threads.
///
/// ```no_run
/// use tenon::{CallProfile, Client};
///
/// let account = CallProfile::of_one_in(1000);
/// let client = Client::connect("lean+tcp://localhost:4000", 300, 1)?.with_profile(&account);
/// // Calls, and then:
/// if let Some(summary) = account.summary() {
///     for part in &summary.parts {
///         println!("{:?} {} ns", part.part, part.figures.median);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CallProfile {
    pub(super) shared: IfAccount<Arc<AccountState>>,
}

pub(super) struct AccountState {
    /// Sampling interval: of so many calls one is followed.
    pub(super) every: u64,
    pub(super) calls: AtomicU64,
    /// What the kernel takes for what has no time stamps, if packets are followed.
    pub(super) packets: Option<PacketCosts>,
    pub(super) kept: Mutex<RecentCalls>,
}

/// Ring of the timestamps of the newest calls. Traces are worked out from them when they are asked for.
pub(super) struct RecentCalls {
    pub(super) calls: Vec<CallTimestamps>,
    pub(super) limit: usize,
    /// Index of the oldest call, which the next one replaces when there is no more room.
    pub(super) next: usize,
}

impl CallProfile {
    /// Returns whether the call that begins now is to be followed.
    #[cold]
    pub fn is_due(&self) -> bool {
        let before = self.shared.calls.fetch_add(1, Ordering::Relaxed);
        before.is_multiple_of(self.shared.every)
    }

    /// Follows `call`, and keeps what is known of it if it has a result.
    #[cold]
    #[inline(never)]
    pub fn follow<T, E>(&self, call: impl FnOnce(&StepRecorder) -> Result<T, E>) -> Result<T, E> {
        let steps = StepRecorder::begin();
        let value = call(&steps)?;
        self.keep(steps.end());
        Ok(value)
    }

    pub(super) fn keep(&self, times: CallTimestamps) {
        let mut kept = self.lock();
        let next = kept.next;
        match kept.calls.len() < kept.limit {
            true => kept.calls.push(times),
            false => kept.calls[next] = times,
        }
        kept.next = (next + 1) % kept.limit;
    }

    /// Returns whether packets are followed.
    pub fn follows_packets(&self) -> bool {
        self.shared.packets.is_some()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RecentCalls> {
        let kept = self.shared.kept.lock();
        kept.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CallProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallProfile")
            .field("every", &self.shared.every)
            .field("kept", &self.lock().calls.len())
            .finish_non_exhaustive()
    }
}
