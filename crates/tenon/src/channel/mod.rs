//! A channel: the way to one peer, shared by all threads that call it.
//!
//! There is no thread behind it. A caller [sends](sending) its call and, if nobody reads, becomes
//! the [reader]: it [receives](receiving), decodes its own reply where it was received, copies the
//! replies of others into their [slots] and wakes them. When its own has come it passes the
//! reader's role to a caller that waits. When the [connection] breaks, the calls in flight fail and
//! the next one [connects](connecting) again.
//!
//! A channel speaks [one protocol](engine), which its address says. In the packet exchange the engine has
//! the calls, and says what [packets] are to be sent.
//!
//! One lock guards the bookkeeping. It is never held over a system call that waits, nor over code
//! of the user.

mod alone;
mod back_off;
mod backlog;
mod batch;
mod bell;
mod broken;
mod buffers;
mod connecting;
mod connection;
mod ending;
mod engine;
mod exchange;
mod flight;
mod form;
mod front;
mod inbox;
mod packets;
mod reader;
mod receiving;
mod sending;
mod slots;
mod socket;
mod state;
mod timer;
mod waiting;

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenon_net::{Address, Protocol, Ticks, Transport};
use tenon_proto::onc::client::ClientCounters;
use tenon_wire::Buffer;

use crate::error::ConnectError;
use crate::options::ChannelOptions;
use crate::waiting::{WaitCounters, WaitTally};
use connection::Connection;
use state::State;

pub(crate) use flight::Ticket;
pub(crate) use receiving::Reply;

pub use back_off::BackOff;
pub use batch::Batch;
pub use broken::Broken;
pub use buffers::Buffers;
pub use engine::{Answer, Engine, Meaning, Unstarted, is_late};
pub use exchange::ExchangeEngine;
pub use form::{Form, LeanForm, Started, packet};
pub use inbox::{Inbox, Received};
pub use sending::{Obstacle, REST};
pub use slots::{Results, SlotId};
pub use socket::Socket;
pub use state::seed;
pub use timer::Timer;

/// The way to one peer. Clones are the same channel; any number of threads may use it, and any
/// number of clients.
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    options: ChannelOptions,
    state: Mutex<State>,
    /// Signaled when the next caller may send, for those that `State::waiting_to_send` counts.
    turn: Condvar,
    /// Signaled when the peer has said something, for those that `State::waiting_for_peer` counts.
    peer: Condvar,
    waits: Arc<WaitTally>,
    listening: WaitTally,
    /// What calls with seconds look at the time by, if nothing is measured by when they began.
    ticks: Option<&'static Ticks>,
}

/// What a channel has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelCounters {
    /// Calls, by what became of them.
    pub calls: ClientCounters,
    /// Calls that wait for their replies now.
    pub in_flight: usize,
    /// Connections made.
    pub connections: u64,
    /// How the callers that read have waited.
    pub waits: WaitCounters,
    /// How those have waited whom another caller reads for. Their attempts are no system calls.
    pub waits_for_reader: WaitCounters,
}

impl Channel {
    /// Connects to `address`, such as `tcp://host:port`, with the default options.
    ///
    /// # Errors
    /// The text is no address, it lacks a port, or the peer cannot be reached.
    pub fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::connect_with(&address.parse()?, ChannelOptions::default())
    }

    /// Connects to `address` within the limits of `options`.
    ///
    /// # Errors
    /// The address lacks a port, or the peer cannot be reached.
    pub fn connect_with(address: &Address, options: ChannelOptions) -> Result<Self, ConnectError> {
        if address.needs_port() {
            return Err(ConnectError::NoPort(address.clone()));
        }
        let timer = Timer::start(options.connect_timeout);
        let waits = Arc::default();
        let desk = Connection::open(address, &options, &waits, timer.deadline)
            .map_err(|error| ConnectError::unreachable(address, error))?;
        let mut state = State::new(address, &options);
        state.connected(desk);
        let channel = Self {
            shared: Arc::new(Shared {
                address: address.clone(),
                options,
                state: Mutex::new(state),
                turn: Condvar::new(),
                peer: Condvar::new(),
                waits,
                listening: WaitTally::default(),
                ticks: match (address.protocol(), address.transport()) {
                    (Protocol::Lean, Transport::Tcp | Transport::Unix | Transport::Shm) => {
                        Ticks::get()
                    }
                    (Protocol::Lean, Transport::Udp | Transport::Xdp) | (Protocol::Onc, _) => None,
                },
            }),
        };
        let greeted = channel.greet(&timer);
        greeted.map_err(|cause| ConnectError::Unreachable {
            address: address.clone(),
            cause,
        })?;
        Ok(channel)
    }

    /// Where the peer is.
    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// The limits.
    pub fn options(&self) -> &ChannelOptions {
        &self.shared.options
    }

    /// What has happened so far.
    pub fn counters(&self) -> ChannelCounters {
        let state = self.lock();
        let waits = self.shared.waits.snapshot();
        ChannelCounters {
            waits_for_reader: self.shared.listening.snapshot(),
            ..counters(&state.engine, state.connections, waits)
        }
    }

    /// The time of a call that begins now and has as long as `limit`.
    #[inline]
    pub(crate) fn timer(&self, limit: Duration) -> Timer {
        match self.ticks_for(limit) {
            Some(ticks) => Timer::start_at(ticks, ticks.last(), limit),
            None => Timer::start(limit),
        }
    }

    /// What a call that has as long as `limit` may look at the time by.
    #[inline]
    fn ticks_for(&self, limit: Duration) -> Option<&'static Ticks> {
        self.shared.ticks.filter(|_| limit >= Timer::SECONDS)
    }

    /// A buffer to put a call in; [`send`](Self::send) takes it.
    #[inline]
    pub(crate) fn buffer(&self) -> Buffer {
        buffers::take_spare().unwrap_or_else(|| self.lock().buffers.take())
    }

    /// Gives a buffer back.
    pub(crate) fn recycle(&self, buffer: Buffer) {
        if let Some(buffer) = buffers::keep_spare(buffer) {
            self.lock().buffers.put(buffer);
        }
    }

    /// Whether the peer says when a call passed it, if it is asked for that.
    pub(crate) fn gives_stamps(&self) -> bool {
        self.lock().engine.gives_stamps()
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, State> {
        // The bookkeeping is left in order at every point where it could panic.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a channel has done with this engine, over so many connections, waiting so.
pub fn counters(engine: &Engine, connections: u64, waits: WaitCounters) -> ChannelCounters {
    ChannelCounters {
        calls: engine.counters(),
        in_flight: engine.in_flight(),
        connections,
        waits,
        waits_for_reader: WaitCounters::default(),
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("address", &self.shared.address)
            .finish_non_exhaustive()
    }
}
