//! A channel: the way to one peer, shared by all threads that call it.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use tenon_core::client::{ChannelCounters, buffers};
use tenon_core::error::{CallError, ConnectError};
use tenon_core::options::ChannelOptions;
use tenon_core::timer::{CallClock, CallLimit, CallTimer};
use tenon_core::wait::WaitTally;
use tenon_core::{ClientSocket, Destination};
use tenon_net::{Address, FollowedPackets, PacketStamps, PacketTrain, Protocol};
use tenon_wire::Buffer;

use super::callback_pool::CallbackPool;
use super::link::ConnectionSocket;
use super::state::{Calls, ChannelState};
use crate::established::EstablishedConnection;

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
    shared: Arc<ChannelInner>,
    /// Ends the threads that serve calls of the server, if there are some, with the last clone.
    _callbacks: Option<Arc<CallbackGuard>>,
}

struct ChannelInner {
    address: Address,
    /// The peer to connect to, and again if the connection is lost; none if the program has supplied the connection.
    destination: Option<Destination>,
    options: ChannelOptions,
    /// What is served of calls of the server.
    services: Option<Arc<CallbackPool>>,
    /// The channel that carries the calls with streams, where this one has datagrams.
    streams: OnceLock<Channel>,
    state: Mutex<ChannelState>,
    /// Signaled when a caller has made an attempt to connect.
    connected: Condvar,
    waits: Arc<WaitTally>,
    follower_waits: WaitTally,
    clock: CallClock,
}

/// Ends the threads that serve calls of the server, with the last clone of a channel.
struct CallbackGuard {
    pool: Arc<CallbackPool>,
    /// The channel as its threads have it.
    channel: Channel,
}

impl Drop for CallbackGuard {
    fn drop(&mut self) {
        self.pool.close();
        let state = self.channel.lock();
        if let Some(link) = &state.link {
            link.socket.shutdown();
        }
        drop(state);
        self.channel.connected().notify_all();
    }
}

impl Drop for ChannelInner {
    /// There are no callers any more. A server of the packet exchange has no other way to notice.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Calls::Datagram(calls), Some(link)) = (&mut state.calls, &state.link) {
            let mut goodbye = Buffer::default();
            if calls.endpoint.send_close(&mut goodbye) {
                // A server that does not hear of it forgets the conversation in time.
                let _ = (link.socket.socket).try_send_train(PacketTrain::one(goodbye.as_slice()));
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
        Self::connect_to(Destination::at(address.clone())?, options)
    }

    /// Connects to `destination`, at once or with the first call.
    pub(super) fn connect_to(
        destination: Destination,
        options: ChannelOptions,
    ) -> Result<Self, ConnectError> {
        Self::connect_by(destination, options, None)
    }

    pub(super) fn connect_by(
        destination: Destination,
        options: ChannelOptions,
        services: Option<&Arc<CallbackPool>>,
    ) -> Result<Self, ConnectError> {
        let timer = CallTimer::start(options.connect_timeout);
        let address = destination.address().clone();
        let channel = Self::unconnected(address, Some(destination), options, services);
        if !channel.options().connect_lazily {
            let (socket, located) = channel.connect_socket(timer.deadline())?;
            let mut state = channel.lock();
            state.handle_connected(socket, located.clone(), channel.options());
            drop(state);
            let greeted = channel.greet(&timer);
            greeted.map_err(|error| ConnectError::unreachable(&located, error))?;
        }
        Ok(channel)
    }

    /// Finds the peer, and connects to it.
    pub(super) fn connect_socket(
        &self,
        deadline: Instant,
    ) -> Result<(ConnectionSocket, Address), ConnectError> {
        let Some(destination) = &self.shared.destination else {
            let address = self.address().clone();
            return Err(ConnectError::NotReconnected { address });
        };
        let (socket, located) = destination.connect(deadline, self.options())?;
        Ok((ConnectionSocket::of(socket, self.waits()), located))
    }

    /// Returns a channel that speaks `protocol` over a connection that the program has established: a connected socket,
    /// or whatever else an [`EstablishedConnection`] is made of. Reads and writes of a socket block from now on. A
    /// connection that is lost is not made again: calls fail with [`ConnectError::NotReconnected`] then.
    ///
    /// # Errors
    /// [`ConnectError::Unreachable`]: the socket is not connected, or of another kind; the process has too many
    /// descriptors or threads.
    pub fn over(
        connection: impl Into<EstablishedConnection>,
        protocol: Protocol,
        options: ChannelOptions,
    ) -> Result<Self, ConnectError> {
        let socket = (connection.into().into_socket())
            .map_err(|error| ConnectError::unreachable(&Address::unnamed(), error))?;
        let (socket, address) = ClientSocket::over(socket, protocol)?;
        let channel = Self::unconnected(address.clone(), None, options, None);
        let socket = ConnectionSocket::of(socket, channel.waits());
        let mut state = channel.lock();
        state.handle_connected(socket, address, channel.options());
        drop(state);
        Ok(channel)
    }

