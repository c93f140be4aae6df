//! The ways in which a service refuses a call.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Instant;

use tenon_proto::onc::auth::AuthStat;
use tenon_wire::{Buffer, DecodeError, EncodeError, Encoder, Lean, Marshal};

use crate::error::CallError;
use crate::propagation;

/// Why a service does not carry a call out; the caller learns the status (RFC 5531 section 9), the
/// server's log the reason.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1, GreeterV1Client, GreeterV1Service, Greeting, Visitor}};
/// use tenon::{CallErrorKind, CallInfo, Refusal, Server};
///
/// struct Host;
///
/// impl GreeterV1 for Host {
///     fn greet(&self, _call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
///         if visitor.visits < 0 {
///             return Err(Refusal::InvalidArguments("visits are not counted below 0".into()));
///         }
///         // Other errors become a `SystemError`.
///         let text = std::fs::read_to_string("/nonexistent/greeting")?;
///         Ok(Greeting::Text(text.into()))
///     }
/// }
///
/// let builder = Server::builder().listen("tcp://127.0.0.1:0")?;
/// let server = builder.service(GreeterV1Service(Host)).start()?;
/// let greeter = GreeterV1Client::connect(&format!("lean+{}", server.addresses()[0]))?;
///
/// let invalid = greeter.greet(&Visitor { visits: -1, ..Visitor::default() }).unwrap_err();
/// assert_eq!(invalid.kind(), CallErrorKind::InvalidArguments);
/// assert!(invalid.to_string().contains("below 0"), "{invalid}");
/// let failed = greeter.greet(&Visitor::default()).unwrap_err();
/// assert_eq!(failed.kind(), CallErrorKind::Failed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// PROC_UNAVAIL: there is no such procedure.
    ProcedureUnavailable,
    /// GARBAGE_ARGS: the arguments cannot be decoded.
    GarbageArguments(DecodeError),
    /// GARBAGE_ARGS: the arguments can be decoded, and are none that the procedure takes; this is why. A lean client is
    /// told the reason as [`Status::INVALID_ARGUMENTS`](tenon_proto::lean::Status::INVALID_ARGUMENTS).
    InvalidArguments(String),
    /// SYSTEM_ERR: the service failed, and this is why. The server logs it at the level WARN, with the name of the
    /// procedure; the caller is not told.
    SystemError(String),
    /// AUTH_ERROR: the caller may not.
    Authentication(AuthStat),
    /// AUTH_ERROR, AUTH_REJECTEDCRED: the caller has not shown who it is, or not credibly. A lean client is told the
    /// reason as [`Status::UNAUTHENTICATED`](tenon_proto::lean::Status::UNAUTHENTICATED).
    Unauthenticated(String),
    /// AUTH_ERROR, AUTH_TOOWEAK: the caller may not. A lean client is told the reason as
    /// [`Status::FORBIDDEN`](tenon_proto::lean::Status::FORBIDDEN).
    Denied(String),
    /// SYSTEM_ERR: there is too much to do, and the call was not begun. A lean client is told the reason as
    /// [`Status::OVERLOADED`](tenon_proto::lean::Status::OVERLOADED).
    Overloaded(String),
    /// SYSTEM_ERR: the time of the call is over. A lean client is told the reason as
    /// [`Status::DEADLINE`](tenon_proto::lean::Status::DEADLINE).
    TimedOut(String),
    /// SYSTEM_ERR: the caller has given the call up, or is gone. The server does not log it as a failure. A lean client is
    /// told the reason as [`Status::CANCELLED`](tenon_proto::lean::Status::CANCELLED).
    Cancelled(String),
    /// SYSTEM_ERR: the server stops; the call was not begun, or has streams and goes no further. A lean client is told the
    /// reason as [`Status::STOPPING`](tenon_proto::lean::Status::STOPPING).
    Stopping(String),
    /// The procedure [raises](Self::raise) an error of its interface. ONC RPC cannot carry it: there it is SYSTEM_ERR.
    Raised {
        /// Text of what happened.
        message: String,
        /// The position of the error and its value, in the lean representation and this machine's order of bytes.
        details: Vec<u8>,
    },
}

