//! The server: TCP, Unix and UDP sockets, shared memory and what goes past the kernel at once, any number of services.
//!
//! What it decides about requests, limits and replies is what a synchronous server decides, by the same
//! parts ([`tenon::runtime`]). What differs is who executes: each connection has a [task](connection)
//! that receives, executes the calls of services that answer at once, and sends; calls of
//! [services that wait](service) have tasks of their own, which leave their answers with the
//! [mod@line] for the task of the connection to send together. So has each [port] at which packets come, which are
//! messages of ONC RPC or of the packet exchange.

mod alarm;
mod begin;
mod connection;
mod line;
mod outgoing;
mod port;
mod request;
mod service;
mod shared;
mod tasks;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenon::runtime::Registrar;
use tenon::{Address, ServerCounters, StartError};
use tenon_net::Listener;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking, yield_now};

use crate::watch::watch;
use line::lock;
use service::{Listed, Spawn};
use shared::{Handler, Shared};

pub use request::Request;
pub use service::{Answer, AsyncService, Call};

/// Connections taken in at a time; then other tasks have their turn, however many wait.
const ACCEPTS_MAX: usize = 32;

/// How long to wait after a failure to accept, for want of descriptors for example, before the
/// next attempt. The connections wait in the kernel.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How long what was begun is waited for behind a server that is dropped, as by a server of threads.
const DRAIN_ON_DROP: Duration = Duration::from_secs(1);

/// A server of tasks that does not serve yet: all that a [`tenon::ServerBuilder`] says, and services
/// whose procedures are asynchronous.
pub struct ServerBuilder {
    builder: tenon::ServerBuilder,
    services: Vec<Entry>,
}

/// A service of tasks: its program and version, and how it is executed.
struct Entry {
    program: u32,
    version: u32,
    handler: Handler,
}

impl From<tenon::ServerBuilder> for ServerBuilder {
    fn from(builder: tenon::ServerBuilder) -> Self {
        let services = Vec::new();
        Self { builder, services }
    }
}

impl ServerBuilder {
    /// Serves `service` too. Calls of one connection are carried out at the same time, and their
    /// replies may overtake each other.
    #[must_use]
    pub fn service(self, service: impl AsyncService) -> Self {
        self.add(service, false)
    }

    /// Serves `service` too. While a call is carried out, no further request of its connection is
    /// looked at, a cancellation neither. What comes in packets to one address is looked at, but of such services
    /// no further call is begun.
    #[must_use]
    pub fn service_in_order(self, service: impl AsyncService) -> Self {
        self.add(service, true)
    }

    fn add<S: AsyncService>(mut self, service: S, is_in_order: bool) -> Self {
        let service = Arc::new(service);
        let spawn: Arc<dyn Spawn> = Arc::<S>::clone(&service);
        self.services.push(Entry {
            program: service.program(),
            version: service.version(),
            handler: Handler::Task(spawn, is_in_order),
        });
        let builder = self.builder.service_on_workers(Listed(service));
        Self { builder, ..self }
    }

    /// Listens and begins to serve, by tasks of the present run time.
    ///
    /// # Errors
    /// [`StartError`]. Nothing listens then.
    ///
    /// # Panics
    /// Outside of a tokio run time with input, output and time.
    pub async fn start(self) -> Result<Server, StartError> {
        let prepared = self.builder.prepare()?;
        let services = &prepared.offer.services;
        let programs = services.programs();
        let mut handlers: Vec<_> = services.executions().map(Handler::of).collect();
        for entry in self.services {
            let known = (entry.program, entry.version);
            let number = programs.iter().position(|program| *program == known);
            if let Some(number) = number {
                handlers[number] = entry.handler;
            }
        }
        let addresses = prepared.places.addresses;
        let registrar = match prepared.is_registered {
            true => register(programs, addresses.clone()).await?,
            false => Registrar::default(),
        };
        let shared = Arc::new(Shared::new(prepared.offer, handlers));
        let mut listeners = Vec::new();
        for listener in prepared.places.listeners {
            listeners.push(watch(listener, Interest::READABLE)?);
        }
        let carriers = prepared.places.carriers.into_iter();
        let ports = carriers.map(|carrier| shared.open_port(carrier, prepared.duplicates));
        // Those that are open close again if another cannot be opened.
        for port in ports.collect::<io::Result<Vec<_>>>()? {
            tokio::spawn(port.serve());
        }
        let accept = |listener| tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Server {
            accepting: Mutex::new(listeners.into_iter().map(accept).collect()),
            shared,
            addresses,
            registrar: Mutex::new(Some(registrar)),
            runtime: Handle::current(),
        })
    }
}

