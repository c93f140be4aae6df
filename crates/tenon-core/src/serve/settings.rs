//! The settings of a server before it starts, whichever driver runs it.

use std::io;

use tenon_net::{Address, AddressError, Carrier, Listener};
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tenon_proto::lean::{Preamble, RefusalReason};
use tenon_proto::onc::record::FRAGMENT_MAX;

use super::limits::ServerLimits;
use super::registry::ServiceRegistry;
use crate::built::check_server;
use crate::resolve::{Registrar, RegistrarList};
use crate::service::Service;
use crate::wait::Waiting;

/// Settings of a server before it starts.
pub struct ServerSettings {
    addresses: Vec<Address>,
    /// True if it may have no address, as the program hands it connections.
    pub may_lack_address: bool,
    /// Its services.
    pub registry: ServiceRegistry,
    twice: Option<(u32, u32)>,
    /// Limits that it sets for its peers.
    pub limits: ServerLimits,
    /// Limits of what it remembers of calls in datagrams.
    pub duplicates: DuplicateLimits,
    /// Bytes of the longest fragment of a reply.
    pub fragment_max: usize,
    /// Wait policy of its threads or tasks.
    pub waiting: Waiting,
    /// The users that may connect through Unix sockets with their processes; `None` if all may.
    pub users: Option<Vec<u32>>,
    /// The permissions of the files of Unix sockets; those that the umask leaves if there are none.
    pub socket_mode: Option<u32>,
    /// Registrars that are told where its services are, in their order, and in the same order when it ends.
    registrars: Vec<Box<dyn Registrar>>,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It has no address to listen at.
    #[error("no listen address configured; call ServerBuilder::listen, or no_listener")]
    NoAddress,
    /// Two services have the same program and version.
    #[error("version {version} of program {program} is registered twice")]
    Twice {
        /// The program's number.
        program: u32,
        /// The version's number.
        version: u32,
    },
    /// The memory of calls that came in datagrams has no room.
    #[error(
        "the duplicate limits leave no room: bytes must be {min} at least, not {found}",
        min = DuplicateLimits::BYTES_MIN,
        found = .0.bytes
    )]
    DuplicateLimits(DuplicateLimits),
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {cause}")]
    Listen {
        /// The address as it was given.
        address: Address,
        /// Error that the system reported.
        cause: io::Error,
    },
    /// It cannot be told where the services are.
    #[error("cannot register the services")]
    Register(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system has no poller or thread for the server.
    #[error("cannot start to serve: {0}")]
    System(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            may_lack_address: false,
            registry: ServiceRegistry::default(),
            twice: None,
            limits: ServerLimits::default(),
            duplicates: DuplicateLimits::default(),
            fragment_max: FRAGMENT_MAX,
            waiting: Waiting::default(),
            users: None,
            socket_mode: None,
            registrars: Vec::new(),
        }
    }
}

impl ServerSettings {
    /// Listens at `address`, too.
    ///
    /// # Errors
    /// The text is not an address.
    pub fn listen(&mut self, address: &str) -> Result<(), AddressError> {
        self.addresses.push(address.parse()?);
        Ok(())
    }

    /// Serves a service, too. That a version of a program is registered twice is said at the start.
    pub fn add(&mut self, service: Box<dyn Service>) {
        let (program, version) = (service.program(), service.version());
        if !self.registry.add(service) {
            self.twice = Some((program, version));
        }
    }

    /// Has a registrar told where the services are.
    pub fn register_with(&mut self, registrar: Box<dyn Registrar>) {
        self.registrars.push(registrar);
    }

    /// Has a registrar told before all others, above all when the server ends.
    pub fn register_first_with(&mut self, registrar: Box<dyn Registrar>) {
        self.registrars.insert(0, registrar);
    }

    /// Takes the registrars, as one, if there are any.
    pub fn take_registrar(&mut self) -> Option<Box<dyn Registrar>> {
        let registrars = std::mem::take(&mut self.registrars);
        (!registrars.is_empty()).then(|| Box::new(RegistrarList(registrars)) as Box<_>)
    }

    /// Notes that a version of a program is registered twice.
    pub fn note_twice(&mut self, program: u32, version: u32) {
        self.twice = Some((program, version));
    }

    /// Listens at all addresses.
    ///
    /// # Errors
    /// Something that was said makes no sense, or an address cannot be listened at. Nothing listens then.
    pub fn open(&self) -> Result<ListenSockets, StartError> {
        if let Some((program, version)) = self.twice {
            return Err(StartError::Twice { program, version });
        }
        if self.addresses.is_empty() && !self.may_lack_address {
            return Err(StartError::NoAddress);
        }
        if !self.duplicates.have_room() {
            return Err(StartError::DuplicateLimits(self.duplicates));
        }
        let mut sockets = ListenSockets::default();
        for address in &self.addresses {
            sockets
                .open(address, self)
                .map_err(|cause| StartError::Listen {
                    address: address.clone(),
                    cause,
                })?;
        }
        Ok(sockets)
    }
}

/// The sockets that a server listens at, and where they are.
#[derive(Debug, Default)]
pub struct ListenSockets {
    /// TCP, Unix and shared memory.
    pub listeners: Vec<Listener>,
    /// UDP, by the kernel or past it.
    pub carriers: Vec<Carrier>,
    /// All of them, with real ports, in the order in which they were given.
    pub addresses: Vec<Address>,
}

