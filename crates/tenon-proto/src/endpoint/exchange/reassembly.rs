//! A message that is being received in several fragments.

use std::collections::BTreeMap;

use super::WINDOW;
use super::sending::FRAGMENT_MIN;
use super::spare::SpareBuffers;
use crate::connection::framing::{OutOfMemory, ReceiveBuffer};

/// Every message begins at a multiple of so many bytes in memory.
const ALIGNMENT: usize = 8;

/// In-order fragments that are acknowledged together.
const ACKNOWLEDGED_TOGETHER: u32 = 8;

/// A message that is being received. It takes memory as fragments come, whatever they say of their
/// number: those that are next are appended, others are held until they are.
#[derive(Debug)]
pub(super) struct Reassembly {
    /// 0 if nothing has come.
    count: u32,
    /// All before this one are in `storage`.
    below: u32,
    storage: ReceiveBuffer,
    held: BTreeMap<u32, Box<[u8]>>,
    held_bytes: usize,
    /// In-order fragments that were not acknowledged.
    silent: u32,
    bytes_max: usize,
}

/// The effect of a fragment that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FragmentOutcome {
    /// The message is whole.
    Whole,
    /// One more; `true` if it is to be acknowledged now.
    More(bool),
    /// It was there already.
    Repeated,
}

/// The reason for which a fragment is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FragmentError {
    /// It contradicts the others, or the rules.
    Malformed,
    /// The message is too large, or there is no memory for it.
    TooLarge,
}

impl Reassembly {
    /// For messages of at most so many bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            count: 0,
            below: 0,
            storage: ReceiveBuffer::new(ALIGNMENT, bytes_max.saturating_add(ALIGNMENT)),
            held: BTreeMap::new(),
            held_bytes: 0,
            silent: 0,
            bytes_max,
        }
    }

    /// Bytes of memory that it has.
    pub(super) fn bytes(&self) -> usize {
        self.storage.capacity() + self.held_bytes
    }

    /// Bytes of memory that a fragment of so many bytes takes at least.
    pub(super) fn cost_of(&self, fragment: u32, bytes: usize) -> usize {
        let is_appended = self.is_begun() && fragment == self.below;
        match is_appended && !self.storage.lacks(bytes) {
            true => 0,
            false => bytes,
        }
    }

    /// Bytes of the message that have come.
    fn bytes_taken(&self) -> usize {
        self.storage.end() - self.storage.base() + self.held_bytes
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn below(&self) -> u32 {
        self.below
    }

    /// Returns the fragments that are held, in ascending order.
    pub(super) fn held(&self) -> impl Iterator<Item = u32> {
        self.held.keys().copied()
    }

    pub(super) fn is_begun(&self) -> bool {
        self.count > 0
    }

    /// Forgets everything, and gives the memory back.
    pub(super) fn clear(&mut self) {
        self.storage.release();
        self.held.clear();
        (self.count, self.below, self.held_bytes, self.silent) = (0, 0, 0, 0);
    }

    /// Takes a fragment.
    pub(super) fn take(
        &mut self,
        fragment: u32,
        count: u32,
        data: &[u8],
        spare: &mut SpareBuffers,
    ) -> Result<FragmentOutcome, FragmentError> {
        let is_sound = match self.count {
            0 => count > 1,
            known => count == known,
        };
        let is_last = fragment.checked_add(1) == Some(count);
        let is_full = data.len() >= FRAGMENT_MIN || is_last && !data.is_empty();
        if !is_sound || fragment >= count || !is_full {
            return Err(FragmentError::Malformed);
        }
        if fragment < self.below || self.held.contains_key(&fragment) {
            return Ok(FragmentOutcome::Repeated);
        }
        if fragment - self.below >= WINDOW {
            return Err(FragmentError::Malformed);
        }
        if self.bytes_taken() + data.len() > self.bytes_max {
            return Err(FragmentError::TooLarge);
        }
        if self.count == 0 {
            let promised = data.len().saturating_mul(count as usize);
            spare.lend_storage(&mut self.storage, promised);
        }
        self.count = count;
        if fragment > self.below {
            self.held_bytes += data.len();
            self.held.insert(fragment, data.into());
            return Ok(FragmentOutcome::More(true));
        }
        let had_holes = !self.held.is_empty();
        self.append(data)?;
        self.append_held()?;
        match self.below == self.count {
            true => Ok(FragmentOutcome::Whole),
            false => Ok(FragmentOutcome::More(self.is_due(had_holes))),
        }
    }

    fn is_due(&mut self, had_holes: bool) -> bool {
        self.silent += 1;
        let is_due = had_holes || self.silent >= ACKNOWLEDGED_TOGETHER;
        if is_due {
            self.silent = 0;
        }
        is_due
    }

    fn append_held(&mut self) -> Result<(), FragmentError> {
        while let Some(data) = self.held.remove(&self.below) {
            self.held_bytes -= data.len();
            self.append(&data)?;
        }
        Ok(())
    }

    fn append(&mut self, data: &[u8]) -> Result<(), FragmentError> {
        self.below += 1;
        let appended = self.storage.append(data);
        appended.map_err(|OutOfMemory| FragmentError::TooLarge)
    }

    /// Hands the whole message over to `whole`, and begins anew.
    pub(super) fn hand_over(&mut self, whole: &mut ReceiveBuffer, spare: &mut SpareBuffers) {
        std::mem::swap(&mut self.storage, whole);
        spare.take_storage(&mut self.storage);
        self.clear();
    }

    /// Returns storage that a message can be handed over to.
    pub(super) fn receiver(bytes_max: usize) -> ReceiveBuffer {
        ReceiveBuffer::new(ALIGNMENT, bytes_max.saturating_add(ALIGNMENT))
    }
}

/// The whole message.
pub(super) fn whole(storage: &ReceiveBuffer) -> &[u8] {
    storage.received(storage.base())
}
