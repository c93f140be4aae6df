//! Connections that the program has established itself: whatever bytes are read from and written to by tasks.

use std::any::Any;
use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};

use tenon_net::fd::OwnedFd;
use tenon_net::{PairedSocket, socket_pair};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use crate::erased;
use crate::relayed_bytes::RelayedBytes;
use crate::watch::{WatchedSource, watch};

/// One of a pair of sockets, as the run time has it.
#[cfg(unix)]
type AsyncPairedSocket = UnixStream;
#[cfg(windows)]
type AsyncPairedSocket = TcpStream;

/// Returns the two ends of a connection within this process, for tests of a client and a server without addresses:
/// one for [`Channel::over`](crate::Channel::over), the other for
/// [`Server::serve_stream`](crate::Server::serve_stream).
///
/// # Errors
/// The process has too many descriptors.
///
/// # Panics
/// Outside of a tokio run time with input and output.
#[cfg(unix)]
pub fn memory() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}

/// Returns the socket that `stream` is, or one through which a task relays its bytes.
///
/// # Panics
/// Outside of a tokio run time with input and output.
pub(crate) fn into_socket<S>(stream: S) -> io::Result<OwnedFd>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = match downcast::<_, TcpStream>(stream) {
        Ok(socket) => return socket.into_std().map(OwnedFd::from),
        Err(stream) => stream,
    };
    #[cfg(unix)]
    let stream = match downcast::<_, UnixStream>(stream) {
        Ok(socket) => return socket.into_std().map(OwnedFd::from),
        Err(stream) => stream,
    };
    let (relayed, end) = socket_pair()?;
    // Of its own, as it is asked for other things than the one that bytes go through.
    let hang_up = HangUp(watch(OwnedFd::from(end.try_clone()?), Interest::WRITABLE)?);
    end.set_nonblocking(true)?;
    let end = AsyncPairedSocket::from_std(end)?;
    erased::spawn(relay(stream, end, hang_up));
    Ok(relayed.into())
}

/// Returns the value as a `T`, if it is one.
fn downcast<S: 'static, T: 'static>(value: S) -> Result<T, S> {
    let mut value = Some(value);
    let place: &mut dyn Any = &mut value;
    if let Some(found) = place.downcast_mut::<Option<T>>().and_then(Option::take) {
        return Ok(found);
    }
    match value {
        Some(value) => Err(value),
        None => unreachable!("it is taken out as a T only"),
    }
}

/// Relays bytes in both directions until the channel or server has closed the connection.
async fn relay<S: AsyncRead + AsyncWrite>(stream: S, mut end: AsyncPairedSocket, hang_up: HangUp) {
    let mut stream = pin!(stream);
    let mut hung_up = pin!(hang_up.wait());
    let (mut incoming, mut outgoing) = (RelayedBytes::default(), RelayedBytes::default());
    poll_fn(|cx| {
        if let Poll::Ready(Err(error)) = incoming.poll(stream.as_mut(), Pin::new(&mut end), cx) {
            tracing::debug!(%error, "a connection of the program cannot be read any more");
        }
        if let Err(error) = ready!(outgoing.poll(Pin::new(&mut end), stream.as_mut(), cx)) {
            tracing::debug!(%error, "a connection of the program cannot be written any more");
            // The channel or server finds out when it sends; what the peer has sent before is received.
            hang_up.refuse_to_receive();
        }
        hung_up.as_mut().poll(cx)
    })
    .await;
}

/// Tells when the other end of a pair of sockets is closed in both directions.
struct HangUp(WatchedSource<OwnedFd>);

impl HangUp {
    /// Has sends of the other end fail.
    fn refuse_to_receive(&self) {
        if let Ok(end) = self.0.get_ref().0.try_clone() {
            let _ = PairedSocket::from(end).shutdown(Shutdown::Read);
        }
    }

    async fn wait(&self) {
        while let Ok(mut ready) = self.0.writable().await {
            if ready.ready().is_write_closed() {
                return;
            }
            // There is room, which says nothing.
            ready.clear_ready();
        }
    }
}
