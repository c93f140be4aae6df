//! A channel: the way to one peer, shared by all tasks that call it.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use tenon_core::Destination;
use tenon_core::client::ChannelCounters;
use tenon_core::error::CallError;
use tenon_core::options::ChannelOptions;
use tenon_core::timer::{CallClock, CallTimer};
use tenon_core::wait::{WaitCounters, WaitTally};
use tenon_net::Address;
use tenon_proto::connection::ServiceTable;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout_at;

use super::state::{ChannelPhase, ChannelState};
use crate::erased::ErasedFuture;
use crate::server::CallbackHost;

/// The way to one peer. Clones are the same channel; any number of tasks may use it, and any number of clients.
///
/// The connection is closed when the last clone is dropped, or when it is [closed](Self::close). It is looked after by a
/// task of the run time in which it was [made](Self::connect), and works as long as that one does.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1AsyncClient, Greeting, Visitor}, start_server};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (server, address) = start_server().await;
/// use tenon_tokio::{Channel, ChannelOptions};
///
/// let channel = Channel::connect_with(&address.parse()?, ChannelOptions::default()).await?;
/// // Clients of other programs of the server would go over the same connection.
/// let greeter = GreeterV1AsyncClient::over(channel.clone());
/// tokio::try_join!(greeter.ping(), greeter.ping())?;
/// assert_eq!(channel.counters().calls.successes, 2);
/// channel.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Channel {
    handle: Arc<ChannelHandle>,
}

/// The state that the clones of a channel share. The driver has none of it, so that it sees when all are gone.
struct ChannelHandle {
    shared: Arc<SharedChannel>,
    /// One for each call that may be in flight.
    room: Semaphore,
    /// The channel that carries the calls with streams, where this one has datagrams.
    streams: OnceLock<Channel>,
}

/// The state that the clones of a channel share with its driver.
pub(super) struct SharedChannel {
    pub(super) address: Address,
    /// The peer to connect to, and again if the connection is lost; none if the program has supplied the connection.
    pub(super) destination: Option<Destination>,
    pub(super) options: ChannelOptions,
    pub(super) waits: WaitTally,
    pub(super) clock: CallClock,
    /// What serves calls of the server, if anything does.
    pub(super) callbacks: Option<CallbackHost>,
    state: Mutex<ChannelState>,
}

impl Channel {
    /// Makes the channel of the driver that has `shared`, for at most so many calls in flight.
    pub(super) fn of(shared: Arc<SharedChannel>, calls_max: usize) -> Self {
        let room = Semaphore::new(calls_max);
        Self {
            handle: Arc::new(ChannelHandle {
                shared,
                room,
                streams: OnceLock::new(),
            }),
        }
    }

    /// Returns the address that the channel was made with.
    pub fn address(&self) -> &Address {
        &self.shared().address
    }

    /// Returns the address where the peer was found last, with the port that was asked for if it was not said.
    pub fn located(&self) -> Address {
        self.shared().lock().located.clone()
    }

    /// Returns the limits.
    pub fn options(&self) -> &ChannelOptions {
        &self.shared().options
    }

    /// Returns what has happened so far.
    pub fn counters(&self) -> ChannelCounters {
        let state = self.shared().lock();
        let counters = ChannelCounters {
            calls: state.calls.counters(),
            in_flight: state.calls.in_flight(),
            connections: state.connections,
            waits: self.shared().waits.snapshot(),
            waits_for_reader: WaitCounters::default(),
        };
        drop(state);
        let streams = self.handle.streams.get();
        streams.map_or(counters, |streams| counters.plus(streams.counters()))
    }

    /// Waits until fewer calls are in flight than [`ChannelOptions::calls_max`]. Calls wait for that themselves; this is
    /// for a caller that wants to know before it has its arguments.
    pub async fn ready(&self) {
        // The semaphore is never closed.
        let _ = self.handle.room.acquire().await;
    }

