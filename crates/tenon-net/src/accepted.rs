//! What listeners of every system have in common.

use crate::Stream;

/// Connections that may wait to be accepted; the kernel lowers it to its own limit.
pub(crate) const BACKLOG: i32 = 4096;

/// A connection that was accepted.
#[derive(Debug)]
pub enum Accepted {
    /// It is to be served.
    Stream(Stream),
    /// No descriptor is left for it: it was accepted by the one that is kept for this, and is to be closed before the
    /// next is accepted. `None` if it is closed already, as one that would have gone on in shared memory. Only Linux
    /// reports it; elsewhere such a connection waits.
    Excess(Option<Stream>),
}
