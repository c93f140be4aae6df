//! The relay of a port, from before it begins.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tenon_net::Transport;
use tenon_proto::exchange::server::{CloseRecipients, ServerLimits, ServerSecrets};

use super::RelayHost;
use super::server::ServerRelay;

/// The relay of the connections in packets, which begins with the first of them.
#[derive(Debug)]
pub(crate) struct PortRelay {
    running: Option<ServerRelay>,
    transport: Transport,
    limits: ServerLimits,
    secrets: ServerSecrets,
    opened_at: Instant,
    /// No connection is taken in: the server stops, or has no thread for them.
    is_closed: bool,
}

impl PortRelay {
    /// Returns one that has not begun, of a port that was opened `now`. The packet exchange there has the same limits and
    /// secrets.
    pub(crate) fn new(
        transport: Transport,
        limits: ServerLimits,
        secrets: ServerSecrets,
        now: Instant,
    ) -> Self {
        Self {
            running: None,
            transport,
            limits,
            secrets,
            opened_at: now,
            is_closed: false,
        }
    }

    /// Takes in a packet of a stream of bytes; the first has the relay begin, by a `host` for it.
    pub(crate) fn handle_datagram(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        host: impl FnOnce() -> Arc<dyn RelayHost>,
    ) {
        if self.running.is_none() && !self.is_closed {
            let (limits, secrets) = (self.limits, self.secrets);
            match ServerRelay::start(self.transport, host(), limits, secrets, self.opened_at) {
                Ok(relay) => self.running = Some(relay),
                Err(error) => {
                    tracing::error!(%error, "connections in packets cannot be served");
                    self.is_closed = true;
                }
            }
        }
        if let Some(relay) = &self.running {
            relay.handle_datagram(from, datagram);
        }
    }

    /// Takes in no further connections, and ends those that there are if all clients are told.
    pub(crate) fn close(&mut self, to: CloseRecipients) {
        self.is_closed = true;
        match (&mut self.running, to) {
            (None, _) => {}
            (Some(relay), CloseRecipients::ToIdle) => relay.close(),
            (Some(relay), CloseRecipients::ToAll) => relay.stop(),
        }
    }

    /// Returns whether there are connections.
    pub(crate) fn has_connections(&self) -> bool {
        (self.running.as_ref()).is_some_and(ServerRelay::has_connections)
    }
}
