//! Building a server: where it listens, what it serves, what it grants.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use tenon_net::{Address, AddressError, Carrier, Listener};
use tenon_proto::onc::duplicates::DuplicateLimits;
use tenon_proto::onc::record::FRAGMENT_MAX;
use tenon_wire::{DecodeMode, Limits};

use super::Server;
use super::core::Core;
use super::limits::ServerLimits;
use super::line::Lines;
use super::offer::Offer;
use super::parking::Parking;
use super::pool::{Guest, Pool};
use super::port::Port;
use super::services::{Execution, Services};
use super::watcher::{WAKE, Watcher};
use super::workers::Workers;
use crate::rpcbind::RpcbindError;
use crate::service::Service;
use crate::waiting::{Spinners, Waiter, Waiting};

/// A server that does not serve yet. [`Server::builder`] makes one.
pub struct ServerBuilder {
    addresses: Vec<Address>,
    services: Services,
    twice: Option<(u32, u32)>,
    limits: ServerLimits,
    duplicates: DuplicateLimits,
    fragment_max: usize,
    workers: usize,
    waiting: Waiting,
    users: Option<Vec<u32>>,
    is_registered: bool,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It has no address to listen at.
    #[error("the server listens nowhere: give it an address")]
    NoAddress,
    /// Two services have the same program and version.
    #[error("version {version} of program {program} is served twice")]
    Twice {
        /// The program's number.
        program: u32,
        /// The version's number.
        version: u32,
    },
    /// The memory of calls that came in datagrams has no room.
    #[error("the duplicate limits leave no room: entries and bytes must be over 0, not {0:?}")]
    DuplicateLimits(DuplicateLimits),
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {cause}")]
    Listen {
        /// The address as it was given.
        address: Address,
        /// What the system reported.
        cause: io::Error,
    },
    /// rpcbind does not register the services.
    #[error("cannot register with rpcbind: {0}")]
    Register(#[from] RpcbindError),
    /// The system has no poller or thread for the server.
    #[error("cannot start to serve: {0}")]
    System(#[from] io::Error),
}

impl ServerBuilder {
    pub(super) fn new() -> Self {
        Self {
            addresses: Vec::new(),
            services: Services::default(),
            twice: None,
            limits: ServerLimits::default(),
            duplicates: DuplicateLimits::default(),
            fragment_max: FRAGMENT_MAX,
            workers: thread::available_parallelism().map_or(2, NonZero::get),
            waiting: Waiting::default(),
            users: None,
            is_registered: false,
        }
    }

    /// Listens at `address` too: `tcp://host:port`, `udp://host:port`, `unix:///path` or
    /// `shm:///path`. Port 0 takes any free port; [`Server::addresses`] tells which.
    ///
    /// # Errors
    /// The text is not an address.
    pub fn listen(mut self, address: &str) -> Result<Self, AddressError> {
        self.addresses.push(address.parse()?);
        Ok(self)
    }

    /// Serves `service` too, on every address. Its handlers run on the thread that received the
    /// call, which is the fastest way for handlers that do not wait: nothing is copied and nobody
    /// is woken. Calls of one connection are executed one after the other, and so are all that come
    /// in datagrams to one address.
    #[must_use]
    pub fn service(self, service: impl Service) -> Self {
        self.add(service, Execution::Inline)
    }

    /// Serves `service` too; its handlers run on the [workers](Self::workers). For handlers that
    /// wait or take long: calls of one connection are executed at the same time, and their replies
    /// may overtake each other.
    #[must_use]
    pub fn service_on_workers(self, service: impl Service) -> Self {
        self.add(service, Execution::Workers)
    }

    fn add(mut self, service: impl Service, execution: Execution) -> Self {
        let (program, version) = (service.program(), service.version());
        if !self.services.add(Box::new(service), execution) {
            self.twice = Some((program, version));
        }
        self
    }

    /// Workers for the services that run on them; as many as there are processors unless this is
    /// called. At least one.
    #[must_use]
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count.max(1);
        self
    }

    /// How threads wait for the peers that they attend; [`Waiting::Adaptive`] unless this is
    /// called. However many there are, one fewer than there are processors look at the same time, but
    /// at least one; the others sleep.
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// Takes connections through Unix sockets, those that lead to shared memory among them, of
    /// processes of these users only, by their numbers. Who may otherwise connect is whoever may open
    /// the socket's file.
    #[must_use]
    pub fn users(mut self, users: impl IntoIterator<Item = u32>) -> Self {
        self.users = Some(users.into_iter().collect());
        self
    }

    /// What peers are granted.
    #[must_use]
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits.computable();
        self
    }

    /// How much is remembered of the calls that came in datagrams, so that repeated ones are
    /// executed once. Each UDP address has a memory of its own.
    /// [`start`](Self::start) refuses entries or bytes of 0.
    #[must_use]
    pub fn duplicate_limits(mut self, limits: DuplicateLimits) -> Self {
        self.duplicates = limits;
        self
    }

    /// How much is forgiven in arguments; [`DecodeMode::Lenient`] unless this is called.
    #[must_use]
    pub fn decode_mode(mut self, mode: DecodeMode) -> Self {
        self.services.mode = mode;
        self
    }

    /// What the arguments of one call may cost to decode.
    #[must_use]
    pub fn decode_limits(mut self, limits: Limits) -> Self {
        self.services.limits = limits;
        self
    }

