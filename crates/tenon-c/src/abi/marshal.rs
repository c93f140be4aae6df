//! Values to bytes and back, without a call: by generated code and by opened interfaces.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use tenon::wire::{
    Buffer, DecodeErrorKind, DecodeMode, Decoder, Encoder, Lean, Limits, Native, Swapped, Xdr,
};

use super::codec::{self, CRead, CWrite};
use super::error::{CError, told};
use super::interface::list;
use super::types::CMessage;
use super::value::OwnedValue;
use crate::failure::{CodecError, CodecFault};
use crate::report::ApiError;

/// Bytes that a message may have by default.
const LIMIT: usize = 64 << 20;

/// The most memory that a thread keeps for the next message.
const KEPT: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Buffer> = RefCell::new(Buffer::default());
}

const NO_MESSAGE: ApiError = ApiError::Caller("the type is NULL");
const NO_VALUE: ApiError = ApiError::Caller("the value is NULL");

/// A `tenon_representation`.
#[derive(Clone, Copy)]
enum WireForm {
    Xdr,
    Lean,
    LeanSwapped,
}

impl WireForm {
    fn of(number: u32) -> Result<Self, ApiError> {
        match number {
            0 => Ok(Self::Xdr),
            1 => Ok(Self::Lean),
            2 => Ok(Self::LeanSwapped),
            _ => Err(ApiError::Caller("there is no such representation")),
        }
    }
}

/// Hands the bytes of a value, no more than `limit`, to `act`.
///
/// # Safety
/// `message` describes the value.
unsafe fn with_encoded<T>(
    message: &CMessage,
    form: WireForm,
    value: *const c_void,
    limit: usize,
    act: impl FnOnce(&[u8]) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        // SAFETY: the caller's promise.
        let encoded = unsafe {
            match form {
                WireForm::Xdr => encode::<Xdr>(buffer, message, value, limit),
                WireForm::Lean => encode::<Lean<Native>>(buffer, message, value, limit),
                WireForm::LeanSwapped => {
                    return Err(ApiError::Caller(
                        "values are encoded in this machine's order of bytes",
                    ));
                }
            }
        };
        let outcome = encoded.and_then(|()| act(buffer.as_slice()));
        buffer.clear();
        buffer.shrink_to(KEPT);
        outcome
    })
}

/// # Safety
/// `message` describes the value.
unsafe fn encode<R: CWrite>(
    buffer: &mut Buffer,
    message: &CMessage,
    value: *const c_void,
    limit: usize,
) -> Result<(), ApiError> {
    let mut out = Encoder::<R>::over(buffer);
    // SAFETY: the caller's promise.
    unsafe { codec::encode(&mut out, message, value, limit) }.map_err(ApiError::Encoded)
}

/// `tenon_encode`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_encode(
    message: *const CMessage,
    representation: u32,
    value: *const c_void,
    buffer: *mut c_void,
    room: usize,
    length: *mut usize,
    error: *mut CError,
) -> bool {
    let encode = || {
        // SAFETY: it is NULL or describes the value.
        let message = unsafe { message.as_ref() }.ok_or(NO_MESSAGE)?;
        if value.is_null() {
            return Err(NO_VALUE);
        }
        if buffer.is_null() && room > 0 {
            return Err(ApiError::Caller("the buffer is NULL"));
        }
        let form = WireForm::of(representation)?;
        // SAFETY: the message describes the value; the buffer has so much room.
        unsafe {
            with_encoded(message, form, value, room, |bytes| {
                let to = buffer.cast::<u8>();
                ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len().min(room));
                put_length(length, bytes.len());
                Ok(())
            })
        }
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, encode) }.is_some()
}

/// `tenon_encode_alloc`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_encode_alloc(
    message: *const CMessage,
    representation: u32,
    value: *const c_void,
    limit: usize,
    length: *mut usize,
    error: *mut CError,
) -> *mut c_void {
    let encode = || {
        // SAFETY: it is NULL or describes the value.
        let message = unsafe { message.as_ref() }.ok_or(NO_MESSAGE)?;
        if value.is_null() {
            return Err(NO_VALUE);
        }
        let limit = if limit == 0 { LIMIT } else { limit };
        let form = WireForm::of(representation)?;
        // SAFETY: the message describes the value.
        unsafe {
            with_encoded(message, form, value, limit, |bytes| {
                let memory = libc::malloc(bytes.len().max(1));
                if memory.is_null() {
                    let fault = CodecError::Fault(CodecFault::NoMemory);
                    return Err(ApiError::Encoded(fault));
                }
                ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len());
                put_length(length, bytes.len());
                Ok(memory)
            })
        }
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, encode) }.unwrap_or(ptr::null_mut())
}

/// # Safety
/// It is NULL or room for a length.
unsafe fn put_length(to: *mut usize, length: usize) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { ptr::write(to, length) };
    }
}

/// `tenon_decode`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_decode(
    message: *const CMessage,
    representation: u32,
    bytes: *const c_void,
    length: usize,
    value: *mut c_void,
    used: *mut usize,
    error: *mut CError,
) -> bool {
    let decode = || {
        // SAFETY: it is NULL or describes the room for the value.
        let message = unsafe { message.as_ref() }.ok_or(NO_MESSAGE)?;
        if value.is_null() {
            return Err(ApiError::Caller("the value has no place: it is NULL"));
        }
        // SAFETY: there is so much room. First of all, as it is zero however this ends.
        let owned = unsafe { OwnedValue::zeroed(Some(message), value) };
        if bytes.is_null() && length > 0 {
            return Err(ApiError::Caller("the bytes are NULL"));
        }
        // SAFETY: there are so many bytes.
        let bytes = unsafe { list(bytes.cast::<u8>(), length) };
        // SAFETY: the room is zero, and the message describes it.
        let read = unsafe {
            match WireForm::of(representation)? {
                WireForm::Xdr => decode::<Xdr>(bytes, message, value),
                WireForm::Lean => decode::<Lean<Native>>(bytes, message, value),
                WireForm::LeanSwapped => decode::<Lean<Swapped>>(bytes, message, value),
            }
        }?;
        if used.is_null() && read < length {
            let trailing = DecodeErrorKind::Trailing(length - read);
            let error = tenon::wire::DecodeError::new(trailing, read);
            return Err(ApiError::Decoded(CodecError::Value(error)));
        }
        // SAFETY: it is NULL or room for a length.
        unsafe { put_length(used, read) };
        owned.keep();
        Ok(())
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, decode) }.is_some()
}

/// Reads a value, and returns the number of its bytes.
///
/// # Safety
/// `message` describes the room that `value` leads to, which is zero.
unsafe fn decode<R: CRead>(
    bytes: &[u8],
    message: &CMessage,
    value: *mut c_void,
) -> Result<usize, ApiError> {
    let mut input = Decoder::<R>::over(bytes, DecodeMode::default(), Limits::default());
    // SAFETY: the caller's promise.
    unsafe { codec::decode(&mut input, 0, message, value) }.map_err(ApiError::Decoded)?;
    Ok(bytes.len() - input.rest().len())
}
