//! The border: functions that C calls, and those of C's that are called.
//!
//! A pointer that comes in is held against NULL where a program's mistake is likely, and otherwise
//! believed, as C has it: the contract of each function is what `tenon.h` says of it.
#![allow(unsafe_code, reason = "C hands over pointers")]

mod channel;
mod codec;
mod error;
mod fork;
mod interface;
mod interface_file;
mod log;
mod marshal;
mod metadata;
mod options;
mod pending;
mod raised;
mod raw;
mod request;
mod runtime_codec;
mod scratch;
mod server;
mod service;
mod stepper;
mod stream;
mod streamed;
mod tables;
pub mod types;
mod value;

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

pub use channel::*;
pub use error::{CError, tenon_error_print};
pub use interface_file::*;
pub use log::*;
pub use marshal::*;
pub use metadata::*;
pub use options::*;
pub use pending::*;
pub use raised::{tenon_raise, tenon_raised};
pub use request::*;
pub use server::*;
pub use stepper::*;
pub use stream::*;
pub use value::tenon_clear;

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

/// Milliseconds for `poll`, not fewer than there are.
fn poll_timeout(limit: Option<Duration>) -> c_int {
    match limit {
        None => -1,
        Some(limit) => {
            let millis = limit.as_micros().div_ceil(1000);
            c_int::try_from(millis).unwrap_or(c_int::MAX)
        }
    }
}

/// A text that C handed over, which has to be UTF-8 to mean anything here.
///
/// # Safety
/// It is NULL, or ends in a NUL and stays as it is as long as `'t`.
unsafe fn words<'t>(text: *const c_char) -> Option<&'t str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: it is not NULL, and the caller promises the rest.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}
