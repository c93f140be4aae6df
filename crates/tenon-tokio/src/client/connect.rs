//! Making a connection.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use tenon_core::error::ConnectError;
use tenon_core::options::ChannelOptions;
use tenon_core::{ClientSocket, Destination};
use tenon_net::Address;

use crate::erased;
use crate::watch::{AsyncSocket, WatchedSocket};

/// A connection, and where it leads.
pub(super) type ConnectedSocket = (ClientSocket, Address);

/// Finds `destination` and connects to it, on a thread that may wait.
pub(super) async fn socket(
    destination: Destination,
    deadline: Instant,
    options: ChannelOptions,
) -> Result<ConnectedSocket, ConnectError> {
    let address = destination.address().clone();
    let connect = move || destination.connect(deadline, &options);
    match erased::blocking(connect).await {
        Ok(connected) => connected,
        // A resolver of the program has panicked, or the run time ends.
        Err(ended) => Err(ConnectError::unreachable(&address, ended)),
    }
}

/// Has the run time watch a socket.
pub(super) fn watch(socket: ClientSocket) -> io::Result<Arc<WatchedSocket>> {
    AsyncSocket::new(socket).map(Arc::new)
}
