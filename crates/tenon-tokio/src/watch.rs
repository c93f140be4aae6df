//! Having the run time watch a socket.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tenon_core::ClientSocket;
use tenon_net::Stream;
use tenon_net::fd::{AsFd, OwnedFd};
use tokio::io::Interest;
use tokio::time::{Instant, Sleep, sleep_until};

#[cfg(unix)]
pub(crate) use crate::event_source::{SourceReadyGuard, WatchedSource, watch};
#[cfg(windows)]
pub(crate) use crate::event_source_windows::{SourceReadyGuard, WatchedSource, watch};

/// Time until it is looked again whether packets find room.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Longest look for what comes within one poll.
pub(crate) const LOOK_MAX: Duration = Duration::from_micros(20);

/// Total time that a task which [spins](tenon_core::wait::Waiting::Spin) looks at a silent connection.
pub(crate) const SILENCE_MAX: Duration = Duration::from_millis(100);

/// Has the task polled again once the others that are ready have run, and the system was asked what has happened.
pub(crate) fn yield_to_others(cx: &mut Context<'_>) {
    let yielded = pin!(tokio::task::yield_now()).poll(cx);
    debug_assert!(yielded.is_pending(), "a new future to yield is not ready");
}

/// A socket of a channel that the run time watches.
pub(crate) type WatchedSocket = AsyncSocket<ClientSocket>;

/// A carrier of messages that the run time can watch.
pub(crate) trait WatchableSocket: AsFd {
    /// The stream that it is, if it is one.
    fn stream(&self) -> Option<&Stream>;
}

impl WatchableSocket for Stream {
    fn stream(&self) -> Option<&Stream> {
        Some(self)
    }
}

impl WatchableSocket for tenon_net::Carrier {
    fn stream(&self) -> Option<&Stream> {
        None
    }
}

impl WatchableSocket for ClientSocket {
    fn stream(&self) -> Option<&Stream> {
        ClientSocket::stream(self)
    }
}

/// A carrier of messages that the run time watches, whether the system knows when it is ready or, as with shared
/// memory, only the peer does, which says so if it was told that no task looks.
#[derive(Debug)]
pub(crate) struct AsyncSocket<C: AsFd> {
    room: SendReadiness,
    carrier: WatchedSource<C>,
}

/// The source of notices that there is room to send.
#[derive(Debug)]
enum SendReadiness {
    /// The system, of the stream.
    System(WriteInterest),
    /// The peer, of shared memory.
    Notifier(RoomNotifier),
    /// None, of packets: there nearly always is room. Of UDP the system would call for every packet that has left; of
    /// what goes past the kernel it says nothing.
    Retry(RetryTimer),
}

/// Room in the socket of a stream. The system is asked for it only once a send has found none: a socket that is watched
/// for room costs an event, of a Unix socket for each message that the peer takes out.
#[derive(Debug, Default)]
struct WriteInterest {
    /// Another descriptor of the socket, which is watched for room.
    watched: OnceLock<WatchedSource<OwnedFd>>,
    /// True if the last attempt to send found no room.
    is_full: AtomicBool,
}

#[derive(Debug)]
struct RoomNotifier {
    watched: WatchedSource<OwnedFd>,
    /// True if the last attempt to send found no room.
    is_awaited: AtomicBool,
}

#[derive(Debug, Default)]
struct RetryTimer {
    /// True if the last attempt to send found no room.
    is_full: AtomicBool,
    timer: Mutex<Option<Pin<Box<Sleep>>>>,
}

/// The readiness for an attempt to send or receive. A task that attempted it in vain says so.
pub(crate) enum IoReadiness<'w, C: AsFd> {
    Socket(SourceReadyGuard<'w, C>),
    /// To receive from shared memory.
    Bytes,
    /// To send into shared memory, or packets.
    Room(&'w AtomicBool),
}

impl<C: AsFd> IoReadiness<'_, C> {
    /// There was nothing, or no room.
    pub(crate) fn clear_ready(&mut self) {
        match self {
            Self::Socket(ready) => ready.clear_ready(),
            // Whether something is there is looked at each time.
            Self::Bytes => {}
            Self::Room(is_full) => is_full.store(true, Ordering::Relaxed),
        }
    }
}

