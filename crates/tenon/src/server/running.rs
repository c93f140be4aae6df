//! A server that serves, and how it ends.

use std::fmt;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tenon_net::Address;
use tenon_proto::exchange::server::Farewell as ToClients;
use tenon_proto::lean::Reason as Farewell;

use super::builder::ServerBuilder;
use super::core::Core;
use super::counters::ServerCounters;
use super::hearing_out::Hearing;
use super::lock;
use super::port::Socket;
use crate::options::FOR_EVER;
use crate::rpcbind::{Registrar, RpcbindError};

/// How long calls may still run when a server is dropped.
const DRAIN_ON_DROP: Duration = Duration::from_secs(1);

/// How long threads have to leave when they are not executing calls.
const DEPARTURE: Duration = Duration::from_millis(500);

/// How often it is looked whether more has come of what becomes of the last answers.
const HEARING: Duration = Duration::from_millis(1);

/// A server for any number of programs and versions, over TCP, UDP and Unix sockets at once. It
/// serves on threads of its own until it is [shut down](Self::shutdown) or dropped; share it in an
/// [`Arc`] to stop it from another thread. It handles no signals: a program decides itself when.
///
/// A peer that calls again within a few milliseconds is answered without allocation, and with two
/// system calls per call beside those that [look](crate::Waiting) for it; a connection that is idle
/// costs no thread. What peers may cost is bounded
/// by [`ServerLimits`](crate::ServerLimits).
///
/// ```
/// use std::time::Duration;
///
/// use tenon::wire::{Decoder, Encoder};
/// use tenon::{CallInfo, Client, Refusal, Server, Service};
///
/// /// What generated code does for an interface: here one procedure that echoes.
/// struct Echo;
///
/// impl Service for Echo {
///     fn program(&self) -> u32 {
///         0x2000_0001
///     }
///
///     fn version(&self) -> u32 {
///         1
///     }
///
///     fn call(
///         &self,
///         call: &CallInfo<'_>,
///         arguments: &mut Decoder<'_>,
///         result: &mut Encoder<'_>,
///     ) -> Result<(), Refusal> {
///         match call.procedure {
///             1 => result.put(arguments.get::<u32>()?),
///             _ => return Err(Refusal::ProcedureUnavailable),
///         }
///         Ok(())
///     }
/// }
///
/// let server = Server::builder()
///     .listen("tcp://127.0.0.1:0")?
///     .listen("udp://127.0.0.1:0")?
///     .service(Echo)
///     .start()?;
/// for address in server.addresses() {
///     let client = Client::connect(&address.to_string(), 0x2000_0001, 1)?;
///     client.call(0, |_| Ok(()), |_| Ok(()))?;
/// }
/// assert_eq!(server.counters().pings, 2);
/// server.shutdown(Duration::from_secs(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    core: Arc<Core>,
    addresses: Vec<Address>,
    registrar: Mutex<Registrar>,
    phase: Mutex<Phase>,
    stopped: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    Stopping,
    Stopped,
}

impl Server {
    /// A server to be put together.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::new()
    }

    pub(super) fn new(core: Arc<Core>, addresses: Vec<Address>) -> Self {
        Self {
            core,
            addresses,
            registrar: Mutex::default(),
            phase: Mutex::new(Phase::Serving),
            stopped: Condvar::new(),
        }
    }

    /// Tells rpcbind where the services are, until the server ends.
    pub(super) fn register(&self) -> Result<(), RpcbindError> {
        let programs = self.core.services.programs();
        *lock(&self.registrar) = Registrar::register(&programs, &self.addresses)?;
        Ok(())
    }

    /// Where the server listens, with real ports, in the order in which the addresses were given.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// What the server has seen so far.
    pub fn counters(&self) -> ServerCounters {
        self.core.lines.counters()
    }

    /// Serves until somebody else has shut the server down.
    pub fn wait(&self) {
        let mut phase = lock(&self.phase);
        while *phase != Phase::Stopped {
            phase = self
                .stopped
                .wait(phase)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes back what rpcbind was told, stops listening and reading, lets the calls that were
    /// begun or wait for a worker be answered for as long as `drain`, and answers in packets arrive, closes every
    /// connection and returns when the threads have left. A handler that still runs then keeps its thread until it
    /// returns; its reply goes nowhere, unless it came in packets and is executed where it was received.
    /// When somebody else is at it already, waits for that.
    pub fn shutdown(&self, drain: Duration) {
        if !self.begin_stopping() {
            return self.wait();
        }
        drop(mem::take(&mut *lock(&self.registrar)));
        let ports: Vec<_> = self.core.open_ports().collect();
        self.stop_receiving();
        if !self.drain(&ports, Instant::now() + drain.min(FOR_EVER)) {
            self.abandon_calls();
            if !self.wait_for_threads(Instant::now() + DEPARTURE) {
                tracing::warn!("handlers still run behind a server that has stopped");
            }
        }
        for port in &ports {
            port.say_goodbye(&self.core, ToClients::ToAll);
        }
        *lock(&self.phase) = Phase::Stopped;
        self.stopped.notify_all();
    }

    /// Waits until all threads have left, and meanwhile hears out what becomes of answers in packets, which
    /// is waited for, too. Says whether the threads have left by `deadline`.
    fn drain(&self, ports: &[Arc<Socket>], deadline: Instant) -> bool {
        let mut hearings: Vec<_> = ports
            .iter()
            .map(|port| Hearing::new(Arc::clone(port), &self.core))
            .collect();
        loop {
            let until = match hearings.is_empty() {
                true => deadline,
                false => deadline.min(Instant::now() + HEARING),
            };
            let have_left = self.wait_for_threads(until);
            // Looked at behind that: a thread may have left an answer.
            let mut have_arrived = true;
            for hearing in &mut hearings {
                have_arrived &= hearing.hear(&self.core);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if have_left && have_arrived || left.is_zero() {
                return have_left;
            }
            if have_left {
                thread::sleep(HEARING.min(left));
            }
        }
    }

    fn begin_stopping(&self) -> bool {
        let mut phase = lock(&self.phase);
        let is_first = *phase == Phase::Serving;
        if is_first {
            *phase = Phase::Stopping;
        }
        is_first
    }

    /// Whoever executes nothing leaves.
    fn stop_receiving(&self) {
        let core = &self.core;
        core.stopping.store(true, Ordering::SeqCst);
        core.pool.close();
        core.parking.wake();
        core.workers.close();
        for mut guest in core.parking.close() {
            guest.say_goodbye(Farewell::STOPPING);
        }
        for line in core.lines.all() {
            line.stop_receiving();
        }
    }

    fn abandon_calls(&self) {
        self.core.workers.abandon();
        for line in self.core.lines.all() {
            line.hang_up();
        }
    }

    fn wait_for_threads(&self, deadline: Instant) -> bool {
        let core = &self.core;
        core.pool
            .wait_for_departure(|| core.workers.threads() == 0, deadline)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown(DRAIN_ON_DROP);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut server = f.debug_struct("Server");
        server.field("addresses", &self.addresses);
        server.finish_non_exhaustive()
    }
}
