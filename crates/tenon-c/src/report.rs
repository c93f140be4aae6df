//! The errors that a C program is told, by the side that is at fault.

use std::fmt;
use std::io;

use tenon::lean::{BindRefusal, Status};
use tenon::wire::{DecodeError, EncodeError};
use tenon::{
    AddressError, BindError, CallError, ConnectError, CredentialError, Refused, StartError,
};

use crate::failure::{CodecError, CodecFault};

/// `tenon_kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ApiErrorKind {
    /// The program's own mistake.
    Caller = 1,
    /// The peer refused.
    Refused = 2,
    /// The peer broke the protocol.
    Peer = 3,
    /// Time ran out.
    Timeout = 4,
    /// There is no connection.
    Unreachable = 5,
    /// The connection broke.
    Disconnected = 6,
    /// This machine does not give what it takes.
    System = 7,
    /// A mistake in Tenon.
    Bug = 8,
    /// The other end of a stream has ended it.
    Closed = 9,
}

/// The failure of a function of the library.
#[derive(Debug)]
pub enum ApiError {
    /// A call, or what it needs.
    Call(CallError),
    /// A server that does not start.
    Start(StartError),
    /// A call with arguments that a routine did not encode.
    Arguments(CodecError<EncodeError>),
    /// A call with a result that a routine did not decode.
    Result(CodecError<DecodeError>),
    /// An item of a stream that a routine did not encode.
    SentItem(CodecError<EncodeError>),
    /// An item of a stream that a routine did not decode.
    ItemMessage(CodecError<DecodeError>),
    /// Something that the system does not give.
    System(io::Error),
    /// A text that is no address.
    Address(AddressError),
    /// A credential that cannot be sent.
    Credential(CredentialError),
    /// A value that was to be bytes, without a call.
    Encoded(CodecError<EncodeError>),
    /// Bytes that were to be a value, without a call.
    Decoded(CodecError<DecodeError>),
    /// An interface that cannot be opened, or does not have what is looked for.
    Interface(String),
    /// The program's own mistake.
    Caller(&'static str),
    /// A panic.
    Bug(String),
}

impl ApiError {
    /// Returns the kind of the error: the side that is at fault.
    pub fn kind(&self) -> ApiErrorKind {
        match self {
            Self::Call(error) => kind_of_call(error),
            Self::Start(error) => kind_of_start(error),
            Self::Arguments(reason) => kind_of_reason(reason, ApiErrorKind::Caller),
            Self::Result(reason) => kind_of_reason(reason, ApiErrorKind::Peer),
            Self::SentItem(reason) | Self::Encoded(reason) => {
                kind_of_reason(reason, ApiErrorKind::Caller)
            }
            Self::ItemMessage(reason) | Self::Decoded(reason) => {
                kind_of_reason(reason, ApiErrorKind::Peer)
            }
            Self::Address(_) | Self::Credential(_) | Self::Caller(_) | Self::Interface(_) => {
                ApiErrorKind::Caller
            }
            Self::System(_) => ApiErrorKind::System,
            Self::Bug(_) => ApiErrorKind::Bug,
        }
    }

    /// The status or the number of the error, if there is one.
    pub fn code(&self) -> u32 {
        match self {
            Self::Call(error) => code_of_call(error),
            Self::Start(StartError::Listen { cause, .. } | StartError::System(cause)) => {
                errno(cause)
            }
            Self::System(cause) => errno(cause),
            Self::Start(_)
            | Self::Arguments(_)
            | Self::Result(_)
            | Self::SentItem(_)
            | Self::ItemMessage(_)
            | Self::Encoded(_)
            | Self::Decoded(_)
            | Self::Interface(_)
            | Self::Address(_)
            | Self::Credential(_)
            | Self::Caller(_)
            | Self::Bug(_) => 0,
        }
    }

    /// The versions that the peer has, if it has others than were asked for.
    pub fn versions(&self) -> (u32, u32) {
        match self {
            Self::Call(CallError::Refused(
                Refused::ProgramMismatch { low, high } | Refused::RpcMismatch { low, high },
            )) => (*low, *high),
            Self::Call(CallError::Unbound(BindError::Refused(refusal))) => match &**refusal {
                BindRefusal::NoVersion { low, high, .. } => (*low, *high),
                _ => (0, 0),
            },
            _ => (0, 0),
        }
    }

