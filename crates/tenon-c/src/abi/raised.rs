//! Errors that procedures raise: a handler's way out, and what a caller asks for behind a call that failed.

use std::cell::RefCell;
use std::ffi::{c_char, c_void};

use tenon::wire::{Buffer, EncodeError, Encoder, Lean};
use tenon::{CallError, LeanException, Refusal};

use super::codec;
use super::error::done;
use super::interface::bytes;
use super::request::CRequest;
use super::types::{CMessage, CRaisedType};
use super::value::OwnedValue;
use crate::failure::CodecError;
use crate::report::ApiError;

thread_local! {
    /// The exception by which the last function that failed in this thread did so, if its procedure raised an error.
    static LAST: RefCell<Option<Box<LeanException>>> = const { RefCell::new(None) };
}

/// Keeps what was raised until another function fails in this thread.
pub(super) fn keep(report: ApiError) {
    let raised = match report {
        ApiError::Call(CallError::Exception(exception)) if exception.raised().is_some() => {
            Some(Box::new(exception))
        }
        _ => None,
    };
    // A thread that ends has no room for it any more, and nothing that could ask for it.
    let _ = LAST.try_with(|last| last.replace(raised));
}

/// `tenon_raised`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_raised(of: *const CRaisedType, value: *mut c_void) -> bool {
    done(false, || {
        // SAFETY: it is NULL or leads to constant data of the program's, which is complete.
        let Some((of, message)) = (unsafe { complete(of) }) else {
            return false;
        };
        let found = LAST.try_with(|last| {
            let last = last.borrow();
            let exception = last.as_deref();
            let exception = exception.filter(|it| it.raised() == Some(of.position))?;
            // SAFETY: the value is NULL or room for one of this type.
            unsafe { decoded(exception, of.align, message, value) }
        });
        found.ok().flatten().is_some()
    })
}

/// # Safety
/// `value` is NULL or leads to room for what `message` describes.
unsafe fn decoded(
    exception: &LeanException,
    align: usize,
    message: &CMessage,
    value: *mut c_void,
) -> Option<()> {
    let mut room = Vec::<u128>::new();
    let to = match value.is_null() {
        false => value,
        true => {
            room.try_reserve(message.size.div_ceil(size_of::<u128>()))
                .ok()?;
            room.as_mut_ptr().cast()
        }
    };
    // SAFETY: there is so much room, and what lies there is zero or a value of this type whenever it goes.
    let owned = unsafe { OwnedValue::zeroed(Some(message), to) };
    // SAFETY: the room is zeroed.
    unsafe { codec::decode_raised(exception.details(), align, message, to) }.ok()?;
    if !value.is_null() {
        owned.keep();
    }
    Some(())
}

/// `tenon_raise`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_raise(
    request: *mut CRequest<'_>,
    of: *const CRaisedType,
    value: *const c_void,
    words: *const c_char,
) -> bool {
    done((), || {
        // SAFETY: it is NULL or the request that the handler was handed.
        let Some(request) = (unsafe { request.as_mut() }) else {
            return;
        };
        // SAFETY: the type is NULL or constant data of the program's, and the value NULL or one of that type; the words
        // are NULL or a text.
        let refusal = unsafe { refusal(of, value, words, request.send_max()) };
        request.refuse(refusal);
    });
    false
}

/// # Safety
/// As `tenon.h` says of `tenon_raise`.
unsafe fn refusal(
    of: *const CRaisedType,
    value: *const c_void,
    words: *const c_char,
    limit: usize,
) -> Refusal {
    // SAFETY: the caller's promise.
    let Some((of, message)) = (unsafe { complete(of) }).filter(|_| !value.is_null()) else {
        return Refusal::SystemError("the error is NULL or its type is not complete".to_owned());
    };
    let words = if words.is_null() { of.name } else { words };
    let mut buffer = Buffer::default();
    // SAFETY: the value is one of this type.
    match unsafe { encode(of, message, value, limit, &mut buffer) } {
        Ok(()) => Refusal::Raised {
            // SAFETY: it is NULL or a text.
            message: String::from_utf8_lossy(unsafe { bytes(words) }).into_owned(),
            details: buffer.as_slice().to_vec(),
        },
        Err(reason) => Refusal::SystemError(format!("the error cannot be sent: {reason}")),
    }
}

/// # Safety
/// `value` is one of the type.
unsafe fn encode(
    of: &CRaisedType,
    message: &CMessage,
    value: *const c_void,
    limit: usize,
    buffer: &mut Buffer,
) -> Result<(), CodecError<EncodeError>> {
    let mut out = Encoder::<Lean>::over(buffer);
    out.put(of.position);
    out.align(of.align, 0);
    // SAFETY: the caller's promise.
    unsafe { codec::encode(&mut out, message, value, limit) }
}

/// Returns a type and its message, if both are there and lean messages have such an alignment.
///
/// # Safety
/// It is NULL or leads to constant data of the program's, as its message is.
unsafe fn complete<'t>(of: *const CRaisedType) -> Option<(&'t CRaisedType, &'t CMessage)> {
    // SAFETY: the caller's promise.
    let of = unsafe { of.as_ref() }?;
    // SAFETY: the same.
    let message = unsafe { of.message.as_ref() }?;
    let is_known = of.align.is_power_of_two() && of.align <= 8;
    (is_known && message.align <= align_of::<u128>()).then_some((of, message))
}
