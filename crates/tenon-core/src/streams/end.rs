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
    /// Returns how a stream has ended of which this was read; `None` if it goes on.
    pub fn of<T, E>(read: &Result<Option<T>, E>) -> Option<Self> {
        match read {
            Ok(Some(_)) => None,
            Ok(None) => Some(Self::Whole),
            Err(_) => Some(Self::Failed),
        }
    }
}
