//! One connection to the peer: its socket and what has been received.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use tenon_net::{Address, Datagram, Protocol, Ready, Stream, Transport, is_deadline};
use tenon_proto::lean::{Incoming, MessageReader, Refused};
use tenon_proto::onc::message::Violation;
use tenon_proto::onc::record::RecordReader;

use super::engine::preamble;
use crate::error::{CallError, Misbehavior};
use crate::options::ChannelOptions;

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
        options: &ChannelOptions,
        deadline: Instant,
    ) -> io::Result<Self> {
        let socket = match address.transport() {
            Transport::Tcp | Transport::Unix => Socket::Stream(Stream::connect(address, deadline)?),
            Transport::Udp => Socket::Datagram(Datagram::connect(address, deadline)?),
        };
        let inbox = Mutex::new(match (address.protocol(), &socket) {
            (Protocol::Lean, _) => {
                let limit = preamble(options).message_max as usize;
                Inbox::Messages(MessageReader::new(limit))
            }
            (Protocol::Onc, Socket::Stream(_)) => {
                Inbox::Records(RecordReader::new(options.receive_max))
            }
            (Protocol::Onc, Socket::Datagram(_)) => Inbox::Datagram(LastDatagram::default()),
        });
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
                    0 => return Err(end_of_stream(records.is_between_records())),
                    bytes => records.filled(bytes),
                }
            }
            (Socket::Stream(stream), Inbox::Messages(messages)) => {
                match stream.recv_until(messages.room(), deadline) {
                    Ok(0) => return Err(end_of_messages(messages)),
                    Ok(bytes) => messages.filled(bytes),
                    Err(error) if is_deadline(&error) => return Err(error),
                    Err(error) => return Err(may_not_be_lean(messages, error)),
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
    /// The peer did not take the connection, and so carried nothing out.
    Refused(Refused),
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
            Self::Refused(refused) => CallError::ConnectionRefused(refused),
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
    Messages(MessageReader),
    Datagram(LastDatagram),
}

/// What has been received whole.
pub(super) enum Received<'m> {
    /// A message of ONC RPC.
    Record(&'m [u8]),
    Lean(Incoming<'m>),
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
    /// The next that has been received whole.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Received<'_>>, Broken> {
        match self {
            Self::Records(records) => records
                .next_record()
                .map(|record| record.map(Received::Record))
                .map_err(|error| Broken::Misbehaved(Misbehavior::Record(error))),
            Self::Messages(messages) => Ok(messages.next_message()?.map(Received::Lean)),
            Self::Datagram(last) => {
                let is_new = std::mem::take(&mut last.is_new);
                Ok(is_new.then(|| Received::Record(&last.room[..last.length])))
            }
        }
    }

    /// The message that [`next`](Self::next) returned last; of a lean one its body.
    pub(super) fn message(&self) -> &[u8] {
        match self {
            Self::Records(records) => records.record(),
            Self::Messages(messages) => {
                let parts = messages.message().and_then(|message| message.parts().ok());
                parts.map_or(&[], |parts| parts.body)
            }
            Self::Datagram(last) => &last.room[..last.length],
        }
    }

    /// Gives memory back that only an unusually large reply needed.
    pub(super) fn shrink(&mut self) {
        match self {
            Self::Records(records) => records.shrink_to(KEPT_MAX),
            Self::Messages(messages) => messages.shrink_to(KEPT_MAX),
            Self::Datagram(_) => {}
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

fn end_of_messages(messages: &MessageReader) -> io::Error {
    may_not_be_lean(messages, end_of_stream(messages.is_between_messages()))
}

/// A peer that breaks a connection off without a word may never have heard of the protocol.
fn may_not_be_lean(messages: &MessageReader, error: io::Error) -> io::Error {
    const HINT: &str = "the peer has not said that it speaks the lean protocol; \
                        if it speaks ONC RPC, connect to tcp:// or unix://";
    match messages.received() {
        0 => io::Error::new(error.kind(), format!("{error}; {HINT}")),
        _ => error,
    }
}

fn end_of_stream(is_between_messages: bool) -> io::Error {
    let message = match is_between_messages {
        true => "the peer closed it",
        false => "the peer closed it in the middle of a reply",
    };
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}
