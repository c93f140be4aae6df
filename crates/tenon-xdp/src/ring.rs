//! The four rings between a process and the kernel. Each has one end that puts in and one that takes out; this process
//! uses its end through a mutable borrow.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use rustix::net::xdp::XdpRingOffset;

use crate::memory::RingMemory;

/// Flag that the kernel sets when it has to be called to go on.
const NEEDS_CALL: u32 = 1;

/// A ring, mapped.
#[derive(Debug)]
struct MappedRing {
    memory: RingMemory,
    /// Position of the counts of entries that were put in and taken out, in words of 4 bytes.
    producer: usize,
    consumer: usize,
    flags: Option<usize>,
    /// Position of the entries, in words of 8 bytes.
    entries: usize,
    mask: u32,
    /// Count of entries that this end has put in or taken out, and the limit up to which it may go as it last saw.
    own: u32,
    limit: u32,
}

impl MappedRing {
    fn map(
        socket: BorrowedFd<'_>,
        page: u64,
        offsets: &XdpRingOffset,
        size: u32,
        words: usize,
    ) -> io::Result<Self> {
        let bytes = offsets.desc as usize + size as usize * words * 8;
        Ok(Self {
            memory: RingMemory::map(socket, bytes, page)?,
            producer: offsets.producer as usize / 4,
            consumer: offsets.consumer as usize / 4,
            flags: offsets.flags.map(|at| at as usize / 4),
            entries: offsets.desc as usize / 8,
            mask: size - 1,
            own: 0,
            limit: 0,
        })
    }

    #[inline]
    fn place(&self, words: usize) -> usize {
        self.entries + (self.own & self.mask) as usize * words
    }

    fn needs_call(&self) -> bool {
        let flags = self.flags.map(|at| &self.memory.halves()[at]);
        flags.is_none_or(|flags| flags.load(Ordering::Relaxed) & NEEDS_CALL != 0)
    }

    /// Returns whether there is room for another entry, or an entry, by what the other end has done.
    #[inline]
    fn may_go_on(&mut self, other: usize, ahead: u32) -> bool {
        if self.own != self.limit {
            return true;
        }
        let other = self.memory.halves()[other].load(Ordering::Acquire);
        self.limit = other.wrapping_add(ahead);
        self.own != self.limit
    }
}

/// The end of a ring that puts entries of so many words in.
#[derive(Debug)]
pub(crate) struct RingProducer<const WORDS: usize>(MappedRing);

impl<const WORDS: usize> RingProducer<WORDS> {
    pub(crate) fn map(
        socket: BorrowedFd<'_>,
        page: u64,
        offsets: &XdpRingOffset,
        size: u32,
    ) -> io::Result<Self> {
        MappedRing::map(socket, page, offsets, size, WORDS).map(Self)
    }

    /// Puts an entry in; false if the ring is full.
    #[inline]
    pub(crate) fn put(&mut self, entry: [u64; WORDS]) -> bool {
        let ring = &mut self.0;
        if !ring.may_go_on(ring.consumer, ring.mask + 1) {
            return false;
        }
        let place = ring.place(WORDS);
        let words = &ring.memory.words()[place..place + WORDS];
        for (word, value) in words.iter().zip(entry) {
            word.store(value, Ordering::Relaxed);
        }
        ring.own = ring.own.wrapping_add(1);
        ring.memory.halves()[ring.producer].store(ring.own, Ordering::Release);
        true
    }

    /// Entries that the kernel has not taken out.
    pub(crate) fn pending(&self) -> u32 {
        let taken = self.0.memory.halves()[self.0.consumer].load(Ordering::Acquire);
        self.0.own.wrapping_sub(taken)
    }

    /// Returns whether the kernel has to be called to look at it.
    #[inline]
    pub(crate) fn needs_call(&self) -> bool {
        self.0.needs_call()
    }
}

/// The end of a ring that takes entries of so many words out.
#[derive(Debug)]
pub(crate) struct RingConsumer<const WORDS: usize>(MappedRing);

impl<const WORDS: usize> RingConsumer<WORDS> {
    pub(crate) fn map(
        socket: BorrowedFd<'_>,
        page: u64,
        offsets: &XdpRingOffset,
        size: u32,
    ) -> io::Result<Self> {
        MappedRing::map(socket, page, offsets, size, WORDS).map(Self)
    }

    /// Returns whether there is something to take out.
    #[inline]
    pub(crate) fn has_entry(&mut self) -> bool {
        self.0.may_go_on(self.0.producer, 0)
    }

    /// Takes an entry out.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<[u64; WORDS]> {
        if !self.has_entry() {
            return None;
        }
        let ring = &mut self.0;
        let place = ring.place(WORDS);
        let words = &ring.memory.words()[place..place + WORDS];
        let entry = std::array::from_fn(|at| words[at].load(Ordering::Relaxed));
        ring.own = ring.own.wrapping_add(1);
        ring.memory.halves()[ring.consumer].store(ring.own, Ordering::Release);
        Some(entry)
    }
}

/// Returns a piece of a frame, as an entry of the rings for sending and receiving.
#[inline]
pub(crate) fn descriptor(address: u64, length: u32) -> [u64; 2] {
    let [a, b, c, d] = length.to_ne_bytes();
    [address, u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])]
}

/// Returns the address of a piece, and its length.
#[inline]
pub(crate) fn piece([address, length]: [u64; 2]) -> (u64, u32) {
    let [a, b, c, d, ..] = length.to_ne_bytes();
    (address, u32::from_ne_bytes([a, b, c, d]))
}