    /// Returns whether the peer may have carried the call out.
    pub fn may_have_executed(&self) -> bool {
        match self {
            Self::Call(error) => error.may_have_executed(),
            Self::Result(_) | Self::SentItem(_) | Self::ItemMessage(_) | Self::Bug(_) => true,
            Self::Start(_)
            | Self::System(_)
            | Self::Arguments(_)
            | Self::Encoded(_)
            | Self::Decoded(_)
            | Self::Interface(_)
            | Self::Address(_)
            | Self::Credential(_)
            | Self::Caller(_) => false,
        }
    }
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<ConnectError> for ApiError {
    fn from(error: ConnectError) -> Self {
        Self::Call(error.into())
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

fn kind_of_call(error: &CallError) -> ApiErrorKind {
    match error {
        CallError::Arguments(_)
        | CallError::TooLarge { .. }
        | CallError::TooLargeForPeer { .. }
        | CallError::TooManyCalls { .. }
        | CallError::OtherProtocol { .. }
        | CallError::NoLeanNumber { .. }
        | CallError::Metadata(_)
        | CallError::OncMetadata
        | CallError::InsecureToken
        | CallError::NoStreams { .. }
        | CallError::NoCallbacks { .. } => ApiErrorKind::Caller,
        CallError::Exception(exception) if exception.status == Status::DEADLINE => {
            ApiErrorKind::Timeout
        }
        CallError::Refused(_) | CallError::Exception(_) | CallError::Unbound(_) => {
            ApiErrorKind::Refused
        }
        CallError::Misbehaved(_) | CallError::ItemTooLarge { .. } => ApiErrorKind::Peer,
        CallError::StreamClosed | CallError::CallerGone => ApiErrorKind::Closed,
        CallError::TimedOut { .. } => ApiErrorKind::Timeout,
        CallError::Connect(error) => kind_of_connect(error),
        CallError::ConnectionRefused(_) => ApiErrorKind::Unreachable,
        CallError::CutOff { .. } | CallError::Disconnected { .. } => ApiErrorKind::Disconnected,
        // The run time may tell more apart than this library knows.
        _ => ApiErrorKind::Bug,
    }
}

fn kind_of_connect(error: &ConnectError) -> ApiErrorKind {
    match error {
        ConnectError::Address(_) | ConnectError::NoPort(_) => ApiErrorKind::Caller,
        _ => ApiErrorKind::Unreachable,
    }
}

fn kind_of_start(error: &StartError) -> ApiErrorKind {
    match error {
        StartError::NoAddress | StartError::Twice { .. } | StartError::DuplicateLimits(_) => {
            ApiErrorKind::Caller
        }
        StartError::Register(_) => ApiErrorKind::Unreachable,
        _ => ApiErrorKind::System,
    }
}

fn kind_of_reason<E>(reason: &CodecError<E>, of_value: ApiErrorKind) -> ApiErrorKind {
    match reason {
        CodecError::Value(_) => of_value,
        CodecError::Null(_)
        | CodecError::Fault(
            CodecFault::Unsaid | CodecFault::OutOfBounds | CodecFault::TooLarge { .. },
        ) => ApiErrorKind::Caller,
        CodecError::Fault(CodecFault::HoldsNul) => of_value,
        CodecError::Fault(CodecFault::NoMemory) => ApiErrorKind::System,
    }
}

/// Statuses of ONC RPC and of its authentication begin here (`TENON_ONC`, `TENON_ONC_AUTH`).
const ONC: u32 = 1000;
/// See [`ONC`].
pub const ONC_AUTH: u32 = 2000;

fn code_of_call(error: &CallError) -> u32 {
    match error {
        CallError::Refused(refused) => code_of_refusal(refused),
        CallError::Exception(exception) => exception.status.0,
        CallError::Unbound(_) => Status::UNBOUND.0,
        CallError::Connect(ConnectError::Unreachable { cause, .. })
        | CallError::Disconnected { cause, .. } => errno(cause),
        _ => 0,
    }
}

fn code_of_refusal(refused: &Refused) -> u32 {
    match refused {
        Refused::RpcMismatch { .. } => ONC,
        Refused::ProgramUnavailable => ONC + 1,
        Refused::ProgramMismatch { .. } => ONC + 2,
        Refused::ProcedureUnavailable => ONC + 3,
        Refused::GarbageArguments => ONC + 4,
        Refused::SystemError => ONC + 5,
        Refused::Authentication(status) => ONC_AUTH.saturating_add(status.0),
    }
}

fn errno(error: &io::Error) -> u32 {
    let inner = error.get_ref().and_then(|inner| inner.source());
    let system = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
    let number = error
        .raw_os_error()
        .or_else(|| system.and_then(io::Error::raw_os_error));
    number.map_or(0, i32::unsigned_abs)
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Start(StartError::Register(cause)) => {
                write!(f, "cannot register the services: {cause}")
            }
            Self::Start(error) => error.fmt(f),
            Self::System(error) => write!(f, "the system refuses: {error}"),
            Self::Address(error) => error.fmt(f),
            Self::Credential(error) => error.fmt(f),
            Self::Arguments(reason) => write!(f, "the arguments cannot be sent: {reason}"),
            Self::Result(reason) => write!(f, "the result cannot be decoded: {reason}"),
            Self::SentItem(reason) => write!(f, "the item cannot be sent: {reason}"),
            Self::ItemMessage(reason) => write!(f, "the item cannot be decoded: {reason}"),
            Self::Encoded(reason) => write!(f, "the value cannot be encoded: {reason}"),
            Self::Decoded(reason) => write!(f, "the value cannot be decoded: {reason}"),
            Self::Interface(text) => f.write_str(text),
            Self::Caller(text) => f.write_str(text),
            Self::Bug(text) => write!(f, "Tenon made a mistake, please report it: {text}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for CodecError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(error) => error.fmt(f),
            Self::Null(field) if field.is_empty() => f.write_str("a pointer to a value is NULL"),
            Self::Null(field) => write!(f, "{field} is NULL"),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for CodecFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMemory => "there is no memory",
            Self::Unsaid => "the routine does not say why",
            Self::OutOfBounds => "the routine went out of the message's bounds",
            Self::HoldsNul => "a string holds a NUL, which a string of C's cannot",
            Self::TooLarge { limit } => {
                return write!(
                    f,
                    "{limit} bytes, the limit, are not enough; does a list lead back to itself?"
                );
            }
        })
    }
}

/// Names in the run time's messages that `tenon.h` has otherwise.
const NAMES: [(&str, &str); 12] = [
    (
        "ChannelOptions::allow_insecure",
        "allow_insecure in tenon_options",
    ),
    ("ChannelOptions::send_max", "send_max in tenon_options"),
    (
        "ChannelOptions::receive_max",
        "receive_max in tenon_options",
    ),
    ("ChannelOptions::calls_max", "calls_max in tenon_options"),
    ("ServerBuilder::listen", "tenon_server_listen"),
    ("ServerLimits::receive_bytes", "the server's limit"),
    ("ServerLimits::connections", "the server's limit"),
    ("ServerLimits::connection_age", "the server's limit"),
    ("ServerLimits::message_bytes", "its limit"),
    (
        "ServerLimits::first_request_timeout",
        "the server's time for it",
    ),
    (
        "ServerLimits::queue_timeout",
        "the server's time to wait for one",
    ),
    ("ServerLimits::handler_timeout", "the server allows"),
];

/// Returns a text of the run time in the words of `tenon.h`.
pub fn in_c(text: &str) -> String {
    let named = |text: String, (name, in_c): &(&str, &str)| text.replace(name, in_c);
    NAMES.iter().fold(text.to_owned(), named)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of errors in the crates below, which name what a program is to change.
    #[test]
    fn every_name_of_rust_has_one_of_c() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("crates");
        let mut named = 0;
        for part in [
            "tenon",
            "tenon-core",
            "tenon-net",
            "tenon-proto",
            "tenon-shm",
            "tenon-wire",
        ] {
            for file in files(&crates.join(part).join("src")) {
                let source = std::fs::read_to_string(&file).expect("a source");
                let code = source
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                for text in code.flat_map(|line| line.split('"').skip(1).step_by(2)) {
                    named += usize::from(in_c(text) != text);
                    let left = in_c(text);
                    for kind in [
                        "Options::",
                        "Limits::",
                        "Builder::",
                        "Channel::",
                        "Server::",
                    ] {
                        assert!(!left.contains(kind), "{}: {text}", file.display());
                    }
                }
            }
        }
        assert!(named >= NAMES.len(), "{named}");
    }

    fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let nested = paths.flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        });
        nested
            .filter(|path| path.extension().is_some_and(|end| end == "rs"))
            .collect()
    }
}