impl<C: WatchableSocket> AsyncSocket<C> {
    /// Has the run time watch `carrier` for what comes and for room to send.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn new(carrier: C) -> io::Result<Self> {
        let room = match carrier.stream() {
            Some(stream) => match stream.room_notifier()? {
                Some(notifier) => SendReadiness::Notifier(RoomNotifier::new(notifier)?),
                None => SendReadiness::System(WriteInterest::default()),
            },
            None => SendReadiness::Retry(RetryTimer::default()),
        };
        let interest = match &room {
            SendReadiness::System(_) | SendReadiness::Notifier(_) => Interest::READABLE,
            SendReadiness::Retry(_) => Interest::READABLE | Interest::ERROR,
        };
        Ok(Self {
            room,
            carrier: watch(carrier, interest)?,
        })
    }

    pub(crate) fn get_ref(&self) -> &C {
        &self.carrier.get_ref().0
    }

    /// Waits until the system has something to report of datagrams that were sent: a task that waits to receive is not
    /// told of that alone.
    ///
    /// # Errors
    /// The run time has ended.
    pub(crate) async fn next_error(&self) -> io::Result<()> {
        self.carrier.ready(Interest::ERROR).await?.clear_ready();
        Ok(())
    }

    /// Returns whether a receive may find something; otherwise the task is called when one may.
    pub(crate) fn poll_read_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<IoReadiness<'_, C>>> {
        let memory = match &self.room {
            SendReadiness::System(_) | SendReadiness::Retry(_) => None,
            SendReadiness::Notifier(_) => self.get_ref().stream(),
        };
        let Some(memory) = memory else {
            return self.carrier.poll_read_ready(cx).map_ok(IoReadiness::Socket);
        };
        // The peer is told before the task sleeps, and what came before that is seen here.
        if memory.park() && forget(self.carrier.poll_read_ready(cx)?).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(Ok(IoReadiness::Bytes))
    }

    /// Returns whether a send may find room; otherwise the task is called when one may.
    pub(crate) fn poll_write_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<IoReadiness<'_, C>>> {
        let (notifier, memory) = match (&self.room, self.get_ref().stream()) {
            (SendReadiness::Notifier(notifier), Some(memory)) => (notifier, memory),
            (SendReadiness::Retry(again), _) => {
                return match again.must_wait(cx) {
                    true => Poll::Pending,
                    false => Poll::Ready(Ok(IoReadiness::Room(&again.is_full))),
                };
            }
            (SendReadiness::System(outlet), _) => {
                return match outlet.must_wait(self.get_ref(), cx)? {
                    true => Poll::Pending,
                    false => Poll::Ready(Ok(IoReadiness::Room(&outlet.is_full))),
                };
            }
            (SendReadiness::Notifier(_), None) => {
                unreachable!("only streams in shared memory have one")
            }
        };
        while notifier.is_awaited.load(Ordering::Relaxed) {
            if !memory.park_sender() {
                notifier.is_awaited.store(false, Ordering::Relaxed);
            } else if forget(notifier.watched.poll_read_ready(cx)?).is_pending() {
                return Poll::Pending;
            } else {
                memory.take_in_room();
            }
        }
        Poll::Ready(Ok(IoReadiness::Room(&notifier.is_awaited)))
    }
}

impl WriteInterest {
    /// Has the task called when there is room, if the last attempt found none; returns false if there may be some
    /// again.
    fn must_wait(&self, socket: &impl AsFd, cx: &mut Context<'_>) -> io::Result<bool> {
        if !self.is_full.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let watched = match self.watched.get() {
            Some(watched) => watched,
            None => self.begin(socket)?,
        };
        // What is forgotten here is looked for by the attempt that follows.
        if forget(watched.poll_write_ready(cx)?).is_pending() {
            return Ok(true);
        }
        self.is_full.store(false, Ordering::Relaxed);
        Ok(false)
    }

    #[cold]
    fn begin(&self, socket: &impl AsFd) -> io::Result<&WatchedSource<OwnedFd>> {
        let other = socket.as_fd().try_clone_to_owned()?;
        let watched = watch(other, Interest::WRITABLE)?;
        Ok(self.watched.get_or_init(|| watched))
    }
}

impl RoomNotifier {
    fn new(notifier: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            watched: watch(notifier, Interest::READABLE)?,
            is_awaited: AtomicBool::new(false),
        })
    }
}

impl RetryTimer {
    /// Has the task called soon if the last attempt found no room; a task that is called earlier may try again then.
    fn must_wait(&self, cx: &mut Context<'_>) -> bool {
        if !self.is_full.swap(false, Ordering::Relaxed) {
            return false;
        }
        let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        let at = Instant::now() + LOOK_AGAIN;
        let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        timer.as_mut().reset(at);
        timer.as_mut().poll(cx).is_pending()
    }
}

/// Has the run time say when a notification comes once more.
fn forget<T: AsFd>(ready: Poll<SourceReadyGuard<'_, T>>) -> Poll<()> {
    ready.map(|mut ready| ready.clear_ready())
}

/// Returns whether `error` says that nothing is there yet.
pub(crate) fn is_for_now(error: &io::Error) -> bool {
    tenon_net::is_deadline(error) || error.kind() == io::ErrorKind::WouldBlock
}
