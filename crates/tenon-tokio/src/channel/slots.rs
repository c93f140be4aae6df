//! Where a call is on its way, and who waits for it.

use std::task::Waker;

use tenon::CallError;
use tenon::runtime::{Note, Results, SlotId, Timer};

use super::written::Written;

/// What has become of a call.
pub(super) type Outcome = Result<Results, CallError>;

/// How far a call has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nobody has the slot.
    Free,
    /// It waits for its turn; the queue names it.
    Waiting(Written),
    /// It was given its number, and stands in the outbox or is with the peer. What may have to be
    /// sent again is kept.
    InFlight(u32, Option<Written>),
    /// It is over, and its owner has not looked yet.
    Over(Outcome),
}

/// A call and whoever waits for it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    pub(super) timer: Timer,
    owner: Option<Waker>,
}

/// The slots of a channel; their storage is kept and used again.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<SlotId>,
}

impl Slots {
    /// A slot for a call.
    pub(super) fn take(&mut self, timer: Timer, stage: Stage, owner: &Waker) -> SlotId {
        let owner = Some(owner.clone());
        let slot = Slot {
            stage,
            timer,
            owner,
        };
        match self.free.pop() {
            Some(id) => {
                self.slots[id.index()] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                SlotId::new(self.slots.len() - 1)
            }
        }
    }

    pub(super) fn get(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[id.index()]
    }

    /// Ends the use of a slot and returns how far its call had come.
    pub(super) fn release(&mut self, id: SlotId) -> Stage {
        self.free.push(id);
        let slot = &mut self.slots[id.index()];
        slot.owner = None;
        std::mem::replace(&mut slot.stage, Stage::Free)
    }

    /// What has become of a call. If nothing has, `owner` is woken when something does.
    pub(super) fn fetch(&mut self, id: SlotId, owner: &Waker) -> Option<Outcome> {
        let slot = &mut self.slots[id.index()];
        if !matches!(slot.stage, Stage::Over(_)) {
            match &mut slot.owner {
                Some(known) => known.clone_from(owner),
                none => *none = Some(owner.clone()),
            }
            return None;
        }
        match self.release(id) {
            Stage::Over(outcome) => Some(outcome),
            Stage::Free | Stage::Waiting(_) | Stage::InFlight(..) => None,
        }
    }

    /// Leaves `outcome` for the owner, who is to be woken; what the call still had is returned.
    pub(super) fn finish(&mut self, id: SlotId, outcome: Outcome) -> (Stage, Option<Waker>) {
        let slot = &mut self.slots[id.index()];
        let before = std::mem::replace(&mut slot.stage, Stage::Over(outcome));
        (before, slot.owner.take())
    }

    /// Leaves a note with the results of a call that is over.
    #[cold]
    pub(super) fn note(&mut self, id: SlotId, note: Option<Box<Note>>) {
        if let Stage::Over(Ok(results)) = &mut self.slots[id.index()].stage {
            results.note = note;
        }
    }

    /// Whether the call in this slot has this number.
    pub(super) fn has_number(&self, id: SlotId, number: u32) -> bool {
        matches!(self.slots[id.index()].stage, Stage::InFlight(own, _) if own == number)
    }

    /// All slots there are.
    pub(super) fn ids(&self) -> impl Iterator<Item = SlotId> + use<> {
        (0..self.slots.len()).map(SlotId::new)
    }
}
