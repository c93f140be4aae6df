//! One connection to the peer: its socket and what has been received.

use std::io;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use tenon_net::{Address, Ready};

use super::inbox::Inbox;
use super::socket::Socket;
use crate::options::ChannelOptions;

/// A connection to the peer. Whoever has locked its inbox is its reader.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    inbox: Mutex<Inbox>,
}

impl Connection {
    pub(super) fn open(
        address: &Address,
        options: &ChannelOptions,
        deadline: Instant,
    ) -> io::Result<Self> {
        Ok(Self {
            socket: Socket::connect(address, deadline)?,
            inbox: Mutex::new(Inbox::new(address, options)),
        })
    }

    /// Becomes the reader, if nobody is.
    pub(super) fn try_read(&self) -> Option<MutexGuard<'_, Inbox>> {
        match self.inbox.try_lock() {
            Ok(inbox) => Some(inbox),
            Err(TryLockError::WouldBlock) => None,
            // A decoder that panicked only looked at the inbox.
            Err(TryLockError::Poisoned(inbox)) => Some(inbox.into_inner()),
        }
    }

    /// Receives into the inbox once, waiting until `deadline`: `TimedOut` then.
    #[inline]
    pub(super) fn receive(&self, inbox: &mut Inbox, deadline: Instant) -> io::Result<()> {
        self.socket.receive(inbox, deadline)
    }

    /// As [`Socket::try_send`].
    pub(super) fn try_send(&self, call: &[u8], sent: usize) -> io::Result<usize> {
        self.socket.try_send(call, sent)
    }

    pub(super) fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        self.socket.wait(wanted, deadline)
    }

    /// As [`Socket::shutdown`].
    pub(super) fn shutdown(&self) {
        self.socket.shutdown();
    }
}
