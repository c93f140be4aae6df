//! Health: whether a server serves, and each of its services, for load balancers, supervisors and containers. The
//! interface is `interfaces/health.x`; `tenon health` asks it.
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
//! # use example::{Host, greeter::GreeterV1Service};
//! use tenon::Server;
//! use tenon::health::{Health, HealthStatus, HealthV1Client};
//!
//! let health = Health::new();
//! let server = Server::builder()
//!     .listen("tcp://127.0.0.1:0")?
//!     .service(GreeterV1Service(Host))
//!     .health(&health)
//!     .start()?;
//!
//! let client = HealthV1Client::connect(&server.addresses()[0].to_string())?;
//! assert_eq!(client.check("")?, HealthStatus::Serving);
//! health.set("GREETER_V1", HealthStatus::NotServing);
//! assert_eq!(client.check("GREETER_V1")?, HealthStatus::NotServing);
//! assert_eq!(client.check("another")?, HealthStatus::Unknown);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod generated;
mod service;
mod statuses;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use tenon_core::resolve::{Registered, Registrar};
use tenon_core::service::Service;
use tenon_net::Address;

pub use generated::{
    HEALTH, HEALTH_V1, HealthEntry, HealthQuestion, HealthStatus, HealthV1, HealthV1Calls,
    HealthV1Client, HealthV1InProcess, HealthV1Service,
};

use service::HealthHandlers;
use statuses::HealthStatuses;

/// The health of a server and of its services, which have the names that the program gives them: by custom those of the
/// versions in their interfaces, such as `GREETER_V1`. The empty name stands for the server as a whole, which serves from
/// the begin. Clones are the same.
///
/// When its server shuts down, all of it turns to [`NotServing`](HealthStatus::NotServing) before anything else happens,
/// and callers that watch are told so; so a load balancer takes the server out while calls are still answered. A caller
/// that [follows](HealthV1Client::follow) a status is told so, and its stream ends with an error of the kind
/// [`Stopping`](crate::CallErrorKind::Stopping).
#[derive(Clone, Default)]
pub struct Health {
    statuses: Arc<HealthStatuses>,
}

impl Health {
    /// The server as a whole serves.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the status of a service, and tells those that watch it. [`Unknown`](HealthStatus::Unknown) forgets it. After
    /// a shutdown nothing serves any more, whatever is set.
    ///
    /// # Panics
    /// The name has more than 255 bytes, or there are more than 4,096 services.
    pub fn set(&self, service: &str, status: HealthStatus) {
        self.statuses.set(service, status);
    }

    /// Returns the status of a service; [`Unknown`](HealthStatus::Unknown) if none was set.
    pub fn get(&self, service: &str) -> HealthStatus {
        self.statuses.get(service.as_bytes())
    }

    /// Turns all to [`NotServing`](HealthStatus::NotServing), for good.
    pub fn stop(&self) {
        self.statuses.stop();
    }

    /// Returns the service that answers questions for the health. Builders of servers add it by their method `health`.
    pub fn service(&self) -> impl Service + use<> {
        HealthV1Service(HealthHandlers(Arc::clone(&self.statuses)))
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health")
            .field(&self.statuses.list())
            .finish()
    }
}

/// A server tells it when it ends, as it tells those that know where its services are.
#[doc(hidden)]
impl Registrar for Health {
    fn register(
        &self,
        _programs: &[(u32, u32)],
        _addresses: &[Address],
    ) -> Result<Box<dyn Registered>, Box<dyn Error + Send + Sync>> {
        Ok(Box::new(ServingHealth(self.clone())))
    }
}

/// The health of a server that serves.
#[derive(Debug)]
struct ServingHealth(Health);

impl Registered for ServingHealth {}

impl Drop for ServingHealth {
    fn drop(&mut self) {
        self.0.stop();
    }
}
