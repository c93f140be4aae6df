//! A socket that the run time watches, by another handle of the socket. On Windows the run time watches only streams of its
//! own type; it finds out in the same way when a listener or a socket for datagrams is ready.

use std::io;
use std::net::TcpStream as BlockingTcpStream;
use std::task::{Context, Poll, ready};

use tenon_net::fd::AsFd;
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;

/// A socket that the run time watches.
#[derive(Debug)]
pub(crate) struct WatchedSource<T> {
    source: EventSource<T>,
    watched: TcpStream,
}

/// A socket as those that look for it find it.
#[derive(Debug)]
pub(crate) struct EventSource<T>(pub(crate) T);

/// What was found of a socket that is watched.
pub(crate) struct SourceReadyGuard<'w, T> {
    source: &'w WatchedSource<T>,
    interest: Interest,
    found: Ready,
}

/// A socket that the run time watches.
///
/// # Errors
/// The system has no room for it.
pub(crate) fn watch<T: AsFd>(socket: T, _: Interest) -> io::Result<WatchedSource<T>> {
    let other = BlockingTcpStream::from(socket.as_fd().try_clone_to_owned()?);
    other.set_nonblocking(true)?;
    Ok(WatchedSource {
        source: EventSource(socket),
        watched: TcpStream::from_std(other)?,
    })
}

impl<T> WatchedSource<T> {
    pub(crate) fn get_ref(&self) -> &EventSource<T> {
        &self.source
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<SourceReadyGuard<'_, T>> {
        let found = self.watched.ready(interest).await?;
        Ok(self.guard(interest, found))
    }

    pub(crate) async fn readable(&self) -> io::Result<SourceReadyGuard<'_, T>> {
        self.ready(Interest::READABLE).await
    }

    pub(crate) async fn writable(&self) -> io::Result<SourceReadyGuard<'_, T>> {
        self.ready(Interest::WRITABLE).await
    }

    pub(crate) fn poll_read_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<SourceReadyGuard<'_, T>>> {
        ready!(self.watched.poll_read_ready(cx))?;
        Poll::Ready(Ok(self.guard(Interest::READABLE, Ready::READABLE)))
    }

    pub(crate) fn poll_write_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<SourceReadyGuard<'_, T>>> {
        ready!(self.watched.poll_write_ready(cx))?;
        Poll::Ready(Ok(self.guard(Interest::WRITABLE, Ready::WRITABLE)))
    }

    fn guard(&self, interest: Interest, found: Ready) -> SourceReadyGuard<'_, T> {
        SourceReadyGuard {
            source: self,
            interest,
            found,
        }
    }
}

impl<T> SourceReadyGuard<'_, T> {
    /// Has the run time look again. What has come since the attempt in vain counts: the system is asked for what there
    /// is, and not for what is new.
    pub(crate) fn clear_ready(&mut self) {
        let would_block = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        let _ = self.source.watched.try_io(self.interest, would_block);
    }

    pub(crate) fn ready(&self) -> Ready {
        self.found
    }
}
