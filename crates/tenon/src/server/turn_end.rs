//! How a turn at a connection or port ends.

use tenon_core::serve::EndReason;

/// How a turn has ended.
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
