//! A channel: the way to one peer, shared by all tasks that call it.
//!
//! What it decides about calls and connections is what a synchronous channel decides, by the same
//! parts ([`tenon::runtime`]); what differs is who waits. Here it is one task per channel, the
//! [driver], for whatever number of calls.
//!
//! A call that finds no other in flight is sent by its own task at once: there is nothing that it
//! could share a system call with. All others leave theirs in the [outbox](outbox), and the driver
//! sends what it finds there with one system call. Replies are copied out of the receive buffer, into
//! a buffer that is used again, and decoded by the caller's task.

mod driver;
mod outbox;
mod packets;
mod slots;
mod state;
mod ticket;
mod written;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tenon::runtime::{
    Followed, Form, REST, SlotId, Socket, Timer, calls_max, connect_timeout, counters,
};
use tenon::wire::Buffer;
use tenon::{Address, CallError, ChannelCounters, ChannelOptions, ConnectError, WaitCounters};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout_at;

use driver::Driver;
use slots::Outcome;
use state::{Phase, State};

pub(crate) use ticket::Ticket;
pub(crate) use written::Written;

use crate::watch::Watched;

/// A socket that the run time watches.
type Line = Arc<Watched<Socket>>;

/// The way to one peer. Clones are the same channel; any number of tasks may use it, and any number
/// of clients.
///
/// The connection is closed when the last clone is dropped, or when it is [closed](Self::close). It
/// is looked after by a task of the run time in which it was [made](Self::connect), and works as
/// long as that one does.
#[derive(Clone)]
pub struct Channel {
    handle: Arc<Handle>,
}

/// What the clones of a channel share. The driver has none of it, so that it sees when all are gone.
struct Handle {
    shared: Arc<Shared>,
    /// One for each call that may be in flight.
    room: Semaphore,
}

struct Shared {
    address: Address,
    options: ChannelOptions,
    guarded: Mutex<Guarded>,
}

/// What the lock guards. It is never held over anything that waits.
struct Guarded {
    state: State,
    line: Option<Line>,
    /// The driver, while nobody has called it.
    driver: Option<Waker>,
    /// Who waits for the end.
    closers: Vec<Waker>,
}

