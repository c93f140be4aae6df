//! Which kind of failure an error, an exception or a refusal is.

use std::io;

use tenon_proto::connection::BindError;
use tenon_proto::lean::{BindRefusal, RefusalReason, Status};
use tenon_proto::onc::message::Refused;

use crate::error::{CallError, ConnectError};
use crate::error_kind::CallErrorKind;
use crate::refusal::Refusal;
use crate::serve::lean_status;

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
            | Self::NoStreams { .. }
            | Self::NoCallbacks { .. }
            | Self::InsecureToken => Kind::InvalidCall,
            Self::TooManyCalls { .. } => Kind::Busy,
            Self::Rejected(rejection) => rejection.kind(),
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
            Self::StreamClosed | Self::CallerGone => Kind::Cancelled,
            Self::ItemTooLarge { .. } => Kind::ResultTooLarge,
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

impl Refusal {
    /// Returns what a call that is refused so fails of, as a lean client sees it.
    pub fn kind(&self) -> CallErrorKind {
        kind_of_status(lean_status(self).0)
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
        Status::UNAUTHENTICATED => CallErrorKind::Unauthenticated,
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
