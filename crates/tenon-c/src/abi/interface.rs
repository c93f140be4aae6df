//! Interfaces as C writes them down.

use std::ffi::{CStr, c_char};
use std::slice;

use tenon::lean::{Interface, Part};

use super::types::{CInterface, CMessage, CPart, CProcedure};
use crate::report::ApiError;

impl CInterface {
    /// Returns the interface as the lean protocol describes it.
    ///
    /// # Safety
    /// It is complete, as `tenon.h` says.
    pub(super) unsafe fn lean(&self) -> Interface {
        // SAFETY: the caller's promise.
        let parts = unsafe { list::<CPart>(self.parts, self.part_count) };
        let part = |part: &CPart| Part {
            // SAFETY: the caller's promise.
            name: unsafe { bytes(part.name) }.into(),
            fingerprint: part.fingerprint,
            layout: part.layout,
            procedure: part.procedure,
        };
        Interface {
            program: self.program,
            version: self.version,
            fingerprint: self.fingerprint,
            parts: parts.iter().map(part).collect(),
        }
    }

    /// Its procedures, found to be in order.
    ///
    /// # Safety
    /// It is complete, as `tenon.h` says, and lives as long as `'i`.
    pub(super) unsafe fn checked_procedures<'i>(&self) -> Result<&'i [CProcedure], ApiError> {
        // SAFETY: the caller's promise.
        let procedures = unsafe { list::<CProcedure>(self.procedures, self.procedure_count) };
        let is_ordered = procedures.is_sorted_by(|one, next| one.number < next.number);
        match is_ordered {
            true => Ok(procedures),
            false => Err(ApiError::Caller(
                "the interface's procedures are not in ascending order of their numbers",
            )),
        }
    }
}

impl CProcedure {
    /// Returns the type of its arguments, if it takes something.
    ///
    /// # Safety
    /// It is complete, as `tenon.h` says, and lives as long as `'p`.
    #[inline]
    pub(super) unsafe fn takes<'p>(&self) -> Option<&'p CMessage> {
        // SAFETY: the caller's promise.
        unsafe { self.arguments.as_ref() }
    }

    /// Returns the type of its result, if it returns something.
    ///
    /// # Safety
    /// As [`takes`](Self::takes).
    #[inline]
    pub(super) unsafe fn returns<'p>(&self) -> Option<&'p CMessage> {
        // SAFETY: the caller's promise.
        unsafe { self.result.as_ref() }
    }
}

/// # Safety
/// There are so many, and they stay as long as `'l`; or the pointer is NULL.
pub(super) unsafe fn list<'l, T>(first: *const T, count: usize) -> &'l [T] {
    match first.is_null() {
        true => &[],
        // SAFETY: it is not NULL, and the caller promises the rest.
        false => unsafe { slice::from_raw_parts(first, count) },
    }
}

/// # Safety
/// It is NULL, or a text of C's that stays as long as `'t`.
pub(super) unsafe fn bytes<'t>(text: *const c_char) -> &'t [u8] {
    match text.is_null() {
        true => &[],
        // SAFETY: it is not NULL, and the caller promises the rest.
        false => unsafe { CStr::from_ptr(text) }.to_bytes(),
    }
}
