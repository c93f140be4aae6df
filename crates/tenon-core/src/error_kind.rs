//! The kind of the failure of a call, alike for both protocols.

use std::fmt;
use std::io;

use tenon_proto::connection::BindError;
use tenon_proto::lean::{BindRefusal, RefusalReason, Status};
use tenon_proto::onc::message::Refused;

use crate::error::{CallError, ConnectError};

/// Kind of the failure of a call, alike for both protocols, for programs to decide by. The [`CallError`] has the
/// particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The caller's own mistake, found before anything was sent: arguments that break a bound, a call that is too
    /// large, the other protocol.
    InvalidCall,
    /// As many calls are in flight as this end or the peer allows. Try again later.
    Busy,
    /// The peer does not have the program, or not in this version.
    NoService,
    /// The peer was built from another interface, in which this procedure differs. Lean calls only.
    OtherInterface,
    /// The peer does not have the procedure.
    NoProcedure,
    /// The peer cannot decode the arguments, or they are none that the procedure takes.
    InvalidArguments,
    /// The caller may not.
    Denied,
    /// The procedure failed. By ONC RPC, which cannot carry one, it may have raised an error of its interface.
    Failed,
    /// The procedure raised an error of its interface. Lean calls only.
    Raised,
    /// The result is larger than this end accepts. Lean calls only.
    ResultTooLarge,
    /// Time ran out.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// The peer stops. Another may take its place.
    Stopping,
    /// There is no connection to the peer.
    Unreachable,
    /// The connection broke while the call was in flight.
    Disconnected,
    /// The peer broke the protocol.
    PeerMisbehaved,
    /// The peer refused the call for a reason that is not known here.
    Refused,
}

impl CallError {
    /// Returns what the call failed of, alike for both protocols.
    ///
    /// ```
    /// # use tenon_core::error::{CallError, CallErrorKind};
    /// # fn decide(error: &CallError) {
    /// match error.kind() {
    ///     CallErrorKind::Busy | CallErrorKind::Stopping => { /* another server, or later */ }
    ///     CallErrorKind::InvalidArguments => { /* tell the user */ }
    ///     _ if !error.may_have_executed() => { /* safe to repeat */ }
    ///     _ => {}
    /// }
    /// # }
    /// ```
    pub fn kind(&self) -> CallErrorKind {
        use CallErrorKind as Kind;
        match self {
            Self::Arguments(_)
            | Self::TooLarge { .. }
            | Self::TooLargeForPeer { .. }
            | Self::OtherProtocol { .. }
            | Self::NoLeanNumber { .. }
            | Self::Metadata(_)
            | Self::OncMetadata
            | Self::InsecureToken => Kind::InvalidCall,
            Self::TooManyCalls { .. } => Kind::Busy,
            Self::Refused(refused) => kind_of_refused(refused),
            Self::Exception(exception) => kind_of_status(exception.status),
            Self::Unbound(error) => kind_of_bind(error),
            Self::ConnectionRefused(refused) => match refused.reason {
                RefusalReason::BUSY | RefusalReason::HOST => Kind::Busy,
                RefusalReason::STOPPING => Kind::Stopping,
                RefusalReason::FORBIDDEN => Kind::Denied,
                _ => Kind::PeerMisbehaved,
            },
            Self::Misbehaved(_) => Kind::PeerMisbehaved,
            Self::TimedOut { .. } => Kind::TimedOut,
            Self::Connect(ConnectError::Address(_) | ConnectError::NoPort(_)) => Kind::InvalidCall,
            Self::Connect(ConnectError::NotRegistered { .. }) => Kind::NoService,
            Self::Connect(_) => Kind::Unreachable,
            // A datagram met a closed port.
            Self::Disconnected { cause, .. }
                if cause.kind() == io::ErrorKind::ConnectionRefused =>
            {
                Kind::Unreachable
            }
            Self::Disconnected { .. } | Self::CutOff { .. } => Kind::Disconnected,
        }
    }
}

fn kind_of_refused(refused: &Refused) -> CallErrorKind {
    match refused {
        Refused::ProgramUnavailable | Refused::ProgramMismatch { .. } => CallErrorKind::NoService,
        Refused::ProcedureUnavailable => CallErrorKind::NoProcedure,
        Refused::GarbageArguments => CallErrorKind::InvalidArguments,
        Refused::SystemError => CallErrorKind::Failed,
        Refused::Authentication(_) => CallErrorKind::Denied,
        Refused::RpcMismatch { .. } => CallErrorKind::PeerMisbehaved,
    }
}

fn kind_of_status(status: Status) -> CallErrorKind {
    match status {
        Status::UNBOUND => CallErrorKind::NoService,
        Status::NO_PROCEDURE => CallErrorKind::NoProcedure,
        Status::ARGUMENTS | Status::INVALID_ARGUMENTS => CallErrorKind::InvalidArguments,
        Status::METADATA => CallErrorKind::InvalidCall,
        Status::FAILED => CallErrorKind::Failed,
        Status::RAISED => CallErrorKind::Raised,
        Status::FORBIDDEN => CallErrorKind::Denied,
        Status::CANCELLED => CallErrorKind::Cancelled,
        Status::DEADLINE => CallErrorKind::TimedOut,
        Status::OVERLOADED => CallErrorKind::Busy,
        Status::STOPPING => CallErrorKind::Stopping,
        Status::TOO_LARGE => CallErrorKind::ResultTooLarge,
        _ => CallErrorKind::Refused,
    }
}

fn kind_of_bind(error: &BindError) -> CallErrorKind {
    match error {
        BindError::NoNumbers => CallErrorKind::Busy,
        BindError::Refused(refusal) => match **refusal {
            BindRefusal::NoProgram { .. } | BindRefusal::NoVersion { .. } => {
                CallErrorKind::NoService
            }
            BindRefusal::OtherInterface { .. } => CallErrorKind::OtherInterface,
            BindRefusal::TooMany => CallErrorKind::Busy,
            _ => CallErrorKind::Refused,
        },
    }
}

impl fmt::Display for CallErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidCall => "invalid call",
            Self::Busy => "busy",
            Self::NoService => "no such service",
            Self::OtherInterface => "another interface",
            Self::NoProcedure => "no such procedure",
            Self::InvalidArguments => "invalid arguments",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Raised => "raised an error",
            Self::ResultTooLarge => "the result is too large",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::Stopping => "the peer stops",
            Self::Unreachable => "unreachable",
            Self::Disconnected => "disconnected",
            Self::PeerMisbehaved => "the peer broke the protocol",
            Self::Refused => "refused",
        })
    }
}
