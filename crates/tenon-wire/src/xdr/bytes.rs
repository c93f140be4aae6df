//! Opaque bytes and strings (RFC 4506 sections 4.9 to 4.11), padded to words.

use alloc::{boxed::Box, vec::Vec};

use super::array::boxed;
use super::scalar::error_in;
use super::{Scalar, bounded, padded};
use crate::{BString, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder};

/// Copies `bytes` to `offset` of `block` and zeroes their padding.
///
/// # Panics
/// If the block ends before the padding does.
#[inline(always)]
pub fn put_bytes(block: &mut [u8], offset: usize, bytes: &[u8]) {
    let (body, padding) = block[offset..offset + padded(bytes.len())].split_at_mut(bytes.len());
    body.copy_from_slice(bytes);
    padding.fill(0);
}

/// The `length` bytes at `offset` of `block`, the bytes that `input` has read last.
///
/// # Errors
/// [`DecodeErrorKind::Padding`].
///
/// # Panics
/// If the block ends before the padding does.
#[inline(always)]
pub fn get_bytes<'a>(
    input: &Decoder<'_>,
    block: &'a [u8],
    offset: usize,
    length: usize,
) -> Result<&'a [u8], DecodeError> {
    let (body, padding) = block[offset..offset + padded(length)].split_at(length);
    if input.is_strict() && padding.iter().any(|&byte| byte != 0) {
        let kind = DecodeErrorKind::Padding;
        return Err(error_in(input, block, offset + length, kind));
    }
    Ok(body)
}

/// The `N` bytes at `offset` of `block`, the bytes that `input` has read last.
///
/// # Errors
/// [`DecodeErrorKind::Padding`].
///
/// # Panics
/// If the block ends before the padding does.
#[inline(always)]
pub fn get_bytes_array<const N: usize>(
    input: &Decoder<'_>,
    block: &[u8],
    offset: usize,
) -> Result<[u8; N], DecodeError> {
    let mut bytes = [0; N];
    bytes.copy_from_slice(get_bytes(input, block, offset, N)?);
    Ok(bytes)
}

/// The `N` bytes at `offset` of `block` in memory of their own.
///
/// # Errors
/// As [`get_bytes_array`], or [`DecodeErrorKind::TooMuchMemory`].
///
/// # Panics
/// If the block ends before the padding does.
pub fn get_boxed_bytes<const N: usize>(
    input: &mut Decoder<'_>,
    block: &[u8],
    offset: usize,
) -> Result<Box<[u8; N]>, DecodeError> {
    input.pay(N, 1)?;
    get_bytes(input, block, offset, N).map(|bytes| boxed(bytes.to_vec()))
}

/// Appends the count, the bytes and their padding: opaque data or a string.
///
/// # Errors
/// [`EncodeErrorKind::TooLong`](crate::EncodeErrorKind).
#[inline]
pub fn put_opaque(out: &mut Encoder<'_>, bytes: &[u8], bound: u32) -> Result<(), EncodeError> {
    let count = bounded(bytes.len(), bound)?;
    let room = out.room(4 + padded(bytes.len()));
    count.write(&mut room[..4]);
    put_bytes(room, 4, bytes);
    Ok(())
}

/// Reads a count and hands out so many bytes where they are.
///
/// # Errors
/// The count is over `bound`, the bytes are not all there, or (strict mode) the padding is
/// not zero.
#[inline]
pub fn get_opaque_ref<'a>(input: &mut Decoder<'a>, bound: u32) -> Result<&'a [u8], DecodeError> {
    let length = input.count(bound, 1)?;
    let block = input.take(padded(length))?;
    get_bytes(input, block, 0, length)
}

/// Reads a count and so many bytes.
///
/// # Errors
/// As [`get_opaque_ref`].
#[inline]
pub fn get_opaque(input: &mut Decoder<'_>, bound: u32) -> Result<Vec<u8>, DecodeError> {
    let bytes = get_opaque_ref(input, bound)?;
    input.pay(bytes.len(), 1)?;
    Ok(bytes.to_vec())
}

/// Reads a string, whose bytes need not be UTF-8.
///
/// # Errors
/// As [`get_opaque_ref`].
#[inline]
pub fn get_string(input: &mut Decoder<'_>, bound: u32) -> Result<BString, DecodeError> {
    get_opaque(input, bound).map(BString::from)
}
