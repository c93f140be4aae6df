//! Who waits for a call in flight, and what has become of the call meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use tenon_proto::lean::ByteOrder;
use tenon_wire::Buffer;

use super::bell::{Bell, Sleeper};
use super::broken::Broken;
use crate::account::Note;
use crate::error::CallError;
use crate::waiting::Waiting;

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
    /// What their reader has seen, if the server says something of the call's way.
    pub note: Option<Box<Note>>,
}

#[derive(Debug)]
struct Slot {
    outcome: Option<Outcome>,
    bell: Arc<Bell>,
    /// The owner, while it sleeps.
    sleeper: Option<Sleeper>,
    /// Whether the queue names this slot.
    is_queued: bool,
}

impl Slot {
    fn new(waiting: Waiting) -> Self {
        Self {
            outcome: None,
            bell: Arc::new(Bell::new(waiting)),
            sleeper: None,
            is_queued: false,
        }
    }
}

/// The slots of a channel; their storage is kept and used again.
#[derive(Debug)]
pub(super) struct Slots {
    waiting: Waiting,
    slots: Vec<Slot>,
    free: Vec<SlotId>,
    /// Slots whose owners went to sleep, in that order. Some may be awake again.
    queue: VecDeque<SlotId>,
}

impl Slots {
    /// No slots, whose owners will wait in this way.
    pub(super) fn new(waiting: Waiting) -> Self {
        Self {
            waiting,
            slots: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    #[inline(always)]
    pub(super) fn take(&mut self) -> SlotId {
        match self.free.pop() {
            Some(id) => id,
            None => self.add(),
        }
    }

    #[cold]
    fn add(&mut self) -> SlotId {
        self.slots.push(Slot::new(self.waiting));
        SlotId(self.slots.len() - 1)
    }

    /// Ends the use of a slot; what came for it and was not fetched is returned.
    #[inline(always)]
    pub(super) fn release(&mut self, id: SlotId) -> Option<Outcome> {
        self.free.push(id);
        let slot = &mut self.slots[id.0];
        // Mostly there is neither, and an outcome is large.
        if slot.sleeper.is_some() {
            slot.sleeper = None;
        }
        match slot.outcome.is_some() {
            true => slot.outcome.take(),
            false => None,
        }
    }

    /// What has become of the call. Its owner is awake.
    #[inline]
    pub(super) fn fetch(&mut self, id: SlotId) -> Option<Outcome> {
        let slot = &mut self.slots[id.0];
        slot.sleeper = None;
        slot.outcome.take()
    }

    /// Says that the present thread goes to sleep until something comes for it or the reader's
    /// role is free. The bell is what it waits for.
    #[must_use]
    pub(super) fn fall_asleep(&mut self, id: SlotId) -> Arc<Bell> {
        let slot = &mut self.slots[id.0];
        slot.sleeper = Some(slot.bell.sleeper());
        if !std::mem::replace(&mut slot.is_queued, true) {
            self.queue.push_back(id);
        }
        Arc::clone(&slot.bell)
    }

    /// Leaves `outcome` for the owner, who is to be woken if it sleeps.
    #[must_use]
    pub(super) fn deliver(&mut self, id: SlotId, outcome: Outcome) -> Option<Sleeper> {
        let slot = &mut self.slots[id.0];
        slot.outcome = Some(outcome);
        slot.sleeper.take()
    }

    /// Who has slept longest and still has nothing: the next reader, to be woken.
    #[must_use]
    #[inline]
    pub(super) fn next_reader(&mut self) -> Option<Sleeper> {
        match self.queue.is_empty() {
            true => None,
            false => self.next_of_queue(),
        }
    }

    fn next_of_queue(&mut self) -> Option<Sleeper> {
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
