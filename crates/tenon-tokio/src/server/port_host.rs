//! What the relay of a port needs of its server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tenon_core::RelayHost;
use tenon_net::{Carrier, PacketTrain, Stream};
use tokio::runtime::Handle;

use super::mailbox::ReplyMailbox;
use super::state::ServerState;
use crate::watch::AsyncSocket;

/// A port as the relay of its connections has it.
pub(super) struct PortHost {
    state: Arc<ServerState>,
    mailbox: Arc<ReplyMailbox>,
    socket: Arc<AsyncSocket<Carrier>>,
    /// The run time that serves the connections.
    runtime: Handle,
}

impl PortHost {
    /// The port of `socket`, which a task of this run time serves.
    pub(super) fn shared(
        state: &Arc<ServerState>,
        mailbox: &Arc<ReplyMailbox>,
        socket: &Arc<AsyncSocket<Carrier>>,
    ) -> Arc<dyn RelayHost> {
        Arc::new(Self {
            state: Arc::clone(state),
            mailbox: Arc::clone(mailbox),
            socket: Arc::clone(socket),
            runtime: Handle::current(),
        })
    }
}

impl RelayHost for PortHost {
    fn send(&self, train: PacketTrain<'_>, to: SocketAddr) -> io::Result<usize> {
        self.socket.get_ref().try_send_to(train, to)
    }

    fn admit(&self, connection: Stream) -> bool {
        let _entered = self.runtime.enter();
        self.state.admit(connection)
    }

    fn note_all_ended(&self) {
        self.mailbox.wake();
    }
}
