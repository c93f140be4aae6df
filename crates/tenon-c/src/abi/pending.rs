//! `tenon_pending`: calls that are waited for later.

use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

use tenon::wire::{DecodeError, Decoder};
use tenon::{LeanInput, PendingCall, Protocol};

use super::channel::{CChannel, CallArguments, NO_PROCEDURE, ResultSlot, explained, opened};
use super::codec;
use super::error::{CError, done, told};
use super::fork::ForkGeneration;
use super::types::CProcedure;
use crate::report::ApiError;

/// `tenon_pending`.
pub struct CPending {
    call: PendingCall<()>,
    /// Constant data of the program's.
    procedure: &'static CProcedure,
    generation: ForkGeneration,
}

const NO_PENDING: ApiError = ApiError::Caller("the pending call is NULL");

/// `tenon_start`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_start(
    channel: *mut CChannel,
    procedure: *const CProcedure,
    arguments: *const c_void,
    error: *mut CError,
) -> *mut CPending {
    let start = || {
        // SAFETY: the caller's promises are those of `tenon.h`; procedures are constant data.
        let (channel, procedure, arguments) = unsafe {
            let procedure: &'static CProcedure = procedure.as_ref().ok_or(NO_PROCEDURE)?;
            let arguments = CallArguments::of(procedure, arguments)?;
            (opened(channel)?, procedure, arguments)
        };
        let call = channel.start(procedure.number, arguments)?;
        Ok(Box::into_raw(Box::new(CPending {
            call,
            procedure,
            generation: ForkGeneration::now(),
        })))
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, start) }.unwrap_or(ptr::null_mut())
}

impl CChannel {
    fn start(
        &self,
        number: u32,
        arguments: CallArguments<'_>,
    ) -> Result<PendingCall<()>, ApiError> {
        let mut unsent = None;
        let limit = self.send_max();
        // What reads the result is said when it is waited for.
        let started = match self.client.protocol() {
            Protocol::Onc => {
                let unread = |_: &mut Decoder<'_>| Ok(());
                self.view().onc().start(
                    number,
                    |out| arguments.encode(out, limit, &mut unsent),
                    unread,
                )
            }
            Protocol::Lean => {
                let unread = |_: &mut LeanInput<'_>| Ok(());
                self.view().lean().start(
                    number,
                    |out| arguments.encode(out, limit, &mut unsent),
                    unread,
                )
            }
        };
        started.map_err(|error| explained(error, unsent, None))
    }
}

/// `tenon_finish`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_finish(
    pending: *mut CPending,
    result: *mut c_void,
    error: *mut CError,
) -> bool {
    let finish = || {
        if pending.is_null() {
            return Err(NO_PENDING);
        }
        // SAFETY: it is one that was handed out, and the caller uses it no more.
        let pending = unsafe { Box::from_raw(pending) };
        if let Err(forked) = pending.generation.check() {
            std::mem::forget(pending);
            return Err(forked);
        }
        // SAFETY: the result is NULL or room for what the procedure returns.
        let place = unsafe { ResultSlot::of(pending.procedure, result) }?;
        finish(pending.call, place)
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, finish) }.is_some()
}

fn finish(call: PendingCall<()>, place: ResultSlot<'_>) -> Result<(), ApiError> {
    let (mut of_onc, mut of_lean) = (None, None);
    let onc = |input: &mut Decoder<'_>| -> Result<(), DecodeError> {
        place.decode(&mut of_onc, |message, value| {
            // SAFETY: the place has room for what the message describes, and is zero.
            unsafe { codec::decode_xdr(input, message, value) }
        })
    };
    let lean = |input: &mut LeanInput<'_>| -> Result<(), DecodeError> {
        place.decode(&mut of_lean, |message, value| {
            // SAFETY: the place has room for what the message describes, and is zero.
            unsafe { codec::decode_lean(input, message, value) }
        })
    };
    let outcome = call.wait_with(onc, lean);
    outcome.map_err(|error| explained(error, None, of_onc.or(of_lean)))
}

/// `tenon_ready`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_ready(pending: *mut CPending, limit_ms: u64) -> bool {
    // SAFETY: it is NULL or one that was handed out, and used by one thread at a time.
    match unsafe { pending.as_mut() } {
        None => true,
        Some(pending) if !pending.generation.is_current() => true,
        Some(pending) => done(true, || {
            pending.call.wait_for(Duration::from_millis(limit_ms))
        }),
    }
}

/// `tenon_cancel`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_cancel(pending: *mut CPending) {
    if !pending.is_null() {
        // SAFETY: it is one that was handed out, and the caller uses it no more.
        let pending = unsafe { Box::from_raw(pending) };
        if pending.generation.is_current() {
            done((), || drop(pending));
        } else {
            std::mem::forget(pending);
        }
    }
}
