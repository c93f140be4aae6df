//! `tenon_channel`: a version of a program at the other end of a connection.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenon::lean::Interface;
use tenon::wire::{DecodeError, EncodeError, Encoder};
use tenon::{
    CallError, CallOptions, Channel, ChannelStepper, Client, ClientView, Protocol, ReplyMetadata,
};

use super::codec::{self, CWrite};
use super::error::{CError, done, told};
use super::fork::ForkGeneration;
use super::options::{CAuthSys, COptions};
use super::types::{CInterface, CMessage, CProcedure};
use super::value::OwnedValue;
use super::words;
use crate::failure::CodecError;
use crate::habits::CallDefaults;
use crate::report::ApiError;

/// `tenon_channel`.
pub struct CChannel {
    pub(super) client: Client,
    /// For those that share the connection.
    defaults: CallDefaults,
    /// Place for the metadata of replies, if the program wants to see it.
    pub(super) reply_metadata: Option<Arc<ReplyMetadata>>,
    /// There once the program steps.
    pub(super) stepper: Mutex<Option<ChannelStepper>>,
    generation: ForkGeneration,
}

const NO_CHANNEL: ApiError = ApiError::Caller("the channel is NULL");
const NO_INTERFACE: ApiError = ApiError::Caller("the interface is NULL");
pub(super) const NO_PROCEDURE: ApiError = ApiError::Caller("the procedure is NULL");

/// # Safety
/// It is NULL or leads to a channel that is open as long as `'c`.
pub(super) unsafe fn opened<'c>(channel: *const CChannel) -> Result<&'c CChannel, ApiError> {
    // SAFETY: the caller's promise.
    let channel = unsafe { channel.as_ref() }.ok_or(NO_CHANNEL)?;
    channel.generation.check()?;
    Ok(channel)
}

/// `tenon_connect`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_connect(
    address: *const c_char,
    interface: *const CInterface,
    options: *const COptions,
    error: *mut CError,
) -> *mut CChannel {
    let connect = || {
        // SAFETY: all three are NULL or what `tenon.h` says.
        let (address, interface, options) =
            unsafe { (words(address), interface.as_ref(), COptions::read(options)?) };
        let options = options.as_ref();
        let address = address.ok_or(ApiError::Caller("the address is NULL or no UTF-8"))?;
        let interface = interface.ok_or(NO_INTERFACE)?;
        let limits = options.map_or(Ok(Default::default()), COptions::channel)?;
        // SAFETY: options and interface are complete.
        let (defaults, lean) = unsafe {
            let defaults = options.map(|options| options.call_defaults());
            (defaults.unwrap_or_default(), interface.lean())
        };
        let found = Client::connect_with(address, lean.program, lean.version, limits)?;
        CChannel::handed_out(found.channel(), defaults, lean)
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, connect) }.unwrap_or(ptr::null_mut())
}

/// `tenon_connect_over`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_connect_over(
    socket: c_int,
    interface: *const CInterface,
    options: *const COptions,
    error: *mut CError,
) -> *mut CChannel {
    let connect = || {
        if socket < 0 {
            return Err(ApiError::Caller("the socket is no descriptor"));
        }
        // SAFETY: it is not -1, and the program keeps it open until this returns.
        let socket = unsafe { BorrowedFd::borrow_raw(socket) };
        let socket = socket.try_clone_to_owned().map_err(ApiError::System)?;
        // SAFETY: both are NULL or what `tenon.h` says.
        let (interface, options) = unsafe { (interface.as_ref(), COptions::read(options)?) };
        let options = options.as_ref();
        let interface = interface.ok_or(NO_INTERFACE)?;
        let limits = options.map_or(Ok(Default::default()), COptions::channel)?;
        // SAFETY: options and interface are complete.
        let (defaults, lean) = unsafe {
            let defaults = options.map(|options| options.call_defaults());
            (defaults.unwrap_or_default(), interface.lean())
        };
        let channel = Channel::over(socket, Protocol::Onc, limits)?;
        CChannel::handed_out(&channel, defaults, lean)
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, connect) }.unwrap_or(ptr::null_mut())
}

/// `tenon_channel_share`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_channel_share(
    channel: *const CChannel,
    interface: *const CInterface,
    error: *mut CError,
) -> *mut CChannel {
    let share = || {
        // SAFETY: both are NULL or what `tenon.h` says.
        let (channel, interface) = unsafe { (opened(channel)?, interface.as_ref()) };
        match interface {
            None => Ok(channel.shared().into_raw()),
            Some(interface) => {
                // SAFETY: the interface is complete.
                let lean = unsafe { interface.lean() };
                CChannel::handed_out(channel.client.channel(), channel.defaults.clone(), lean)
            }
        }
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, share) }.unwrap_or(ptr::null_mut())
}

