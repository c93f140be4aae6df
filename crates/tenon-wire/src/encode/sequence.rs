//! Elements of any type: arrays (RFC 4506 sections 4.12 and 4.13), optional data and linked
//! lists (4.19). How one element is moved comes in as a function, so that `Marshal::encode` fits.

use super::{BlockMut, Encoder, bounded};
use crate::{EncodeError, EncodeErrorKind, Marshal, Representation};

impl<R: Representation> Encoder<'_, R> {
    /// Appends the count and each item.
    ///
    /// # Errors
    /// [`EncodeErrorKind::TooLong`], or what `encode` says.
    #[inline]
    pub fn put_vec<T>(
        &mut self,
        items: &[T],
        bound: u32,
        encode: impl FnMut(&T, &mut Encoder<'_, R>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let count = bounded(items.len(), bound)?;
        self.put(count);
        self.put_elements(items, encode)
    }

    /// Appends each item of an array of a length that the interface fixes.
    ///
    /// # Errors
    /// The error that `encode` returns.
    #[inline]
    pub fn put_elements<T>(
        &mut self,
        items: &[T],
        mut encode: impl FnMut(&T, &mut Encoder<'_, R>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        items.iter().try_for_each(|item| encode(item, self))
    }

    /// Appends the count and a block of `N` bytes for each item; one check for all of them.
    ///
    /// # Errors
    /// [`EncodeErrorKind::TooLong`].
    #[inline]
    pub fn put_vec_of_blocks<const N: usize, T>(
        &mut self,
        items: &[T],
        bound: u32,
        write: impl FnMut(&T, BlockMut<'_, R>),
    ) -> Result<(), EncodeError> {
        let count = bounded(items.len(), bound)?;
        self.put(count);
        self.put_blocks::<N, T>(items, write);
        Ok(())
    }

    /// Appends a block of `N` bytes for each item; one check for all of them.
    #[inline]
    pub fn put_blocks<const N: usize, T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&T, BlockMut<'_, R>),
    ) {
        let mut room = self.buffer.room(items.len() * N);
        for item in items {
            let Some((block, rest)) = room.split_first_chunk_mut::<N>() else {
                unreachable!("there is room for a block for each item")
            };
            write(item, BlockMut::of(block));
            room = rest;
        }
    }

    /// Appends the flag that says whether a value follows.
    #[inline(always)]
    pub fn put_flag(&mut self, present: bool) {
        self.put_word(present);
    }

    /// Appends the value if there is one.
    ///
    /// # Errors
    /// The error that `encode` returns.
    #[inline]
    pub fn put_optional<T: ?Sized>(
        &mut self,
        value: Option<&T>,
        encode: impl FnOnce(&T, &mut Encoder<'_, R>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.put_flag(value.is_some());
        match value {
            Some(value) => encode(value, self),
            None => Ok(()),
        }
    }

    /// Appends a linked list.
    ///
    /// # Errors
    /// An element cannot be sent, or (where lists are counted) there are too many.
    #[inline]
    pub fn put_list<T: Marshal<R>>(&mut self, items: &[T]) -> Result<(), EncodeError> {
        self.put_list_with(items, T::ALIGN, T::encode)
    }

    /// Appends a linked list that is never empty: where lists are flagged, the first element comes
    /// without a flag.
    ///
    /// # Errors
    /// [`EncodeErrorKind::EmptyList`], or as [`put_list`](Self::put_list).
    #[inline]
    pub fn put_bare_list<T: Marshal<R>>(&mut self, items: &[T]) -> Result<(), EncodeError> {
        self.put_bare_list_with(items, T::ALIGN, T::encode)
    }

    /// [`put_list`](Self::put_list) of elements that `encode` appends, each at a multiple of
    /// `align`.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn put_list_with<T>(
        &mut self,
        items: &[T],
        align: usize,
        mut encode: impl FnMut(&T, &mut Encoder<'_, R>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if !R::FLAGGED_LISTS {
            return self.put_vec(items, u32::MAX, |item, out| {
                out.align(align, 0);
                encode(item, out)
            });
        }
        for item in items {
            self.put_flag(true);
            self.align(align, 0);
            encode(item, self)?;
        }
        self.put_flag(false);
        Ok(())
    }

    /// [`put_bare_list`](Self::put_bare_list) of elements that `encode` appends, each at a
    /// multiple of `align`.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn put_bare_list_with<T>(
        &mut self,
        items: &[T],
        align: usize,
        mut encode: impl FnMut(&T, &mut Encoder<'_, R>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let Some((first, further)) = items.split_first() else {
            return Err(EncodeError::new(EncodeErrorKind::EmptyList));
        };
        match R::FLAGGED_LISTS {
            true => {
                encode(first, self)?;
                self.put_list_with(further, align, encode)
            }
            false => self.put_list_with(items, align, encode),
        }
    }
}
