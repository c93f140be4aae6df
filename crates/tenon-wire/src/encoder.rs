//! The cursor that writes.

use crate::{Buffer, EncodeError, EncodeErrorKind};

/// How deep a value to be encoded may nest.
const DEPTH: u32 = 128;

/// Appends to a [`Buffer`]. Generated code writes every argument exactly once, right behind the
/// header that the engine has already put there.
#[derive(Debug)]
pub struct Encoder<'a> {
    buffer: &'a mut Buffer,
    depth_left: u32,
}

impl<'a> Encoder<'a> {
    /// Appends behind what `buffer` holds.
    pub fn new(buffer: &'a mut Buffer) -> Self {
        Self {
            buffer,
            depth_left: DEPTH,
        }
    }

    /// Bytes in the buffer, those before this encoder included.
    pub fn position(&self) -> usize {
        self.buffer.len()
    }

    /// Room for a block whose size the interface fixes; one check for all items in it. Every
    /// byte must be written.
    #[inline(always)]
    pub fn block<const N: usize>(&mut self) -> &mut [u8; N] {
        match self.buffer.room(N).first_chunk_mut() {
            Some(block) => block,
            None => unreachable!("room(N) hands out N bytes"),
        }
    }

    /// Room for `bytes`. Every byte must be written.
    #[inline(always)]
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.buffer.room(bytes)
    }

    /// Bytes that can be appended before the buffer has to grow.
    pub fn spare(&self) -> usize {
        self.buffer.capacity() - self.buffer.len()
    }

    /// Takes back what was appended behind `position`.
    pub fn truncate(&mut self, position: usize) {
        self.buffer.truncate(position);
    }

    /// Levels of recursive types that may still be entered.
    pub fn depth_left(&self) -> u32 {
        self.depth_left
    }

    /// Enters a value of a recursive type; [`leave`](Self::leave) it afterwards.
    ///
    /// # Errors
    /// [`EncodeErrorKind::TooDeep`] at 128 levels.
    pub fn enter(&mut self) -> Result<(), EncodeError> {
        match self.depth_left.checked_sub(1) {
            Some(left) => {
                self.depth_left = left;
                Ok(())
            }
            None => Err(EncodeError::new(EncodeErrorKind::TooDeep)),
        }
    }

    /// Leaves what was entered.
    pub fn leave(&mut self) {
        self.depth_left += 1;
    }
}
