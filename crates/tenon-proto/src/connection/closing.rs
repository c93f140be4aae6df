//! The end of a connection: what each end has said about it.

use crate::codec::lean::RefusalReason;

/// The state of the end of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClosingState {
    /// This end has said that it begins no calls any more and accepts none.
    pub(super) is_closed: bool,
    /// The reason for refusing a lean client with a preamble that comes only now.
    pub(super) refusal: Option<RefusalReason>,
    /// The peer's own word that it closes: the last call that it has accepted, if it has accepted any.
    pub(super) peer: Option<Option<u32>>,
    /// The peer asks this end to begin no calls any more, and accepts them all the same.
    pub(super) peer_goes_away: bool,
    /// The connection is of no use any more.
    pub(super) is_lost: bool,
}

impl ClosingState {
    /// Returns whether this end may begin calls.
    #[inline]
    pub(super) fn may_begin(&self) -> bool {
        !self.is_closed && self.peer.is_none() && !self.peer_goes_away && !self.is_lost
    }
}
