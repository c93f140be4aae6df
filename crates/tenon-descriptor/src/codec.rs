//! How parts of an interface stand in XDR: each has both ways beside each other.

use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, EncodeError, EncodeErrorKind, Encoder};

/// The most bytes of a name.
const NAME_MAX: u32 = 255;

/// The most bytes of a text.
const TEXT_MAX: u32 = 65535;

/// No bound beyond the bytes of the descriptor.
pub const UNBOUNDED: u32 = u32::MAX;

/// A part of an interface that has bytes.
pub trait Described: Sized {
    /// The fewest bytes that one takes.
    const BYTES_MIN: usize;

    /// Appends it.
    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError>;

    /// Reads one.
    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

/// Any number of them.
impl<T: Described> Described for Vec<T> {
    const BYTES_MIN: usize = 4;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        out.put_vec(self, UNBOUNDED, T::put)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        input.get_vec(UNBOUNDED, T::BYTES_MIN, T::get)
    }
}

/// One or none.
impl<T: Described> Described for Option<T> {
    const BYTES_MIN: usize = 4;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        out.put_optional(self.as_ref(), T::put)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        input.get_optional(T::get)
    }
}

pub fn put_name(name: &str, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
    out.put_opaque(name.as_bytes(), NAME_MAX)
}

pub fn get_name(input: &mut Decoder<'_>) -> Result<String, DecodeError> {
    input.get_utf8(NAME_MAX)
}

pub fn put_text(text: &str, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
    out.put_opaque(text.as_bytes(), TEXT_MAX)
}

pub fn get_text(input: &mut Decoder<'_>) -> Result<String, DecodeError> {
    input.get_utf8(TEXT_MAX)
}

/// A number of up to 64 bits, signed or not: `desc_number`.
pub fn put_number(number: i128, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
    if i64::try_from(number).is_err() && u64::try_from(number).is_err() {
        return Err(EncodeError::new(EncodeErrorKind::Shape));
    }
    out.put_flag(number < 0);
    // The bits of a negative one are those of a signed number.
    out.put(number as u64);
    Ok(())
}

pub fn get_number(input: &mut Decoder<'_>) -> Result<i128, DecodeError> {
    let is_negative = input.get_flag()?;
    let start = input.position();
    let bits: u64 = input.get()?;
    match is_negative {
        false => Ok(i128::from(bits)),
        true if (bits as i64) < 0 => Ok(i128::from(bits as i64)),
        // It has bytes of its own already.
        true => Err(DecodeError::new(
            DecodeErrorKind::OutOfRange(bits as u32),
            start,
        )),
    }
}

/// The error of a discriminant or a member of an enum that was just read, and that there is not.
pub fn unknown(input: &Decoder<'_>, number: u32) -> DecodeError {
    input.unknown_value(number as i32, 4)
}
