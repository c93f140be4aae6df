//! Taking connections in.

use std::sync::Arc;
use std::time::Duration;

use tenon_net::Listener;
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;

use super::state::ServerState;
use crate::watch::Owned;

/// Connections taken in at a time; then other tasks have their turn, however many wait.
const ACCEPTS_MAX: usize = 32;

/// How long to wait after a failure to accept, for want of descriptors for example, before the next attempt. The
/// connections wait in the kernel.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Takes connections in for as long as the server serves.
pub(super) async fn accept(listener: AsyncFd<Owned<Listener>>, state: Arc<ServerState>) {
    let mut taken = 0;
    loop {
        if taken == ACCEPTS_MAX {
            taken = 0;
            yield_now().await;
        }
        let accepted = match listener.readable().await {
            Err(error) => Err(error),
            Ok(mut ready) => match listener.get_ref().0.try_accept() {
                Ok(None) => {
                    ready.clear_ready();
                    continue;
                }
                Ok(Some(stream)) => Ok(stream),
                Err(error) => Err(error),
            },
        };
        match accepted {
            Ok(stream) => {
                taken += 1;
                state.admit(stream);
            }
            Err(error) => {
                state.shared.tally.accept_failures.up();
                tracing::warn!(%error, "cannot accept a connection; trying again soon");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}
