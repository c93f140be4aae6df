//! The XDR representation (RFC 4506).

use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// A type with an XDR representation. Generated code implements it for every struct, union and
/// enum of an interface.
pub trait Xdr: Sized {
    /// Fewest bytes that a value takes on the wire; it bounds counts before memory is taken.
    const WIRE_MIN: usize;

    /// Appends the value.
    ///
    /// # Errors
    /// The value breaks a bound of the interface; what was appended is to be dropped.
    fn encode(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError>;

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

/// Bytes that `length` bytes of opaque data take with their padding (RFC 4506 section 4.10).
#[inline(always)]
pub const fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}
