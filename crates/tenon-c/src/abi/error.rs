//! `tenon_error`, and the frame around all functions that can fail.

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use super::raised;
use crate::report::{ApiError, in_c};
use crate::text::write_words;

/// Room for what happened, in words.
const TEXT: usize = 500;

/// `tenon_error`.
#[repr(C)]
pub struct CError {
    kind: u32,
    code: u32,
    may_have_executed: bool,
    low: u32,
    high: u32,
    text: [u8; TEXT],
}

impl CError {
    #[cold]
    fn set(&mut self, report: &ApiError) {
        self.kind = report.kind() as u32;
        self.code = report.code();
        self.may_have_executed = report.may_have_executed();
        (self.low, self.high) = report.versions();
        write_words(&mut self.text, &in_c(&report.to_string()));
    }
}

/// Runs what a function of the library does, and tells C what became of it. A panic ends here.
///
/// # Safety
/// `error` is NULL or leads to a `tenon_error` that nothing else uses now; it need not hold a value.
#[inline]
pub(super) unsafe fn told<T>(
    error: *mut CError,
    act: impl FnOnce() -> Result<T, ApiError>,
) -> Option<T> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let text = panic_text(&*panic).to_owned();
        Err(ApiError::Bug(text))
    });
    match outcome {
        Ok(value) => {
            if !error.is_null() {
                // SAFETY: it leads to room for an error; nothing is read there.
                unsafe { ptr::write(&raw mut (*error).kind, 0) };
            }
            Some(value)
        }
        Err(report) => {
            tracing::debug!(kind = ?report.kind(), "{}", in_c(&report.to_string()));
            if !error.is_null() {
                // SAFETY: it leads to room for an error, which is filled with one of zeros first.
                unsafe {
                    ptr::write_bytes(error, 0, 1);
                    (*error).set(&report);
                }
            }
            raised::keep(report);
            None
        }
    }
}

/// Runs what a function of the library does that cannot fail. If it panics, nothing was done.
pub(super) fn done<T>(otherwise: T, act: impl FnOnce() -> T) -> T {
    panic::catch_unwind(AssertUnwindSafe(act)).unwrap_or(otherwise)
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// `tenon_error_print`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_error_print(error: *const CError, what: *const c_char) {
    // SAFETY: it is NULL or leads to an error.
    let text = match unsafe { error.as_ref() } {
        None => &b"(no error was asked for)"[..],
        Some(error) => text_of(error),
    };
    let mut to = io::stderr().lock();
    // There is no other place to report that it was not written.
    let _ = match what.is_null() {
        true => to.write_all(text),
        // SAFETY: it is not NULL, and a text of C's.
        false => to
            .write_all(unsafe { CStr::from_ptr(what) }.to_bytes())
            .and_then(|()| to.write_all(b": "))
            .and_then(|()| to.write_all(text)),
    };
    let _ = to.write_all(b"\n");
}

fn text_of(error: &CError) -> &[u8] {
    match error.kind {
        0 => b"no error",
        _ => CStr::from_bytes_until_nul(&error.text).map_or(b"?", CStr::to_bytes),
    }
}