impl ListenSockets {
    fn open(&mut self, address: &Address, settings: &ServerSettings) -> io::Result<()> {
        check_server(address)?;
        if address.is_datagram() && !address.chooses_lean() {
            let carrier = Carrier::bind(address)?;
            self.addresses.push(carrier.address()?);
            self.carriers.push(carrier);
            return Ok(());
        }
        let listener = Listener::bind_with_mode(address, settings.socket_mode)?;
        let mut listener = listener.with_rings_of(settings.limits.ring_bytes);
        if let Some(users) = &settings.users {
            let told = Preamble::server(0, 0).refusing(RefusalReason::FORBIDDEN);
            listener = listener.only_users(users, &told.encode());
        }
        self.addresses.push(listener.address().clone());
        self.listeners.push(listener);
        Ok(())
    }
}

/// Gives a builder the settings that servers of all drivers have. It is a struct with a field `settings`, the
/// [`ServerSettings`].
#[doc(hidden)]
#[macro_export]
macro_rules! server_settings {
    () => {
        /// Listens at `address` too: `tcp://host:port`, `udp://host:port`, `unix:///path`, `shm:///path`,
        /// `xdp://host:port` or `onc+xdp://host:port`. Clients of the lean protocol call at any of them, those of ONC RPC
        /// not at `shm://` and `xdp://`. Port 0 takes any free port; [`Server::addresses`] tells which.
        ///
        /// # Errors
        /// The text is not an address.
        pub fn listen(mut self, address: &str) -> Result<Self, $crate::net::AddressError> {
            self.settings.listen(address)?;
            Ok(self)
        }

        /// Starts the server even if it listens at no address: it serves the connections that
        /// [`Server::serve_stream`] is given.
        #[must_use]
        pub fn no_listener(mut self) -> Self {
            self.settings.may_lack_address = true;
            self
        }

        /// Sets how the server waits for peers that are about to call again; [`Waiting::Adaptive`] by default.
        /// However many connections there are, one fewer thread than there are processors looks at the same time, but
        /// at least one; the others sleep.
        #[must_use]
        pub fn waiting(mut self, waiting: $crate::wait::Waiting) -> Self {
            self.settings.waiting = waiting;
            self
        }

        /// Takes connections through Unix sockets, those that lead to shared memory among them, of processes of these
        /// users only, by their numbers. By default all processes may connect that may open the socket's file.
        #[must_use]
        pub fn users(mut self, users: impl IntoIterator<Item = u32>) -> Self {
            self.settings.users = Some(users.into_iter().collect());
            self
        }

        /// Gives the files of `unix://` and `shm://` these permissions, such as `0o660`, whatever the umask is: a
        /// process that may write to the file may connect. It never has others, not even for a moment. By default they
        /// are what the umask leaves of `0o777`.
        #[must_use]
        pub fn socket_mode(mut self, mode: u32) -> Self {
            self.settings.socket_mode = Some(mode);
            self
        }

        /// Sets what peers are granted.
        #[must_use]
        pub fn limits(mut self, limits: $crate::serve::ServerLimits) -> Self {
            self.settings.limits = limits.computable();
            self
        }

        /// Sets how much is remembered of the calls that came in datagrams, so that repeated ones are executed once.
        /// Each address of `udp://` and `onc+xdp://` has a memory of its own, of 64 MiB by default. The start refuses
        /// fewer bytes than
        /// [`DuplicateLimits::BYTES_MIN`]($crate::proto::endpoint::duplicates::DuplicateLimits::BYTES_MIN).
        #[must_use]
        pub fn duplicate_limits(
            mut self,
            limits: $crate::proto::endpoint::duplicates::DuplicateLimits,
        ) -> Self {
            self.settings.duplicates = limits;
            self
        }

        /// Sets how much is forgiven in arguments; [`DecodeMode::Lenient`]($crate::wire::DecodeMode::Lenient) by
        /// default.
        #[must_use]
        pub fn decode_mode(mut self, mode: $crate::wire::DecodeMode) -> Self {
            self.settings.registry.mode = mode;
            self
        }

        /// Sets what the arguments of one call may cost to decode.
        #[must_use]
        pub fn decode_limits(mut self, limits: $crate::wire::Limits) -> Self {
            self.settings.registry.limits = limits;
            self
        }

        /// Cuts replies on streams into fragments of at most `bytes`, for peers that want them so; as
        /// few fragments as record marking allows by default.
        #[must_use]
        pub fn fragment_max(mut self, bytes: usize) -> Self {
            let longest = $crate::proto::onc::record::FRAGMENT_MAX;
            self.settings.fragment_max = bytes.clamp(1, longest);
            self
        }

        /// Has `registrar` tell others where the services are, until the server ends: `tenon::rpcbind::LocalRpcbind`
        /// tells the rpcbind of this host, so that clients need no port (RFC 1833). None is told by default, and several
        /// may be.
        #[must_use]
        pub fn register_with(
            mut self,
            registrar: impl $crate::resolve::Registrar + 'static,
        ) -> Self {
            self.settings.register_with(Box::new(registrar));
            self
        }
    };
}
