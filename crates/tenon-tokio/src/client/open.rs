//! Opening a channel: the connection, and the task that looks after it.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use tenon_core::error::{CallError, ConnectError};
use tenon_core::options::ChannelOptions;
use tenon_core::timer::CallTimer;
use tenon_core::{ClientSocket, Destination};
use tenon_net::{Address, Protocol};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::channel::{Channel, SharedChannel};
use super::connect;
use super::driver::ChannelDriver;
use super::state::Calls;
use crate::erased::{self, ErasedFuture};
use crate::established::into_socket;
use crate::server::{AsyncCallbacks, CallbackHost};
use crate::watch::WatchedSocket;

impl Channel {
    /// Connects to `address`, such as `tcp://host:port` or `lean+unix:///path`, with the default options.
    ///
    /// # Errors
    /// The text is no address, it lacks a port, or the peer cannot be reached.
    ///
    /// # Panics
    /// Outside of a tokio run time with input, output and time.
    pub async fn connect(address: &str) -> Result<Self, ConnectError> {
        Self::connect_with(&address.parse()?, ChannelOptions::default()).await
    }

    /// Connects to `address` within the limits of `options`, at once unless [they say](ChannelOptions::connect_lazily)
    /// that the first call does.
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
        Self::connect_by(Destination::at(address.clone())?, options, None).await
    }

    /// Connects as [`connect_with`](Self::connect_with) does, and serves calls of the server over the connection. If the
    /// connection is lost, they are served again once a call of this end has made it anew. A service that keeps a clone of
    /// the channel keeps it open, unless the channel is [closed](Self::close).
    ///
    /// By ONC RPC nothing tells the server that it may call: it has to know from the interface of its program.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with); [`ConnectError::Callbacks`]: two services have the same program and
    /// version, or the address is one for datagrams.
    ///
    /// # Panics
    /// As [`connect`](Self::connect).
    pub async fn connect_serving(
        address: &Address,
        options: ChannelOptions,
        callbacks: AsyncCallbacks,
    ) -> Result<Self, ConnectError> {
        let host = CallbackHost::new(callbacks, address)?;
        Self::connect_by(Destination::at(address.clone())?, options, Some(host)).await
    }

    /// Returns a channel that speaks `protocol` over a connection that the program has established: anything that bytes
    /// are read from and written to by tasks. A TCP or Unix socket of tokio is used as it is; for anything else a task
    /// relays the bytes through a pair of sockets, so a message is copied twice more on its way. A connection that is lost
    /// is not made again: calls fail with [`ConnectError::NotReconnected`] then.
    ///
    /// # Errors
    /// [`ConnectError::Unreachable`]: the socket is not connected; the process has too many descriptors.
    ///
    /// # Panics
    /// As [`connect`](Self::connect).
    pub fn over<S>(
        stream: S,
        protocol: Protocol,
        options: ChannelOptions,
    ) -> Result<Self, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let socket = into_socket(stream)
            .map_err(|error| ConnectError::unreachable(&Address::unnamed(), error))?;
        let (socket, address) = ClientSocket::over(socket, protocol)?;
        let socket =
            connect::watch(socket).map_err(|error| ConnectError::unreachable(&address, error))?;
        let connected = Some((socket, address.clone()));
        Ok(Self::opened((address, None), options, connected, None))
    }

    /// Connects to `destination`, at once or with the first call.
    pub(super) fn connect_by(
        destination: Destination,
        options: ChannelOptions,
        callbacks: Option<CallbackHost>,
    ) -> ErasedFuture<'static, Result<Self, ConnectError>> {
        Box::pin(Self::connect_and_greet(destination, options, callbacks))
    }

    async fn connect_and_greet(
        destination: Destination,
        options: ChannelOptions,
        callbacks: Option<CallbackHost>,
    ) -> Result<Self, ConnectError> {
        let address = destination.address().clone();
        if options.connect_lazily {
            let to = (address, Some(destination));
            return Ok(Self::opened(to, options, None, callbacks));
        }
        let deadline = CallTimer::start(options.connect_timeout).deadline();
        let connected = connect::socket(destination.clone(), deadline, options.clone()).await;
        let (socket, located) = connected?;
        let unreachable = |error| ConnectError::unreachable(&located, error);
        let socket = connect::watch(socket).map_err(unreachable)?;
        let connected = Some((socket, located.clone()));
        let to = (address, Some(destination));
        let channel = Self::opened(to, options, connected, callbacks);
        let greeted = timeout_at(deadline.into(), channel.greet()).await;
        let greeted = greeted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        greeted.map_err(unreachable)?;
        Ok(channel)
    }

    /// Returns the channel that carries calls with streams: this one, or one in packets to the same peer.
    ///
    /// # Errors
    /// The program has established the connection, and it has datagrams.
    pub(super) fn for_streams(&self) -> Result<&Self, CallError> {
        if let Some(channel) = self.streams().get() {
            return Ok(channel);
        }
        let (own, address) = (self.shared().destination.as_ref(), self.address());
        let Some(destination) = Destination::for_streams(own, address)? else {
            return Ok(self);
        };
        Ok(self.streams().get_or_init(|| {
            let to = (address.clone(), Some(destination));
            Self::opened(to, self.options().clone(), None, None)
        }))
    }

    /// A channel that has such a connection, or none yet, with its driver.
    fn opened(
        (address, destination): (Address, Option<Destination>),
        options: ChannelOptions,
        connected: Option<(Arc<WatchedSocket>, Address)>,
        callbacks: Option<CallbackHost>,
    ) -> Self {
        let room = options.calls_max.min(Semaphore::MAX_PERMITS);
        let shared = SharedChannel::new(address, destination, options, callbacks);
        let shared = Arc::new(shared);
        let socket = connected.map(|(socket, located)| {
            let connected = Arc::clone(&socket);
            shared
                .lock()
                .handle_connected(connected, located, &shared.options);
            socket
        });
        erased::spawn(ChannelDriver::new(Arc::clone(&shared), socket).run());
        Self::of(shared, room)
    }

    /// Waits until a server of the packet exchange was heard: so what is no server is found out when a channel is made.
    async fn greet(&self) -> Result<(), io::Error> {
        {
            let mut state = self.shared().lock();
            let Calls::Datagram(calls) = &mut state.calls else {
                return Ok(());
            };
            calls.endpoint.greet(Instant::now());
            state.wake_driver();
            self.shared().wake(state);
        }
        poll_fn(|cx| {
            let mut state = self.shared().lock();
            let Calls::Datagram(calls) = &state.calls else {
                return Poll::Ready(Ok(()));
            };
            match (calls.endpoint.is_greeting(), &calls.fault) {
                (true, _) => {
                    state.greeters.push(cx.waker().clone());
                    Poll::Pending
                }
                (false, None) => Poll::Ready(Ok(())),
                (false, Some(fault)) => {
                    Poll::Ready(Err(io::Error::new(fault.kind(), Arc::clone(fault))))
                }
            }
        })
        .await
    }
}