impl Channel {
    /// Connects to `address`, such as `tcp://host:port` or `lean+unix:///path`, with the default
    /// options.
    ///
    /// # Errors
    /// The text is no address, it lacks a port, or the peer cannot be reached.
    ///
    /// # Panics
    /// Outside of a tokio run time with input, output and time.
    pub async fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::connect_with(&address.parse()?, ChannelOptions::default()).await
    }

    /// Connects to `address` within the limits of `options`.
    ///
    /// # Errors
    /// The address lacks a port, or the peer cannot be reached.
    ///
    /// # Panics
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        address: &Address,
        options: ChannelOptions,
    ) -> Result<Self, ConnectError> {
        if address.needs_port() {
            return Err(ConnectError::NoPort(address.clone()));
        }
        let deadline = Timer::start(connect_timeout(&options)).deadline();
        let opened = driver::open(address, deadline).await;
        let line = opened
            .unwrap_or_else(|gone| Err(std::io::Error::other(gone)))
            .and_then(driver::line_over)
            .map_err(|error| state::unreachable_at(address, error))?;
        let channel = Self::over(line, address, options);
        let greeted = timeout_at(deadline.into(), channel.greet()).await;
        let greeted =
            greeted.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        greeted.map_err(|cause| ConnectError::Unreachable {
            address: address.clone(),
            cause,
        })?;
        Ok(channel)
    }

    /// Waits until a server of the packet exchange was heard: so what is no server is found out when a
    /// channel is made.
    async fn greet(&self) -> Result<(), Arc<io::Error>> {
        {
            let mut guarded = self.handle.shared.lock();
            if !guarded.state.greet() {
                return Ok(());
            }
            let driver = guarded.driver.take();
            drop(guarded);
            driver.into_iter().for_each(Waker::wake);
        }
        poll_fn(|cx| {
            let mut guarded = self.handle.shared.lock();
            match guarded.state.is_greeting(cx.waker()) {
                Ok(true) => Poll::Pending,
                Ok(false) => Poll::Ready(Ok(())),
                Err(cause) => Poll::Ready(Err(cause)),
            }
        })
        .await
    }

    fn over(line: Line, address: &Address, options: ChannelOptions) -> Self {
        let room = calls_max(&options).min(Semaphore::MAX_PERMITS);
        let mut guarded = Guarded {
            state: State::new(address, &options),
            line: None,
            driver: None,
            closers: Vec::new(),
        };
        guarded.connected(&line);
        let shared = Arc::new(Shared {
            address: address.clone(),
            options,
            guarded: Mutex::new(guarded),
        });
        tokio::spawn(Driver::new(Arc::clone(&shared), line).run());
        let room = Semaphore::new(room);
        let handle = Arc::new(Handle { shared, room });
        Self { handle }
    }

    /// Where the peer is.
    pub fn address(&self) -> &Address {
        &self.handle.shared.address
    }

    /// The limits.
    pub fn options(&self) -> &ChannelOptions {
        &self.handle.shared.options
    }

    /// What has happened so far.
    pub fn counters(&self) -> ChannelCounters {
        let guarded = self.handle.shared.lock();
        let state = &guarded.state;
        counters(&state.engine, state.connections, WaitCounters::default())
    }

    /// Waits until fewer calls are in flight than [`ChannelOptions::calls_max`]. Calls wait for that
    /// themselves; this is for a caller who wants to know before it makes up its mind, or its
    /// arguments.
    pub async fn ready(&self) {
        // The semaphore is never closed.
        let _ = self.handle.room.acquire().await;
    }

    /// Takes no further calls, waits until those that there are have ended, and closes the connection.
    /// A server that speaks the lean protocol is told.
    pub async fn close(&self) {
        {
            let mut guarded = self.handle.shared.lock();
            guarded.begin_to_close();
            let driver = guarded.driver.take();
            drop(guarded);
            driver.into_iter().for_each(Waker::wake);
        }
        poll_fn(|cx| {
            let mut guarded = self.handle.shared.lock();
            match guarded.state.phase {
                Phase::Closed => Poll::Ready(()),
                Phase::Open | Phase::Closing => {
                    guarded.closers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Waits for room for one more call, for no longer than the call has time.
    pub(crate) async fn admit(&self, timer: &Timer) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(permit) = self.handle.room.try_acquire() {
            return Ok(permit);
        }
        let acquired = timeout_at(timer.deadline().into(), self.handle.room.acquire()).await;
        match acquired {
            Ok(Ok(permit)) => Ok(permit),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(timer.error(false)),
        }
    }

    /// A buffer to put a call in.
    pub(crate) fn buffer(&self) -> Buffer {
        self.handle.shared.lock().state.buffers.take()
    }

    /// Gives a buffer back.
    pub(crate) fn recycle(&self, buffer: Buffer) {
        self.handle.shared.lock().state.buffers.put(buffer);
    }

    /// A call whose arguments stand in `message`.
    pub(crate) fn written(
        &self,
        message: Buffer,
        form: &Form<'_>,
        followed: Option<Arc<Followed>>,
    ) -> Result<Written, CallError> {
        let mut written = Written::new(message, form, self.address(), self.options())?;
        written.followed = followed;
        Ok(written)
    }

    /// Whether the peer says when a call passed it, if it is asked for that.
    pub(crate) fn gives_stamps(&self) -> bool {
        self.handle.shared.lock().state.engine.gives_stamps()
    }

    /// Sends a call, or leaves it to the driver.
    fn send(&self, written: Written, timer: Timer, owner: &Waker) -> Result<SlotId, CallError> {
        let mut guarded = self.handle.shared.lock();
        let alarm = guarded.state.alarm;
        let may_send = guarded.state.outbox.is_empty() && guarded.state.is_done();
        let slot = guarded.state.add(written, timer, owner)?;
        let is_fresh = guarded.is_fresh(&timer);
        let is_sent = may_send && is_fresh && guarded.send_at_once();
        let driver = match is_sent && guarded.state.alarm == alarm {
            true => None,
            false => guarded.driver.take(),
        };
        drop(guarded);
        driver.into_iter().for_each(Waker::wake);
        Ok(slot)
    }

    fn fetch(&self, slot: SlotId, owner: &Waker) -> Option<Outcome> {
        self.handle.shared.lock().state.slots.fetch(slot, owner)
    }

    fn give_up(&self, slot: SlotId) {
        let mut guarded = self.handle.shared.lock();
        guarded.state.give_up(slot);
        let driver = match guarded.state.has_transmit() || guarded.state.phase != Phase::Open {
            true => guarded.driver.take(),
            false => None,
        };
        drop(guarded);
        driver.into_iter().for_each(Waker::wake);
    }
}

impl Guarded {
    fn connected(&mut self, line: &Line) {
        self.line = Some(Arc::clone(line));
        self.state.connected(line.get_ref().is_here());
    }

    /// Whether the connection was used lately; from now on it was.
    fn is_fresh(&mut self, timer: &Timer) -> bool {
        let state = &mut self.state;
        let is_fresh = timer.started() <= state.used_at + REST;
        state.used_at = timer.started();
        state.has_rested |= !is_fresh;
        is_fresh
    }

    /// Sends what there is room for; says whether that was all. What went wrong the driver finds out
    /// when it tries.
    fn send_at_once(&mut self) -> bool {
        match &self.line {
            Some(line) => self.state.queue.is_empty() && self.state.send(line.get_ref()).is_ok(),
            None => false,
        }
    }

    fn begin_to_close(&mut self) {
        if self.state.phase == Phase::Open {
            self.state.phase = Phase::Closing;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Guarded> {
        // The bookkeeping is left in order at every point where it could panic.
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handle {
    /// Nobody can call any more.
    fn drop(&mut self) {
        let mut guarded = self.shared.lock();
        guarded.begin_to_close();
        let driver = guarded.driver.take();
        drop(guarded);
        driver.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("address", self.address())
            .finish_non_exhaustive()
    }
}
