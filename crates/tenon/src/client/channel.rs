//! A channel: the way to one peer, shared by all threads that call it.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tenon_core::ClientSocket;
use tenon_core::client::{ChannelCounters, buffers};
use tenon_core::error::ConnectError;
use tenon_core::options::ChannelOptions;
use tenon_core::timer::{CallLimit, CallTimer};
use tenon_core::wait::WaitTally;
use tenon_net::{Address, Ticks, Train, Transport};
use tenon_wire::Buffer;

use super::link::LinkSocket;
use super::state::{Calls, ChannelState};

/// The way to one peer. Clones are the same channel; any number of threads may use it, and any number of clients.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
/// # use example::{greeter::GreeterV1Client, start_server};
/// # let (server, address) = start_server();
/// use std::thread;
/// use tenon::Channel;
///
/// let channel = Channel::connect(&address)?;
/// // Clients of other programs of the server would go over the same connection.
/// let greeter = GreeterV1Client::over(channel.clone());
/// thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| greeter.ping());
///     }
/// });
/// let counters = channel.counters();
/// assert_eq!((counters.calls.successes, counters.connections), (4, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    options: ChannelOptions,
    state: Mutex<ChannelState>,
    /// Signaled when a caller has made an attempt to connect.
    connected: Condvar,
    waits: Arc<WaitTally>,
    follower_waits: WaitTally,
    /// What calls with seconds look at the time by, if nothing is measured by when they began.
    ticks: Option<&'static Ticks>,
    /// Whether a lost connection is made again: not if the program has made it.
    reconnects: bool,
}

impl Drop for Shared {
    /// There are no callers any more. A server of the packet exchange has no other way to notice.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Calls::Datagram(calls), Some(link)) = (&mut state.calls, &state.link) {
            let mut goodbye = Buffer::default();
            if calls.endpoint.say_goodbye(&mut goodbye) {
                // A server that does not hear of it forgets the conversation in time.
                let _ = (link.socket.socket).try_send_train(Train::one(goodbye.as_slice()));
            }
        }
    }
}

impl Channel {
    /// Connects to `address`, such as `tcp://host:port`, with the default options.
    ///
    /// # Errors
    /// The text is no address, it lacks a port, or the peer cannot be reached.
    pub fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::connect_with(&address.parse()?, ChannelOptions::default())
    }

    /// Connects to `address` within the limits of `options`, at once unless [they say](ChannelOptions::connect_lazily)
    /// that the first call does.
    ///
    /// # Errors
    /// The address lacks a port, or the peer cannot be reached.
    pub fn connect_with(address: &Address, options: ChannelOptions) -> Result<Self, ConnectError> {
        if address.needs_port() {
            return Err(ConnectError::NoPort(address.clone()));
        }
        let timer = CallTimer::start(options.connect_timeout);
        let waits = Arc::default();
        if options.connect_lazily {
            return Ok(Self::linked(None, address, options, waits, true));
        }
        let socket = LinkSocket::connect(address, &waits, timer.deadline(), options.liveness)
            .map_err(|error| ConnectError::unreachable(address, error))?;
        let channel = Self::linked(Some(socket), address, options, waits, true);
        let greeted = channel.greet(&timer);
        greeted.map_err(|error| ConnectError::unreachable(address, error))?;
        Ok(channel)
    }

    /// Returns a channel for ONC RPC over a socket that the program has connected: TCP, UDP or a Unix stream socket. Reads
    /// and writes of the socket block from now on. A connection that is lost is not made again: calls fail then.
    ///
    /// # Errors
    /// [`ConnectError::Unreachable`]: the socket is not connected, or of another kind.
    pub fn over(socket: OwnedFd, options: ChannelOptions) -> Result<Self, ConnectError> {
        let waits = Arc::default();
        let connected = ClientSocket::over(socket);
        let (socket, address) = connected
            .map_err(|error| ConnectError::unreachable(&Address::unix(PathBuf::new()), error))?;
        let socket = LinkSocket::of(socket, &waits);
        Ok(Self::linked(Some(socket), &address, options, waits, false))
    }

    fn linked(
        socket: Option<LinkSocket>,
        address: &Address,
        options: ChannelOptions,
        waits: Arc<WaitTally>,
        reconnects: bool,
    ) -> Self {
        let mut state = ChannelState::new(address, &options);
        if let Some(socket) = socket {
            state.handle_connected(socket, &options);
        }
        Self {
            shared: Arc::new(Shared {
                address: address.clone(),
                options,
                state: Mutex::new(state),
                connected: Condvar::new(),
                waits,
                follower_waits: WaitTally::default(),
                ticks: match address.transport() {
                    Transport::Tcp | Transport::Unix | Transport::Shm => Ticks::get(),
                    // Round trips are measured there.
                    Transport::Udp | Transport::Xdp => None,
                },
                reconnects,
            }),
        }
    }

    /// Whether a lost connection is made again.
    pub(super) fn reconnects(&self) -> bool {
        self.shared.reconnects
    }

    /// Returns where the peer is.
    #[inline]
    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// Returns the limits.
    #[inline]
    pub fn options(&self) -> &ChannelOptions {
        &self.shared.options
    }

    /// Returns what has happened so far.
    pub fn counters(&self) -> ChannelCounters {
        let state = self.lock();
        ChannelCounters {
            calls: state.calls.counters(),
            in_flight: state.calls.in_flight(),
            connections: state.connections,
            waits: self.shared.waits.snapshot(),
            waits_for_reader: self.shared.follower_waits.snapshot(),
        }
    }

    /// The time of a call that begins now and has as long as `limit`.
    #[inline(always)]
    pub(super) fn timer(&self, limit: CallLimit) -> CallTimer {
        match self.shared.ticks {
            Some(ticks) if limit.timeout >= CallTimer::COARSE_FROM => {
                CallTimer::start_at(ticks, ticks.last(), limit)
            }
            _ => CallTimer::start(limit),
        }
    }

    /// A buffer to put a call in.
    #[inline]
    pub(super) fn buffer(&self) -> Buffer {
        buffers::take_spare().unwrap_or_else(|| self.lock().buffers.take())
    }

    /// Gives a buffer back.
    #[inline]
    pub(super) fn recycle(&self, buffer: Buffer) {
        if let Some(buffer) = buffers::keep_spare(buffer) {
            self.lock().buffers.put(buffer);
        }
    }

    /// Whether the peer says when a call passed it, if it is asked for that.
    pub(super) fn gives_stamps(&self) -> bool {
        self.lock().calls.gives_stamps()
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, ChannelState> {
        // What it guards is left in order at every point where something could panic.
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connected(&self) -> &Condvar {
        &self.shared.connected
    }

    pub(super) fn waits(&self) -> &Arc<WaitTally> {
        &self.shared.waits
    }

    pub(super) fn follower_waits(&self) -> &WaitTally {
        &self.shared.follower_waits
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("address", &self.shared.address)
            .finish_non_exhaustive()
    }
}
