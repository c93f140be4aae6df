//! Values that a peer sent in the lean representation, perhaps in the other order of bytes.

use tenon_proto::lean::ByteOrder;
use tenon_wire::{
    DecodeError, DecodeErrorKind, DecodeMode, Decoder, Lean, Limits, Representation, Swapped,
};

/// Bytes of which the position of each item of a stream in its message is a multiple.
pub(crate) const ITEM_ALIGNMENT: usize = 8;

/// The arguments of a lean call or its results, by the order of bytes of the machine that sent them.
#[derive(Debug)]
pub enum LeanInput<'a> {
    /// It is this machine's.
    Native(Decoder<'a, Lean>),
    /// It is the other one.
    Swapped(Decoder<'a, Lean<Swapped>>),
}

impl<'a> LeanInput<'a> {
    /// Reads what is encoded in `bytes` in this order.
    pub fn over(bytes: &'a [u8], order: ByteOrder, mode: DecodeMode, limits: Limits) -> Self {
        match order.is_swapped() {
            false => Self::Native(Decoder::over(bytes, mode, limits)),
            true => Self::Swapped(Decoder::over(bytes, mode, limits)),
        }
    }

    /// Checks that nothing is left which the mode does not forgive.
    ///
    /// # Errors
    /// Something is.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self {
            Self::Native(input) => input.finish(),
            Self::Swapped(input) => input.finish(),
        }
    }

    /// Ends an item of a stream, which others may follow, each at a multiple of 8 bytes from the one before; returns how
    /// many bytes further the next is.
    ///
    /// # Errors
    /// It is followed by something else.
    #[inline]
    pub(crate) fn end_item(&mut self) -> Result<usize, DecodeError> {
        match self {
            Self::Native(input) => end_item(input),
            Self::Swapped(input) => end_item(input),
        }
    }
}

#[inline]
fn end_item<R: Representation>(input: &mut Decoder<'_, R>) -> Result<usize, DecodeError> {
    let left = input.left();
    if left > 0 {
        if input.position() == 0 {
            return Err(input.error(DecodeErrorKind::Trailing(left)));
        }
        input.align(ITEM_ALIGNMENT, 0)?;
    }
    Ok(input.position())
}
