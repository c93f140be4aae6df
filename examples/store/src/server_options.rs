//! What the two servers share: their options, and what stands around the service.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use prometheus_client::registry::Registry;
use tenon::{CallScope, Layered, Middleware, Rejection, ServerLimits};
use tenon_middleware::{AccessLog, BearerCheck, Metrics, MetricsCollector, MetricsServer};
use tracing::Level;

use crate::objects::{FolderError, ObjectStore};
use crate::store::{STORE_PUT, STORE_REMOVE};

/// Options of a server.
#[derive(Debug, Args)]
pub struct ServerOptions {
    /// Folder of the objects
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Addresses to listen at: tcp://HOST:PORT, unix:///PATH, shm:///PATH; tcp://127.0.0.1:4731 by default
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,

    /// File with the tokens that may put and remove, one a line; without it everyone may
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Address at which Prometheus reads metrics, such as 127.0.0.1:9464
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,

    /// Write a line for each call to stderr
    #[arg(long)]
    access_log: bool,

    /// Most bytes of an object
    #[arg(long, default_value_t = 1 << 30, value_name = "BYTES")]
    size_max: u64,

    /// Events that are kept for watchers that are late
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    events: usize,

    /// Seconds that calls which have begun may still take after SIGTERM
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    drain: u64,
}

impl ServerOptions {
    /// Returns the addresses to listen at.
    pub fn addresses(&self) -> Vec<String> {
        if self.listen.is_empty() {
            vec!["tcp://127.0.0.1:4731".to_owned()]
        } else {
            self.listen.clone()
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// As [`ObjectStore::open`].
    pub fn open_store(&self) -> Result<Arc<ObjectStore>, FolderError> {
        ObjectStore::open(self.data.clone(), self.size_max, self.events)
    }

    /// Has warnings written to stderr, and what the access log has.
    pub fn init_log(&self) {
        let level = if self.access_log {
            Level::INFO
        } else {
            Level::WARN
        };
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(io::stderr)
            .init();
    }

    /// Puts the access log, metrics and the check of tokens around a service.
    ///
    /// # Errors
    /// The file of tokens cannot be read.
    pub fn around<S>(
        &self,
        service: S,
        metrics: &Arc<Metrics>,
    ) -> Result<Layered<S, impl Middleware + use<S>>, Box<dyn Error>> {
        let check = match &self.token_file {
            Some(path) => Some(ChangeCheck(BearerCheck::tokens(tokens_of(path)?))),
            None => None,
        };
        let service = Layered::new(service, AccessLog::new());
        Ok(service.with(Arc::clone(metrics)).with(check))
    }

    /// Serves the metrics until the value is dropped, if an address for them was given, and prints where.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub fn serve_metrics(&self, metrics: Arc<Metrics>) -> io::Result<Option<MetricsServer>> {
        let Some(address) = &self.metrics else {
            return Ok(None);
        };
        let mut registry = Registry::default();
        registry.register_collector(Box::new(MetricsCollector::new(metrics)));
        let server = MetricsServer::start(address, registry)?;
        println!("metrics at http://{}/metrics", server.address());
        Ok(Some(server))
    }

    /// Returns the time for calls that have begun when the server stops.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }
}

/// Returns the limits of the servers. Streams have no limit in size: the store checks that of an object.
pub fn limits() -> ServerLimits {
    ServerLimits {
        connections: 1000,
        connection_streams: 64,
        ..ServerLimits::default()
    }
}

/// Reads the tokens of a file, one a line.
///
/// # Errors
/// The file cannot be read, or has no token.
pub fn tokens_of(path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let tokens: Vec<String> = lines.map(str::to_owned).collect();
    if tokens.is_empty() {
        return Err(format!("no token in {}", path.display()).into());
    }
    Ok(tokens)
}

/// Lets calls that change something in if they carry a good token, and all others.
#[derive(Debug)]
struct ChangeCheck(BearerCheck);

impl Middleware for ChangeCheck {
    type State = ();

    fn begin(&self, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        if [STORE_PUT, STORE_REMOVE].contains(&call.procedure().number) {
            self.0.begin(call)
        } else {
            Ok(())
        }
    }
}
