//! What all connections and ports of a server share.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tenon_proto::config::ConnectionConfig;

use super::counters::ServerTally;
use super::hosts::HostTable;
use super::limits::ServerLimits;
use super::log_limit::LogLimit;
use super::memory::MemoryBudget;
use super::procedure_times::ProcedureTimes;
use super::registry::{CallToServe, ServiceRegistry};
use super::running_handlers::RunningHandlers;

/// State that all connections and ports of a server share.
pub struct ServerShared {
    /// Its services.
    pub registry: ServiceRegistry,
    /// Its limits.
    pub limits: ServerLimits,
    /// Configuration of each connection.
    pub config: ConnectionConfig,
    /// Its counters.
    pub tally: Arc<ServerTally>,
    /// The memory for requests that have not arrived whole.
    pub memory: Arc<MemoryBudget>,
    /// Record of the procedures that take long.
    pub times: ProcedureTimes,
    /// The handlers that run on the threads which received their calls.
    pub handlers: RunningHandlers,
    /// The connections of each host.
    pub hosts: Arc<HostTable>,
    /// Rate limits of its log.
    pub logs: ServerLogs,
}

/// Rate limits of the events that are not logged each time that they happen.
#[derive(Debug, Default)]
pub struct ServerLogs {
    /// Too many connections.
    pub connections: LogLimit,
    /// Too many connections of one host.
    pub hosts: LogLimit,
    /// Too few descriptors.
    pub descriptors: LogLimit,
    /// Accepting fails.
    pub accept_failures: LogLimit,
    /// Calls wait too long for a thread.
    pub shed_calls: LogLimit,
    /// Handlers take too long.
    pub handler_timeouts: LogLimit,
}

impl ServerShared {
    /// Counts and logs a call that was given up as it waited too long for a thread.
    #[cold]
    pub(super) fn note_shed(&self, call: &CallToServe) {
        self.tally.calls_shed.up();
        if let Some(times) = self.logs.shed_calls.note(Instant::now()) {
            let procedure = self.registry.procedure_name(call.service, call.procedure);
            tracing::warn!(
                procedure,
                times,
                "no thread was free for a call within ServerLimits::queue_timeout"
            );
        }
    }

    /// Counts and logs a call with a handler that takes too long.
    #[cold]
    pub(super) fn note_handler_timeout(&self, call: &CallToServe) {
        self.tally.handler_timeouts.up();
        if let Some(times) = self.logs.handler_timeouts.note(Instant::now()) {
            let procedure = self.registry.procedure_name(call.service, call.procedure);
            tracing::warn!(
                procedure,
                times,
                "a handler takes longer than ServerLimits::handler_timeout"
            );
        }
    }

    /// The state of a server that offers these services.
    pub fn new(registry: ServiceRegistry, limits: ServerLimits, fragment_max: usize) -> Self {
        Self {
            config: limits.connection_config(fragment_max),
            memory: MemoryBudget::new(limits.receive_bytes),
            times: if limits.handler_timeout.is_some() {
                ProcedureTimes::always_elsewhere(registry.len())
            } else {
                ProcedureTimes::new(registry.len())
            },
            tally: Arc::default(),
            handlers: RunningHandlers::default(),
            hosts: HostTable::new(limits.connections_of_host),
            logs: ServerLogs::default(),
            registry,
            limits,
        }
    }
}

impl fmt::Debug for ServerShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerShared")
            .field("programs", &self.registry.programs())
            .finish_non_exhaustive()
    }
}
