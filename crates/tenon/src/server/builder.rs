//! Building a server: where it listens, what it serves, what it grants.

use std::sync::Arc;
use std::time::Instant;

use tenon_core::serve::{ServerSettings, ServerShared, StartError};
use tenon_core::service::Service;
use tenon_net::{Address, Poller};

use super::Server;
use super::call_room::CallAdmission;
use super::poll_duty::PollDuty;
use super::port_state::PortState;
use super::slot::{SlotSocket, SlotState};
use super::slot_table::SlotTable;
use super::state::ServerState;
use super::tasks::Scheduler;
use crate::health::Health;

/// A server that does not serve yet. [`Server::builder`] makes one.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
/// # use example::{Host, greeter::{GreeterV1Client, GreeterV1Service}};
/// use tenon::{Server, Waiting};
///
/// let server = Server::builder()
///     .listen("tcp://127.0.0.1:0")?
///     .listen("udp://127.0.0.1:0")?
///     .waiting(Waiting::Block)
///     .service(GreeterV1Service(Host))
///     .start()?;
/// for address in server.addresses() {
///     // Both protocols are spoken at every address.
///     for address in [address.to_string(), format!("lean+{address}")] {
///         GreeterV1Client::connect(&address)?.ping()?;
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct ServerBuilder {
    pub(super) settings: ServerSettings,
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
    ///
    /// A handler runs on the thread that received its call, so that a quick one costs no hand-over. Calls of others
    /// do not wait for it: if it takes longer than half a millisecond, another thread goes on with the connection or
    /// port, and a procedure that was slow twice is handed to another thread at once. So calls of one connection may
    /// be carried out at the same time, and their replies may overtake each other, unless the service
    /// [keeps order](Service::keeps_order).
    #[must_use]
    pub fn service(mut self, service: impl Service) -> Self {
        self.settings.add(Box::new(service));
        self
    }

    /// Serves questions for the health, too, and turns it to not serving before anything else when the server shuts
    /// down.
    #[must_use]
    pub fn health(mut self, health: &Health) -> Self {
        self.settings.register_first_with(Box::new(health.clone()));
        self.service(health.service())
    }

    /// Listens and begins to serve, on threads of its own.
    ///
    /// # Errors
    /// [`StartError`]. Nothing listens then.
    pub fn start(mut self) -> Result<Server, StartError> {
        let registrar = self.settings.take_registrar();
        let (state, poll, addresses) = self.assemble()?;
        // From here on dropping the server ends what was begun.
        let server = Server::new(Arc::clone(&state), addresses);
        state.scheduler.start(&state, poll)?;
        if let Some(registrar) = registrar {
            server.register(&*registrar)?;
        }
        Ok(server)
    }

    /// Returns all of a server but its threads, and where it listens.
    pub(super) fn assemble(self) -> Result<(Arc<ServerState>, PollDuty, Vec<Address>), StartError> {
        let sockets = self.settings.open()?;
        let ServerSettings {
            registry,
            limits,
            duplicates,
            fragment_max,
            waiting,
            ..
        } = self.settings;
        let first_id = sockets.listeners.len();
        let poller = Poller::new()?;
        let room = CallAdmission::new(limits.calls, limits.call_bytes);
        let scheduler = Scheduler::new(limits.threads, room);
        let shared = ServerShared::new(registry, limits, fragment_max);
        let slots = SlotTable::new(first_id, &shared.tally);
        let wakes = (poller.registry()?, poller.waker()?);
        let state = Arc::new(ServerState::new(shared, slots, scheduler, wakes, waiting));
        for carrier in sockets.carriers {
            let port = PortState::new(&state.shared, waiting, &carrier, duplicates);
            debug_assert!(
                port.served
                    .next_timeout()
                    .is_none_or(|at| at > Instant::now())
            );
            if let Ok(slot) = state.slots.add(SlotSocket::Port(carrier), usize::MAX) {
                state.register(&slot, Box::new(SlotState::Port(port)));
            }
        }
        let poll = PollDuty::new(poller, sockets.listeners)?;
        Ok((state, poll, sockets.addresses))
    }
}
