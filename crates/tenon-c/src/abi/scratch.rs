//! Memory of a thread for the arguments and the result of the call that it executes, so that a call
//! takes none of its own.

use std::cell::Cell;
use std::ffi::c_void;

/// The largest alignment of C's types, but for those that ask for more.
pub(super) const ALIGN: usize = 16;

/// The most memory that a thread keeps for its next call, in [`AlignedChunk`]s.
const KEPT: usize = (1 << 20) / ALIGN;

#[repr(align(16))]
#[derive(Clone, Copy)]
struct AlignedChunk(#[expect(dead_code, reason = "memory is all it is")] [u8; ALIGN]);

thread_local! {
    static MEMORY: Cell<Vec<AlignedChunk>> = const { Cell::new(Vec::new()) };
}

/// Hands out room for `first` and `second` bytes, each aligned for whatever C has. A nested use gets other room.
/// `None`: there is no memory for it.
pub(super) fn with_room<T>(
    first: usize,
    second: usize,
    act: impl FnOnce(*mut c_void, *mut c_void) -> T,
) -> Option<T> {
    let (first, second) = (first.div_ceil(ALIGN), second.div_ceil(ALIGN));
    let both = first.saturating_add(second);
    let mut memory = MEMORY.take();
    if memory.len() < both {
        memory.try_reserve(both - memory.len()).ok()?;
        memory.resize(both, AlignedChunk([0; ALIGN]));
    }
    let (one, other) = memory.split_at_mut(first);
    let outcome = act(one.as_mut_ptr().cast(), other.as_mut_ptr().cast());
    if memory.len() <= KEPT {
        MEMORY.set(memory);
    }
    Some(outcome)
}
