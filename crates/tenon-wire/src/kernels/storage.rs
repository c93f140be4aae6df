//! Bytes that stay initialised, and how many of them are in use. What was compared once need not be
//! compared again: for a short message that would take longer than to write the message.

use alloc::vec::Vec;
use core::{ptr, slice};

use super::blit::reverse;
use super::chosen::Chosen;
use super::select::copies_masked;
use super::swap::swap;
use super::{Blittable, portable};

/// The smallest storage that is taken.
const SMALLEST: usize = 256;

/// Bytes of a count.
const COUNT: usize = size_of::<u32>();

/// Bytes of a word, to which opaque data is padded.
pub(super) const WORD: usize = 4;

/// Initialised bytes of which the first are in use.
#[derive(Debug, Default, Clone)]
pub(crate) struct BufferStorage {
    bytes: Vec<u8>,
    /// Never more than there are.
    used: usize,
}

impl BufferStorage {
    /// So many bytes, none of them in use.
    pub(crate) fn of(bytes: usize) -> Self {
        Self {
            bytes: alloc::vec![0; bytes],
            used: 0,
        }
    }

    /// Returns the number of bytes in use.
    #[inline(always)]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of all bytes.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Lets no more than the first `used` be in use.
    #[inline(always)]
    pub(crate) fn truncate(&mut self, used: usize) {
        self.used = self.used.min(used);
    }

