//! Having the run time watch a socket.

use std::io;
use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A socket that the run time watches, for what it is used for.
///
/// # Errors
/// The system has no room for it.
#[allow(
    deprecated,
    reason = "what replaces it is unsafe, as the descriptor must be the same and open until the \
              end: it is for the sockets that come here, which own theirs and never change it"
)]
pub(crate) fn watch<T: AsRawFd>(socket: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(socket, interest)
}

/// Whether `error` says that nothing is there yet.
pub(crate) fn is_for_now(error: &io::Error) -> bool {
    tenon_net::is_deadline(error) || error.kind() == io::ErrorKind::WouldBlock
}
