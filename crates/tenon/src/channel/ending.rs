//! What becomes of a call that is over: its answer is copied for its owner, or its slot is free again.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use tenon_proto::lean::ByteOrder;

use super::bell::Sleeper;
use super::connection::Desk;
use super::engine::Engine;
use super::reader::Taken;
use super::slots::{Outcome, Results, SlotId};
use super::state::State;
use crate::error::CallError;

impl State {
    /// Ends the call of `slot` if the packet that has come next is its answer and of the commonest form; where
    /// its results are.
    #[inline]
    pub(super) fn take_common(&mut self, desk: &Desk, slot: SlotId) -> Option<Range<usize>> {
        // What came over a connection that is given up says nothing of the one that follows it.
        if !self.is_line(&desk.connection) {
            return None;
        }
        let Engine::Exchange(engine) = &mut self.engine else {
            return None;
        };
        let place = engine.take_common(desk.inbox.single_packet()?, slot)?;
        self.back_off.reset();
        self.release(slot);
        Some(place)
    }

    /// Ends a call whose owner has its reply, which may have been told that the connection broke meanwhile.
    #[inline(always)]
    pub(super) fn end_answered(&mut self, id: u32, slot: SlotId) {
        if self.engine.handle_success(id, slot) {
            self.back_off.reset();
        }
        self.release(slot);
    }

    /// Copies a reply for its owner.
    #[inline]
    pub(super) fn copy(
        &mut self,
        outcome: Result<&[u8], Box<CallError>>,
        order: ByteOrder,
    ) -> Result<Results, CallError> {
        let results = outcome.map_err(|error| *error)?;
        let mut bytes = self.buffers.take();
        bytes.extend(results);
        Ok(Results {
            bytes,
            order,
            note: None,
        })
    }

    /// Tells the owners of calls that the peer has not begun them.
    #[cold]
    pub(super) fn give_back(
        &mut self,
        cause: io::Error,
        unbegun: &[SlotId],
        own: Option<SlotId>,
    ) -> Taken {
        let error = CallError::Disconnected {
            cause: Arc::new(cause),
            may_have_executed: false,
        };
        let mut taken = Taken::Other;
        for slot in unbegun {
            self.fail(*slot, error.clone(), own, &mut taken);
        }
        taken
    }

    /// Tells the owners of calls that came to nothing without an answer.
    #[inline]
    pub(super) fn end_failed(&mut self, own: Option<SlotId>) -> Taken {
        let mut taken = Taken::Other;
        while let Some((slot, error)) = self.engine.poll_failure() {
            self.fail(slot, error, own, &mut taken);
        }
        taken
    }

    #[cold]
    fn fail(&mut self, slot: SlotId, error: CallError, own: Option<SlotId>, taken: &mut Taken) {
        match own == Some(slot) {
            true => {
                self.release(slot);
                *taken = Taken::Own(Err(Box::new(error)));
            }
            false => {
                let outcome = Outcome::Answered(Err(error));
                self.slots.deliver(slot, outcome).inspect(Sleeper::wake);
            }
        }
    }
}