    /// Takes no further calls, waits until those that there are have ended, and closes the connection. A server that
    /// speaks the lean protocol is told.
    pub async fn close(&self) {
        if let Some(streams) = self.handle.streams.get() {
            Box::pin(streams.close()).await;
        }
        self.shared().begin_to_close();
        poll_fn(|cx| {
            let mut state = self.shared().lock();
            match state.phase {
                ChannelPhase::Closed => Poll::Ready(()),
                ChannelPhase::Open | ChannelPhase::Closing => {
                    state.closers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Waits for room for one more call, for no longer than the call has time.
    #[inline]
    pub(super) async fn admit(&self, timer: &CallTimer) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(permit) = self.handle.room.try_acquire() {
            return Ok(permit);
        }
        self.wait_for_room(*timer).await
    }

    /// Waits for room, by a future that does not lie in that of each call.
    fn wait_for_room(
        &self,
        timer: CallTimer,
    ) -> ErasedFuture<'_, Result<SemaphorePermit<'_>, CallError>> {
        Box::pin(async move {
            let acquired = timeout_at(timer.deadline().into(), self.handle.room.acquire()).await;
            match acquired {
                Ok(Ok(permit)) => Ok(permit),
                // The semaphore is never closed.
                Ok(Err(_)) | Err(_) => Err(timer.unsent_error(Some(self.options().calls_max))),
            }
        })
    }

    /// Takes room for one more call, if there is some.
    pub(super) fn try_admit(&self) -> Result<(), CallError> {
        match self.handle.room.try_acquire() {
            Ok(permit) => {
                permit.forget();
                Ok(())
            }
            Err(_) => Err(CallError::TooManyCalls {
                limit: self.options().calls_max,
            }),
        }
    }

    /// Gives the room for a call back.
    pub(super) fn release_room(&self) {
        self.handle.room.add_permits(1);
    }

    /// Returns whether the peer says when a call passed it, if it is asked for that.
    pub(super) fn gives_stamps(&self) -> bool {
        self.shared().lock().calls.gives_stamps()
    }

    /// Returns the place of the channel that carries the calls with streams, where this one has datagrams.
    pub(super) fn streams(&self) -> &OnceLock<Self> {
        &self.handle.streams
    }

    #[inline]
    pub(super) fn shared(&self) -> &Arc<SharedChannel> {
        &self.handle.shared
    }
}

impl SharedChannel {
    pub(super) fn new(
        address: Address,
        destination: Option<Destination>,
        options: ChannelOptions,
        callbacks: Option<CallbackHost>,
    ) -> Self {
        let is_datagram = Destination::carries_datagrams(destination.as_ref(), &address);
        let state = ChannelState::new(&address, is_datagram, &options, callbacks.as_ref());
        Self {
            state: Mutex::new(state),
            callbacks,
            address,
            destination,
            options,
            waits: WaitTally::default(),
            clock: CallClock::new(is_datagram),
        }
    }

    /// Returns the services that the server may call.
    pub(super) fn services(&self) -> &ServiceTable {
        (self.callbacks.as_ref()).map_or(ServiceTable::EMPTY, |host| host.registry().table())
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, ChannelState> {
        // What it guards is left in order at every point where something could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the lock, and wakes the tasks that are to be woken.
    #[inline]
    pub(super) fn wake(&self, mut state: MutexGuard<'_, ChannelState>) {
        if state.woken.len() <= 1 {
            let woken = state.woken.pop();
            drop(state);
            return woken.into_iter().for_each(Waker::wake);
        }
        self.wake_several(state);
    }

    fn wake_several(&self, mut state: MutexGuard<'_, ChannelState>) {
        let mut woken = std::mem::take(&mut state.woken);
        drop(state);
        woken.drain(..).for_each(Waker::wake);
        // Its memory is used again.
        let mut state = self.lock();
        if state.woken.capacity() == 0 {
            state.woken = woken;
        }
    }

    /// Takes no further calls.
    fn begin_to_close(&self) {
        let mut state = self.lock();
        if state.phase == ChannelPhase::Open {
            state.phase = ChannelPhase::Closing;
        }
        state.wake_driver();
        self.wake(state);
    }
}

impl Drop for ChannelHandle {
    /// There are no callers any more.
    fn drop(&mut self) {
        self.shared.begin_to_close();
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("address", self.address())
            .finish_non_exhaustive()
    }
}