/// `tenon_channel_timeout`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_channel_timeout(
    channel: *const CChannel,
    timeout_ms: u64,
    error: *mut CError,
) -> *mut CChannel {
    let change = || {
        // SAFETY: it is NULL or a channel that is open.
        let channel = unsafe { opened(channel) }?;
        let timeout = Duration::from_millis(timeout_ms);
        let mut changed = channel.shared();
        changed.client = changed.client.with_timeout(timeout);
        changed.defaults.timeout = Some(timeout);
        Ok(changed.into_raw())
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, change) }.unwrap_or(ptr::null_mut())
}

/// `tenon_channel_credential`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_channel_credential(
    channel: *const CChannel,
    credential: *const CAuthSys,
    error: *mut CError,
) -> *mut CChannel {
    let change = || {
        // SAFETY: both are NULL or what `tenon.h` says.
        let (channel, user) = unsafe {
            let user = credential.as_ref().map(|claim| claim.user());
            (opened(channel)?, user)
        };
        let mut changed = channel.shared();
        changed.defaults.user = user;
        let client = changed.defaults.in_the_place_of(&changed.client);
        changed.client = client.map_err(ApiError::Credential)?;
        Ok(changed.into_raw())
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, change) }.unwrap_or(ptr::null_mut())
}

/// `tenon_close`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_close(channel: *mut CChannel) {
    if !channel.is_null() {
        // SAFETY: it is one that was handed out, and the caller uses it no more.
        done((), || unsafe { Box::from_raw(channel) }.close());
    }
}

/// `tenon_call`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_call(
    channel: *mut CChannel,
    procedure: *const CProcedure,
    arguments: *const c_void,
    result: *mut c_void,
    error: *mut CError,
) -> bool {
    let call = || {
        // SAFETY: the caller's promises are those of `tenon.h`.
        unsafe {
            let procedure = procedure.as_ref().ok_or(NO_PROCEDURE)?;
            // First of all, as it is zero however the call fails.
            let result = ResultSlot::of(procedure, result)?;
            let arguments = CallArguments::of(procedure, arguments)?;
            opened(channel)?.call(procedure.number, arguments, result)
        }
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, call) }.is_some()
}

/// `tenon_ping`.
///
/// # Safety
/// As `tenon.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenon_ping(channel: *mut CChannel, error: *mut CError) -> bool {
    let ping = || {
        // SAFETY: it is NULL or a channel that is open.
        let channel = unsafe { opened(channel) }?;
        let value = ptr::null_mut();
        channel.call(
            0,
            CallArguments {
                message: None,
                value,
            },
            ResultSlot {
                message: None,
                value,
            },
        )
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, ping) }.is_some()
}

/// The arguments of a call: their type and their memory.
#[derive(Clone, Copy)]
pub(super) struct CallArguments<'m> {
    message: Option<&'m CMessage>,
    value: *const c_void,
}

impl<'m> CallArguments<'m> {
    /// # Safety
    /// The procedure is complete, and the value NULL or one that it takes, as long as `'m`.
    #[inline]
    pub(super) unsafe fn of(
        procedure: &'m CProcedure,
        value: *const c_void,
    ) -> Result<Self, ApiError> {
        // SAFETY: the caller's promise.
        unsafe { Self::with(procedure.takes(), value) }
    }

    /// # Safety
    /// The value is NULL or one that `message` describes, as long as `'m`.
    #[inline]
    pub(super) unsafe fn with(
        message: Option<&'m CMessage>,
        value: *const c_void,
    ) -> Result<Self, ApiError> {
        match message.is_some() && value.is_null() {
            false => Ok(Self { message, value }),
            true => Err(ApiError::Caller("the arguments are NULL")),
        }
    }

    /// Appends them; why they were not is left behind.
    #[inline]
    pub(super) fn encode<R: CWrite>(
        self,
        out: &mut Encoder<'_, R>,
        limit: usize,
        failure: &mut Option<CodecError<EncodeError>>,
    ) -> Result<(), EncodeError> {
        let Some(message) = self.message else {
            return Ok(());
        };
        // SAFETY: the promise of `of`.
        unsafe { codec::encode(out, message, self.value, limit) }.map_err(|reason| {
            let error = reason.encode_error();
            *failure = Some(reason);
            error
        })
    }
}

/// The place of a result: its memory and its type.
#[derive(Clone, Copy)]
pub(super) struct ResultSlot<'m> {
    message: Option<&'m CMessage>,
    value: *mut c_void,
}

