//! A channel in an event loop of the program's own.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{MutexGuard, TryLockError};

use tenon::ChannelStepper;

use super::channel::{CChannel, opened};
use super::error::{CError, told};
use super::poll_timeout;
use crate::report::ApiError;

const STEPS_ALREADY: ApiError =
    ApiError::Caller("another thread steps the channel: one at a time may");

impl CChannel {
    /// Returns the stepper of the channel, which is made when it is asked for first.
    fn stepper(&self) -> Result<MutexGuard<'_, Option<ChannelStepper>>, ApiError> {
        let mut stepper = match self.stepper.try_lock() {
            Ok(stepper) => stepper,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(STEPS_ALREADY),
        };
        if stepper.is_none() {
            let made = self.client.channel().stepper();
            *stepper = Some(made.map_err(ApiError::System)?);
        }
        Ok(stepper)
    }

    fn with_stepper<T>(&self, act: impl FnOnce(&mut ChannelStepper) -> T) -> Result<T, ApiError> {
        let mut stepper = self.stepper()?;
        match &mut *stepper {
            Some(stepper) => Ok(act(stepper)),
            None => Err(STEPS_ALREADY),
        }
    }
}

/// `tenon_channel_descriptor`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_channel_descriptor(
    channel: *mut CChannel,
    error: *mut CError,
) -> c_int {
    let tell = || {
        // SAFETY: it is NULL or a channel that is open.
        let channel = unsafe { opened(channel) }?;
        channel.with_stepper(|stepper| stepper.as_fd().as_raw_fd())
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, tell) }.unwrap_or(-1)
}

/// `tenon_channel_next_timeout`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_channel_next_timeout(channel: *mut CChannel) -> c_int {
    let tell = || {
        // SAFETY: it is NULL or a channel that is open.
        let channel = unsafe { opened(channel) }?;
        channel.with_stepper(|stepper| stepper.next_timeout())
    };
    // SAFETY: no error is wanted.
    poll_timeout(unsafe { told(std::ptr::null_mut(), tell) }.flatten())
}

/// `tenon_channel_step`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_channel_step(channel: *mut CChannel, error: *mut CError) -> bool {
    let step = || {
        // SAFETY: it is NULL or a channel that is open.
        let channel = unsafe { opened(channel) }?;
        channel.with_stepper(ChannelStepper::step)
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, step) }.is_some()
}
