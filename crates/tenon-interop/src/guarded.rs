//! Memory with an unreadable page behind it: a program that reads beyond a message there is killed.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::slice;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::param::page_size;

/// Some pages, and one behind them that cannot be read.
#[derive(Debug)]
pub struct GuardedBuffer {
    start: NonNull<u8>,
    /// Bytes in front of the page that cannot be read.
    room: usize,
}

impl GuardedBuffer {
    /// Allocates room for messages of up to so many bytes.
    ///
    /// # Panics
    /// If the system has no memory.
    pub fn new(bytes: usize) -> Self {
        let room = bytes.max(1).next_multiple_of(page_size());
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let whole = room + page_size();
        // SAFETY: the system chooses where, so it is memory that nothing else is in.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), whole, access, MapFlags::PRIVATE) };
        let start = NonNull::new(start.unwrap().cast::<u8>()).unwrap();
        // SAFETY: it is the last of the pages above, and no reference to them exists yet.
        let guarded = unsafe {
            let guard = start.add(room).as_ptr();
            mprotect(guard.cast(), page_size(), MprotectFlags::empty())
        };
        guarded.unwrap();
        Self { start, room }
    }

    /// Returns the message once more, with its last byte right in front of what cannot be read.
    ///
    /// # Panics
    /// If it is longer than there is room.
    pub fn ending(&mut self, message: &[u8]) -> &[u8] {
        let free = self.room.checked_sub(message.len()).unwrap();
        // SAFETY: so many bytes are left in the pages, which can be written and are all zero at first; a reader borrows
        // `self`, and so none reads while they are written.
        unsafe {
            let at = self.start.add(free).as_ptr();
            ptr::copy_nonoverlapping(message.as_ptr(), at, message.len());
            slice::from_raw_parts(at, message.len())
        }
    }
}

impl Drop for GuardedBuffer {
    fn drop(&mut self) {
        // SAFETY: these are the pages that were mapped, and no borrow of them is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.room + page_size()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_message_nobody_may_read() {
        let mut guarded = GuardedBuffer::new(5000);
        let end = guarded.ending(b"message").as_ptr_range().end;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        // Of equal neighbours the system makes one.
        let holds_end = |line: &&str| {
            let (range, _) = line.split_once(' ').unwrap();
            let (from, to) = range.split_once('-').unwrap();
            let bounds = [from, to].map(|bound| usize::from_str_radix(bound, 16).unwrap());
            (bounds[0]..bounds[1]).contains(&end.addr())
        };
        let guard = maps.lines().find(holds_end).unwrap();
        assert!(guard.contains(" ---p "), "{guard}");
        assert_eq!(guarded.ending(b"message"), b"message");
    }
}
