//! Connections that the program has established itself: sockets, and whatever else bytes are read from and written to.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
#[cfg(unix)]
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use tenon_net::fd::{AsFd, OwnedFd};
use tenon_net::{PairedSocket, send_paired, socket_pair};

use crate::spawn::spawn;

/// Bytes that are read at a time from a stream that is no socket.
const RELAYED_BYTES: usize = 64 << 10;

/// A connection that the program has established itself, for [`Channel::over`](crate::Channel::over) or
/// [`Server::serve_stream`](crate::Server::serve_stream).
///
/// A connected socket (TCP, Unix, and UDP for a channel) is used as it is. Anything else consists of two
/// [halves](Self::from_halves), one to read from and one to write to: pipes of a child process, a TLS session, a tunnel.
/// Such reads cannot be given up, so two helper threads do them, and relay the bytes through a pair of sockets on which
/// the channel or server waits as on any other: deadlines and cancellation are kept, and a message is copied twice more
/// on its way. The threads end with the connection.
///
/// ```no_run
/// use std::process::{Command, Stdio};
///
/// use tenon::{Channel, ChannelOptions, Client, EstablishedConnection, Protocol};
///
/// // The server at the other end speaks on its standard input and output.
/// let mut command = Command::new("ssh");
/// let command = command.args(["host", "serve-greeter"]);
/// let mut ssh = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
/// if let (Some(reader), Some(writer)) = (ssh.stdout.take(), ssh.stdin.take()) {
///     let connection = EstablishedConnection::from_halves(reader, writer);
///     let channel = Channel::over(connection, Protocol::Lean, ChannelOptions::default())?;
///     Client::over(channel, 0x2000_0001, 1).ping()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EstablishedConnection(ConnectionKind);

enum ConnectionKind {
    Socket(OwnedFd),
    Halves(StreamHalves),
}

struct StreamHalves {
    reader: Box<dyn Read + Send>,
    writer: Box<dyn Write + Send>,
    on_close: OnClose,
}

/// The callback of the program for the end of a connection.
#[derive(Default)]
struct OnClose(Option<Box<dyn FnOnce() + Send>>);

/// Returns the two ends of a connection within this process, for tests of a client and a server without addresses.
///
/// ```
/// use tenon::{Channel, ChannelOptions, Client, Protocol, Server};
///
/// let server = Server::builder().no_listener().start()?;
/// let (ours, theirs) = tenon::memory()?;
/// server.serve_stream(theirs)?;
/// let channel = Channel::over(ours, Protocol::Onc, ChannelOptions::default())?;
/// // There is no service yet, and the server says so.
/// let refused = Client::over(channel, 0x2000_0001, 1).ping().unwrap_err();
/// assert!(!refused.may_have_executed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The process has too many descriptors.
pub fn memory() -> io::Result<(EstablishedConnection, EstablishedConnection)> {
    let (one, other) = socket_pair()?;
    Ok((one.into(), other.into()))
}

impl EstablishedConnection {
    /// Makes a connection that reads its bytes from `reader` and writes them to `writer`, which is flushed behind each
    /// piece. When nothing more is to be written, `writer` is dropped; a peer that waits for the end has to be told by
    /// that.
    pub fn from_halves(
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
    ) -> Self {
        Self(ConnectionKind::Halves(StreamHalves {
            reader: Box::new(reader),
            writer: Box::new(writer),
            on_close: OnClose::default(),
        }))
    }

    /// Calls `on_close` when this end has closed the connection, and `writer` is dropped. The thread that reads stays
    /// until its read returns: where the peer does not end its side then, this is to make the read return, for example
    /// by shutting a socket down below. Of a socket it is not called, as that is closed.
    #[must_use]
    pub fn on_close(mut self, on_close: impl FnOnce() + Send + 'static) -> Self {
        if let ConnectionKind::Halves(halves) = &mut self.0 {
            halves.on_close = OnClose(Some(Box::new(on_close)));
        }
        self
    }