    /// Cuts replies on streams into fragments of at most `bytes`, for peers that want them so; as
    /// few fragments as record marking allows unless this is called.
    #[must_use]
    pub fn fragment_max(mut self, bytes: usize) -> Self {
        self.fragment_max = bytes.clamp(1, FRAGMENT_MAX);
        self
    }

    /// Tells this host's rpcbind where the services are, and takes it back at the end, so that
    /// clients need no port (RFC 1833). Replaces what is registered for the same programs on the
    /// same transports. Not done unless this is called with `true`.
    #[must_use]
    pub fn register_with_rpcbind(mut self, is_registered: bool) -> Self {
        self.is_registered = is_registered;
        self
    }

    /// Listens and begins to serve, on threads of its own.
    ///
    /// # Errors
    /// [`StartError`]. Nothing listens then.
    pub fn start(self) -> Result<Server, StartError> {
        self.prepare()?.serve()
    }

    /// Listens, and serves nobody yet.
    ///
    /// # Errors
    /// [`StartError`]. Nothing listens then.
    #[doc(hidden)]
    pub fn prepare(self) -> Result<Prepared, StartError> {
        if let Some((program, version)) = self.twice {
            return Err(StartError::Twice { program, version });
        }
        if self.addresses.is_empty() {
            return Err(StartError::NoAddress);
        }
        if self.duplicates.entries == 0 || self.duplicates.bytes == 0 {
            return Err(StartError::DuplicateLimits(self.duplicates));
        }
        let mut places = Places::default();
        for address in &self.addresses {
            let failed = |cause| StartError::Listen {
                address: address.clone(),
                cause,
            };
            let users = self.users.as_deref();
            let ring_bytes = self.limits.ring_bytes;
            places.open(address, users, ring_bytes).map_err(failed)?;
        }
        Ok(Prepared {
            offer: Offer::new(self.services, self.limits, self.fragment_max),
            duplicates: self.duplicates,
            workers: self.workers,
            waiting: self.waiting,
            is_registered: self.is_registered,
            places,
        })
    }
}

/// A server that listens and does not serve yet.
pub struct Prepared {
    /// What it serves.
    pub offer: Offer,
    /// Where.
    pub places: Places,
    /// What it remembers of calls in datagrams.
    pub duplicates: DuplicateLimits,
    /// Workers for the services that run on them.
    pub workers: usize,
    /// How its threads wait for the peers that they attend.
    pub waiting: Waiting,
    /// Whether rpcbind is to be told.
    pub is_registered: bool,
}

impl Prepared {
    fn serve(self) -> Result<Server, StartError> {
        let (workers, is_registered) = (self.workers, self.is_registered);
        let workers = match self.offer.services.need_workers() {
            true => workers,
            false => 0,
        };
        let (core, addresses) = self.assemble()?;
        // From here on dropping the server ends what was begun.
        let server = Server::new(Arc::clone(&core), addresses);
        core.pool.start(&core)?;
        Workers::start(&core, workers)?;
        if is_registered {
            server.register()?;
        }
        Ok(server)
    }

    /// All of a server but its threads, and where it listens.
    pub(super) fn assemble(self) -> io::Result<(Arc<Core>, Vec<Address>)> {
        let (offer, places) = (self.offer, self.places);
        let first_id = places.listeners.len();
        let watcher = Watcher::new(places.listeners)?;
        let parking = Parking::new(watcher.registry(), first_id, WAKE)?;
        let mut ports = Vec::new();
        for carrier in places.carriers {
            let waiter = Waiter::new(self.waiting);
            let port = Port::new(
                parking.new_id(),
                carrier,
                self.duplicates,
                &offer.limits,
                waiter,
            );
            ports.push(Arc::downgrade(&port.socket));
            parking.park(Guest::Port(Box::new(port)))?;
        }
        let core = Arc::new(Core {
            lines: Lines::new(Arc::clone(&offer.tally)),
            parking,
            pool: Pool::new(watcher, offer.limits.threads),
            workers: Workers::new(&offer.limits),
            stopping: AtomicBool::new(false),
            waiting: self.waiting,
            spinners: Spinners::new(),
            ports,
            offer,
        });
        Ok((core, places.addresses))
    }
}

/// The sockets of a server that listen, and where they really are.
#[derive(Debug, Default)]
pub struct Places {
    /// TCP, Unix and shared memory.
    pub listeners: Vec<Listener>,
    /// What carries packets: UDP, by the kernel or past it.
    pub carriers: Vec<Carrier>,
    /// All of them, in the order in which they were given.
    pub addresses: Vec<Address>,
}

impl Places {
    fn open(
        &mut self,
        address: &Address,
        users: Option<&[u32]>,
        ring_bytes: usize,
    ) -> io::Result<()> {
        match address {
            Address::Udp(_) | Address::Xdp(_) => {
                let carrier = Carrier::bind(address)?;
                self.addresses.push(carrier.address()?);
                self.carriers.push(carrier);
            }
            Address::Tcp(_)
            | Address::Unix(_)
            | Address::LeanTcp(_)
            | Address::LeanUdp(_)
            | Address::LeanUnix(_)
            | Address::Shm(_) => {
                let mut listener = Listener::bind(address)?.with_rings_of(ring_bytes);
                if let Some(users) = users {
                    listener = listener.only_users(users);
                }
                self.addresses.push(listener.address().clone());
                self.listeners.push(listener);
            }
        }
        Ok(())
    }
}