    /// Gives back what is not in use, but for the first `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.bytes.truncate(bytes.max(self.used));
        self.bytes.shrink_to_fit();
    }

    /// Those in use.
    #[inline(always)]
    pub(crate) fn in_use(&self) -> &[u8] {
        // SAFETY: there are so many, all of them initialised, and they are borrowed as long.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr(), self.used) }
    }

    /// Those in use.
    #[inline(always)]
    pub(crate) fn in_use_mut(&mut self) -> &mut [u8] {
        // SAFETY: there are so many, all of them initialised, and they are borrowed as long.
        unsafe { slice::from_raw_parts_mut(self.bytes.as_mut_ptr(), self.used) }
    }

    /// All that are not in use, `bytes` or more.
    #[inline(always)]
    pub(crate) fn spare(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.used;
        if self.bytes.len() - start < bytes {
            self.grow(bytes);
        }
        // SAFETY: no more are in use than there are, all of them initialised; they are borrowed as long.
        unsafe {
            let first = self.bytes.as_mut_ptr().add(start);
            slice::from_raw_parts_mut(first, self.bytes.len() - start)
        }
    }

    /// Takes `bytes` more into use, or as many as there are, whatever they hold.
    #[inline(always)]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.used += bytes.min(self.bytes.len() - self.used);
    }

    /// Takes into use what lies before `behind`, whatever it holds: an address among those not in use, or
    /// right behind them.
    #[inline(always)]
    pub(crate) fn advance_to(&mut self, behind: *const u8) {
        let used = behind.addr().wrapping_sub(self.bytes.as_ptr().addr());
        self.used = used.min(self.bytes.len());
    }

    /// Takes `bytes` more into use: these, whatever they hold.
    #[inline(always)]
    pub(crate) fn take(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.prepare(bytes);
        // SAFETY: they were just prepared, and they are borrowed as long.
        unsafe { slice::from_raw_parts_mut(self.bytes.as_mut_ptr().add(start), bytes) }
    }

    /// Takes `N` bytes more into use, as [`take`](Self::take).
    #[inline(always)]
    pub(crate) fn take_chunk<const N: usize>(&mut self) -> &mut [u8; N] {
        let start = self.prepare(N);
        // SAFETY: they were just prepared, and they are borrowed as long; an array of bytes may lie
        // anywhere.
        unsafe { &mut *self.bytes.as_mut_ptr().add(start).cast() }
    }

    /// Takes `zeros` more into use, at most 8, and zeroes them.
    #[inline(always)]
    pub(crate) fn append_zeros(&mut self, zeros: usize) {
        const MOST: usize = size_of::<u64>();
        let start = self.used;
        if self.bytes.len() - start < MOST {
            self.grow(MOST);
        }
        // More zeros than needed: a store of fixed size instead of a loop.
        // SAFETY: there is room for so many.
        unsafe {
            let to = self.bytes.as_mut_ptr().add(start);
            to.cast::<[u8; MOST]>().write([0; MOST]);
        }
        self.used = start + zeros.min(MOST);
    }

    /// Takes a value into use that `write` fills in where it will be sent from; before, all of it is
    /// zero. If its numbers are to be `swapped`, they are when `write` is done. A value that `write`
    /// fails over, or panics, is not taken into use.
    ///
    /// A value that would not be aligned there is filled in a few bytes further and moved.
    #[inline]
    pub(crate) fn fill<T: Blittable, E>(
        &mut self,
        swapped: bool,
        write: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<(), E> {
        let gap = self.reserve_place::<T>();
        // SAFETY: there is a place with this gap, and this is not changed as long as the value is borrowed.
        write(unsafe { self.place_mut(gap) })?;
        // SAFETY: as above; the value is no longer borrowed.
        unsafe { self.take_place::<T>(gap, swapped) };
        Ok(())
    }

    /// Makes a place for a value behind the bytes in use, all of it zero, and returns how many bytes further it begins,
    /// which are fewer than its alignment. It is there until this is changed.
    #[inline(always)]
    pub(super) fn reserve_place<T: Blittable>(&mut self) -> usize {
        let bytes = size_of::<T>();
        let room = bytes + align_of::<T>() - 1;
        if self.bytes.len() - self.used < room {
            self.grow(room);
        }
        // SAFETY: so many bytes are in use, and there are more; the gap is smaller than the alignment, so that there is
        // room for the value behind it. All of it is written here.
        unsafe {
            let to = self.bytes.as_mut_ptr().add(self.used);
            let gap = to.addr().wrapping_neg() & (align_of::<T>() - 1);
            ptr::write_bytes(to.add(gap), 0, bytes);
            gap
        }
    }

    /// Returns the value in a place.
    ///
    /// # Safety
    /// [`reserve_place`](Self::reserve_place) of this type has returned `gap`, and nothing was changed since but the value.
    #[inline(always)]
    pub(super) unsafe fn place<T: Blittable>(&self, gap: usize) -> &T {
        // SAFETY: the caller's promise: the place is there, such a value may lie at it, and its bytes are initialised, of
        // which every pattern is a value of `T` (the contract of `Blittable`).
        unsafe { &*self.bytes.as_ptr().add(self.used + gap).cast() }
    }

    /// Returns the value in a place, to be changed.
    ///
    /// # Safety
    /// As for [`place`](Self::place).
    #[inline(always)]
    pub(super) unsafe fn place_mut<T: Blittable>(&mut self, gap: usize) -> &mut T {
        // SAFETY: as in `place`; no other reference to these bytes exists as long as the value is borrowed. It has no
        // padding, so that all of its bytes stay initialised.
        unsafe { &mut *self.bytes.as_mut_ptr().add(self.used + gap).cast() }
    }

    /// Takes the value in a place into use, its numbers swapped if they are to be. One that lies further is moved.
    ///
    /// # Safety
    /// As for [`place`](Self::place).
    #[inline(always)]
    pub(super) unsafe fn take_place<T: Blittable>(&mut self, gap: usize, swapped: bool) {
        // SAFETY: the value is there, as the caller promises; there is room for it in front of it, too.
        unsafe {
            let to = self.bytes.as_mut_ptr().add(self.used);
            let from = to.add(gap);
            if swapped {
                reverse::<T>(from);
            }
            if gap > 0 {
                ptr::copy(from, to, size_of::<T>());
            }
        }
        self.used += size_of::<T>();
    }

    /// Takes a count, its bytes in their order already, and the bytes that it counts into use.
    /// In one place: so code that appends a string has but to hand it over.
    #[inline(never)]
    pub(crate) fn append(&mut self, count: u32, bytes: &[u8]) {
        let Some(to) = self.take_counted(count, bytes.len()) else {
            return self.append_to_more(count, bytes);
        };
        // SAFETY: so many bytes were just taken into use behind the count; no other reference to them exists.
        unsafe { copy_string(bytes.as_ptr(), to, bytes.len()) };
    }

    /// [`append`](Self::append) where there is not enough.
    #[cold]
    #[inline(never)]
    fn append_to_more(&mut self, count: u32, bytes: &[u8]) {
        self.grow(COUNT + bytes.len());
        self.append(count, bytes);
    }

    /// As [`append`](Self::append), but zeros behind the bytes until there are a multiple of four.
    #[inline(never)]
    pub(crate) fn append_padded(&mut self, count: u32, bytes: &[u8]) {
        let padded = bytes.len().next_multiple_of(WORD);
        let Some(to) = self.take_counted(count, padded) else {
            return self.append_padded_to_more(count, bytes);
        };
        // SAFETY: so many bytes were just taken into use behind the count; no other reference to them exists.
        // The last word is zeroed first and then overwritten, so that its size is known.
        unsafe {
            if padded > 0 {
                to.add(padded - WORD).cast::<[u8; WORD]>().write([0; WORD]);
            }
            copy_by_length(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// [`append_padded`](Self::append_padded) where there is not enough.
    #[cold]
    #[inline(never)]
    fn append_padded_to_more(&mut self, count: u32, bytes: &[u8]) {
        self.grow(COUNT + WORD + bytes.len());
        self.append_padded(count, bytes);
    }

    /// Takes a count, its bytes in their order already, and the items that it counts into use, which
    /// `chosen` moves. Where there is enough, that alone is called.
    ///
    /// # Safety
    /// The bytes are whole items.
    #[inline(always)]
    pub(super) unsafe fn append_items(&mut self, count: u32, items: &[u8], chosen: &Chosen) {
        // SAFETY: so many bytes were just taken into use behind the count; no other reference to them exists.
        // The items are whole, as the caller promises.
        unsafe {
            match self.take_counted(count, items.len()) {
                Some(to) => {
                    chosen.get()(items.as_ptr(), to, items.len());
                }
                None => self.append_items_to_more(count, items, chosen),
            }
        }
    }

    /// [`append_items`](Self::append_items) where there is not enough.
    ///
    /// # Safety
    /// As there.
    #[cold]
    #[inline(never)]
    unsafe fn append_items_to_more(&mut self, count: u32, items: &[u8], chosen: &Chosen) {
        self.grow(COUNT + items.len());
        // SAFETY: the caller's promise.
        unsafe { self.append_items(count, items, chosen) }
    }

    /// Takes a count and `bytes` behind it into use, writes the count and hands out where the bytes
    /// are to be; if there are enough.
    #[inline(always)]
    fn take_counted(&mut self, count: u32, bytes: usize) -> Option<*mut u8> {
        let start = self.used;
        // Both lie in memory, and so does this code: there are addresses for all of it, and the sum does
        // not wrap.
        let end = start + COUNT + bytes;
        if end > self.bytes.len() {
            return None;
        }
        self.used = end;
        // SAFETY: there are so many, of which the first are the count.
        unsafe {
            let to = self.bytes.as_mut_ptr().add(start);
            to.cast::<[u8; COUNT]>().write(count.to_ne_bytes());
            Some(to.add(COUNT))
        }
    }

    /// Takes `bytes` more into use. They are there, and begin where is returned.
    #[inline(always)]
    fn prepare(&mut self, bytes: usize) -> usize {
        let start = self.used;
        if self.bytes.len() - start < bytes {
            self.grow(bytes);
        }
        self.used = start + bytes;
        start
    }

    /// Gets `bytes` more than are in use.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, bytes: usize) {
        // What no memory could hold, the allocator refuses.
        let target = self.target(bytes);
        self.bytes.resize(target, 0);
    }

    /// Gets `bytes` more than are in use; returns whether there is memory for them.
    #[cold]
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        if self.bytes.len() - self.used >= bytes {
            return true;
        }
        let target = self.target(bytes);
        let more = target - self.bytes.len();
        let is_there = self.bytes.try_reserve_exact(more).is_ok();
        if is_there {
            self.bytes.resize(target, 0);
        }
        is_there
    }

    /// Returns the number of bytes that there are to be so that `bytes` more can be in use.
    fn target(&self, bytes: usize) -> usize {
        let needed = self.used.saturating_add(bytes);
        needed.max(self.bytes.len().saturating_mul(2)).max(SMALLEST)
    }
}

/// Bytes that are copied without a call.
const FEW: usize = 64;

/// Copies bytes, mostly those of a short string. Gives where the last one written ends.
///
/// # Safety
/// `bytes` can be read at `from` and written at `to`, which do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_string(from: *const u8, to: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            // The address of zero bytes may be anything: to read none of them where no memory is takes 80 ns.
            1..=FEW if copies_masked(from, to, bytes) => to.add(bytes),
            _ => copy_by_length(from, to, bytes),
        }
    }
}

/// The same by instructions for so many bytes. Behind a padding, which was just written, masks were no gain in some
/// places of memory: 22 ns for a line of a log instead of 16, 13 in others.
///
/// # Safety
/// As for [`copy_string`].
#[inline(always)]
unsafe fn copy_by_length(from: *const u8, to: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        if bytes > FEW {
            return swap::<u8>(from, to, bytes);
        }
        portable::copy_few(from, to, bytes);
        to.add(bytes)
    }
}
