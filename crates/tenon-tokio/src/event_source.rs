//! A socket that the run time watches, by the descriptor of the socket itself.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

/// A socket that the run time watches.
pub(crate) type WatchedSource<T> = AsyncFd<EventSource<T>>;

/// What was found of a socket that is watched.
pub(crate) type SourceReadyGuard<'w, T> = AsyncFdReadyGuard<'w, EventSource<T>>;

/// A socket that the run time watches, for what it is used for.
///
/// # Errors
/// The system has no room for it.
#[allow(
    deprecated,
    reason = "what replaces it is unsafe, as the descriptor must be the same and open until the \
              end: it is for the sockets that come here, which own theirs and never change it"
)]
pub(crate) fn watch<T: AsFd>(socket: T, interest: Interest) -> io::Result<WatchedSource<T>> {
    AsyncFd::with_interest(EventSource(socket), interest)
}

/// A socket that owns its descriptor, as the run time wants it.
#[derive(Debug)]
pub(crate) struct EventSource<T>(pub(crate) T);

impl<T: AsFd> AsRawFd for EventSource<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
