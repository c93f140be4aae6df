//! What a client serves of calls back.

use std::fmt;

use tenon_net::Address;

use crate::error::ConnectError;
use crate::serve::ServiceRegistry;
use crate::service::Service;

/// The services that a client offers to the server which it connects to. The server calls them over the connection of the
/// client: a client behind a firewall can be reached so.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{Host, greeter::{GreeterV1Client, GreeterV1Service}, start_server};
/// # let (server, address) = start_server();
/// use tenon::{Callbacks, Channel, ChannelOptions};
///
/// let callbacks = Callbacks::new().service(GreeterV1Service(Host)).calls_max(4);
/// let address = format!("lean+{address}").parse()?;
/// let channel = Channel::connect_serving(&address, ChannelOptions::default(), callbacks)?;
/// GreeterV1Client::over(channel).ping()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Callbacks {
    registry: ServiceRegistry,
    calls_max: usize,
    /// The program and the version that two services have.
    twice: Option<(u32, u32)>,
}

impl Default for Callbacks {
    fn default() -> Self {
        Self::new()
    }
}

impl Callbacks {
    /// Offers no services so far.
    pub fn new() -> Self {
        Self {
            registry: ServiceRegistry::default(),
            calls_max: 16,
            twice: None,
        }
    }

    /// Offers a service. All have different programs or versions.
    #[must_use]
    pub fn service(mut self, service: impl Service + 'static) -> Self {
        self.add(Box::new(service));
        self
    }

    /// Adds a service; returns whether it has a number, as no other has its program and version.
    #[doc(hidden)]
    pub fn add(&mut self, service: Box<dyn Service>) -> bool {
        let names = (service.program(), service.version());
        let is_new = self.registry.add(service);
        if !is_new {
            self.twice = Some(names);
        }
        is_new
    }

    /// Sets how many calls of the server are carried out at the same time, each by a thread or a task. A lean server is
    /// told, and lets further calls wait. 16 by default, and at least 1. Calls that wait for calls of the other end, which
    /// wait for calls of this one, count as often.
    #[must_use]
    pub fn calls_max(self, calls_max: usize) -> Self {
        Self {
            calls_max: calls_max.max(1),
            ..self
        }
    }

    /// Returns the services of a channel to `address`, and how many calls are carried out at the same time.
    ///
    /// # Errors
    /// [`ConnectError::Callbacks`]: two services have the same program and version, or the address is one for datagrams.
    #[doc(hidden)]
    pub fn into_parts(self, address: &Address) -> Result<(ServiceRegistry, usize), ConnectError> {
        if address.is_datagram() {
            let reason = "datagrams carry none; connect to tcp://, unix:// or shm://".to_owned();
            return Err(ConnectError::Callbacks { reason });
        }
        match self.twice {
            None => Ok((self.registry, self.calls_max)),
            Some((program, version)) => Err(ConnectError::Callbacks {
                reason: format!("version {version} of program {program} is offered twice"),
            }),
        }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks")
            .field("programs", &self.registry.programs())
            .field("calls_max", &self.calls_max)
            .finish_non_exhaustive()
    }
}
