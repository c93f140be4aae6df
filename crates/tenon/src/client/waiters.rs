//! The callers that wait, and what has become of their calls meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use tenon_core::client::{CallId, Outcome};
use tenon_core::wait::Waiting;

use super::wait_handle::{WaitHandle, WakeFlags, WakeHandle};

/// Most woken callers for whose next calls a sender does not wait. Four callers over TCP whose calls go out one by one take
/// 0.8 of the time, as the server begins with the first while the next is made; eight take 1.3 of it, with a system call
/// for each.
const UNAWAITED_MAX: usize = 2;

/// Names a waiter as long as it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaiterId(usize);

#[derive(Debug)]
struct WaiterSlot {
    /// The call that is waited for, as it is in flight now.
    call: Option<CallId>,
    outcome: Option<Outcome>,
    handle: Arc<WaitHandle>,
    /// The thread, while it sleeps.
    sleeper: Option<WakeHandle>,
    /// True if the queue names this waiter.
    is_queued: bool,
    /// True if the thread was woken for the outcome, and is not [back](WaiterQueue::note_awake).
    is_woken: bool,
}

/// The waiters of a channel; their memory is kept and used again.
#[derive(Debug)]
pub(super) struct WaiterQueue {
    waiting: Waiting,
    flags: WakeFlags,
    slots: Vec<WaiterSlot>,
    free: Vec<WaiterId>,
    /// Waiters that went to sleep, in that order. Some may be awake again.
    asleep: VecDeque<WaiterId>,
    /// Number of waiters whose threads were woken for their outcomes, and are not [back](Self::note_awake).
    woken: usize,
}

impl WaiterQueue {
    /// Returns an empty queue; the threads of its waiters will wait in this way.
    pub(super) fn new(waiting: Waiting) -> Self {
        Self {
            waiting,
            flags: WakeFlags::default(),
            slots: Vec::new(),
            free: Vec::new(),
            asleep: VecDeque::new(),
            woken: 0,
        }
    }

    #[inline]
    pub(super) fn take(&mut self) -> WaiterId {
        match self.free.pop() {
            Some(id) => id,
            None => self.add(),
        }
    }

    #[cold]
    fn add(&mut self) -> WaiterId {
        self.slots.push(WaiterSlot {
            call: None,
            outcome: None,
            handle: Arc::new(WaitHandle::new(self.flags.add(), self.waiting)),
            sleeper: None,
            is_queued: false,
            is_woken: false,
        });
        WaiterId(self.slots.len() - 1)
    }

    /// Ends the use of a waiter, and returns what came for it and was not fetched.
    #[inline]
    pub(super) fn release(&mut self, id: WaiterId) -> Option<Outcome> {
        self.free.push(id);
        let slot = &mut self.slots[id.0];
        slot.call = None;
        // Mostly there is neither, and an outcome is large.
        if slot.sleeper.is_some() {
            slot.sleeper = None;
        }
        if slot.outcome.is_some() {
            slot.outcome.take()
        } else {
            None
        }
    }

    /// Notes which call is waited for.
    #[inline]
    pub(super) fn set_call(&mut self, id: WaiterId, call: CallId) {
        self.slots[id.0].call = Some(call);
    }

    /// Returns the call that is waited for, if it has begun.
    #[inline]
    pub(super) fn call(&self, id: WaiterId) -> Option<CallId> {
        self.slots[id.0].call
    }

    /// Takes what has become of the call. The thread that waits for it is awake.
    #[inline]
    pub(super) fn fetch(&mut self, id: WaiterId) -> Option<Outcome> {
        let slot = &mut self.slots[id.0];
        slot.sleeper = None;
        slot.outcome.take()
    }

    /// Returns whether more than a few callers were woken for their outcomes that are not [back](Self::note_awake).
    #[inline]
    pub(super) fn has_woken_many(&self) -> bool {
        self.woken > UNAWAITED_MAX
    }

    /// Notes that the present thread, which has [slept](Self::fall_asleep), is awake.
    pub(super) fn note_awake(&mut self, id: WaiterId) {
        let slot = &mut self.slots[id.0];
        slot.sleeper = None;
        if std::mem::take(&mut slot.is_woken) {
            self.woken -= 1;
        }
    }

    /// Returns what has become of the call, and leaves it there.
    pub(super) fn outcome(&self, id: WaiterId) -> Option<&Outcome> {
        self.slots[id.0].outcome.as_ref()
    }

    /// Returns whether something has come for a waiter.
    #[inline]
    pub(super) fn has_outcome(&self, id: WaiterId) -> bool {
        self.slots[id.0].outcome.is_some()
    }

    /// Notes that the present thread goes to sleep until there is something for it to do; returns what it waits by.
    #[must_use]
    pub(super) fn fall_asleep(&mut self, id: WaiterId) -> Arc<WaitHandle> {
        let slot = &mut self.slots[id.0];
        slot.sleeper = Some(slot.handle.wake_handle());
        if !std::mem::replace(&mut slot.is_queued, true) {
            self.asleep.push_back(id);
        }
        Arc::clone(&slot.handle)
    }

    /// Leaves `outcome` for a waiter, which is to be woken if it sleeps.
    #[must_use]
    pub(super) fn deliver(&mut self, id: WaiterId, outcome: Outcome) -> Option<WakeHandle> {
        let slot = &mut self.slots[id.0];
        slot.outcome = Some(outcome);
        let sleeper = slot.sleeper.take();
        if sleeper.is_some() {
            slot.is_woken = true;
            self.woken += 1;
        }
        sleeper
    }

    /// Takes what wakes a waiter, if it sleeps.
    pub(super) fn wake(&mut self, id: WaiterId) -> Option<WakeHandle> {
        self.slots[id.0].sleeper.take()
    }

    /// Takes what wakes the waiter that has slept longest and still has nothing: it is to read or to send next.
    #[must_use]
    #[inline]
    pub(super) fn wake_next(&mut self) -> Option<WakeHandle> {
        if self.asleep.is_empty() {
            return None;
        }
        self.wake_first_asleep()
    }

    fn wake_first_asleep(&mut self) -> Option<WakeHandle> {
        while let Some(id) = self.asleep.pop_front() {
            let slot = &mut self.slots[id.0];
            slot.is_queued = false;
            if let Some(sleeper) = slot.sleeper.take() {
                return Some(sleeper);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use tenon_core::error::CallError;

    use super::*;

    fn outcome() -> Outcome {
        Outcome::Answered(Err(Box::new(CallError::StreamClosed)))
    }

    /// Callers that were woken count until they are back, and not until they fetch what they were woken for: one that reads
    /// a stream does so when it has read all of it.
    #[test]
    fn woken_callers_count_until_they_are_back() {
        let mut waiters = WaiterQueue::new(Waiting::Block);
        let all: Vec<WaiterId> = (0..=UNAWAITED_MAX + 1).map(|_| waiters.take()).collect();
        let [looking, asleep @ ..] = &all[..] else {
            unreachable!("there are more");
        };
        assert!(waiters.deliver(*looking, outcome()).is_none());
        for id in asleep {
            assert!(!waiters.has_woken_many());
            let _handle = waiters.fall_asleep(*id);
            assert!(waiters.deliver(*id, outcome()).is_some());
        }
        assert!(waiters.has_woken_many());
        waiters.note_awake(asleep[0]);
        assert!(!waiters.has_woken_many() && waiters.has_outcome(asleep[0]));
        // The others come later, and each once.
        for id in asleep {
            waiters.note_awake(*id);
        }
        assert_eq!(waiters.woken, 0);
    }
}
