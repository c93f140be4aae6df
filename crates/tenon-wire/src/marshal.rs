//! Traits that generated types implement.

use crate::{DecodeError, Decoder, EncodeError, Encoder, Representation, Xdr};

/// A type that can be sent in the representation `R`. Generated code implements it for every
/// struct, union and enum of an interface.
pub trait Marshal<R: Representation = Xdr>: Sized {
    /// Fewest bytes that a value takes on the wire; it bounds counts before memory is taken.
    const WIRE_MIN: usize;

    /// Alignment of the position of a value, counted from the beginning of the message.
    const ALIGN: usize = 1;

    /// Appends the value.
    ///
    /// # Errors
    /// The value breaks a bound of the interface; what was appended is to be dropped.
    fn encode(&self, out: &mut Encoder<'_, R>) -> Result<(), EncodeError>;

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    fn decode(input: &mut Decoder<'_, R>) -> Result<Self, DecodeError>;
}

/// A type of which values are read where they lie in a message that is kept: strings, opaque data and,
/// where the representation has them as memory does, arrays of numbers are borrowed from it.
/// Generated code implements it for the views of an interface.
pub trait View<'a, R: Representation = Xdr>: Sized {
    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    fn view(input: &mut Decoder<'a, R>) -> Result<Self, DecodeError>;
}
