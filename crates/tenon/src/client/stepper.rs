//! Making calls from an event loop of the program's own: what would wait in other programs is done in steps.

use std::fmt;
use std::io;
#[cfg(all(unix, not(tenon_portable)))]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use tenon_net::fd::OwnedFd;
use tenon_net::{PollRegistry, PollWaker, Poller, Stream, Watch};

use super::channel::Channel;
use super::link::{ActiveConnection, ConnectionSocket};
use super::state::{Calls, ChannelState};

/// Times that a step receives before others of the event loop have their turn.
const RECEIVES_PER_STEP: usize = 32;

/// Sends and receives for a channel, without waiting, for programs with an event loop of their own.
/// [`Channel::stepper`] makes one.
///
/// The loop watches the stepper's descriptor ([`AsFd`]) for something to read, level-triggered. It calls
/// [`step`](Self::step) when there is, when the time that [`next_timeout`](Self::next_timeout) tells is over, and
/// behind calls that were [started](crate::Client::start). After each step it looks which of these have ended, by
/// [`PendingCall::is_ready`](crate::PendingCall::is_ready). No other thread may wait for calls of the channel.
///
/// A lost connection is made again by the next call that is started, or the first that is looked at and was not sent;
/// that waits. In packets (`lean+udp://`) a call waits, too, that the server has no room for.
///
/// ```no_run
/// use std::time::Duration;
///
/// use tenon::Client;
/// # fn wait(_: impl std::os::fd::AsFd, _: Option<Duration>) {}
///
/// let client = Client::connect("tcp://localhost:7777", 0x2000_0001, 1)?;
/// let mut stepper = client.channel().stepper()?;
/// let mut call = client.onc().start(1, |out| Ok(out.put(21)), |input| input.get::<u32>())?;
/// while !call.is_ready() {
///     // What an event loop does, beside all else that it waits for.
///     wait(&stepper, stepper.next_timeout());
///     stepper.step();
/// }
/// assert_eq!(call.wait()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ChannelStepper {
    channel: Channel,
    poller: Poller,
    registry: PollRegistry,
    waker: PollWaker,
    watched: Option<WatchedConnection>,
    /// Number of connections that have been watched.
    links: usize,
}

/// The socket that is watched.
struct WatchedConnection {
    socket: Arc<ConnectionSocket>,
    /// A descriptor that becomes readable when there is room in shared memory.
    room_notifier: Option<OwnedFd>,
}

impl Channel {
    /// Returns what sends and receives for this channel from an event loop. From now on calls that are
    /// [started](crate::Client::start) do not wait for room in the socket: what finds none goes out with the steps.
    ///
    /// # Errors
    /// The process has too many descriptors.
    pub fn stepper(&self) -> io::Result<ChannelStepper> {
        let poller = Poller::new()?;
        let (registry, waker) = (poller.registry()?, poller.waker()?);
        self.lock().is_stepped = true;
        let mut stepper = ChannelStepper {
            channel: self.clone(),
            poller,
            registry,
            waker,
            watched: None,
            links: 0,
        };
        stepper.watch_link()?;
        Ok(stepper)
    }
}

impl ChannelStepper {
    /// Sends what waits and receives what has come, without waiting. If something is left to do, the descriptor stays
    /// readable.
    pub fn step(&mut self) {
        if let Err(error) = self.poller.wait(Some(Duration::ZERO)) {
            tracing::error!(%error, "waiting for events failed");
        }
        for _ in 0..RECEIVES_PER_STEP {
            if let Err(error) = self.watch_link() {
                tracing::error!(%error, "the system cannot wait for the socket");
                return;
            }
            if !self.exchange() && self.park() {
                return;
            }
        }
        self.waker.wake();
    }

    /// Returns the time after which [`step`](Self::step) is to be called even if the descriptor has not become
    /// readable: a call is given up or sent again then. `None` is never.
    pub fn next_timeout(&self) -> Option<Duration> {
        let state = self.channel.lock();
        let at = match &state.calls {
            Calls::Stream(connection) => connection.poll_timeout(),
            Calls::Datagram(calls) => calls.endpoint.poll_timeout(),
        };
        let unsent = state.unsent.iter().map(|(call, _)| call.deadline).min();
        let drained = state.link.as_ref().and_then(ActiveConnection::drained_at);
        let at = at.into_iter().chain(unsent).chain(drained).min()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Watches the socket that the channel has now.
    fn watch_link(&mut self) -> io::Result<()> {
        let state = self.channel.lock();
        let socket = state.link.as_ref().map(|link| Arc::clone(&link.socket));
        drop(state);
        let is_watched = match (&self.watched, &socket) {
            (Some(watched), Some(socket)) => Arc::ptr_eq(&watched.socket, socket),
            (watched, socket) => watched.is_none() && socket.is_none(),
        };
        if is_watched {
            return Ok(());
        }
        // The system forgets the one before when it is closed.
        self.watched = None;
        let Some(socket) = socket else { return Ok(()) };
        self.links += 1;
        let room_notifier = match socket.socket.stream() {
            Some(stream) => stream.room_notifier()?,
            None => None,
        };
        self.registry
            .add(&socket.socket, self.links, Watch::ReceiveAndSend)?;
        if let Some(notifier) = &room_notifier {
            self.registry.add(notifier, self.links, Watch::Receive)?;
        }
        self.watched = Some(WatchedConnection {
            socket,
            room_notifier,
        });
        Ok(())
    }

    /// Sends what waits and receives once; returns whether something has come.
    fn exchange(&self) -> bool {
        let now = Instant::now();
        let mut state = self.channel.lock();
        state.handle_due(now);
        state.end_drained_link(now);
        state = self.send(state, now);
        let Some(mut reader) = self.channel.read(&mut state) else {
            return false;
        };
        drop(state);
        let received = reader.receive_now();
        if let Err(failure) = &received {
            reader.break_link(failure);
        }
        drop(reader);
        // What has come may let more go out.
        let mut state = self.channel.lock();
        state.handle_silence(now);
        drop(self.send(state, now));
        received.unwrap_or(false)
    }

    fn send<'s>(
        &'s self,
        state: MutexGuard<'s, ChannelState>,
        now: Instant,
    ) -> MutexGuard<'s, ChannelState> {
        if state.needs_sender() {
            self.channel.transmit(state, now)
        } else {
            state
        }
    }

    /// Has the descriptor show what comes from now on, and room if something waits for it; returns false if there is
    /// something that it does not show.
    fn park(&self) -> bool {
        let stream = self.watched.as_ref().and_then(WatchedConnection::stream);
        let Some((stream, has_notifier)) = stream else {
            return true;
        };
        let is_blocked = has_notifier && self.channel.lock().needs_sender();
        if is_blocked {
            stream.take_in_room();
        }
        stream.park() && (!is_blocked || stream.park_sender())
    }
}

impl WatchedConnection {
    fn stream(&self) -> Option<(&Stream, bool)> {
        Some((self.socket.socket.stream()?, self.room_notifier.is_some()))
    }
}

#[cfg(all(unix, not(tenon_portable)))]
impl AsFd for ChannelStepper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.registry.as_fd()
    }
}

impl fmt::Debug for ChannelStepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChannelStepper")
            .field(&self.channel)
            .finish()
    }
}