    /// Returns the socket, or one through which the halves are relayed.
    pub(crate) fn into_socket(self) -> io::Result<OwnedFd> {
        match self.0 {
            ConnectionKind::Socket(socket) => Ok(socket),
            ConnectionKind::Halves(halves) => halves.relay(),
        }
    }
}

impl From<OwnedFd> for EstablishedConnection {
    fn from(socket: OwnedFd) -> Self {
        Self(ConnectionKind::Socket(socket))
    }
}

impl From<TcpStream> for EstablishedConnection {
    fn from(socket: TcpStream) -> Self {
        OwnedFd::from(socket).into()
    }
}

#[cfg(unix)]
impl From<UnixStream> for EstablishedConnection {
    fn from(socket: UnixStream) -> Self {
        OwnedFd::from(socket).into()
    }
}

impl From<UdpSocket> for EstablishedConnection {
    fn from(socket: UdpSocket) -> Self {
        OwnedFd::from(socket).into()
    }
}

impl fmt::Debug for EstablishedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ConnectionKind::Socket(socket) => f.debug_tuple("Socket").field(socket).finish(),
            ConnectionKind::Halves(_) => f.debug_struct("Halves").finish_non_exhaustive(),
        }
    }
}

impl StreamHalves {
    fn relay(self) -> io::Result<OwnedFd> {
        let Self {
            reader,
            writer,
            on_close,
        } = self;
        let (relayed, end) = socket_pair()?;
        let incoming = IncomingEnd(end.try_clone()?);
        let outgoing = OutgoingEnd { end, on_close };
        spawn("tenon-relay-in", move || relay_incoming(reader, &incoming))?;
        spawn("tenon-relay-out", move || relay_outgoing(writer, &outgoing))?;
        Ok(relayed.into())
    }
}

/// The socket that takes what is read from the program's stream; ends with it, however reading ends.
struct IncomingEnd(PairedSocket);

impl Drop for IncomingEnd {
    fn drop(&mut self) {
        // It fails if the connection is closed already, which is the aim.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

/// The socket that supplies what is written to the program's stream; the connection ends with it, however writing ends.
struct OutgoingEnd {
    end: PairedSocket,
    on_close: OnClose,
}

impl Drop for OutgoingEnd {
    fn drop(&mut self) {
        let _ = self.end.shutdown(Shutdown::Both);
        if let Some(on_close) = self.on_close.0.take() {
            on_close();
        }
    }
}

fn relay_incoming(mut reader: Box<dyn Read + Send>, incoming: &IncomingEnd) {
    let mut room = vec![0; RELAYED_BYTES];
    loop {
        let length = match reader.read(&mut room) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                tracing::debug!(%error, "a connection of the program cannot be read any more");
                return;
            }
        };
        // A reader that says it has read more than there is room for has read nothing that makes sense.
        let Some(bytes) = room.get(..length) else {
            return;
        };
        if send_all(&incoming.0, bytes).is_err() {
            return;
        }
    }
}

fn relay_outgoing(mut writer: Box<dyn Write + Send>, outgoing: &OutgoingEnd) {
    let mut end = &outgoing.end;
    let mut room = vec![0; RELAYED_BYTES];
    loop {
        let length = match end.read(&mut room) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let written = writer.write_all(&room[..length]);
        if let Err(error) = written.and_then(|()| writer.flush()) {
            tracing::debug!(%error, "a connection of the program cannot be written any more");
            // The channel or server finds out when it sends; what the peer has sent before is received.
            let _ = end.shutdown(Shutdown::Read);
            break;
        }
    }
    drop(writer);
    wait_for_hang_up(end);
}

fn send_all(end: &PairedSocket, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let sent = send_paired(end, bytes)?;
        bytes = bytes.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// Waits until the channel or server has closed the connection in both directions.
fn wait_for_hang_up(end: &PairedSocket) {
    loop {
        let mut polled = [PollFd::from_borrowed_fd(end.as_fd(), PollFlags::empty())];
        match retry_on_intr(|| poll(&mut polled, None)) {
            Ok(0) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
