//! `tenon_channel`: a version of a program at the other end of a connection.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Mutex;
use std::time::Duration;

use tenon::lean::Interface;
use tenon::wire::{DecodeError, EncodeError, Encoder, Representation};
use tenon::{CallError, Channel, ChannelStepper, Client, Protocol};

use super::codec;
use super::error::{CError, done, told};
use super::fork::Generation;
use super::options::{CAuthSys, COptions};
use super::types::{CInterface, CMessage, CProcedure, Encode};
use super::value::Owned;
use super::words;
use crate::failure::Reason;
use crate::habits::Habits;
use crate::report::Report;

/// `tenon_channel`.
pub struct CChannel {
    pub(super) client: Client,
    /// For those that share the connection.
    habits: Habits,
    /// There once the program steps.
    pub(super) stepper: Mutex<Option<ChannelStepper>>,
    generation: Generation,
}

const NO_CHANNEL: Report = Report::Caller("the channel is NULL");
const NO_INTERFACE: Report = Report::Caller("the interface is NULL");
pub(super) const NO_PROCEDURE: Report = Report::Caller("the procedure is NULL");

/// # Safety
/// It is NULL or leads to a channel that is open as long as `'c`.
pub(super) unsafe fn opened<'c>(channel: *const CChannel) -> Result<&'c CChannel, Report> {
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
        let address = address.ok_or(Report::Caller("the address is NULL or no UTF-8"))?;
        let interface = interface.ok_or(NO_INTERFACE)?;
        let limits = options.map_or(Ok(Default::default()), COptions::channel)?;
        // SAFETY: options and interface are complete.
        let (habits, lean) = unsafe {
            let habits = options.map(|options| options.habits());
            (habits.unwrap_or_default(), interface.lean())
        };
        let found = Client::connect_with(address, lean.program, lean.version, limits)?;
        CChannel::handed_out(found.channel(), habits, lean)
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
            return Err(Report::Caller("the socket is no descriptor"));
        }
        // SAFETY: it is not -1, and the program keeps it open until this returns.
        let socket = unsafe { BorrowedFd::borrow_raw(socket) };
        let socket = socket.try_clone_to_owned().map_err(Report::System)?;
        // SAFETY: both are NULL or what `tenon.h` says.
        let (interface, options) = unsafe { (interface.as_ref(), COptions::read(options)?) };
        let options = options.as_ref();
        let interface = interface.ok_or(NO_INTERFACE)?;
        let limits = options.map_or(Ok(Default::default()), COptions::channel)?;
        // SAFETY: options and interface are complete.
        let (habits, lean) = unsafe {
            let habits = options.map(|options| options.habits());
            (habits.unwrap_or_default(), interface.lean())
        };
        let channel = Channel::over(socket, Protocol::Onc, limits)?;
        CChannel::handed_out(&channel, habits, lean)
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
                CChannel::handed_out(channel.client.channel(), channel.habits.clone(), lean)
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
        changed.habits.timeout = Some(timeout);
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
        changed.habits.user = user;
        let client = changed.habits.in_the_place_of(&changed.client);
        changed.client = client.map_err(Report::Credential)?;
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
            let result = Place::of(procedure, result)?;
            let arguments = Arguments::of(procedure, arguments)?;
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
            Arguments {
                message: None,
                value,
            },
            Place {
                message: None,
                value,
            },
        )
    };
    // SAFETY: the error is NULL or the caller's own.
    unsafe { told(error, ping) }.is_some()
}

/// What a call takes, and where it lies.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'m> {
    message: Option<&'m CMessage>,
    value: *const c_void,
}

impl<'m> Arguments<'m> {
    /// # Safety
    /// The procedure is complete, and the value NULL or one that it takes, as long as `'m`.
    #[inline]
    pub(super) unsafe fn of(
        procedure: &'m CProcedure,
        value: *const c_void,
    ) -> Result<Self, Report> {
        // SAFETY: the caller's promise.
        let message = unsafe { procedure.takes() };
        match message.is_some() && value.is_null() {
            false => Ok(Self { message, value }),
            true => Err(Report::Caller("the arguments are NULL")),
        }
    }

