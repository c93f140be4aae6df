//! Who waits for a call in flight, and what has become of the call meanwhile.

use std::collections::VecDeque;
use std::thread::{self, Thread};

use tenon_proto::lean::ByteOrder;
use tenon_wire::Buffer;

use super::broken::Broken;
use crate::error::CallError;

/// Names a slot as long as it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotId(usize);

impl SlotId {
    /// The name of the slot that stands so far behind the first.
    pub fn new(index: usize) -> Self {
        Self(index)
    }

    /// How far behind the first the slot stands.
    pub fn index(self) -> usize {
        self.0
    }
}

/// What has become of a call that its owner was not there to see.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The reply was read by somebody else: its results, copied, or what it says instead.
    Answered(Result<Results, CallError>),
    /// The connection ended.
    Broken(Broken),
}

/// A copy of the encoded results of a call.
#[derive(Debug)]
pub struct Results {
    /// The results alone.
    pub bytes: Buffer,
    /// The order of their bytes.
    pub order: ByteOrder,
}

#[derive(Debug, Default)]
struct Slot {
    outcome: Option<Outcome>,
    /// The owner, while it sleeps.
    sleeper: Option<Thread>,
    /// Whether the queue names this slot.
    is_queued: bool,
}

/// The slots of a channel; their storage is kept and used again.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<SlotId>,
    /// Slots whose owners went to sleep, in that order. Some may be awake again.
    queue: VecDeque<SlotId>,
}

impl Slots {
    pub(super) fn take(&mut self) -> SlotId {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            SlotId(self.slots.len() - 1)
        })
    }

    /// Ends the use of a slot; what came for it and was not fetched is returned.
    pub(super) fn release(&mut self, id: SlotId) -> Option<Outcome> {
        self.free.push(id);
        let slot = &mut self.slots[id.0];
        slot.sleeper = None;
        slot.outcome.take()
    }

    /// What has become of the call. Its owner is awake.
    pub(super) fn fetch(&mut self, id: SlotId) -> Option<Outcome> {
        let slot = &mut self.slots[id.0];
        slot.sleeper = None;
        slot.outcome.take()
    }

    /// Says that the present thread goes to sleep until something comes for it or the reader's
    /// role is free.
    pub(super) fn fall_asleep(&mut self, id: SlotId) {
        let slot = &mut self.slots[id.0];
        slot.sleeper = Some(thread::current());
        if !std::mem::replace(&mut slot.is_queued, true) {
            self.queue.push_back(id);
        }
    }

    /// Leaves `outcome` for the owner, who is to be woken if it sleeps.
    #[must_use]
    pub(super) fn deliver(&mut self, id: SlotId, outcome: Outcome) -> Option<Thread> {
        let slot = &mut self.slots[id.0];
        slot.outcome = Some(outcome);
        slot.sleeper.take()
    }

    /// Who has slept longest and still has nothing: the next reader, to be woken.
    #[must_use]
    pub(super) fn next_reader(&mut self) -> Option<Thread> {
        while let Some(id) = self.queue.pop_front() {
            let slot = &mut self.slots[id.0];
            slot.is_queued = false;
            if let Some(sleeper) = slot.sleeper.take() {
                return Some(sleeper);
            }
        }
        None
    }
}
