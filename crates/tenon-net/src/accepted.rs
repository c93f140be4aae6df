//! What listeners of every system have in common.

use crate::Stream;

/// Connections that may wait to be accepted; the kernel lowers it to its own limit.
pub const BACKLOG: i32 = 4096;

/// A connection that was accepted.
#[derive(Debug)]
pub enum Accepted {
    /// It is to be served.
    Stream(Stream),
    /// No descriptor is left for it, and it is to be told so and closed. Only Linux reports it; elsewhere such a
    /// connection waits.
    Excess(ExcessConnection),
}

/// A connection that was accepted by the descriptor that is kept for this. It is to be dropped soon: until then no other
/// can be refused.
#[derive(Debug)]
pub struct ExcessConnection {
    // In this order they are dropped.
    stream: Option<Stream>,
    #[cfg(all(target_os = "linux", not(tenon_portable)))]
    _lent: Option<crate::linux::LentDescriptor>,
}

impl ExcessConnection {
    #[cfg(all(target_os = "linux", not(tenon_portable)))]
    pub(crate) fn new(stream: Option<Stream>, lent: Option<crate::linux::LentDescriptor>) -> Self {
        Self {
            stream,
            _lent: lent,
        }
    }

    /// Returns the connection; `None` if it was refused already, as one that would have gone on in shared memory.
    pub fn stream(&self) -> Option<&Stream> {
        self.stream.as_ref()
    }
}