    fn unconnected(
        address: Address,
        destination: Option<Destination>,
        options: ChannelOptions,
        services: Option<&Arc<CallbackPool>>,
    ) -> Self {
        let is_datagram = Destination::carries_datagrams(destination.as_ref(), &address);
        let state = ChannelState::new(&address, is_datagram, &options, services);
        Self {
            shared: Arc::new(ChannelInner {
                address,
                destination,
                options,
                services: services.cloned(),
                streams: OnceLock::new(),
                state: Mutex::new(state),
                connected: Condvar::new(),
                waits: Arc::default(),
                follower_waits: WaitTally::default(),
                clock: CallClock::new(is_datagram),
            }),
            _callbacks: None,
        }
    }

    /// Returns the channel that carries calls with streams: this one, or one in packets to the same peer.
    ///
    /// # Errors
    /// The program has established the connection, and it has datagrams.
    pub(super) fn for_streams(&self) -> Result<&Self, CallError> {
        if let Some(channel) = self.shared.streams.get() {
            return Ok(channel);
        }
        let (own, address) = (self.shared.destination.as_ref(), self.address());
        let Some(destination) = Destination::for_streams(own, address)? else {
            return Ok(self);
        };
        Ok(self.shared.streams.get_or_init(|| {
            let options = self.options().clone().connect_lazily(true);
            Self::unconnected(address.clone(), Some(destination), options, None)
        }))
    }

    /// Returns what is served of calls of the server, if anything is.
    pub(super) fn callback_pool(&self) -> Option<&Arc<CallbackPool>> {
        self.shared.services.as_ref()
    }

    /// Returns the channel, whose threads end with its last clone.
    pub(super) fn guarded(self, pool: &Arc<CallbackPool>) -> Self {
        let guard = CallbackGuard {
            pool: Arc::clone(pool),
            channel: self.unguarded(),
        };
        Self {
            _callbacks: Some(Arc::new(guard)),
            ..self
        }
    }

    /// Returns the channel as its own threads have it, which do not keep it.
    pub(super) fn unguarded(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            _callbacks: None,
        }
    }

    /// Returns the address that the channel was made with.
    #[inline]
    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// Returns the address where the peer was found last, with the port that was asked for if it was not said.
    pub fn located(&self) -> Address {
        self.lock().located.clone()
    }

    /// Returns the limits.
    #[inline]
    pub fn options(&self) -> &ChannelOptions {
        &self.shared.options
    }

    /// Returns what has happened so far.
    pub fn counters(&self) -> ChannelCounters {
        let state = self.lock();
        let counters = ChannelCounters {
            calls: state.calls.counters(),
            in_flight: state.calls.in_flight(),
            connections: state.connections,
            waits: self.shared.waits.snapshot(),
            waits_for_reader: self.shared.follower_waits.snapshot(),
        };
        drop(state);
        let streams = self.shared.streams.get();
        streams.map_or(counters, |streams| counters.plus(streams.counters()))
    }

    /// Has the kernel stamp these packets of the connection, for an account [of packets](crate::CallProfile::of_packets).
    /// That ends with the connection.
    ///
    /// # Errors
    /// `Unsupported` unless they are datagrams of a UDP socket of Linux; `NotConnected` if there is no connection.
    pub fn follow_packets(&self, followed: FollowedPackets) -> io::Result<()> {
        match &self.lock().link {
            Some(link) => link.socket.socket.follow_packets(followed),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Returns when the kernel had the last packets of the connection, which is [followed](Self::follow_packets): of the
    /// call that was sent last and its reply, if no other call was made meanwhile. To be called after each call, as the
    /// kernel keeps only so many.
    pub fn take_packet_stamps(&self) -> PacketStamps {
        match &self.lock().link {
            Some(link) => link.socket.socket.take_stamps(),
            None => PacketStamps::default(),
        }
    }

    /// The time of a call that begins now and has as long as `limit`.
    #[inline(always)]
    pub(super) fn timer(&self, limit: CallLimit) -> CallTimer {
        self.shared.clock.start(limit)
    }

    /// A buffer to put a call in.
    #[inline(always)]
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

    /// Returns whether the peer says when a call passed it, if it is asked for that.
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
            .field("address", self.address())
            .finish_non_exhaustive()
    }
}
