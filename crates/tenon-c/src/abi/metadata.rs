//! `tenon_metadata`: pairs that travel beside arguments and results.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use tenon::{CallError, Metadata, MetadataView, ReplyMetadata};

use super::channel::{CChannel, opened};
use super::error::{CError, done, told};
use super::request::CRequest;
use super::words;
use crate::report::ApiError;

/// `tenon_metadata`.
pub struct CMetadata(Metadata);

impl CMetadata {
    fn into_raw(metadata: Metadata) -> *mut Self {
        Box::into_raw(Box::new(Self(metadata)))
    }
}

/// `tenon_metadata_new`.
#[unsafe(no_mangle)]
pub extern "C" fn tenon_metadata_new() -> *mut CMetadata {
    CMetadata::into_raw(Metadata::new())
}

/// `tenon_metadata_free`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_metadata_free(metadata: *mut CMetadata) {
    if !metadata.is_null() {
        // SAFETY: it is one that was handed out, and the caller uses it no more.
        drop(unsafe { Box::from_raw(metadata) });
    }
}

/// `tenon_metadata_append`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_metadata_append(
    metadata: *mut CMetadata,
    key: *const c_char,
    value: *const c_void,
    length: usize,
    error: *mut CError,
) -> bool {
    let append = || {
        // SAFETY: all are NULL or what `tenon.h` says.
        let (metadata, pair) = unsafe { (metadata.as_mut(), pair(key, value, length)?) };
        let metadata = metadata.ok_or(ApiError::Caller("the metadata is NULL"))?;
        let added = metadata.0.append(pair.0, pair.1);
        added.map_err(|error| ApiError::Call(CallError::Metadata(error)))
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, append) }.is_some()
}

/// `tenon_metadata_get`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_metadata_get(
    metadata: *const CMetadata,
    key: *const c_char,
    index: usize,
    length: *mut usize,
) -> *const c_void {
    // SAFETY: it is NULL or one that was handed out.
    let view = unsafe { metadata.as_ref() }.map(|metadata| metadata.0.view());
    // SAFETY: the key is NULL or a text, the length NULL or room for one.
    unsafe { value(view, key, index, length) }
}

/// `tenon_channel_metadata`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_channel_metadata(
    channel: *const CChannel,
    metadata: *const CMetadata,
    error: *mut CError,
) -> *mut CChannel {
    let change = || {
        // SAFETY: both are NULL or what was handed out.
        let (channel, metadata) = unsafe { (opened(channel)?, metadata.as_ref()) };
        let mut changed = channel.shared();
        if let Some(metadata) = metadata {
            let client = changed.client.with_metadata(&metadata.0);
            changed.client = client.map_err(|error| ApiError::Call(error.into()))?;
        }
        changed.reply_metadata = Some(Arc::new(ReplyMetadata::new()));
        Ok(changed.into_raw())
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, change) }.unwrap_or(ptr::null_mut())
}

/// `tenon_channel_reply_metadata`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_channel_reply_metadata(channel: *const CChannel) -> *mut CMetadata {
    done(ptr::null_mut(), || {
        // SAFETY: it is NULL or a channel that is open.
        let Some(channel) = (unsafe { channel.as_ref() }) else {
            return ptr::null_mut();
        };
        let kept = channel.reply_metadata.as_ref().map(|kept| kept.get());
        CMetadata::into_raw(kept.unwrap_or_default())
    })
}

/// `tenon_request_metadata`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_metadata(
    request: *const CRequest<'_>,
    key: *const c_char,
    index: usize,
    length: *mut usize,
) -> *const c_void {
    // SAFETY: it is NULL or the request that the handler was handed.
    let view = unsafe { request.as_ref() }.map(|request| request.info().metadata());
    // SAFETY: the key is NULL or a text, the length NULL or room for one.
    unsafe { value(view, key, index, length) }
}

/// `tenon_request_append_metadata`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_request_append_metadata(
    request: *mut CRequest<'_>,
    key: *const c_char,
    value: *const c_void,
    length: usize,
    error: *mut CError,
) -> bool {
    let append = || {
        // SAFETY: all are NULL or what `tenon.h` says.
        let (request, pair) = unsafe { (request.as_ref(), pair(key, value, length)?) };
        let request = request.ok_or(ApiError::Caller("the request is NULL"))?;
        let added = request.info().append_reply_metadata(pair.0, pair.1);
        added.map_err(|error| ApiError::Call(error.into()))
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, append) }.is_some()
}

/// A key and a value as C hands them over.
///
/// # Safety
/// The key is NULL or a text, the value NULL or so many bytes, and both stay as they are as long as `'v`.
unsafe fn pair<'v>(
    key: *const c_char,
    value: *const c_void,
    length: usize,
) -> Result<(&'v str, &'v [u8]), ApiError> {
    // SAFETY: the caller's promise.
    let key = unsafe { words(key) }.ok_or(ApiError::Caller("the key is NULL or no UTF-8"))?;
    if length == 0 {
        return Ok((key, &[]));
    }
    if value.is_null() {
        return Err(ApiError::Caller("the value is NULL"));
    }
    // SAFETY: it is not NULL, and the caller promises the rest.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length) };
    Ok((key, value))
}

/// Finds a value, and writes how long it is.
///
/// # Safety
/// The key is NULL or a text, and the length NULL or room for one.
unsafe fn value(
    metadata: Option<MetadataView<'_>>,
    key: *const c_char,
    index: usize,
    length: *mut usize,
) -> *const c_void {
    // SAFETY: the caller's promise.
    let key = unsafe { words(key) };
    let found = metadata.zip(key).and_then(|(metadata, key)| {
        let mut values = metadata.iter().filter(|(of, _)| *of == key);
        values.nth(index).map(|(_, value)| value)
    });
    if !length.is_null() {
        // SAFETY: it is not NULL, and room for a length.
        unsafe { ptr::write(length, found.map_or(0, <[u8]>::len)) };
    }
    found.map_or(ptr::null(), |value| value.as_ptr().cast())
}
