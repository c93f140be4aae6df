//! Arrays of scalars and words (RFC 4506 sections 4.12 and 4.13): one check for the whole
//! array, then a loop without any.

use alloc::{boxed::Box, vec::Vec};

use super::scalar::error_in;
use super::{Scalar, Word, bounded};
use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// Writes `items` one behind another at `offset` of `block`.
///
/// # Panics
/// If the block ends before the items do.
#[inline(always)]
pub fn put_array<T: Scalar>(block: &mut [u8], offset: usize, items: &[T]) {
    write_all(&mut block[offset..offset + items.len() * T::SIZE], items);
}

/// Reads the `N` items at `offset` of `block`.
///
/// # Panics
/// If the block ends before the items do.
#[inline(always)]
pub fn get_array<T: Scalar, const N: usize>(block: &[u8], offset: usize) -> [T; N] {
    let bytes = &block[offset..offset + N * T::SIZE];
    core::array::from_fn(|index| T::read(&bytes[index * T::SIZE..][..T::SIZE]))
}

/// Reads the `N` items at `offset` of `block` into memory of their own.
///
/// # Errors
/// [`DecodeErrorKind::TooMuchMemory`](crate::DecodeErrorKind).
///
/// # Panics
/// If the block ends before the items do.
pub fn get_boxed_array<T: Scalar, const N: usize>(
    input: &mut Decoder<'_>,
    block: &[u8],
    offset: usize,
) -> Result<Box<[T; N]>, DecodeError> {
    input.pay(N, size_of::<T>())?;
    Ok(boxed(read_all(&block[offset..offset + N * T::SIZE])))
}

/// A vector known to have `N` items as a boxed array.
pub(super) fn boxed<T, const N: usize>(items: Vec<T>) -> Box<[T; N]> {
    match items.try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("as many items as asked for"),
    }
}

/// Appends the count and the items.
///
/// # Errors
/// [`EncodeErrorKind::TooLong`](crate::EncodeErrorKind).
#[inline]
pub fn put_counted<T: Scalar>(
    out: &mut Encoder<'_>,
    items: &[T],
    bound: u32,
) -> Result<(), EncodeError> {
    let count = bounded(items.len(), bound)?;
    let (head, body) = out.room(4 + items.len() * T::SIZE).split_at_mut(4);
    count.write(head);
    write_all(body, items);
    Ok(())
}

/// Reads a count and so many items.
///
/// # Errors
/// The count is over `bound`, or the items are not all there.
#[inline]
pub fn get_counted<T: Scalar>(input: &mut Decoder<'_>, bound: u32) -> Result<Vec<T>, DecodeError> {
    let count = input.count(bound, T::SIZE)?;
    input.pay(count, size_of::<T>())?;
    Ok(read_all(input.take(count * T::SIZE)?))
}

/// Writes `items`, a word each, at `offset` of `block`.
///
/// # Panics
/// If the block ends before the items do.
#[inline(always)]
pub fn put_words<T: Word>(block: &mut [u8], offset: usize, items: &[T]) {
    for (to, item) in block[offset..].chunks_exact_mut(4).zip(items) {
        item.to_word().write(to);
    }
}

/// Reads words at `offset` of `block`, the bytes that `input` has read last, into `items`.
///
/// # Errors
/// A word is no value of `T`; see [`Word::from_word`].
#[inline(always)]
pub fn get_words<T: Word>(
    input: &Decoder<'_>,
    block: &[u8],
    offset: usize,
    items: &mut [T],
) -> Result<(), DecodeError> {
    let strict = input.is_strict();
    let words = block[offset..offset + items.len() * 4].chunks_exact(4);
    for (index, (word, item)) in words.zip(items).enumerate() {
        *item = T::from_word(u32::read(word), strict)
            .map_err(|kind| error_in(input, block, offset + index * 4, kind))?;
    }
    Ok(())
}

/// Appends the count and the items, a word each.
///
/// # Errors
/// [`EncodeErrorKind::TooLong`](crate::EncodeErrorKind).
#[inline]
pub fn put_counted_words<T: Word>(
    out: &mut Encoder<'_>,
    items: &[T],
    bound: u32,
) -> Result<(), EncodeError> {
    let count = bounded(items.len(), bound)?;
    let room = out.room(4 + items.len() * 4);
    count.write(&mut room[..4]);
    put_words(room, 4, items);
    Ok(())
}

/// Reads a count and so many words.
///
/// # Errors
/// The count is over `bound`, the words are not all there, or one is no value of `T`.
#[inline]
pub fn get_counted_words<T: Word>(
    input: &mut Decoder<'_>,
    bound: u32,
) -> Result<Vec<T>, DecodeError> {
    let count = input.count(bound, 4)?;
    input.pay(count, size_of::<T>())?;
    let (strict, block) = (input.is_strict(), input.take(count * 4)?);
    let mut items = Vec::with_capacity(count);
    for (index, word) in block.chunks_exact(4).enumerate() {
        let item = T::from_word(u32::read(word), strict);
        items.push(item.map_err(|kind| error_in(input, block, index * 4, kind))?);
    }
    Ok(items)
}

#[inline(always)]
fn write_all<T: Scalar>(to: &mut [u8], items: &[T]) {
    for (to, item) in to.chunks_exact_mut(T::SIZE).zip(items) {
        item.write(to);
    }
}

#[inline(always)]
fn read_all<T: Scalar>(from: &[u8]) -> Vec<T> {
    from.chunks_exact(T::SIZE).map(T::read).collect()
}
