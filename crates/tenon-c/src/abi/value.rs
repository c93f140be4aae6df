//! Memory that holds a value of C's, and what the value owns.

use std::ffi::c_void;
use std::ptr;

use super::error::done;
use super::types::CMessage;

/// Gives back what a value owns, when it goes.
pub(super) struct OwnedValue<'m> {
    message: Option<&'m CMessage>,
    value: *mut c_void,
}

impl<'m> OwnedValue<'m> {
    /// Owns the value that lies at `value` from now on, which is zeroed.
    ///
    /// # Safety
    /// `value` leads to room as `message` says, as long as this is there. Until then it holds what the
    /// message's `free` can be called for.
    pub(super) unsafe fn zeroed(message: Option<&'m CMessage>, value: *mut c_void) -> Self {
        if let Some(message) = message {
            // SAFETY: there is so much room.
            unsafe { ptr::write_bytes(value.cast::<u8>(), 0, message.size) };
        }
        Self { message, value }
    }

    /// Leaves it with the owner of the memory.
    pub(super) fn keep(mut self) {
        self.message = None;
    }
}

impl Drop for OwnedValue<'_> {
    fn drop(&mut self) {
        if let Some(message) = self.message {
            // SAFETY: the promise of `zeroed`.
            unsafe { clear(message, self.value) };
        }
    }
}

/// # Safety
/// `value` leads to a value of `message`'s type that nothing else uses now.
unsafe fn clear(message: &CMessage, value: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(codec) = message.codec.as_ref() {
            codec.0.free(value.cast());
        } else if let Some(free) = message.free {
            free(value);
        }
        ptr::write_bytes(value.cast::<u8>(), 0, message.size);
    }
}

/// `tenon_clear`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_clear(message: *const CMessage, value: *mut c_void) {
    done((), || {
        // SAFETY: it is NULL or leads to constant data of the program.
        let message = unsafe { message.as_ref() };
        if let Some(message) = message.filter(|_| !value.is_null()) {
            // SAFETY: the value is one of this type, and the caller's own.
            unsafe { clear(message, value) };
        }
    });
}
