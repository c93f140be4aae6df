//! Building a server: where it listens, what it serves, what it grants.

use std::io;
use std::sync::Arc;

use tenon::health::Health;
use tenon_core::resolve::{Registered, Registrar};
use tenon_core::serve::{ProcedureTimes, ServerSettings, ServerShared, StartError};
use tenon_core::service::Service;
use tenon_net::Address;
use tokio::io::Interest;

use super::Server;
use super::accept::Accepting;
use super::call::AsyncService;
use super::running::{BeginCall, CallHandler, ListedService};
use super::state::ServerState;
use crate::erased::{self, ErasedFuture};
use crate::watch::watch;

/// A server of tasks that does not serve yet. [`Server::builder`] makes one.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
/// # use example::{Host, greeter::{GreeterV1AsyncClient, GreeterV1AsyncService}};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tenon::ServerLimits;
/// use tenon_tokio::Server;
///
/// let limits = ServerLimits { connections: 200, ..ServerLimits::default() };
/// let server = Server::builder()
///     .listen("tcp://127.0.0.1:0")?
///     .limits(limits)
///     .service(GreeterV1AsyncService(Host))
///     .start()
///     .await?;
/// // Both protocols are spoken at every address.
/// let address = &server.addresses()[0];
/// for address in [address.to_string(), format!("lean+{address}")] {
///     GreeterV1AsyncClient::connect(&address).await?.ping().await?;
/// }
/// server.shutdown(Duration::from_secs(10)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct ServerBuilder {
    settings: ServerSettings,
    /// By the numbers of the services.
    handlers: Vec<CallHandler>,
}

impl Server {
    /// Returns a server to be put together.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }
}

impl ServerBuilder {
    tenon_core::server_settings!();

    /// Serves `service` too, on every address.
    #[must_use]
    pub fn service<S: AsyncService>(self, service: S) -> Self {
        let service = Arc::new(service);
        let handler: Arc<dyn BeginCall> = Arc::<S>::clone(&service);
        self.add(
            Box::new(ListedService(service)),
            CallHandler::Async(handler),
        )
    }

    /// Serves a service of functions too, on every address. One that is quick is called by the task of its connection;
    /// one that takes long, or of which that is not known yet, by a thread that may block.
    #[must_use]
    pub fn sync_service(self, service: impl Service) -> Self {
        self.add(Box::new(service), CallHandler::Sync)
    }

    /// Serves questions for the health, too, and turns it to not serving before anything else when the server shuts
    /// down.
    #[must_use]
    pub fn health(mut self, health: &Health) -> Self {
        self.settings.register_first_with(Box::new(health.clone()));
        self.sync_service(health.service())
    }

    fn add(mut self, service: Box<dyn Service>, handler: CallHandler) -> Self {
        let services = self.settings.registry.len();
        self.settings.add(service);
        // One that is registered twice is said at the start.
        if self.settings.registry.len() > services {
            self.handlers.push(handler);
        }
        self
    }

    /// Listens and begins to serve, by tasks of the present run time.
    ///
    /// # Errors
    /// [`StartError`]. Nothing listens then.
    ///
    /// # Panics
    /// Outside of a tokio run time with input, output and time.
    pub async fn start(self) -> Result<Server, StartError> {
        self.open().await
    }

    /// Starts it by code that programs do not compile anew.
    fn open(self) -> ErasedFuture<'static, Result<Server, StartError>> {
        Box::pin(self.open_all())
    }

    async fn open_all(mut self) -> Result<Server, StartError> {
        let sockets = self.settings.open()?;
        let programs = self.settings.registry.programs();
        let registered = match self.settings.take_registrar() {
            Some(registrar) => {
                Some(register(registrar, programs, sockets.addresses.clone()).await?)
            }
            None => None,
        };
        let ServerSettings {
            registry,
            limits,
            duplicates,
            fragment_max,
            waiting,
            ..
        } = self.settings;
        let mut shared = ServerShared::new(registry, limits, fragment_max);
        if shared.limits.handler_timeout.is_none() {
            shared.times = ProcedureTimes::cautious(shared.registry.len());
        }
        let state = Arc::new(ServerState::new(shared, self.handlers, waiting));
        let mut listeners = Vec::new();
        for listener in sockets.listeners {
            listeners.push(watch(listener, Interest::READABLE)?);
        }
        let carriers = sockets.carriers.into_iter();
        let ports = carriers.map(|carrier| state.open_port(carrier, duplicates));
        // Those that are open close again if another cannot be opened.
        for port in ports.collect::<io::Result<Vec<_>>>()? {
            erased::spawn(port.run());
        }
        let start = |listener| Accepting::start(listener, &state);
        let accepting = listeners.into_iter().map(start).collect();
        let expiring = erased::spawn(Arc::clone(&state).expire_calls()).abort_handle();
        let addresses = sockets.addresses;
        Ok(Server::new(
            state, addresses, accepting, expiring, registered,
        ))
    }
}

async fn register(
    registrar: Box<dyn Registrar>,
    programs: Vec<(u32, u32)>,
    addresses: Vec<Address>,
) -> Result<Box<dyn Registered>, StartError> {
    let registered = erased::blocking(move || registrar.register(&programs, &addresses)).await?;
    registered.map_err(StartError::Register)
}
