//! The kind of the failure of a call, alike for both protocols.

use std::fmt;

/// Kind of the failure of a call, alike for both protocols, for programs to decide by. The
/// [`CallError`](crate::error::CallError) has the particulars.
///
/// ```
/// use tenon::{CallError, CallErrorKind};
///
/// /// Returns whether another server may do what this one did not.
/// fn may_go_elsewhere(error: &CallError) -> bool {
///     use CallErrorKind::{Busy, NoService, Stopping, Unreachable};
///     !error.may_have_executed() && matches!(error.kind(), Busy | NoService | Stopping | Unreachable)
/// }
/// ```
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
    /// The caller has not shown who it is, or not credibly. Lean calls only.
    Unauthenticated,
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

impl CallErrorKind {
    /// All kinds, in the order of their numbers (`kind as usize`): for counters of each.
    pub const ALL: [Self; 18] = [
        Self::InvalidCall,
        Self::Busy,
        Self::NoService,
        Self::OtherInterface,
        Self::NoProcedure,
        Self::InvalidArguments,
        Self::Unauthenticated,
        Self::Denied,
        Self::Failed,
        Self::Raised,
        Self::ResultTooLarge,
        Self::TimedOut,
        Self::Cancelled,
        Self::Stopping,
        Self::Unreachable,
        Self::Disconnected,
        Self::PeerMisbehaved,
        Self::Refused,
    ];
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
            Self::Unauthenticated => "unauthenticated",
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
