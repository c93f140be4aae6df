//! Where connections and ports wait that nobody attends: registered with the system's poller and
//! with no thread of their own.
//!
//! What is parked belongs to the parking alone. An event takes it out *and* off the poller, so that
//! the bytes which follow wake nobody but the thread that attends it.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token, Waker};

use super::limits::ServerLimits;
use super::lock;
use super::pool::Guest;

#[derive(Debug)]
pub(super) struct Parking {
    registry: Registry,
    waker: Waker,
    next_id: AtomicUsize,
    lot: Mutex<Lot>,
}

#[derive(Debug, Default)]
struct Lot {
    guests: HashMap<usize, Guest>,
    /// When the time is over of a request that has begun to come; not later than that of the first.
    next_end: Option<Instant>,
    is_closed: bool,
}

impl Parking {
    /// A parking whose guests have ids from `first_id` on and whose poller wakes up with the
    /// token `wake`.
    pub(super) fn new(registry: &Registry, first_id: usize, wake: Token) -> io::Result<Self> {
        Ok(Self {
            registry: registry.try_clone()?,
            waker: Waker::new(registry, wake)?,
            next_id: AtomicUsize::new(first_id),
            lot: Mutex::default(),
        })
    }

    /// An id for a new guest, never given again.
    pub(super) fn new_id(&self) -> usize {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Parks a guest until it is readable; bytes that are there already count. Nothing is parked
    /// any more once the parking is closed.
    ///
    /// # Errors
    /// The system has no room for it. The guest is gone then.
    pub(super) fn park(&self, guest: Guest) -> io::Result<()> {
        let mut lot = lock(&self.lot);
        if lot.is_closed {
            return Ok(());
        }
        let token = Token(guest.id());
        // The lock is held until both are done: an event finds the guest.
        self.registry
            .register(&mut SourceFd(&guest.fd()), token, Interest::READABLE)?;
        let end = guest.end_of_arrival();
        lot.guests.insert(token.0, guest);
        if end.is_some_and(|end| lot.next_end.is_none_or(|next| end < next)) {
            lot.next_end = end;
            drop(lot);
            // It may have gone to sleep for longer.
            self.wake();
        }
        Ok(())
    }

    /// Takes out a guest that an event was for, if it still is there.
    pub(super) fn take(&self, id: usize) -> Option<Guest> {
        let mut lot = lock(&self.lot);
        let guest = lot.guests.remove(&id)?;
        self.forget(&guest);
        Some(guest)
    }

    fn forget(&self, guest: &Guest) {
        // A descriptor that is still open is still registered; there is no way to fail.
        let _ = self.registry.deregister(&mut SourceFd(&guest.fd()));
    }

    /// Takes out the connections that are to end by now.
    pub(super) fn take_late(&self, limits: &ServerLimits, now: Instant) -> Vec<Guest> {
        let mut lot = lock(&self.lot);
        let guests = &mut lot.guests;
        let late = guests.extract_if(|_, guest| guest.lateness(limits, now).is_some());
        let late: Vec<_> = late.map(|(_, guest)| guest).collect();
        late.iter().for_each(|guest| self.forget(guest));
        lot.next_end = lot.guests.values().filter_map(Guest::end_of_arrival).min();
        late
    }

    /// When to look for those again whose requests come too slowly.
    pub(super) fn next_end(&self) -> Option<Instant> {
        lock(&self.lot).next_end
    }

    /// Lets everything that is parked go and takes nothing in any more.
    pub(super) fn close(&self) -> Vec<Guest> {
        let mut lot = lock(&self.lot);
        lot.is_closed = true;
        lot.guests.drain().map(|(_, guest)| guest).collect()
    }

    /// Wakes the thread that waits in the poller.
    pub(super) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "the poller cannot be woken");
        }
    }
}
