//! The end of a turn at a connection or port.

use tenon_core::serve::EndReason;

/// The end of a turn.
#[derive(Debug)]
pub(super) enum TurnEnd {
    /// Everything that has come is done.
    Idle,
    /// There is more to do.
    More,
    /// Another thread has the connection.
    Taken,
    /// The connection is over.
    Over(EndReason),
}
