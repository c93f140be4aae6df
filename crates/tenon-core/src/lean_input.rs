//! Values that a peer sent in the lean representation, perhaps in the other order of bytes.

use tenon_proto::lean::ByteOrder;
use tenon_wire::{DecodeError, DecodeMode, Decoder, Lean, Limits, Swapped};

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
}
