//! Room for calls that are carried out elsewhere than where they were received: how many they may be, and how much
//! memory they may take. Tasks with calls that find none wait for it in their order.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that memory is counted in.
const UNIT: usize = 1024;

/// Room for the calls of all connections and ports.
#[derive(Debug)]
pub(super) struct CallPermits {
    calls: Arc<Semaphore>,
    /// A permit for each unit.
    memory: Arc<Semaphore>,
    units_max: u32,
    /// One for each call with streams, of which there are fewer than calls: the others end by themselves, and those
    /// perhaps not before others of their connections have.
    streaming: Arc<Semaphore>,
}

/// Room for one call, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct CallPermit {
    _call: OwnedSemaphorePermit,
    memory: OwnedSemaphorePermit,
    /// Units that were asked for, of which more than there are were not taken.
    units: usize,
    streaming: Option<OwnedSemaphorePermit>,
}

impl CallPermits {
    /// Room for so many calls, and so many bytes of their memory.
    pub(super) fn new(calls_max: usize, bytes_max: usize) -> Self {
        let units_max = u32::try_from(bytes_max.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let units_max = units_max.clamp(1, u32::MAX / 8);
        Self {
            calls: Arc::new(Semaphore::new(calls_max.clamp(1, Semaphore::MAX_PERMITS))),
            memory: Arc::new(Semaphore::new(units_max as usize)),
            units_max,
            streaming: Arc::new(Semaphore::new(
                calls_max.div_ceil(2).clamp(1, Semaphore::MAX_PERMITS),
            )),
        }
    }

    /// Notes that a call for which there is room has streams; returns false if there are too many of those.
    #[cold]
    pub(super) fn note_streaming(&self, room: &mut CallPermit) -> bool {
        room.streaming = Arc::clone(&self.streaming).try_acquire_owned().ok();
        room.streaming.is_some()
    }

    /// Takes room for a call with so many bytes that count, if there is some and no other waits for it.
    #[inline]
    pub(super) fn try_take(&self, bytes: usize) -> Option<CallPermit> {
        let (units, permits) = self.count(bytes);
        let call = Arc::clone(&self.calls).try_acquire_owned().ok()?;
        let memory = Arc::clone(&self.memory).try_acquire_many_owned(permits);
        Some(CallPermit {
            _call: call,
            memory: memory.ok()?,
            units,
            streaming: None,
        })
    }

    /// Waits for such room behind others that do.
    pub(super) async fn take(&self, bytes: usize) -> Option<CallPermit> {
        let (units, permits) = self.count(bytes);
        // Neither semaphore is ever closed.
        let call = Arc::clone(&self.calls).acquire_owned().await.ok()?;
        let memory = Arc::clone(&self.memory).acquire_many_owned(permits);
        Some(CallPermit {
            _call: call,
            memory: memory.await.ok()?,
            units,
            streaming: None,
        })
    }

    /// A call of any size takes no more than there is: it is carried out when no others are.
    fn count(&self, bytes: usize) -> (usize, u32) {
        let units = bytes.div_ceil(UNIT);
        let permits = u32::try_from(units).unwrap_or(u32::MAX);
        (units, permits.min(self.units_max))
    }
}

impl CallPermit {
    /// Returns whether it is room for a call with so many bytes that count.
    pub(super) fn suffices_for(&self, bytes: usize) -> bool {
        self.units >= bytes.div_ceil(UNIT)
    }

    /// Gives back the memory that a call with so many bytes does not need.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let units = bytes.div_ceil(UNIT);
        if units < self.units {
            let unneeded = self.memory.num_permits().saturating_sub(units);
            drop(self.memory.split(unneeded));
            self.units = units;
        }
    }
}
