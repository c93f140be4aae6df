//! Memory that the kernel works in: frames, and the rings by which they change hands.
//!
//! One of the two rooms of this crate for unsafe code.
#![allow(unsafe_code, reason = "mapping memory that the kernel writes")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::sockopt::set_xdp_umem_reg;
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};

/// Bytes of a frame: a full frame of an Ethernet, and what drivers want in front.
pub(crate) const FRAME: usize = 2048;

/// Bytes of them that hold what comes in: the kernel keeps 256 in front (XDP_PACKET_HEADROOM), and drops what does not
/// fit behind.
pub(crate) const FRAME_CONTENT: usize = FRAME - 256;

/// A mapping, which ends when it is dropped.
#[derive(Debug)]
struct MemoryMapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to no thread; it can be used and unmapped from any.
unsafe impl Send for MemoryMapping {}
// SAFETY: a mapping alone gives access to nothing; its two owners below say how they do.
unsafe impl Sync for MemoryMapping {}

const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl MemoryMapping {
    fn anonymous(bytes: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the kernel chooses where, so nothing that is there is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ACCESS, flags) }?;
        Self::at(start.cast(), bytes)
    }

    fn of(file: BorrowedFd<'_>, bytes: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses where, so nothing that is there is replaced.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ACCESS, flags, file, offset) }?;
        Self::at(start.cast(), bytes)
    }

    fn at(start: *mut u8, bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no borrow of it is left.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// A ring of the kernel's, as words: every one may be changed by the kernel at any time, and is an atomic.
#[derive(Debug)]
pub(crate) struct RingMemory(MemoryMapping);

impl RingMemory {
    /// Maps `bytes` of a socket, which are one of its rings.
    pub(crate) fn map(socket: BorrowedFd<'_>, bytes: usize, offset: u64) -> io::Result<Self> {
        MemoryMapping::of(socket, bytes, offset).map(Self)
    }

    /// Returns the ring as words of 4 bytes. Those that are a part of a word of 8 are not to be used so.
    #[inline]
    pub(crate) fn halves(&self) -> &[AtomicU32] {
        let MemoryMapping { start, bytes } = self.0;
        // SAFETY: the mapping has that many bytes until it is dropped, and begins at a page; a socket's rings do not
        // shrink. It is reached by nothing but atomics and the kernel: its stores to aligned words are another
        // thread's atomic ones. Any bits are a word.
        unsafe { slice::from_raw_parts(start.as_ptr().cast(), bytes / 4) }
    }

    /// Returns the ring as words of 8 bytes.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        let MemoryMapping { start, bytes } = self.0;
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(start.as_ptr().cast(), bytes / 8) }
    }
}

/// The frames of one interface, which the kernel writes and reads as well (UMEM).
#[derive(Debug)]
pub(crate) struct FrameMemory {
    memory: MemoryMapping,
    count: u32,
}

/// Exclusive ownership of a frame: no other code uses the frame, the kernel neither.
#[derive(Debug)]
pub(crate) struct FrameHandle(u32);

impl FrameMemory {
    /// Allocates memory for `count` frames, and returns it with all of them.
    pub(crate) fn new(count: u32) -> io::Result<(Self, Vec<FrameHandle>)> {
        let memory = MemoryMapping::anonymous(count as usize * FRAME)?;
        // From the last to the first, so that a stack gives them out in order.
        let all = (0..count).rev().map(FrameHandle).collect();
        Ok((Self { memory, count }, all))
    }

    /// Tells the kernel of them: from now on it writes the frames of which it is given the numbers.
    pub(crate) fn register(&self, socket: impl AsFd) -> io::Result<()> {
        let registered = XdpUmemReg {
            addr: self.memory.start.as_ptr() as u64,
            len: self.memory.bytes as u64,
            chunk_size: FRAME as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        Ok(set_xdp_umem_reg(socket, registered)?)
    }

    /// Returns the bytes of a frame.
    #[inline]
    pub(crate) fn bytes(&self, frame: &FrameHandle) -> &[u8] {
        // SAFETY: it lies in the mapping, see `start`; the owner of the handle is the only one to use its memory, and
        // lends it for as long as the bytes are borrowed.
        unsafe { slice::from_raw_parts(self.start(frame), FRAME) }
    }

    /// Returns the bytes of a frame, to be written.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the frame is what is borrowed")]
    pub(crate) fn bytes_mut<'f>(&'f self, frame: &'f mut FrameHandle) -> &'f mut [u8] {
        // SAFETY: as in `bytes`, and the frame has no other borrow.
        unsafe { slice::from_raw_parts_mut(self.start(frame), FRAME) }
    }

    #[inline]
    fn start(&self, frame: &FrameHandle) -> *mut u8 {
        // A frame of another interface could have a number that is none here.
        assert!(frame.0 < self.count, "a frame of another interface");
        // SAFETY: there are as many frames in the mapping, and this is one of them.
        unsafe { self.memory.start.as_ptr().add(frame.0 as usize * FRAME) }
    }

    /// Gives a frame away: where it is, as the kernel is told.
    #[inline]
    pub(crate) fn release(frame: FrameHandle) -> u64 {
        u64::from(frame.0) * FRAME as u64
    }

    /// Takes a frame back that the kernel has said it is done with, and where in it that begins which it
    /// speaks of; none if there is no such frame.
    ///
    /// Only a ring of the kernel's may be read for the address: it speaks once of each frame that it was given.
    #[inline]
    pub(crate) fn take_back(&self, address: u64) -> Option<(FrameHandle, usize)> {
        let number = u32::try_from(address / FRAME as u64).ok()?;
        let offset = (address % FRAME as u64) as usize;
        (number < self.count).then_some((FrameHandle(number), offset))
    }
}