async fn register(
    programs: Vec<(u32, u32)>,
    addresses: Vec<Address>,
) -> Result<Registrar, StartError> {
    let registered = spawn_blocking(move || Registrar::register(&programs, &addresses)).await;
    Ok(registered.map_err(io::Error::other)??)
}

/// Takes connections in for as long as the server serves.
async fn accept(listener: AsyncFd<Listener>, shared: Arc<Shared>) {
    let mut taken = 0;
    loop {
        if taken == ACCEPTS_MAX {
            taken = 0;
            yield_now().await;
        }
        let accepted = match listener.readable().await {
            Err(error) => Err(error),
            Ok(mut ready) => match listener.get_ref().try_accept() {
                Ok(None) => {
                    ready.clear_ready();
                    continue;
                }
                Ok(Some(stream)) => Ok(stream),
                Err(error) => Err(error),
            },
        };
        match accepted {
            Ok(stream) => {
                taken += 1;
                shared.admit(stream);
            }
            Err(error) => {
                shared.offer.tally.accept_failures.up();
                tracing::warn!(%error, "cannot accept a connection; trying again soon");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// A server for any number of programs and versions, over everything that a [`tenon::Server`] listens at, by tasks of
/// the run time in which it was started. It serves until it is [shut down](Self::shutdown) or dropped.
///
/// It serves what a [`tenon::ServerBuilder`] says: services that answer at once are executed by the
/// task of their connection or port, those that are
/// [served on workers](tenon::ServerBuilder::service_on_workers) by the threads that the run time has
/// for what blocks. Those that wait without blocking are an [`AsyncService`].
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
/// let builder = tenon::Server::builder().listen("tcp://127.0.0.1:0")?.service(Echo);
/// let server = Server::start(builder).await?;
/// let address = server.addresses()[0].to_string();
/// let client = Client::connect(&address, 0x2000_0001, 1).await?;
/// client.call(0, |_| Ok(()), |_| Ok(())).await?;
/// assert_eq!(server.counters().pings, 1);
/// server.shutdown(Duration::from_secs(5)).await;
/// # Ok(())
/// # })
/// # }
/// ```
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    accepting: Mutex<Vec<JoinHandle<()>>>,
    registrar: Mutex<Option<Registrar>>,
    runtime: Handle,
}

impl Server {
    /// Listens and begins to serve what `builder` says.
    ///
    /// # Errors
    /// [`StartError`]. Nothing listens then.
    ///
    /// # Panics
    /// As [`ServerBuilder::start`].
    pub async fn start(builder: tenon::ServerBuilder) -> Result<Self, StartError> {
        ServerBuilder::from(builder).start().await
    }

    /// Where the server listens, with real ports, in the order in which the addresses were given.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// What the server has seen so far.
    pub fn counters(&self) -> ServerCounters {
        self.shared.offer.tally.snapshot()
    }

    /// Takes back what rpcbind was told, stops listening and reading, lets the calls that were begun be
    /// answered for as long as `drain`, and returns when every connection and port is closed. A handler that
    /// still runs then runs on; its reply goes nowhere.
    pub async fn shutdown(&self, drain: Duration) {
        let registrar = lock(&self.registrar).take();
        // Whether that could be taken back is logged where it is done.
        let _ = spawn_blocking(move || drop(registrar)).await;
        // A connection that is still accepted ends at once.
        self.shared.stop();
        let accepting = std::mem::take(&mut *lock(&self.accepting));
        for task in accepting {
            task.abort();
            // It ends by being given up.
            let _ = task.await;
        }
        self.shared.drain(drain).await;
    }
}

impl Drop for Server {
    /// Stops as [`shutdown`](Self::shutdown) does, with a second for what was begun, and waits for nothing: a task
    /// of the run time does.
    fn drop(&mut self) {
        for task in lock(&self.accepting).drain(..) {
            task.abort();
        }
        self.shared.stop();
        let shared = Arc::clone(&self.shared);
        // A run time that has ended drops the task, as it has dropped all that was open.
        self.runtime
            .spawn(async move { shared.drain(DRAIN_ON_DROP).await });
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}
