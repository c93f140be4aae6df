//! The memory that received bytes of a stream are kept in.

use std::ops::Range;

/// Bytes of a storage that has grown for the first time; most messages need no more.
pub const ROOM_FIRST: usize = 16 << 10;

/// The allocator has no memory for received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

/// Memory for received bytes of a stream. It follows what has arrived and not what a message
/// promises: it is doubled when it is full.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    /// All of it is initialised; what is behind `filled` is stale.
    bytes: Vec<u8>,
    /// The first place that is aligned.
    base: usize,
    /// Behind the last byte received.
    filled: usize,
    alignment: usize,
    /// 0 if it has [run out](Self::run_out).
    capacity_max: usize,
}

impl ReceiveBuffer {
    /// Makes storage with a [`base`](Self::base) that is a multiple of `alignment` in memory, and which grows up to
    /// `capacity_max` or [`ROOM_FIRST`]. It takes no memory yet.
    pub(crate) fn new(alignment: usize, capacity_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            base: 0,
            filled: 0,
            alignment,
            capacity_max: capacity_max.max(ROOM_FIRST),
        }
    }

    /// Returns the index that received bytes go to if nothing is kept.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// Behind the last byte received.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.filled
    }

    /// Returns the bytes received from `from` on; nothing if that is not there.
    #[inline]
    pub(crate) fn received(&self, from: usize) -> &[u8] {
        self.received_behind(from).unwrap_or_default()
    }

    /// Returns the same; `None` if that is not there.
    #[inline]
    pub(crate) fn received_behind(&self, from: usize) -> Option<&[u8]> {
        self.bytes.get(from..self.filled)
    }

    /// # Panics
    /// If that is not there.
    #[inline]
    pub(crate) fn get(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// # Panics
    /// If that is not there.
    pub(crate) fn get_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.bytes[range]
    }

    /// Moves what is in `range` to `to`, which is in front of it.
    pub(crate) fn move_down(&mut self, range: Range<usize>, to: usize) {
        self.bytes.copy_within(range, to);
    }

    /// Forgets what was received from `end` on, which is not before the base.
    #[inline]
    pub(crate) fn truncate(&mut self, end: usize) {
        self.filled = end;
    }

    /// Forgets all that was received.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.filled = self.base;
    }

    /// Returns whether nothing was received from `from` on, and there is memory to receive into.
    #[inline]
    pub(crate) fn is_ready_from(&self, from: usize) -> bool {
        from == self.filled && !self.bytes.is_empty()
    }

    /// Returns the room for the bytes that are received next.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// Takes in that the first `bytes` of [`room`](Self::room) have been received.
    ///
    /// # Panics
    /// There was less room.
    #[inline]
    pub(crate) fn fill(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes.len() - self.filled);
        self.filled += bytes;
    }

    /// Returns whether there is no room for so many bytes more.
    #[inline]
    pub(crate) fn lacks(&self, bytes: usize) -> bool {
        self.bytes.len() - self.filled < bytes
    }

    /// Bytes of memory.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory behind a [`make_room`](Self::make_room) of what is kept from `from` on.
    pub(crate) fn capacity_with_room(&self, from: usize) -> usize {
        if from == self.base && self.filled == self.bytes.len() {
            self.capacity_doubled()
        } else {
            self.bytes.len()
        }
    }

    /// Moves what is kept, from `from` on, to the base, or doubles the storage if it is full; says
    /// where the base is. There is no room for a byte more then if the storage may not become larger, or the allocator
    /// has no memory.
    #[cold]
    pub(crate) fn make_room(&mut self, from: usize) -> usize {
        if from > self.base {
            self.bytes.copy_within(from..self.filled, self.base);
            self.filled -= from - self.base;
        }
        if self.filled == self.bytes.len() {
            self.grow();
        }
        self.base
    }

    /// Appends `bytes` to all that is kept, growing as they need it.
    ///
    /// # Errors
    /// There is no memory for them; some may have been appended.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), OutOfMemory> {
        self.append_behind(self.base, bytes).map(drop)
    }

    /// Appends `bytes` to what is kept from `from` on, growing as they need it, and returns where that begins then: at
    /// the base, if it had to be moved to find room.
    ///
    /// # Errors
    /// As those of [`append`](Self::append). The caller has checked that the storage may become so large.
    pub(crate) fn append_behind(
        &mut self,
        mut from: usize,
        mut bytes: &[u8],
    ) -> Result<usize, OutOfMemory> {
        while !bytes.is_empty() {
            if self.lacks(1) {
                from = self.make_room(from);
            }
            let room = self.room();
            let step = room.len().min(bytes.len());
            if step == 0 {
                return Err(OutOfMemory);
            }
            room[..step].copy_from_slice(&bytes[..step]);
            self.fill(step);
            bytes = &bytes[step..];
        }
        Ok(from)
    }

    /// Returns whether memory of others may be received into: there is none yet, and nothing was lost.
    #[inline]
    pub(crate) fn may_adopt(&self) -> bool {
        self.bytes.is_empty() && !self.has_run_out()
    }

    /// Forgets everything and never has room again: there was no memory for something that must not be lost.
    #[cold]
    pub(crate) fn run_out(&mut self) {
        self.release();
        self.capacity_max = 0;
    }

    /// Returns whether it has [run out](Self::run_out).
    pub(crate) fn has_run_out(&self) -> bool {
        self.capacity_max == 0
    }

    /// A storage that holds what is in `range` of this one and has no room for more.
    ///
    /// # Panics
    /// If that is not there.
    pub(crate) fn exact(&self, range: Range<usize>) -> Self {
        let content = &self.bytes[range];
        let mut bytes = vec![0; content.len() + self.alignment];
        let base = aligned(&bytes, self.alignment);
        let filled = base + content.len();
        bytes[base..filled].copy_from_slice(content);
        Self {
            bytes,
            base,
            filled,
            alignment: self.alignment,
            capacity_max: self.capacity_max,
        }
    }

    /// An empty storage with the limits of this one, which takes no memory yet.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.alignment, self.capacity_max)
    }

    /// Gives the memory back; nothing is kept.
    pub(crate) fn release(&mut self) -> Vec<u8> {
        (self.base, self.filled) = (0, 0);
        std::mem::take(&mut self.bytes)
    }

    /// Takes memory over that another storage has given back, if it [may](Self::may_adopt).
    pub(crate) fn adopt(&mut self, bytes: Vec<u8>) {
        self.base = aligned(&bytes, self.alignment);
        self.filled = self.base;
        self.bytes = bytes;
    }

    fn capacity_doubled(&self) -> usize {
        (self.bytes.len() * 2)
            .max(ROOM_FIRST)
            .min(self.capacity_max)
    }

    /// Doubles the storage, if it may become larger and the allocator has memory for that.
    fn grow(&mut self) {
        let capacity = self.capacity_doubled();
        let more = capacity.saturating_sub(self.bytes.len());
        if more == 0 || self.bytes.try_reserve_exact(more).is_err() {
            return;
        }
        self.bytes.resize(capacity, 0);
        let base = aligned(&self.bytes, self.alignment);
        if base != self.base {
            self.bytes.copy_within(self.base..self.filled, base);
            (self.base, self.filled) = (base, base + self.filled - self.base);
        }
    }
}

/// The first place in `bytes` that is aligned so; Miri may not know any.
fn aligned(bytes: &[u8], alignment: usize) -> usize {
    match bytes.as_ptr().align_offset(alignment) {
        offset if offset < alignment => offset,
        _ => 0,
    }
}
