//! Arrays of scalars and words (RFC 4506 sections 4.12 and 4.13): one check for the whole
//! array, then a kernel or a loop without any.

use alloc::{boxed::Box, vec::Vec};

use super::{Scalar, Word, bounded, get_word};
use crate::{DecodeError, Decoder, EncodeError, Encoder};

/// Writes `items` one behind another at `offset` of `block`.
///
/// # Panics
/// If the block ends before the items do.
#[inline(always)]
pub fn put_array<T: Scalar>(block: &mut [u8], offset: usize, items: &[T]) {
    T::write_all(items, &mut block[offset..offset + items.len() * T::SIZE]);
}

/// Reads the `N` items at `offset` of `block`.
///
/// # Panics
/// If the block ends before the items do.
#[inline(always)]
pub fn get_array<T: Scalar, const N: usize>(block: &[u8], offset: usize) -> [T; N] {
    T::read_array(&block[offset..offset + N * T::SIZE])
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
    Ok(boxed(T::read_all(&block[offset..offset + N * T::SIZE])))
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
    T::write_all(items, body);
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
    Ok(T::read_all(input.take(count * T::SIZE)?))
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

/// Reads the `N` words at `offset` of `block`, the bytes that `input` has read last.
///
/// # Errors
/// A word is no value of `T`; see [`Word::from_word`].
///
/// # Panics
/// If the block ends before the words do.
#[inline(always)]
pub fn get_word_array<T: Word, const N: usize>(
    input: &Decoder<'_>,
    block: &[u8],
    offset: usize,
) -> Result<[T; N], DecodeError> {
    try_array(|index| get_word(input, block, offset + index * 4))
}

/// Reads the `N` words at `offset` of `block` into memory of their own.
///
/// # Errors
/// As [`get_word_array`], or [`DecodeErrorKind::TooMuchMemory`](crate::DecodeErrorKind).
///
/// # Panics
/// If the block ends before the words do.
pub fn get_boxed_word_array<T: Word, const N: usize>(
    input: &mut Decoder<'_>,
    block: &[u8],
    offset: usize,
) -> Result<Box<[T; N]>, DecodeError> {
    input.pay(N, size_of::<T>())?;
    get_all_words(input, &block[offset..offset + N * 4]).map(boxed)
}

/// An array of what `item` makes for each index, or its first failure.
#[inline(always)]
pub(super) fn try_array<T, const N: usize>(
    mut item: impl FnMut(usize) -> Result<T, DecodeError>,
) -> Result<[T; N], DecodeError> {
    let mut failure = None;
    let items: [Option<T>; N] = core::array::from_fn(|index| match failure {
        None => item(index).map_err(|error| failure = Some(error)).ok(),
        Some(_) => None,
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(items.map(|item| match item {
            Some(item) => item,
            None => unreachable!("no item is missing without a failure"),
        })),
    }
}

/// `N` items in memory of their own, without the stack between.
pub fn boxed_array<T, const N: usize>(item: impl FnMut() -> T) -> Box<[T; N]> {
    boxed(core::iter::repeat_with(item).take(N).collect())
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
    let block = input.take(count * 4)?;
    get_all_words(input, block)
}

/// The words that fill `block`, the bytes that `input` has read last.
fn get_all_words<T: Word>(input: &Decoder<'_>, block: &[u8]) -> Result<Vec<T>, DecodeError> {
    let mut items = Vec::with_capacity(block.len() / 4);
    for offset in (0..block.len()).step_by(4) {
        items.push(get_word(input, block, offset)?);
    }
    Ok(items)
}
