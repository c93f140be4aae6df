//! A limit of the calls that are carried out at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tenon::{CallScope, Middleware, Rejection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets so many calls go on at the same time. Others are refused as [`Busy`](tenon::CallErrorKind::Busy), or
/// [wait](Self::waiting) for their turn, in their order and for as long as they have time.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    limit: usize,
    room: Arc<Semaphore>,
    waiting_max: usize,
    waiting: Arc<AtomicUsize>,
}

impl ConcurrencyLimit {
    /// A limit of so many calls.
    ///
    /// # Panics
    /// The limit is 0, or more than an eighth of what a `usize` can count.
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0, "a limit of 0 calls lets none go on");
        Self {
            limit,
            room: Arc::new(Semaphore::new(limit)),
            waiting_max: 0,
            waiting: Arc::default(),
        }
    }

    /// Lets so many further calls wait for their turn. At a server of threads each of them holds a thread.
    #[must_use]
    pub fn waiting(self, waiting_max: usize) -> Self {
        Self {
            waiting_max,
            ..self
        }
    }

    #[cold]
    fn wait(&self, call: &mut CallScope<'_>) -> Result<ConcurrencyPermit, Rejection> {
        let Some(place) = WaitingPlace::take(&self.waiting, self.waiting_max) else {
            let limit = self.limit;
            return Err(Rejection::busy(format!(
                "{limit} calls are carried out already"
            )));
        };
        let permit = Arc::new(OnceLock::new());
        let (room, granted) = (Arc::clone(&self.room), Arc::clone(&permit));
        call.hold_for(async move {
            if let Ok(permit) = room.acquire_owned().await {
                // A call waits once, so there is none yet.
                let _ = granted.set(permit);
            }
            drop(place);
        });
        Ok(ConcurrencyPermit::Later(permit))
    }
}

/// Room for a call, until it is dropped.
#[derive(Debug)]
pub enum ConcurrencyPermit {
    /// There was room.
    Now(OwnedSemaphorePermit),
    /// The call waits, or has waited, for room.
    Later(Arc<OnceLock<OwnedSemaphorePermit>>),
}

/// A place among the calls that wait.
struct WaitingPlace(Arc<AtomicUsize>);

impl WaitingPlace {
    fn take(waiting: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let more = |count| (count < limit).then_some(count + 1);
        let taken = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Self(Arc::clone(waiting)))
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Middleware for ConcurrencyLimit {
    type State = ConcurrencyPermit;

    #[inline]
    fn begin(&self, call: &mut CallScope<'_>) -> Result<ConcurrencyPermit, Rejection> {
        match Arc::clone(&self.room).try_acquire_owned() {
            Ok(permit) => Ok(ConcurrencyPermit::Now(permit)),
            Err(_) => self.wait(call),
        }
    }
}
