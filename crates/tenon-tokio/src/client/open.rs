//! Opening a channel: the connection, and the task that looks after it.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use tenon_core::error::ConnectError;
use tenon_core::options::ChannelOptions;
use tenon_core::timer::CallTimer;
use tenon_net::Address;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::channel::{Channel, Shared};
use super::connect;
use super::driver::Driver;
use super::state::{Calls, ChannelState};

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
        if address.needs_port() {
            return Err(ConnectError::NoPort(address.clone()));
        }
        let deadline = CallTimer::start(options.connect_timeout).deadline();
        let unreachable = |error| ConnectError::unreachable(address, error);
        let mut state = ChannelState::new(address, &options);
        let mut connected = None;
        if !options.connect_lazily {
            let socket = connect::socket(address, deadline, options.liveness).await;
            let socket = socket.and_then(connect::watch).map_err(unreachable)?;
            state.handle_connected(Arc::clone(&socket), &options);
            connected = Some(socket);
        }
        let connects = connected.is_some();
        let room = options.calls_max.min(Semaphore::MAX_PERMITS);
        let shared = Arc::new(Shared::new(address.clone(), options, state));
        tokio::spawn(Driver::new(Arc::clone(&shared), connected).run());
        let channel = Self::over(shared, room);
        if !connects {
            return Ok(channel);
        }
        let greeted = timeout_at(deadline.into(), channel.greet()).await;
        let greeted = greeted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        greeted.map_err(unreachable)?;
        Ok(channel)
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
