//! The 32-bit words that headers are made of.

use tenon_wire::{DecodeError, Decoder, Encoder};

/// Appends one word.
#[inline]
pub(super) fn put(out: &mut Encoder<'_>, word: u32) {
    out.put(word);
}

/// Reads one word.
#[inline]
pub(super) fn get(input: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    input.get()
}