impl<'m> ResultSlot<'m> {
    /// Makes it zero.
    ///
    /// # Safety
    /// The procedure is complete, and the value NULL or room for what it returns, as long as `'m`.
    #[inline]
    pub(super) unsafe fn of(
        procedure: &'m CProcedure,
        value: *mut c_void,
    ) -> Result<Self, ApiError> {
        // SAFETY: the caller's promise.
        unsafe { Self::with(procedure.returns(), value) }
    }

    /// As [`of`](Self::of), of what `message` describes.
    ///
    /// # Safety
    /// The value is NULL or room for it, as long as `'m`.
    #[inline]
    pub(super) unsafe fn with(
        message: Option<&'m CMessage>,
        value: *mut c_void,
    ) -> Result<Self, ApiError> {
        if message.is_some() && value.is_null() {
            return Err(ApiError::Caller("the result has no place: it is NULL"));
        }
        // SAFETY: there is room for it.
        unsafe { OwnedValue::zeroed(message, value) }.keep();
        Ok(Self { message, value })
    }

    /// Reads it; why it was not is left behind, and the place is zero again.
    #[inline]
    pub(super) fn decode(
        self,
        failure: &mut Option<CodecError<DecodeError>>,
        routine: impl FnOnce(&CMessage, *mut c_void) -> Result<(), CodecError<DecodeError>>,
    ) -> Result<(), DecodeError> {
        let Some(message) = self.message else {
            return Ok(());
        };
        // SAFETY: the promise of `of`, which has left the place zero.
        let owned = unsafe { OwnedValue::zeroed(Some(message), self.value) };
        match routine(message, self.value) {
            Ok(()) => {
                owned.keep();
                Ok(())
            }
            Err(reason) => {
                let error = reason.decode_error();
                *failure = Some(reason);
                Err(error)
            }
        }
    }
}

impl CChannel {
    fn handed_out(
        over: &Channel,
        defaults: CallDefaults,
        lean: Interface,
    ) -> Result<*mut Self, ApiError> {
        let client = defaults.client(over, lean).map_err(ApiError::Credential)?;
        Ok(Self::of(client, defaults).into_raw())
    }

    fn of(client: Client, defaults: CallDefaults) -> Self {
        Self {
            client,
            defaults,
            reply_metadata: None,
            stepper: Mutex::default(),
            generation: ForkGeneration::now(),
        }
    }

    /// Lets go of it. A forked child does not: another thread of its parent may have held a lock of it.
    fn close(self: Box<Self>) {
        if self.generation.is_current() {
            drop(self);
        } else {
            std::mem::forget(self);
        }
    }

    /// Returns the same client over the same connection, which is not stepped by this one.
    pub(super) fn shared(&self) -> Self {
        Self {
            reply_metadata: self.reply_metadata.as_ref().map(|_| Arc::default()),
            ..Self::of(self.client.clone(), self.defaults.clone())
        }
    }

    /// Returns the client that calls.
    #[inline]
    pub(super) fn view(&self) -> ClientView<'_> {
        let mut options = CallOptions::new();
        if let Some(place) = &self.reply_metadata {
            options = options.reply_metadata(place);
        }
        self.client.with_options(options)
    }

    /// Bytes that a call may have.
    #[inline]
    pub(super) fn send_max(&self) -> usize {
        self.client.channel().options().send_max
    }

    pub(super) fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    #[inline]
    fn call(
        &self,
        number: u32,
        arguments: CallArguments<'_>,
        result: ResultSlot<'_>,
    ) -> Result<(), ApiError> {
        let mut unsent = None;
        let mut unread = None;
        let limit = self.send_max();
        let outcome = match self.client.protocol() {
            Protocol::Onc => self.view().onc().call(
                number,
                |out| arguments.encode(out, limit, &mut unsent),
                |input| {
                    result.decode(&mut unread, |message, value| {
                        // SAFETY: the place has room for what the message describes, and is zero.
                        unsafe { codec::decode_xdr(input, message, value) }
                    })
                },
            ),
            Protocol::Lean => self.view().lean().call(
                number,
                |out| arguments.encode(out, limit, &mut unsent),
                |input| {
                    result.decode(&mut unread, |message, value| {
                        // SAFETY: the place has room for what the message describes, and is zero.
                        unsafe { codec::decode_lean(input, message, value) }
                    })
                },
            ),
        };
        outcome.map_err(|error| explained(error, unsent, unread))
    }
}

/// Returns the error that C is told of a call that failed: that of its own routine, if it has said something.
#[cold]
pub(super) fn explained(
    error: CallError,
    unsent: Option<CodecError<EncodeError>>,
    unread: Option<CodecError<DecodeError>>,
) -> ApiError {
    match (unsent, unread) {
        (Some(reason), _) => ApiError::Arguments(reason),
        (None, Some(reason)) => ApiError::Result(reason),
        (None, None) => ApiError::Call(error),
    }
}
