//! The place of `byte_relay` where there is no packet exchange: no connection is one in packets.

#[path = "byte_relay/host.rs"]
mod host;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tenon_net::{Carrier, Stream, Transport};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::exchange::server::{CloseRecipients, ServerLimits, ServerSecrets};

pub use host::RelayHost;

/// Fails, as nothing relays a connection.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn connect(
    _carrier: Carrier,
    _peer: SocketAddr,
    _config: &ConnectionConfig,
    _deadline: Instant,
) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The relay of a port, which never begins.
#[derive(Debug)]
pub(crate) struct PortRelay;

impl PortRelay {
    /// Returns it.
    pub(crate) fn new(_: Transport, _: ServerLimits, _: ServerSecrets, _: Instant) -> Self {
        Self
    }

    /// Drops a packet.
    pub(crate) fn handle_datagram(
        &mut self,
        _from: SocketAddr,
        _datagram: &[u8],
        _host: impl FnOnce() -> Arc<dyn RelayHost>,
    ) {
    }

    /// Changes nothing.
    pub(crate) fn close(&mut self, _: CloseRecipients) {}

    /// Returns false.
    pub(crate) fn has_connections(&self) -> bool {
        false
    }
}
