//! The memory of a connection: an anonymous file that two processes map. It has no name anywhere, so
//! nothing is left of it when the last of them is gone, however it went.
//!
//! This is the one room of this crate for unsafe code: what is mapped, and how [lines] of it are copied.
#![allow(
    unsafe_code,
    reason = "mapping and copying memory that another process writes"
)]

pub(crate) mod lines;

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::AtomicU64;

use rustix::fs::memfd_create;
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Seals of a segment's file: memory that vanishes while it is mapped kills the process that touches it.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// The kind of file system that anonymous files are of. Those of huge pages are not: they can run
/// out of pages that are mapped already.
const TMPFS: i64 = 0x0102_1994;

/// A segment that is mapped, as words that anybody may change at any time.
#[derive(Debug)]
pub struct Segment {
    words: NonNull<AtomicU64>,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread; it can be used and unmapped from any.
unsafe impl Send for Segment {}
// SAFETY: what is behind a shared reference is atomic words.
unsafe impl Sync for Segment {}

/// A file that a peer handed over is no segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// It could become smaller, which would kill a process that reads it then.
    #[error("the memory that the peer handed over is not sealed against shrinking: it has {0:?}")]
    NotSealed(SealFlags),
    /// It has another size than the peer says.
    #[error("the memory that the peer handed over has {is} bytes and not {said}")]
    Size {
        /// Bytes that it has.
        is: u64,
        /// Bytes that it is to have.
        said: u64,
    },
    /// It is not ordinary memory.
    #[error("what the peer handed over is no ordinary memory")]
    NoMemory,
    /// The system refused something.
    #[error("the memory that the peer handed over cannot be used: {0}")]
    System(#[from] io::Error),
}

impl From<Errno> for SegmentError {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

impl Segment {
    /// Makes a segment of `bytes`, all zero, and the file by which another process gets it.
    ///
    /// # Errors
    /// The system is out of memory, address space or descriptors.
    pub fn create(bytes: usize) -> io::Result<(Self, OwnedFd)> {
        let file = anonymous_file()?;
        ftruncate(&file, bytes as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok((Self::map(file.as_fd(), bytes)?, file))
    }

    /// Maps a segment of `bytes` that a peer made.
    ///
    /// # Errors
    /// It is no such thing, or could do harm.
    pub fn open(file: BorrowedFd<'_>, bytes: usize) -> Result<Self, SegmentError> {
        // Other kinds of files have no seals to ask for.
        let seals = fcntl_get_seals(file).map_err(|_| SegmentError::NoMemory)?;
        if !seals.contains(SEALS) {
            return Err(SegmentError::NotSealed(seals));
        }
        if fstatfs(file)?.f_type != TMPFS as _ {
            return Err(SegmentError::NoMemory);
        }
        let is = fstat(file)?.st_size as u64;
        let said = bytes as u64;
        if is != said {
            return Err(SegmentError::Size { is, said });
        }
        Ok(Self::map(file, bytes)?)
    }

    fn map(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses where, so nothing that is there is replaced.
        let mapped = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) }?;
        let words = NonNull::new(mapped.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { words, bytes })
    }
}

/// Creates an anonymous file that can be sealed. A system may be set to allow only such as cannot be executed, which
/// old kernels do not know.
fn anonymous_file() -> rustix::io::Result<OwnedFd> {
    const NAME: &str = "tenon-shm";
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(NAME, flags),
        made => made,
    }
}

impl Deref for Segment {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has that many bytes until it is dropped and begins at a page; its file can neither shrink
        // nor lose its seals, so all of it stays accessible. Any bits are a word. No code in this process reaches it
        // but by these atomics, and what another process does to it, however it does it, is to an atomic access another
        // thread's store: a value, and never a torn word, as the words are aligned.
        unsafe { slice::from_raw_parts(self.words.as_ptr(), self.bytes / size_of::<AtomicU64>()) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no borrow of it is left.
        let unmapped = unsafe { munmap(self.words.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
