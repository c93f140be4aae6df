//! The calls of a channel as their futures have them, and what has become of them.

use std::sync::Arc;
use std::task::Waker;

use tenon_core::client::{CallId, Outcome};
use tenon_core::timer::CallTimer;
use tenon_proto::connection::{CallDraft, LeanCall, UnsentCall};
use tenon_proto::lean::{Interface, MessageDraft};
use tenon_wire::Buffer;

/// Names a waiter as long as it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WaiterId(usize);

/// The stage of a call.
#[derive(Debug)]
pub(super) enum CallStage {
    /// There is none.
    Free,
    /// It waits for a connection, or for the peer to take it; the queue names it.
    Queued(QueuedCall),
    /// The peer is sent it, or has it.
    InFlight(CallId),
    /// It is over, and its future was not polled since.
    Over(Outcome),
}

/// A call that could not be started yet.
#[derive(Debug)]
pub(super) enum QueuedCall {
    /// One that never was.
    Fresh {
        /// The message that is to be sent.
        message: Buffer,
        draft: OwnedDraft,
    },
    /// One that was not sent when its connection was lost.
    Unsent(UnsentCall),
}

/// The content of a [`CallDraft`], without borrowing from its client.
#[derive(Debug)]
pub(super) enum OwnedDraft {
    Onc,
    Lean {
        draft: MessageDraft,
        interface: Arc<Interface>,
        procedure: u16,
    },
}

impl From<&CallDraft<'_>> for OwnedDraft {
    fn from(draft: &CallDraft<'_>) -> Self {
        match draft {
            CallDraft::Onc => Self::Onc,
            CallDraft::Lean(call) => Self::Lean {
                draft: call.draft,
                interface: Arc::clone(call.interface),
                procedure: call.procedure,
            },
        }
    }
}

impl OwnedDraft {
    pub(super) fn draft(&self) -> CallDraft<'_> {
        match self {
            Self::Onc => CallDraft::Onc,
            Self::Lean {
                draft,
                interface,
                procedure,
            } => CallDraft::Lean(LeanCall {
                draft: *draft,
                interface,
                procedure: *procedure,
            }),
        }
    }
}

#[derive(Debug)]
pub(super) struct CallSlot {
    pub(super) stage: CallStage,
    pub(super) timer: CallTimer,
    /// The task that polls the future.
    task: Option<Waker>,
}

/// The waiters of a channel; their memory is kept and used again.
#[derive(Debug, Default)]
pub(super) struct WaiterSlab {
    slots: Vec<CallSlot>,
    free: Vec<WaiterId>,
}

impl WaiterSlab {
    #[inline]
    pub(super) fn take(&mut self, timer: CallTimer) -> WaiterId {
        let stage = CallStage::Free;
        match self.free.pop() {
            Some(id) => {
                let slot = &mut self.slots[id.0];
                slot.timer = timer;
                slot.stage = stage;
                id
            }
            None => {
                let task = None;
                self.slots.push(CallSlot { stage, timer, task });
                WaiterId(self.slots.len() - 1)
            }
        }
    }

    #[inline]
    pub(super) fn get(&mut self, id: WaiterId) -> &mut CallSlot {
        &mut self.slots[id.0]
    }

    /// Ends the use of a waiter, and returns how far its call had come.
    #[inline]
    pub(super) fn release(&mut self, id: WaiterId) -> CallStage {
        self.free.push(id);
        // The memory of a waker is the task's: the same task mostly is the next one here.
        std::mem::replace(&mut self.slots[id.0].stage, CallStage::Free)
    }

    /// Returns whether a call is over.
    #[inline]
    pub(super) fn is_over(&self, id: WaiterId) -> bool {
        matches!(self.slots[id.0].stage, CallStage::Over(_))
    }

    /// Has `task` woken when the call is over.
    #[inline]
    pub(super) fn set_task(&mut self, id: WaiterId, task: &Waker) {
        match &mut self.slots[id.0].task {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
    }

    /// Takes the task that is to be woken for a waiter, whatever has become of its call.
    pub(super) fn wake(&mut self, id: WaiterId) -> Option<Waker> {
        self.slots[id.0].task.take()
    }

    /// Takes the outcome of a call that is over; the waiter is still taken.
    pub(super) fn take_outcome(&mut self, id: WaiterId) -> Option<Outcome> {
        let stage = &mut self.slots[id.0].stage;
        match std::mem::replace(stage, CallStage::Free) {
            CallStage::Over(outcome) => Some(outcome),
            other => {
                *stage = other;
                None
            }
        }
    }

    /// Leaves `outcome` for a waiter; returns the task that is to be woken.
    #[inline]
    pub(super) fn deliver(&mut self, id: WaiterId, outcome: Outcome) -> (CallStage, Option<Waker>) {
        let slot = &mut self.slots[id.0];
        let before = std::mem::replace(&mut slot.stage, CallStage::Over(outcome));
        (before, slot.task.take())
    }
}
