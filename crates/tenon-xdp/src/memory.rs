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

/// A mapping, which ends when it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to no thread; it can be used and unmapped from any.
unsafe impl Send for Mapping {}
// SAFETY: a mapping alone gives access to nothing; its two owners below say how they do.
unsafe impl Sync for Mapping {}

const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Mapping {
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

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and whoever borrowed from it is gone.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// A ring of the kernel's, as words: every one may be changed by the kernel at any time, and is an atomic.
#[derive(Debug)]
pub(crate) struct RingMemory(Mapping);

impl RingMemory {
    /// Maps `bytes` of a socket, which are one of its rings.
    pub(crate) fn map(socket: BorrowedFd<'_>, bytes: usize, offset: u64) -> io::Result<Self> {
        Mapping::of(socket, bytes, offset).map(Self)
    }

    /// The ring as words of 4 bytes. Those that are a part of a word of 8 are not to be used so.
    #[inline]
    pub(crate) fn halves(&self) -> &[AtomicU32] {
        let Mapping { start, bytes } = self.0;
        // SAFETY: the mapping has that many bytes until it is dropped, and begins at a page; a socket's rings
        // do not shrink. Nobody reaches it but by atomics and the kernel, whose stores to aligned words are
        // another thread's atomic ones. Any bits are a word.
        unsafe { slice::from_raw_parts(start.as_ptr().cast(), bytes / 4) }
    }

    /// The ring as words of 8 bytes.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        let Mapping { start, bytes } = self.0;
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(start.as_ptr().cast(), bytes / 8) }
    }
}

/// The frames of one interface, which the kernel writes and reads as well (UMEM).
#[derive(Debug)]
pub(crate) struct Frames {
    memory: Mapping,
    count: u32,
}

/// Whoever has it has a frame, and nobody else does, the kernel neither.
#[derive(Debug)]
pub(crate) struct Frame(u32);

impl Frames {
    /// Memory for `count` frames, and all of them.
    pub(crate) fn new(count: u32) -> io::Result<(Self, Vec<Frame>)> {
        let memory = Mapping::anonymous(count as usize * FRAME)?;
        // From the last to the first, so that a stack gives them out in order.
        let all = (0..count).rev().map(Frame).collect();
        Ok((Self { memory, count }, all))
    }

    /// Tells the kernel of them: from now on it writes those whose numbers it is given.
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

    /// The bytes of a frame.
    #[inline]
    pub(crate) fn bytes(&self, frame: &Frame) -> &[u8] {
        // SAFETY: it lies in the mapping, see `start`; whoever has the frame is the only one to use its
        // memory, and lends it for as long as the bytes are borrowed.
        unsafe { slice::from_raw_parts(self.start(frame), FRAME) }
    }

    /// The bytes of a frame, to be written.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the frame is what is borrowed")]
    pub(crate) fn bytes_mut<'f>(&'f self, frame: &'f mut Frame) -> &'f mut [u8] {
        // SAFETY: as in `bytes`, and the frame is borrowed by nobody else.
        unsafe { slice::from_raw_parts_mut(self.start(frame), FRAME) }
    }

    #[inline]
    fn start(&self, frame: &Frame) -> *mut u8 {
        // A frame of another interface could have a number that is none here.
        assert!(frame.0 < self.count, "a frame of another interface");
        // SAFETY: there are as many frames in the mapping, and this is one of them.
        unsafe { self.memory.start.as_ptr().add(frame.0 as usize * FRAME) }
    }

    /// Gives a frame away: where it is, as the kernel is told.
    #[inline]
    pub(crate) fn release(frame: Frame) -> u64 {
        u64::from(frame.0) * FRAME as u64
    }

    /// Takes a frame back that the kernel has said it is done with, and where in it that begins which it
    /// speaks of; none if there is no such frame.
    ///
    /// Only a ring of the kernel's may be read for the address: it speaks once of each frame that it was given.
    #[inline]
    pub(crate) fn take_back(&self, address: u64) -> Option<(Frame, usize)> {
        let number = u32::try_from(address / FRAME as u64).ok()?;
        let offset = (address % FRAME as u64) as usize;
        (number < self.count).then_some((Frame(number), offset))
    }
}
