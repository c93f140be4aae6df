//! A server that serves, and how it ends.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
#[cfg(all(feature = "signal", unix))]
use std::{future::poll_fn, pin::pin, task::Poll};

use tenon_core::resolve::Registered;
#[cfg(all(feature = "signal", unix))]
use tenon_core::serve::SecondSignal;
use tenon_core::serve::{DRAIN_ON_DROP, ServerCounters, too_many_connections};
use tenon_net::{Address, ConnectedSocket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
#[cfg(all(feature = "signal", unix))]
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::accept::Accepting;
use super::state::ServerState;
use crate::erased::{self, ErasedFuture};
use crate::established::into_socket;

/// A server for any number of programs and versions, over everything that a [`tenon::Server`] listens at, by tasks of
/// the run time in which it was started. It serves until it is [shut down](Self::shutdown) or dropped.
///
/// Its services are [asynchronous](crate::AsyncService), or [functions](tenon::Service) that are called by the task of
/// their connection while they are quick, and by the threads that the run time has for what blocks otherwise.
///
/// ```
/// # use tenon::wire::{Decoder, Encoder};
/// # use tenon::{CallInfo, Refusal, Service};
/// use std::time::Duration;
/// use tenon_tokio::{Client, Server};
///
/// # struct Echo;
/// # impl Service for Echo {
/// #     fn program(&self) -> u32 {
/// #         0x2000_0001
/// #     }
/// #     fn version(&self) -> u32 {
/// #         1
/// #     }
/// #     fn call(
/// #         &self,
/// #         _call: &CallInfo<'_>,
/// #         arguments: &mut Decoder<'_>,
/// #         result: &mut Encoder<'_>,
/// #     ) -> Result<(), Refusal> {
/// #         Ok(result.put(arguments.get::<u32>()?))
/// #     }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let builder = Server::builder().listen("tcp://127.0.0.1:0")?;
/// let server = builder.sync_service(Echo).start().await?;
/// let address = server.addresses()[0].to_string();
/// let client = Client::connect(&address, 0x2000_0001, 1).await?;
/// client.onc().call(0, |_| Ok(()), |_| Ok(())).await?;
/// assert_eq!(server.counters().pings, 1);
/// server.shutdown(Duration::from_secs(5)).await;
/// # Ok(())
/// # })
/// # }
/// ```
pub struct Server {
    state: Arc<ServerState>,
    addresses: Vec<Address>,
    accepting: Mutex<Vec<Accepting>>,
    /// Gives up calls that take too long.
    expiring: AbortHandle,
    /// The registration of the services, at rpcbind for example.
    registered: Mutex<Option<Box<dyn Registered>>>,
    runtime: Handle,
    /// True once the server is shut down.
    stopped: watch::Sender<bool>,
}

impl Server {
    pub(super) fn new(
        state: Arc<ServerState>,
        addresses: Vec<Address>,
        accepting: Vec<Accepting>,
        expiring: AbortHandle,
        registered: Option<Box<dyn Registered>>,
    ) -> Self {
        Self {
            state,
            addresses,
            accepting: Mutex::new(accepting),
            expiring,
            registered: Mutex::new(registered),
            runtime: Handle::current(),
            stopped: watch::Sender::new(false),
        }
    }

    /// Returns the addresses at which the server listens, with real ports, in the order in which they were given.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Serves a connection that the program has established or accepted itself, as those that the server accepts: within
    /// its limits, and until it is shut down. Anything that bytes are read from and written to by tasks is one. A TCP or
    /// Unix socket of tokio is used as it is; for anything else a task relays the bytes through a pair of sockets, and
    /// calls come [from](tenon::CallInfo::transport) an unnamed Unix socket.
    /// [Users](crate::ServerBuilder::users) are not looked at, as the program knows where the connection comes from.
    ///
    /// # Errors
    /// `NotConnected` if the server is shut down; `ResourceBusy` if it has as many connections as it may; the process
    /// has too many descriptors.
    ///
    /// # Panics
    /// Outside of a tokio run time with input and output.
    pub fn serve_stream<S>(&self, stream: S) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let socket = into_socket(stream)?;
        let stream = ConnectedSocket::new(socket)?
            .0
            .into_stream()?
            .without_user();
        if self.state.is_stopping() {
            let message = "the server is shut down";
            return Err(io::Error::new(io::ErrorKind::NotConnected, message));
        }
        if self.state.admit(stream) {
            Ok(())
        } else {
            Err(too_many_connections(&self.state.shared.limits))
        }
    }

    /// Returns the counters of the server so far.
    pub fn counters(&self) -> ServerCounters {
        self.state.counters()
    }

    /// Takes back what was told of the services elsewhere, stops listening and reading, lets the calls that were begun
    /// be answered for as long as `drain`, and returns when every connection and port is closed. A peer is told which
    /// calls were not begun; by ONC RPC those that have arrived are carried out, too, and only clients of Tenon
    /// understand the close notice. Calls with streams that still run behind `drain` end with an error of the kind
    /// [`Stopping`](tenon::CallErrorKind::Stopping) at their clients. Connections over TCP that were used lately are
    /// kept half-closed until their peers have ended them, for a fifth of a second at most. A handler that still runs
    /// then runs on; its reply goes nowhere.
    pub async fn shutdown(&self, drain: Duration) {
        self.end(drain).await;
    }

    /// Shuts the server down by code that programs do not compile anew.
    fn end(&self, drain: Duration) -> ErasedFuture<'_, ()> {
        Box::pin(self.end_all(drain))
    }

    async fn end_all(&self, drain: Duration) {
        let registered = lock(&self.registered).take();
        if registered.is_some() {
            // Whether that could be taken back is logged where it is done.
            let _ = erased::spawn_blocking(move || drop(registered)).await;
        }
        // Before the connections are told, as their clients would come back at once.
        let accepting = std::mem::take(&mut *lock(&self.accepting));
        for accepting in accepting {
            accepting.end(&self.state).await;
        }
        self.state.stop();
        self.state.drain(drain).await;
        self.expiring.abort();
        self.stopped.send_replace(true);
    }

    /// Serves until the process receives SIGTERM or SIGINT, or another task shuts the server down. Then it
    /// [shuts down](Self::shutdown): services are unregistered, and calls have the time `drain` to be answered. Returns
    /// the number of the signal, if it was one. A second signal ends the process at once, as it would by default, and so
    /// does every one that comes after this has returned.
    ///
    /// Signals that arrive before this is called end the process; call it right behind
    /// [`start`](super::ServerBuilder::start).
    ///
    /// # Errors
    /// The signals cannot be caught. The server still serves then.
    #[cfg(all(feature = "signal", unix))]
    pub async fn serve_until_signal(&self, drain: Duration) -> io::Result<Option<i32>> {
        let [terminate, interrupt] = [SignalKind::terminate(), SignalKind::interrupt()];
        let mut signals = [
            (signal(terminate)?, terminate),
            (signal(interrupt)?, interrupt),
        ];
        let _second = SecondSignal::arm()?;
        let mut stopped = self.stopped.subscribe();
        let mut stopped = pin!(stopped.wait_for(|is_stopped| *is_stopped));
        let signal = poll_fn(|cx| {
            for (signal, kind) in &mut signals {
                if signal.poll_recv(cx).is_ready() {
                    return Poll::Ready(Some(kind.as_raw_value()));
                }
            }
            stopped.as_mut().poll(cx).map(|_| None)
        })
        .await;
        if let Some(signal) = signal {
            tracing::info!(signal, "shutting down");
            self.shutdown(drain).await;
        }
        Ok(signal)
    }
}

impl Drop for Server {
    /// Stops as [`shutdown`](Self::shutdown) does, with a second for what was begun, and waits for nothing: a task
    /// of the run time does.
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        for accepting in lock(&self.accepting).drain(..) {
            accepting.abandon(&self.state);
        }
        self.state.stop();
        let (state, expiring) = (Arc::clone(&self.state), self.expiring.clone());
        // A run time that has ended drops the task, as it has dropped all that was open.
        erased::spawn(async move {
            state.drain(DRAIN_ON_DROP).await;
            expiring.abort();
        });
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