impl Refusal {
    /// Raises an error that the interface declares for the procedure: the one at `position`, counted from 0, of the list
    /// behind `raises` (`docs/language.md`). A lean client is told so in words, and gets the error by
    /// [`raised_as`](crate::error::LeanException::raised_as); a client of ONC RPC is told SYSTEM_ERR. Generated code has
    /// an error enum for each such procedure, which calls this.
    pub fn raise(position: u32, message: impl Into<String>, error: &impl Marshal<Lean>) -> Self {
        let mut buffer = Buffer::default();
        match encode_raised(position, error, &mut Encoder::over(&mut buffer)) {
            Ok(()) => Self::Raised {
                message: message.into(),
                details: buffer.as_slice().to_vec(),
            },
            Err(error) => Self::SystemError(format!("the error cannot be sent: {error}")),
        }
    }
}

fn encode_raised<T: Marshal<Lean>>(
    position: u32,
    error: &T,
    out: &mut Encoder<'_, Lean>,
) -> Result<(), EncodeError> {
    out.put(position);
    out.align(T::ALIGN, 0);
    error.encode(out)
}

/// Makes a refusal of any error, so that handlers use `?`: a [`DecodeError`] is [`Refusal::GarbageArguments`],
/// [`CallError::CallerGone`] is [`Refusal::Cancelled`], [`CallError::TimedOut`] is [`Refusal::TimedOut`] if the call that the
/// handler carries out has no time left either, any other is [`Refusal::SystemError`] with its text and those of
/// its sources.
impl<E: Error + 'static> From<E> for Refusal {
    fn from(error: E) -> Self {
        let any: &dyn Any = &error;
        if let Some(error) = any.downcast_ref::<DecodeError>() {
            return Self::GarbageArguments(error.clone());
        }
        match call_error(any) {
            Some(error @ CallError::CallerGone) => return Self::Cancelled(error.to_string()),
            // It had no more time than the call of the handler.
            Some(error @ CallError::TimedOut { .. }) if is_late() => {
                return Self::TimedOut(error.to_string());
            }
            _ => {}
        }
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self::SystemError(text)
    }
}

/// Returns whether the time of the call that a handler carries out on this thread is over.
fn is_late() -> bool {
    propagation::deadline().is_some_and(|at| at <= Instant::now())
}

/// Returns the error of a call, which may be that of a reader or writer of bytes.
fn call_error(error: &dyn Any) -> Option<&CallError> {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match wrapped {
        Some(wrapped) => wrapped.downcast_ref(),
        None => error.downcast_ref(),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProcedureUnavailable => f.write_str("the program has no such procedure"),
            Self::GarbageArguments(error) => {
                write!(f, "the arguments cannot be decoded: {error}")
            }
            Self::InvalidArguments(reason) => write!(f, "invalid arguments: {reason}"),
            Self::SystemError(reason) => write!(f, "the service failed: {reason}"),
            Self::Authentication(status) => write!(f, "the caller is rejected: {status}"),
            Self::Unauthenticated(reason) => {
                write!(f, "the caller has not shown who it is: {reason}")
            }
            Self::Denied(reason) => write!(f, "the caller may not: {reason}"),
            Self::Overloaded(reason) => write!(f, "there is too much to do: {reason}"),
            Self::Cancelled(reason) => write!(f, "the call was cancelled: {reason}"),
            Self::TimedOut(reason) => write!(f, "the time of the call is over: {reason}"),
            Self::Stopping(reason) => write!(f, "the server stops: {reason}"),
            Self::Raised { message, .. } => write!(f, "the procedure raised: {message}"),
        }
    }
}
