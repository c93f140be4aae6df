//! Reusable memory that values are decoded to one after the other.

use std::fmt;

use tenon_wire::{DecodeError, Decoder, Representation};

use super::{Frame, Message};
#[cfg(feature = "jit")]
use crate::jit::CompileTrigger;

/// Reusable memory for one value of a message after the other. A decoded value stays until the next one is decoded;
/// the memory is kept and used again, so that decoding more messages of the same type soon allocates nothing.
pub struct Slot<'a> {
    /// Filled or not: it is only handed out after it was filled.
    frame: Frame<'a>,
}

impl<'a> Message<'a> {
    /// Makes a slot for values of this message.
    pub fn slot(self) -> Slot<'a> {
        let frame = Frame::room(self);
        Slot { frame }
    }
}

impl fmt::Debug for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // There may be no value.
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl<'a> Slot<'a> {
    /// Reads a value: by machine code, if there is some or it is worth making now.
    ///
    /// # Errors
    /// As [`Message::decode`].
    #[inline(always)]
    pub fn decode<R: Representation>(
        &mut self,
        input: &mut Decoder<'_, R>,
    ) -> Result<&Frame<'a>, DecodeError> {
        self.frame.fill(input)?;
        Ok(&self.frame)
    }

    /// Reads a value by the interpreter.
    ///
    /// # Errors
    /// As [`Message::decode_by_interpreter`].
    #[inline(always)]
    pub fn decode_by_interpreter<R: Representation>(
        &mut self,
        input: &mut Decoder<'_, R>,
    ) -> Result<&Frame<'a>, DecodeError> {
        self.frame.fill_by_interpreter(input)?;
        Ok(&self.frame)
    }

    /// Reads a value by machine code alone. `None`, and nothing read, as
    /// [`Message::decode_by_machine`].
    #[cfg(feature = "jit")]
    #[inline(always)]
    pub fn decode_by_machine<R: Representation>(
        &mut self,
        input: &mut Decoder<'_, R>,
    ) -> Option<&Frame<'a>> {
        let done = self.frame.fill_by_machine(CompileTrigger::Now, input);
        done.then_some(&self.frame)
    }

    /// Frees all memory but that of the value itself, without what it points to: after a message
    /// that was larger than most, for instance.
    #[inline]
    pub fn clear(&mut self) {
        self.frame.storage.arena.clear();
    }
}
