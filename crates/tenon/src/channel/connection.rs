//! One connection to the peer: its socket and what has been received.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use tenon_net::{Address, Datagram, Ready, Stream};
use tenon_proto::onc::message::Violation;
use tenon_proto::onc::record::RecordReader;

use crate::error::{CallError, Misbehavior};

/// Storage that a connection keeps while there is nothing to receive.
const KEPT_MAX: usize = 4 << 20;

/// A connection to the peer. Whoever has locked its inbox is its reader.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    inbox: Mutex<Inbox>,
}

#[derive(Debug)]
enum Socket {
    Stream(Stream),
    Datagram(Datagram),
}

impl Connection {
    pub(super) fn open(
        address: &Address,
        receive_max: usize,
        deadline: Instant,
    ) -> io::Result<Self> {
        let (socket, inbox) = match address {
            Address::Tcp(_) | Address::Unix(_) => (
                Socket::Stream(Stream::connect(address, deadline)?),
                Inbox::Records(RecordReader::new(receive_max)),
            ),
            Address::Udp(_) => (
                Socket::Datagram(Datagram::connect(address, deadline)?),
                Inbox::Datagram(LastDatagram::default()),
            ),
        };
        let inbox = Mutex::new(inbox);
        Ok(Self { socket, inbox })
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
        match (&self.socket, inbox) {
            (Socket::Stream(stream), Inbox::Records(records)) => {
                match stream.recv_until(records.room(), deadline)? {
                    0 => return Err(end_of_stream(records)),
                    bytes => records.filled(bytes),
                }
            }
            (Socket::Datagram(socket), Inbox::Datagram(last)) => {
                last.length = receive_datagram(socket, &mut last.room, deadline)?;
                last.is_new = true;
            }
            _ => unreachable!("an inbox is made for its socket"),
        }
        Ok(())
    }

    /// Sends as much as fits at once of what is left of a call, of which `sent` bytes are sent. A
    /// datagram is sent whole.
    pub(super) fn try_send(&self, call: &[u8], sent: usize) -> io::Result<usize> {
        match &self.socket {
            Socket::Stream(stream) => stream.try_send_from(call, sent),
            Socket::Datagram(socket) => socket.try_send(call).map(|()| call.len()),
        }
    }

    pub(super) fn wait(&self, wanted: Ready, deadline: Instant) -> io::Result<Ready> {
        match &self.socket {
            Socket::Stream(stream) => stream.wait(wanted, deadline),
            Socket::Datagram(socket) => socket.wait(wanted, deadline),
        }
    }

    /// Wakes whoever still uses the connection. It may be gone already, which is the aim.
    pub(super) fn shutdown(&self) {
        let _ = match &self.socket {
            Socket::Stream(stream) => stream.shutdown(),
            Socket::Datagram(socket) => socket.shutdown(),
        };
    }
}

/// How a connection ended, for everybody whose call was in flight on it.
#[derive(Debug, Clone)]
pub(super) enum Broken {
    Io(Arc<io::Error>),
    Misbehaved(Misbehavior),
}

impl Broken {
    /// What it means for a call that was sent.
    pub(super) fn into_error(self) -> CallError {
        match self {
            Self::Io(cause) => CallError::Disconnected {
                cause,
                may_have_executed: true,
            },
            Self::Misbehaved(misbehavior) => CallError::Misbehaved(misbehavior),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<Violation> for Broken {
    fn from(violation: Violation) -> Self {
        Self::Misbehaved(Misbehavior::Message(violation))
    }
}

/// What has been received.
#[derive(Debug)]
pub(super) enum Inbox {
    Records(RecordReader),
    Datagram(LastDatagram),
}

/// Room for the largest datagram there is, and how much of it the last one filled.
#[derive(Debug)]
pub(super) struct LastDatagram {
    room: Box<[u8]>,
    length: usize,
    is_new: bool,
}

impl Default for LastDatagram {
    fn default() -> Self {
        Self {
            room: vec![0; Datagram::RECEIVE_MAX].into(),
            length: 0,
            is_new: false,
        }
    }
}

impl Inbox {
    /// The next message that has been received whole.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Broken> {
        match self {
            Self::Records(records) => records
                .next_record()
                .map_err(|error| Broken::Misbehaved(Misbehavior::Record(error))),
            Self::Datagram(last) => {
                let is_new = std::mem::take(&mut last.is_new);
                Ok(is_new.then(|| &last.room[..last.length]))
            }
        }
    }

    /// The message that [`next`](Self::next) returned last.
    pub(super) fn message(&self) -> &[u8] {
        match self {
            Self::Records(records) => records.record(),
            Self::Datagram(last) => &last.room[..last.length],
        }
    }

    /// Gives memory back that only an unusually large reply needed.
    pub(super) fn shrink(&mut self) {
        if let Self::Records(records) = self {
            records.shrink_to(KEPT_MAX);
        }
    }
}

/// Receives a datagram. That an earlier one of ours met a closed port is reported before what
/// has come, but counts only if nothing has.
fn receive_datagram(socket: &Datagram, room: &mut [u8], deadline: Instant) -> io::Result<usize> {
    match socket.recv_until(room, deadline) {
        Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => {
            socket.recv_until(room, Instant::now()).map_err(|_| refused)
        }
        done => done,
    }
}

fn end_of_stream(records: &RecordReader) -> io::Error {
    let message = match records.is_between_records() {
        true => "the peer closed it",
        false => "the peer closed it in the middle of a reply",
    };
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}
