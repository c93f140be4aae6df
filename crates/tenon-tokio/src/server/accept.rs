//! Taking connections in.

use std::io;
use std::sync::Arc;

use tenon_core::serve::{ACCEPT_AGAIN, ACCEPTS_PER_TURN};
use tenon_core::service::Origin;
use tenon_net::{Accepted, BACKLOG, Carrier, Listener, Stream};
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tokio::task::{JoinHandle, yield_now};

use super::connection::ConnectionTask;
use super::port::PortTask;
use super::state::ServerState;
use crate::erased;
use crate::watch::{AsyncSocket, WatchedSource};

/// A listener and the task that takes its connections in.
pub(super) struct Accepting {
    listener: Arc<WatchedSource<Listener>>,
    task: JoinHandle<()>,
}

impl Accepting {
    /// Takes connections in from now on.
    pub(super) fn start(listener: WatchedSource<Listener>, state: &Arc<ServerState>) -> Self {
        let listener = Arc::new(listener);
        let task = erased::spawn(accept(Arc::clone(&listener), Arc::clone(state)));
        Self { listener, task }
    }

    /// Listens no more, and takes in the connections that still wait.
    pub(super) async fn end(mut self, state: &Arc<ServerState>) {
        self.task.abort();
        // It ends by being given up.
        let _ = (&mut self.task).await;
        self.accept_last(state);
    }

    /// Does what [`end`](Self::end) does, and leaves the end of the task to the run time.
    pub(super) fn abandon(self, state: &Arc<ServerState>) {
        self.task.abort();
        self.accept_last(state);
    }

    /// Takes in the connections that still wait. Their peers may have called, and are told that nothing was begun, as
    /// the server stops; the system would reset them, and their peers would not know.
    fn accept_last(&self, state: &Arc<ServerState>) {
        let listener = &self.listener.get_ref().0;
        listener.stop_listening();
        for _ in 0..BACKLOG {
            match listener.try_accept() {
                Ok(Some(accepted)) => state.take_in(accepted),
                Ok(None) => return,
                Err(error) => return state.shared.note_accept_failure(&error),
            }
        }
    }
}

/// Takes connections in for as long as the server serves.
async fn accept(listener: Arc<WatchedSource<Listener>>, state: Arc<ServerState>) {
    let mut taken = 0;
    loop {
        if taken == ACCEPTS_PER_TURN {
            taken = 0;
            yield_now().await;
        }
        let accepted = match listener.readable().await {
            Err(error) => Err(error),
            Ok(mut ready) => match listener.get_ref().0.try_accept() {
                // One that listens no more is ready for ever.
                Ok(None) if state.is_stopping() => return,
                Ok(None) => {
                    ready.clear_ready();
                    continue;
                }
                Ok(Some(accepted)) => Ok(accepted),
                Err(error) => Err(error),
            },
        };
        match accepted {
            Ok(accepted) => {
                taken += 1;
                state.take_in(accepted);
            }
            Err(error) => {
                state.shared.note_accept_failure(&error);
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

impl ServerState {
    /// Takes in or refuses a connection that was accepted.
    fn take_in(self: &Arc<Self>, accepted: Accepted) {
        match accepted {
            Accepted::Stream(stream) => {
                self.admit(stream);
            }
            Accepted::Excess(connection) => self.shared.refuse_excess(&connection),
        }
    }

    /// Takes a new connection in, unless there are too many; returns whether it did.
    pub(super) fn admit(self: &Arc<Self>, stream: Stream) -> bool {
        let Some(host) = self.shared.admit_host(&stream) else {
            return false;
        };
        let peer = stream.peer();
        let (tally, limit) = (&self.shared.tally, self.shared.limits.connections);
        let mailbox = self.new_mailbox(Origin {
            transport: stream.transport(),
            peer,
            user: stream.user().map(|user| user.user),
        });
        let mut open = self.lock();
        if open.connections.len() >= limit {
            drop(open);
            self.shared.refuse_one_too_many(&stream);
            return false;
        }
        let id = mailbox.id;
        let socket = match AsyncSocket::new(stream) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::error!(id, %error, "the system cannot wait for one more: closed");
                return false;
            }
        };
        open.connections.insert(id, Arc::clone(&mailbox));
        drop(open);
        tally.connections_accepted.up();
        tally.connections_open.up();
        tracing::debug!(id, ?peer, "a connection");
        erased::spawn(ConnectionTask::new(Arc::clone(self), mailbox, socket, host).run());
        true
    }

    /// Opens a port for datagrams, which is still to be served.
    ///
    /// # Errors
    /// The system cannot wait for one more.
    pub(super) fn open_port(
        self: &Arc<Self>,
        carrier: Carrier,
        duplicates: DuplicateLimits,
    ) -> io::Result<PortTask> {
        let mailbox = self.new_mailbox(Origin {
            transport: carrier.transport(),
            peer: None,
            user: None,
        });
        let port = PortTask::new(self, Arc::clone(&mailbox), carrier, duplicates)?;
        self.lock().ports.insert(mailbox.id, mailbox);
        Ok(port)
    }
}
