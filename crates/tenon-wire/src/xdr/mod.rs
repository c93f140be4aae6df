//! The XDR representation (RFC 4506): the functions that generated code and the interpreter
//! call.
//!
//! Those that take a *block* move items whose place on the wire the interface fixes; the room
//! (or the presence of the bytes) was checked once for the whole block, and offsets are
//! constants, so that each call comes down to a load and a store. The others check for
//! themselves.

mod array;
mod bytes;
mod scalar;
mod sequence;

pub use array::{
    boxed_array, get_array, get_boxed_array, get_boxed_word_array, get_counted, get_counted_words,
    get_word_array, put_array, put_counted, put_counted_words, put_words,
};
pub use bytes::{
    get_boxed_bytes, get_bytes, get_bytes_array, get_opaque, get_opaque_ref, get_string, put_bytes,
    put_opaque,
};
pub use scalar::{
    Scalar, Word, bad_discriminant, get, get_word, next, next_word, put, put_discriminant,
    put_word, unknown_value,
};
pub use sequence::{
    get_bare_list, get_boxed, get_boxed_elements, get_elements, get_flag, get_list, get_optional,
    get_vec, put_bare_list, put_elements, put_flag, put_list, put_optional, put_vec,
};

use crate::{DecodeError, Decoder, EncodeError, EncodeErrorKind, Encoder};

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

/// The count of a counted item as it goes on the wire.
#[inline(always)]
fn bounded(length: usize, bound: u32) -> Result<u32, EncodeError> {
    match u32::try_from(length) {
        Ok(count) if count <= bound => Ok(count),
        _ => Err(too_long(length, bound)),
    }
}

#[cold]
#[inline(never)]
fn too_long(length: usize, bound: u32) -> EncodeError {
    EncodeError::new(EncodeErrorKind::TooLong { length, bound })
}
