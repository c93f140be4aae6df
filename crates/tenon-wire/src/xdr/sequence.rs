//! Elements of any type: arrays (RFC 4506 sections 4.12 and 4.13), optional data and linked
//! lists (4.19). How one element is moved comes in as a function, so that `T::encode` and
//! `T::decode` fit.

use alloc::{boxed::Box, vec::Vec};

use super::array::{boxed, try_array};
use super::{Scalar, bounded, next_word, put_word};
use crate::{DecodeError, Decoder, EncodeError, EncodeErrorKind, Encoder};

/// Appends the count and each item.
///
/// # Errors
/// [`EncodeErrorKind::TooLong`], or what `encode` says.
#[inline]
pub fn put_vec<T>(
    out: &mut Encoder<'_>,
    items: &[T],
    bound: u32,
    encode: impl FnMut(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    bounded(items.len(), bound)?.write(out.block::<4>());
    put_elements(out, items, encode)
}

/// Appends each item of an array whose length the interface fixes.
///
/// # Errors
/// What `encode` says.
#[inline]
pub fn put_elements<T>(
    out: &mut Encoder<'_>,
    items: &[T],
    mut encode: impl FnMut(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    items.iter().try_for_each(|item| encode(item, out))
}

/// Reads a count and so many items of at least `wire_min` bytes each.
///
/// # Errors
/// The count is over `bound` or over what is there, or what `decode` says.
#[inline]
pub fn get_vec<T>(
    input: &mut Decoder<'_>,
    bound: u32,
    wire_min: usize,
    decode: impl FnMut(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = input.count(bound, wire_min)?;
    get_paid(input, count, decode)
}

/// Reads an array of `N` items.
///
/// # Errors
/// What `decode` says.
#[inline]
pub fn get_elements<T, const N: usize>(
    input: &mut Decoder<'_>,
    mut decode: impl FnMut(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<[T; N], DecodeError> {
    try_array(|_| decode(input))
}

/// Reads an array of `N` items into memory of their own.
///
/// # Errors
/// [`DecodeErrorKind::TooMuchMemory`](crate::DecodeErrorKind::TooMuchMemory), or what `decode`
/// says.
pub fn get_boxed_elements<T, const N: usize>(
    input: &mut Decoder<'_>,
    decode: impl FnMut(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Box<[T; N]>, DecodeError> {
    get_paid(input, N, decode).map(boxed)
}

fn get_paid<T>(
    input: &mut Decoder<'_>,
    count: usize,
    mut decode: impl FnMut(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    input.pay(count, size_of::<T>())?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(decode(input)?);
    }
    Ok(items)
}

/// Reads one item into memory of its own.
///
/// # Errors
/// [`DecodeErrorKind::TooMuchMemory`](crate::DecodeErrorKind::TooMuchMemory), or what `decode`
/// says.
#[inline]
pub fn get_boxed<T>(
    input: &mut Decoder<'_>,
    decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Box<T>, DecodeError> {
    input.pay(1, size_of::<T>())?;
    decode(input).map(Box::new)
}

/// Appends the word that says whether a value follows.
#[inline(always)]
pub fn put_flag(out: &mut Encoder<'_>, present: bool) {
    put_word(out.block::<4>(), 0, present);
}

/// Reads the word that says whether a value follows.
///
/// # Errors
/// [`DecodeErrorKind::Truncated`](crate::DecodeErrorKind::Truncated); in strict mode
/// [`DecodeErrorKind::NotABoolean`](crate::DecodeErrorKind::NotABoolean).
#[inline(always)]
pub fn get_flag(input: &mut Decoder<'_>) -> Result<bool, DecodeError> {
    next_word(input)
}

/// Appends the value if there is one.
///
/// # Errors
/// What `encode` says.
#[inline]
pub fn put_optional<T>(
    out: &mut Encoder<'_>,
    value: Option<&T>,
    encode: impl FnOnce(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    put_flag(out, value.is_some());
    match value {
        Some(value) => encode(value, out),
        None => Ok(()),
    }
}

/// Reads a value if there is one.
///
/// # Errors
/// As [`get_flag`], or what `decode` says.
#[inline]
pub fn get_optional<T>(
    input: &mut Decoder<'_>,
    decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    match get_flag(input)? {
        true => decode(input).map(Some),
        false => Ok(None),
    }
}

/// Appends a linked list: each element behind a true word, then a false one.
///
/// # Errors
/// What `encode` says.
#[inline]
pub fn put_list<T>(
    out: &mut Encoder<'_>,
    items: &[T],
    mut encode: impl FnMut(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    for item in items {
        put_flag(out, true);
        encode(item, out)?;
    }
    put_flag(out, false);
    Ok(())
}

/// Reads a linked list.
///
/// # Errors
/// As [`get_flag`], [`DecodeErrorKind::TooMuchMemory`](crate::DecodeErrorKind::TooMuchMemory), or
/// what `decode` says.
#[inline]
pub fn get_list<T>(
    input: &mut Decoder<'_>,
    decode: impl FnMut(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    get_further(input, Vec::new(), decode)
}

/// Appends a linked list whose first element comes without a word before it.
///
/// # Errors
/// [`EncodeErrorKind::EmptyList`], or what `encode` says.
#[inline]
pub fn put_bare_list<T>(
    out: &mut Encoder<'_>,
    items: &[T],
    mut encode: impl FnMut(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let Some((first, further)) = items.split_first() else {
        return Err(EncodeError::new(EncodeErrorKind::EmptyList));
    };
    encode(first, out)?;
    put_list(out, further, encode)
}

/// Reads a linked list whose first element comes without a word before it.
///
/// # Errors
/// As [`get_list`].
#[inline]
pub fn get_bare_list<T>(
    input: &mut Decoder<'_>,
    mut decode: impl FnMut(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    input.pay(1, size_of::<T>())?;
    let first = decode(input)?;
    get_further(input, alloc::vec![first], decode)
}

fn get_further<T>(
    input: &mut Decoder<'_>,
    mut items: Vec<T>,
    mut decode: impl FnMut(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    while get_flag(input)? {
        input.pay(1, size_of::<T>())?;
        items.push(decode(input)?);
    }
    Ok(items)
}
