//! Representations of items on the wire: what cursors are generic over. Everything here is known when stubs
//! are compiled, so that a representation costs nothing at run time.

use core::fmt;
use core::marker::PhantomData;

use crate::kernels::{self, Blittable};

/// A representation of items on the wire. The plan says which of them are aligned, not the cursor.
///
/// A new one needs no more than a type with these constants, a plan made for it, and the generator
/// told of both.
pub trait Representation: fmt::Debug + Copy + 'static {
    /// True if numbers have the order of bytes that this machine does not have.
    const SWAPPED: bool;

    /// True if a boolean or an integer of 8 or 16 bits takes a word of four bytes, and not the
    /// bytes that it needs.
    const WORDS: bool;

    /// True if numbers lie at multiples of their size, counted from the beginning of the message. If not, cursors put
    /// and expect no zeros to [align](crate::Encoder::align) them.
    const ALIGNED: bool;

    /// Opaque data and strings are padded with zeros to a multiple of so many bytes, a power of
    /// two.
    const PADDING: usize;

    /// True if a linked list has a flag in front of each element and one behind the last, and not
    /// a count like an array.
    const FLAGGED_LISTS: bool;

    /// Writes a single number. A representation may have a way of its own, as long as the bytes are the same.
    ///
    /// # Panics
    /// If it does not fill `to` exactly.
    #[inline(always)]
    fn put_number<T: Blittable>(number: &T, to: &mut [u8]) {
        kernels::put_one(number, to, Self::SWAPPED);
    }

    /// Reads a single number, as [`put_number`](Self::put_number) writes it.
    ///
    /// # Panics
    /// If it does not fill `from` exactly.
    #[inline(always)]
    fn take_number<T: Blittable>(from: &[u8]) -> T {
        kernels::get(from, Self::SWAPPED)
    }

    /// Bytes that `length` bytes of opaque data take with their padding.
    #[inline(always)]
    fn padded(length: usize) -> usize {
        const { assert!(Self::PADDING.is_power_of_two()) }
        (length + (Self::PADDING - 1)) & !(Self::PADDING - 1)
    }
}

/// External Data Representation (RFC 4506): every item a multiple of four bytes, most significant
/// byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Xdr;

impl Representation for Xdr {
    const SWAPPED: bool = cfg!(target_endian = "little");
    const WORDS: bool = true;
    const ALIGNED: bool = false;
    const PADDING: usize = 4;
    const FLAGGED_LISTS: bool = true;
}

/// Numbers in the sender's order of bytes and as they lie in its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Lean<O = Native>(PhantomData<O>);

impl<O: Order> Representation for Lean<O> {
    const SWAPPED: bool = O::SWAPPED;
    const WORDS: bool = false;
    const ALIGNED: bool = true;
    const PADDING: usize = 1;
    const FLAGGED_LISTS: bool = false;
}

/// The order of bytes of a sender.
pub trait Order: fmt::Debug + Copy + 'static {
    /// True if it is not the one of this machine.
    const SWAPPED: bool;
}

/// The order of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Native;

impl Order for Native {
    const SWAPPED: bool = false;
}

/// The other order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Swapped;

impl Order for Swapped {
    const SWAPPED: bool = true;
}
