//! A value that is filled in where it will be sent from, over a longer time than a call of a function.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use super::Blittable;
use crate::{Buffer, Representation};

/// Room for a value behind what a buffer holds, all of it zero at first. Only [`finish`](Self::finish) appends it: if this
/// is dropped before, nothing of it is in a message.
///
/// ```
/// use tenon_wire::{Buffer, ReservedValue, Xdr};
///
/// let mut buffer = Buffer::default();
/// buffer.extend(b"head");
/// let mut value = ReservedValue::<[u16; 2]>::new(buffer);
/// assert_eq!(*value, [0, 0]);
/// value[1] = 0x0102;
/// let buffer = value.finish::<Xdr>();
/// assert_eq!(buffer.as_slice(), b"head\0\0\x01\x02");
/// ```
pub struct ReservedValue<T> {
    /// Not changed before the end, so that the place stays where it is.
    buffer: Buffer,
    /// Bytes between those in use and the value.
    gap: usize,
    value: PhantomData<T>,
}

impl<T: Blittable> ReservedValue<T> {
    /// Makes room behind what `buffer` holds.
    #[inline]
    pub fn new(mut buffer: Buffer) -> Self {
        let gap = buffer.storage.reserve_place::<T>();
        let value = PhantomData;
        Self { buffer, gap, value }
    }

    /// Appends the value to the buffer, its numbers in the order of the representation, and returns the buffer.
    #[inline]
    pub fn finish<R: Representation>(mut self) -> Buffer {
        // SAFETY: the place was reserved with this gap, and the buffer is as it was.
        unsafe { (self.buffer.storage).take_place::<T>(self.gap, R::SWAPPED) };
        self.buffer
    }
}

impl<T: Blittable> Deref for ReservedValue<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the place was reserved with this gap, and the buffer is as it was.
        unsafe { self.buffer.storage.place(self.gap) }
    }
}

impl<T: Blittable> DerefMut for ReservedValue<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the place was reserved with this gap, and the buffer is as it was.
        unsafe { self.buffer.storage.place_mut(self.gap) }
    }
}

impl<T: Blittable + fmt::Debug> fmt::Debug for ReservedValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReservedValue").field(&**self).finish()
    }
}
