//! The kernel that moves items of one size, once it was chosen.

use core::mem;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Copies items and reverses the bytes of each; what it may be handed, [`super::swap::swap`] says. It gives where
/// the last item written ends, so that a caller that goes on there need not remember it across the call.
pub(super) type Move = unsafe extern "C" fn(*const u8, *mut u8, usize) -> *mut u8;

/// The kernel that moves items of one size on this processor. To choose it anew each time would take longer than
/// to move a short array.
pub struct Chosen(AtomicPtr<()>);

impl Chosen {
    /// `find`, as long as nothing is [`set`](Self::set).
    pub(super) const fn at_first(find: Move) -> Self {
        Self(AtomicPtr::new(find as *mut ()))
    }

    /// Returns the cell with the address of it, an `unsafe extern "C" fn(from, to, bytes)`, which gives where the last
    /// item written ends: for machine code that is made at run time. What it may be handed, [`Kernel::swap`](super::Kernel::swap) checks.
    pub fn cell(&self) -> *const *mut () {
        self.0.as_ptr()
    }

    /// Copies items and reverses the bytes of each. Gives where the last one written ends.
    ///
    /// # Safety
    /// `bytes`, whole items, can be read at `from` and written at `to`, which are one place or do not overlap.
    #[inline(always)]
    pub unsafe fn run(&self, from: *const u8, to: *mut u8, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.get()(from, to, bytes) }
    }

    #[inline(always)]
    pub(super) fn get(&self) -> Move {
        let chosen = self.0.load(Ordering::Relaxed);
        // SAFETY: nothing but such functions is ever put there; they are the same from the start of
        // the program to its end, so that there is nothing to be ordered.
        unsafe { mem::transmute::<*mut (), Move>(chosen) }
    }

    pub(super) fn set(&self, chosen: Move) {
        self.0.store(chosen as *mut (), Ordering::Relaxed);
    }
}
