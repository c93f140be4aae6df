//! Failures of calls, and whether a call that failed may have been carried out all the same.

use crate::lean::{Refused, Violation};

/// The failure of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", note(.may_have_run))]
pub struct Failure {
    /// The cause.
    pub reason: Reason,
    /// True if the server may have carried the call out. If not, it may be sent again.
    pub may_have_run: bool,
}

/// The cause of a call's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Its time ran out.
    #[error("the time of the call ran out")]
    Expired,
    /// The server does not answer.
    #[error("the server does not answer")]
    Unreachable,
    /// The server does not know the conversation any more.
    #[error("{}", forgotten(.was_restarted))]
    Forgotten {
        /// True if it is another run of the server.
        was_restarted: bool,
    },
    /// The server has said that it stops.
    #[error("the server has stopped")]
    Stopped,
    /// The server does not take the conversation.
    #[error(transparent)]
    Refused(Refused),
    /// The server has no room for the call.
    #[error("the server has no room for the call")]
    Overloaded,
    /// The call is larger than the server takes in.
    #[error("a call of {size} bytes is over the server's limit of {limit}")]
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// Most bytes that the server takes in.
        limit: usize,
    },
    /// The answer is larger than this end takes in.
    #[error("the answer is larger than this end takes in")]
    AnswerTooLarge,
    /// The server says that the call is over, and has no answer.
    #[error("the server has lost the answer")]
    Lost,
    /// The server could not read the call.
    #[error("the server found that the call breaks the protocol")]
    Misunderstood,
    /// The answer cannot be read.
    #[error("the answer breaks the protocol: {0}")]
    Violation(Violation),
}

impl Reason {
    /// Returns whether a call that was sent may have been carried out.
    pub(super) fn may_have_run(self) -> bool {
        match self {
            Self::Expired
            | Self::Unreachable
            | Self::Forgotten { .. }
            | Self::Stopped
            | Self::AnswerTooLarge
            | Self::Lost
            | Self::Violation(_) => true,
            Self::Refused(_) | Self::Overloaded | Self::TooLarge { .. } | Self::Misunderstood => {
                false
            }
        }
    }
}

fn note(may_have_run: &bool) -> &'static str {
    match may_have_run {
        true => "; it may have been carried out",
        false => "; it was not carried out",
    }
}

fn forgotten(was_restarted: &bool) -> &'static str {
    match was_restarted {
        true => "the server was restarted",
        false => "the server has forgotten the conversation",
    }
}
