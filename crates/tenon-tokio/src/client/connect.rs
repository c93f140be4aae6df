//! Making a connection.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use tenon_core::ClientSocket;
use tenon_net::{Address, Liveness};
use tokio::task::spawn_blocking;

use crate::watch::{Watched, WatchedSocket};

/// Connects to `address`, on a thread that may wait: the names of hosts are resolved there, too.
pub(super) async fn socket(
    address: &Address,
    deadline: Instant,
    liveness: Liveness,
) -> io::Result<ClientSocket> {
    let address = address.clone();
    let connected =
        spawn_blocking(move || ClientSocket::connect(&address, deadline, liveness)).await;
    connected.unwrap_or_else(|gone| Err(io::Error::other(gone)))
}

/// Has the run time watch a socket.
pub(super) fn watch(socket: ClientSocket) -> io::Result<Arc<WatchedSocket>> {
    Watched::new(socket).map(Arc::new)
}
