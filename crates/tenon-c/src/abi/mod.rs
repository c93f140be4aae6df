//! The border: functions that C calls, and those of C's that are called.
//!
//! A pointer that comes in is held against NULL where a program's mistake is likely, and otherwise
//! believed, as C has it: the contract of each function is what `tenon.h` says of it.
#![allow(unsafe_code, reason = "C hands over pointers")]

pub mod types;

use std::ffi::{CStr, c_char};

/// The version of the library, as C wants a text.
const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"?",
    };

/// `tenon_version`.
#[unsafe(no_mangle)]
pub extern "C" fn tenon_version() -> *const c_char {
    VERSION.as_ptr()
}