    /// Appends them; why they were not is left behind.
    #[inline]
    pub(super) fn encode<R: Representation>(
        self,
        out: &mut Encoder<'_, R>,
        routine: impl FnOnce(&CMessage) -> Encode,
        limit: usize,
        trouble: &mut Option<Reason<EncodeError>>,
    ) -> Result<(), EncodeError> {
        let Some(message) = self.message else {
            return Ok(());
        };
        // SAFETY: the promise of `of`.
        unsafe { codec::encode(out, routine(message), self.value, limit) }.map_err(|reason| {
            let error = reason.encode_error();
            *trouble = Some(reason);
            error
        })
    }
}

/// Where a result is to be, and what it is.
#[derive(Clone, Copy)]
pub(super) struct Place<'m> {
    message: Option<&'m CMessage>,
    value: *mut c_void,
}

impl<'m> Place<'m> {
    /// Makes it zero.
    ///
    /// # Safety
    /// The procedure is complete, and the value NULL or room for what it returns, as long as `'m`.
    #[inline]
    pub(super) unsafe fn of(procedure: &'m CProcedure, value: *mut c_void) -> Result<Self, Report> {
        // SAFETY: the caller's promise.
        let message = unsafe { procedure.returns() };
        if message.is_some() && value.is_null() {
            return Err(Report::Caller("the result has no place: it is NULL"));
        }
        // SAFETY: there is room for it.
        unsafe { Owned::zeroed(message, value) }.keep();
        Ok(Self { message, value })
    }

    /// Reads it; why it was not is left behind, and the place is zero again.
    #[inline]
    pub(super) fn decode(
        self,
        trouble: &mut Option<Reason<DecodeError>>,
        routine: impl FnOnce(&CMessage, *mut c_void) -> Result<(), Reason<DecodeError>>,
    ) -> Result<(), DecodeError> {
        let Some(message) = self.message else {
            return Ok(());
        };
        // SAFETY: the promise of `of`, which has left the place zero.
        let owned = unsafe { Owned::zeroed(Some(message), self.value) };
        match routine(message, self.value) {
            Ok(()) => {
                owned.keep();
                Ok(())
            }
            Err(reason) => {
                let error = reason.decode_error();
                *trouble = Some(reason);
                Err(error)
            }
        }
    }
}

impl CChannel {
    fn handed_out(over: &Channel, habits: Habits, lean: Interface) -> Result<*mut Self, Report> {
        let client = habits.client(over, lean).map_err(Report::Credential)?;
        Ok(Self::of(client, habits).into_raw())
    }

    fn of(client: Client, habits: Habits) -> Self {
        Self {
            client,
            habits,
            stepper: Mutex::default(),
            generation: Generation::now(),
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

    /// The same over the same connection, which is not stepped by this one.
    fn shared(&self) -> Self {
        Self::of(self.client.clone(), self.habits.clone())
    }

    /// Bytes that a call may have.
    #[inline]
    pub(super) fn send_max(&self) -> usize {
        self.client.channel().options().send_max
    }

    fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    #[inline]
    fn call(&self, number: u32, arguments: Arguments<'_>, result: Place<'_>) -> Result<(), Report> {
        let mut unsent = None;
        let mut unread = None;
        let limit = self.send_max();
        let outcome = match self.client.protocol() {
            Protocol::Onc => self.client.onc().call(
                number,
                |out| arguments.encode(out, |message| message.encode_xdr, limit, &mut unsent),
                |input| {
                    result.decode(&mut unread, |message, value| {
                        // SAFETY: the place has room for what the message describes, and is zero.
                        unsafe { codec::decode_xdr(input, message, value) }
                    })
                },
            ),
            Protocol::Lean => self.client.lean().call(
                number,
                |out| arguments.encode(out, |message| message.encode_lean, limit, &mut unsent),
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

/// What C is told of a call that failed: what its own routine has said, if it has said something.
#[cold]
pub(super) fn explained(
    error: CallError,
    unsent: Option<Reason<EncodeError>>,
    unread: Option<Reason<DecodeError>>,
) -> Report {
    match (unsent, unread) {
        (Some(reason), _) => Report::Arguments(reason),
        (None, Some(reason)) => Report::Result(reason),
        (None, None) => Report::Call(error),
    }
}
