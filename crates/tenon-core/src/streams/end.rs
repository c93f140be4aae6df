//! How a stream that is received has ended.

/// How a stream that is received has ended, as its reader remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// Behind all of its items.
    Whole,
    /// By an error, which was returned.
    Failed,
}

impl StreamEnd {
    /// Returns how a stream has ended whose reader has waited for an item; `None` if there is one.
    pub(super) fn of<E>(waited: &Result<bool, E>) -> Option<Self> {
        match waited {
            Ok(true) => None,
            Ok(false) => Some(Self::Whole),
            Err(_) => Some(Self::Failed),
        }
    }
}
