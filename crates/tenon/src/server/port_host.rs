//! What the relay of a port needs of its server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tenon_core::RelayHost;
use tenon_net::{PacketTrain, Stream};

use super::slot::{SlotSocket, SocketSlot};
use super::state::ServerState;

/// A port as the relay of its connections has it.
pub(super) struct PortHost {
    server: Arc<ServerState>,
    slot: Arc<SocketSlot>,
}

impl PortHost {
    /// The port in `slot`.
    pub(super) fn shared(server: &Arc<ServerState>, slot: &Arc<SocketSlot>) -> Arc<dyn RelayHost> {
        Arc::new(Self {
            server: Arc::clone(server),
            slot: Arc::clone(slot),
        })
    }
}

impl RelayHost for PortHost {
    fn send(&self, train: PacketTrain<'_>, to: SocketAddr) -> io::Result<usize> {
        match &self.slot.socket {
            SlotSocket::Port(carrier) => carrier.try_send_to(train, to),
            SlotSocket::Stream(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn admit(&self, connection: Stream) -> bool {
        self.server.admit(connection)
    }

    /// The thread that stops the server looks by itself.
    fn note_all_ended(&self) {}
}
