//! Elements of any type: arrays (RFC 4506 sections 4.12 and 4.13), optional data and linked
//! lists (4.19). How one element is moved comes in as a function, so that `Marshal::decode` fits.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Block, Decoder};
use crate::{DecodeError, DecodeErrorKind, Marshal, Representation, kernels};

/// Items that a list first has room for, if one of them has no more than [`FIRST_ROOM_MAX`] bytes.
const FIRST_ROOM: usize = 4;

/// Bytes of an item up to which a list first has room for several.
const FIRST_ROOM_MAX: usize = 64;

impl<'a, R: Representation> Decoder<'a, R> {
    /// Reads a count and so many items of at least `wire_min` bytes each.
    ///
    /// # Errors
    /// The count is over `bound` or over what is there, or what `decode` says.
    #[inline]
    pub fn get_vec<T>(
        &mut self,
        bound: u32,
        wire_min: usize,
        decode: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.count(bound, wire_min)?;
        self.get_paid(count, decode)
    }

    /// Reads an array of `N` items.
    ///
    /// # Errors
    /// The error that `decode` returns.
    #[inline]
    pub fn get_elements<T, const N: usize>(
        &mut self,
        mut decode: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<[T; N], DecodeError> {
        kernels::try_array(|_| decode(self))
    }

    /// Reads an array of `N` items into memory of their own.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooMuchMemory`], or what `decode` says.
    pub fn get_boxed_elements<T, const N: usize>(
        &mut self,
        decode: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Box<[T; N]>, DecodeError> {
        self.get_paid(N, decode).map(kernels::boxed)
    }

    #[inline]
    fn get_paid<T>(
        &mut self,
        count: usize,
        mut decode: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        self.charge(count, size_of::<T>())?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(decode(self)?);
        }
        Ok(items)
    }

    /// Reads a count and so many items, a block of `N` bytes each; one check for all of them.
    ///
    /// # Errors
    /// The count is over `bound` or over what is there, or what `read` says.
    #[inline]
    pub fn get_vec_of_blocks<const N: usize, T>(
        &mut self,
        bound: u32,
        read: impl FnMut(Block<'a, R>, &mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.count(bound, N)?;
        self.get_paid_blocks::<N, T>(count, read)
    }

    /// Reads an array of `M` items, a block of `N` bytes each; one check for all of them.
    ///
    /// # Errors
    /// They are not all there, or what `read` says.
    #[inline]
    pub fn get_blocks<const N: usize, T, const M: usize>(
        &mut self,
        mut read: impl FnMut(Block<'a, R>, &mut Self) -> Result<T, DecodeError>,
    ) -> Result<[T; M], DecodeError> {
        let mut blocks = self.block_of(M * N)?;
        kernels::try_array(|_| read(blocks.split_front::<N>(), self))
    }

    /// Reads an array of `M` items into memory of their own, a block of `N` bytes each; one check
    /// for all of them.
    ///
    /// # Errors
    /// They are not all there, [`DecodeErrorKind::TooMuchMemory`], or what `read` says.
    pub fn get_boxed_blocks<const N: usize, T, const M: usize>(
        &mut self,
        read: impl FnMut(Block<'a, R>, &mut Self) -> Result<T, DecodeError>,
    ) -> Result<Box<[T; M]>, DecodeError> {
        self.get_paid_blocks::<N, T>(M, read).map(kernels::boxed)
    }

    #[inline]
    fn get_paid_blocks<const N: usize, T>(
        &mut self,
        count: usize,
        mut read: impl FnMut(Block<'a, R>, &mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let mut blocks = self.block_of(count * N)?;
        self.get_paid(count, |input| read(blocks.split_front::<N>(), input))
    }

    /// Reads one item into memory of its own.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooMuchMemory`], or what `decode` says.
    #[inline]
    pub fn get_boxed<T>(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Box<T>, DecodeError> {
        self.charge(1, size_of::<T>())?;
        decode(self).map(Box::new)
    }

    /// Reads the flag that says whether a value follows.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`]; in strict mode [`DecodeErrorKind::NotABoolean`].
    #[inline(always)]
    pub fn get_flag(&mut self) -> Result<bool, DecodeError> {
        self.get_word()
    }

    /// Reads a value if there is one.
    ///
    /// # Errors
    /// As [`get_flag`](Self::get_flag), or what `decode` says.
    #[inline]
    pub fn get_optional<T>(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.get_flag()? {
            true => decode(self).map(Some),
            false => Ok(None),
        }
    }

    /// Reads a linked list.
    ///
    /// # Errors
    /// The bytes are not such a list.
    #[inline]
    pub fn get_list<T: Marshal<R>>(&mut self) -> Result<Vec<T>, DecodeError> {
        self.get_list_with(T::WIRE_MIN, T::ALIGN, |input| T::decode(input))
    }

    /// Reads a linked list that is never empty: where lists are flagged, the first element comes
    /// without a flag.
    ///
    /// # Errors
    /// The bytes are not such a list.
    #[inline]
    pub fn get_bare_list<T: Marshal<R>>(&mut self) -> Result<Vec<T>, DecodeError> {
        self.get_bare_list_with(T::WIRE_MIN, T::ALIGN, |input| T::decode(input))
    }

    /// Reads a linked list of elements that `decode` reads, each of at least `wire_min` bytes at a
    /// multiple of `align`.
    ///
    /// # Errors
    /// As [`get_flag`](Self::get_flag) or [`count`](Self::count),
    /// [`DecodeErrorKind::TooMuchMemory`], or what `decode` says.
    #[inline]
    pub fn get_list_with<T>(
        &mut self,
        wire_min: usize,
        align: usize,
        mut decode: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        match R::FLAGGED_LISTS {
            true => self.get_further(Vec::new(), align, decode),
            false => self.get_vec(u32::MAX, wire_min, |input| {
                input.align(align, 0)?;
                decode(input)
            }),
        }
    }

    /// [`get_list_with`](Self::get_list_with) of a linked list that is never empty.
    ///
    /// # Errors
    /// As there, or [`DecodeErrorKind::BadList`].
    #[inline]
    pub fn get_bare_list_with<T>(
        &mut self,
        wire_min: usize,
        align: usize,
        mut decode: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        if R::FLAGGED_LISTS {
            self.charge(1, size_of::<T>())?;
            let first = decode(self)?;
            return self.get_further(alloc::vec![first], align, decode);
        }
        let items = self.get_list_with(wire_min, align, decode)?;
        match items.is_empty() {
            true => Err(self.error(DecodeErrorKind::BadList)),
            false => Ok(items),
        }
    }

    fn get_further<T>(
        &mut self,
        mut items: Vec<T>,
        align: usize,
        mut decode: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        while self.get_flag()? {
            self.align(align, 0)?;
            if items.len() == items.capacity() {
                self.grow(&mut items)?;
            }
            items.push(decode(self)?);
        }
        Ok(items)
    }

    /// Doubles the room of a full list. All of the new room is paid for, and what the old one cost
    /// stays paid: while items move there are both.
    #[cold]
    fn grow<T>(&mut self, items: &mut Vec<T>) -> Result<(), DecodeError> {
        let first = match size_of::<T>() {
            0..=FIRST_ROOM_MAX => FIRST_ROOM,
            _ => 1,
        };
        let room = items.len().saturating_mul(2).max(first);
        self.charge(room, size_of::<T>())?;
        items.reserve_exact(room - items.len());
        Ok(())
    }
}
