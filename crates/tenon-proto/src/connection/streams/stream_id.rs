//! The name of the streams of a call.

/// Names the streams of a call on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId {
    /// The number of the call.
    pub number: u32,
    /// True if this end makes the call.
    pub is_own: bool,
}

impl StreamId {
    /// The streams of a call of this end.
    pub fn own(number: u32) -> Self {
        let is_own = true;
        Self { number, is_own }
    }

    /// The streams of a call of the peer.
    pub fn of_peer(number: u32) -> Self {
        let is_own = false;
        Self { number, is_own }
    }
}
