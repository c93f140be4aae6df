//! Sending what waits, without waiting. One task at a time does that for all: what others put behind meanwhile it takes
//! along the next time.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_core::ClientSocket;
use tenon_core::client::Outgoing;
use tenon_core::error::ConnectionFailure;
use tenon_core::trains::PacketTrains;

use super::channel::SharedChannel;
use super::state::ChannelState;
use crate::watch::WatchedSocket;

/// The progress of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendProgress {
    /// Nothing waits to be sent, or another task sends it.
    Done,
    /// The socket has no room.
    Blocked,
}

/// The sender of a link.
struct SocketSender {
    socket: Arc<WatchedSocket>,
    outgoing: Outgoing,
    /// True if the peer has taken something of what was blocked.
    has_sent: bool,
}

impl SharedChannel {
    /// Sends what waits, unless another task does, as far as the socket has room.
    /// A connection that fails is given up.
    pub(super) fn transmit<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
    ) -> (MutexGuard<'s, ChannelState>, SendProgress) {
        let Some(mut sender) = state.begin_sending() else {
            return (state, SendProgress::Done);
        };
        let mut sending = SendProgress::Done;
        while state.next_transmission(&mut sender) {
            drop(state);
            let sent = self.send(&mut sender);
            state = self.lock();
            match sent {
                Ok(SendProgress::Done) => sender.outgoing.handle_transmitted(&mut state.calls),
                Ok(SendProgress::Blocked) => {
                    sending = SendProgress::Blocked;
                    if sender.has_sent {
                        // A peer that takes something is there, whatever else it says.
                        state.calls.note_heard();
                    }
                    break;
                }
                Err(failure) => {
                    state.handle_send_failed(&sender.socket, failure);
                    break;
                }
            }
        }
        state.end_sending(sender);
        (state, sending)
    }

    fn send(&self, sender: &mut SocketSender) -> Result<SendProgress, ConnectionFailure> {
        let socket = sender.socket.get_ref();
        sender.has_sent = false;
        match &mut sender.outgoing {
            Outgoing::Stream(batch) => {
                while !batch.is_sent() {
                    match socket.try_send_batch(batch) {
                        Ok(sent) => {
                            batch.advance(sent);
                            sender.has_sent = true;
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            return Ok(SendProgress::Blocked);
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(SendProgress::Done)
            }
            Outgoing::Datagram(trains) => Ok(self.send_train(socket, trains)),
        }
    }

    /// Sends a train of datagrams. What cannot be sent at all counts as lost.
    fn send_train(&self, socket: &ClientSocket, trains: &mut PacketTrains<()>) -> SendProgress {
        let mut was_refused = false;
        let whole = trains.train().bytes.len();
        let mut sent = 0;
        while sent < whole {
            match socket.try_send_train(trains.train().behind(sent)) {
                Ok(bytes) => sent += bytes,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        trains.keep((), sent);
                        return SendProgress::Blocked;
                    }
                    // An earlier datagram met a closed port; this one was not sent.
                    io::ErrorKind::ConnectionRefused if !was_refused => was_refused = true,
                    _ => {
                        self.lock().calls.note_fault(error);
                        break;
                    }
                },
            }
        }
        SendProgress::Done
    }
}

impl ChannelState {
    /// Becomes the sender, unless another task is.
    #[inline]
    fn begin_sending(&mut self) -> Option<SocketSender> {
        let link = self.link.as_mut().filter(|link| !link.has_failed())?;
        Some(SocketSender {
            outgoing: link.outgoing.take()?,
            socket: Arc::clone(&link.socket),
            has_sent: false,
        })
    }

    /// Makes out what is to be sent next; returns whether there is anything.
    #[inline]
    fn next_transmission(&mut self, sender: &mut SocketSender) -> bool {
        if self.link_over(&sender.socket).is_none() {
            return false;
        }
        let has_next = sender.outgoing.advance(&mut self.calls);
        if !self.pipes.is_empty() {
            self.wake_writers();
        }
        has_next
    }

    /// The sender's role is free again.
    #[inline]
    fn end_sending(&mut self, mut sender: SocketSender) {
        match self.link_over(&sender.socket) {
            Some(link) => {
                link.outgoing = Some(sender.outgoing);
                link.used_at = Instant::now();
            }
            // The connection has failed meanwhile.
            None => self.end_link(&sender.socket, sender.outgoing.batch_mut()),
        }
        let is_datagram = matches!(self.calls, super::state::Calls::Datagram(_));
        if is_datagram {
            self.expect_next();
        }
    }
}
