//! A server that serves, and how it ends.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tenon_core::options::FOR_EVER;
use tenon_core::resolve::{Registered, Registrar};
use tenon_core::serve::{
    DEPARTURE, DRAIN_ON_DROP, ServerCounters, StartError, too_many_connections,
};
#[cfg(all(feature = "signal", unix))]
use tenon_core::serve::{EndSignals, EndSignalsHandle};
use tenon_net::{Address, Carrier, ConnectedSocket};
use tenon_proto::endpoint::exchange::server::CloseRecipients;

use super::lock;
use super::port::PortTurn;
use super::slot::{END_STREAMS, SlotSocket, SlotState, SocketSlot, port_of, stream_of};
use super::state::ServerState;
use super::thread::ThreadContext;
use super::turn;
use crate::established::EstablishedConnection;

/// Interval of looks at what has become of the last answers in packets.
const DRAIN_TICK: Duration = Duration::from_millis(1);

/// A server for any number of programs and versions, over TCP, UDP and Unix sockets at once. It
/// serves on threads of its own until it is [shut down](Self::shutdown) or dropped; share it in an
/// [`Arc`] to stop it from another thread. It handles no signals, unless a program asks for
/// [`serve_until_signal`](Self::serve_until_signal).
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
///         match call.procedure() {
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
///     client.onc().call(0, |_| Ok(()), |_| Ok(()))?;
/// }
/// assert_eq!(server.counters().pings, 2);
/// server.shutdown(Duration::from_secs(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    state: Arc<ServerState>,
    addresses: Vec<Address>,
    /// The registration of the services, at rpcbind for example.
    registered: Mutex<Option<Box<dyn Registered>>>,
    phase: Mutex<ServerPhase>,
    stopped: Condvar,
    /// Ends the wait for a signal.
    #[cfg(all(feature = "signal", unix))]
    signals: Mutex<Vec<EndSignalsHandle>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerPhase {
    Serving,
    Stopping,
    Stopped,
}

impl Server {
    pub(super) fn new(state: Arc<ServerState>, addresses: Vec<Address>) -> Self {
        Self {
            state,
            addresses,
            registered: Mutex::default(),
            phase: Mutex::new(ServerPhase::Serving),
            stopped: Condvar::new(),
            #[cfg(all(feature = "signal", unix))]
            signals: Mutex::default(),
        }
    }

    /// Has `registrar` tell others where the services are, until the server ends.
    pub(super) fn register(&self, registrar: &dyn Registrar) -> Result<(), StartError> {
        let programs = self.state.shared.registry.programs();
        let registered = registrar.register(&programs, &self.addresses);
        *lock(&self.registered) = Some(registered.map_err(StartError::Register)?);
        Ok(())
    }

    /// Returns the addresses at which the server listens, with real ports, in the order in which they were given.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Serves a connection that the program has established or accepted itself, as those that the server accepts:
    /// within its limits, and until it is shut down. What is called over other streams than sockets comes
    /// [from](crate::CallInfo::transport) an unnamed Unix socket; [users](crate::ServerBuilder::users) are not looked
    /// at, as the program knows where the connection comes from. Returns at once.
    ///
    /// # Errors
    /// `NotConnected` if the server is shut down; `ResourceBusy` if it has as many connections as it may;
    /// `InvalidInput` if the connection is no stream; the process has too many descriptors or threads.
    pub fn serve_stream(&self, connection: impl Into<EstablishedConnection>) -> io::Result<()> {
        let socket = connection.into().into_socket()?;
        let stream = ConnectedSocket::new(socket)?
            .0
            .into_stream()?
            .without_user();
        // A shutdown that begins meanwhile finds it.
        let phase = lock(&self.phase);
        if *phase != ServerPhase::Serving {
            let message = "the server is shut down";
            return Err(io::Error::new(io::ErrorKind::NotConnected, message));
        }
        if self.state.admit(stream) {
            Ok(())
        } else {
            Err(too_many_connections(&self.state.shared.limits))
        }
    }

    /// Returns the counters of the server so far.
    pub fn counters(&self) -> ServerCounters {
        self.state.counters()
    }

    /// Serves until another thread has shut the server down.
    pub fn wait(&self) {
        let mut phase = lock(&self.phase);
        while *phase != ServerPhase::Stopped {
            phase = self
                .stopped
                .wait(phase)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes back what was told of the services elsewhere, stops listening and reading, lets the calls that were begun
    /// or handed over be answered for as long as `drain`, and answers in packets arrive, closes every connection and
    /// returns when the threads have left. A peer is told which calls were not begun; by ONC RPC those that have
    /// arrived are carried out, too, and only clients of Tenon understand the close notice. Calls with streams that
    /// still run behind `drain` end with an error of the kind [`Stopping`](crate::CallErrorKind::Stopping) at their
    /// clients. Connections over TCP that were used lately are kept half-closed until their peers have ended them, for
    /// a fifth of a second at most. A handler that still runs then keeps its thread until it returns; its reply goes
    /// nowhere. If another thread is at it already, waits for that.
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example.rs")); }
    /// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
    /// # let (server, address) = start_server();
    /// use std::thread;
    /// use std::time::Duration;
    ///
    /// let greeter = GreeterV1Client::connect(&format!("lean+{address}"))?;
    /// greeter.ping()?;
    /// thread::scope(|scope| {
    ///     // Whatever is told that the program is to end, such as a thread that waits for SIGTERM, calls this.
    ///     scope.spawn(|| server.shutdown(Duration::from_secs(10)));
    ///     server.wait();
    /// });
    /// let error = greeter.greet(&Visitor::default()).unwrap_err();
    /// assert!(!error.may_have_executed(), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self, drain: Duration) {
        if !self.begin_stopping() {
            return self.wait();
        }
        drop(lock(&self.registered).take());
        self.state.stop();
        self.close_connections();
        if !self.drain(Instant::now() + drain.min(FOR_EVER)) {
            self.end_streaming_calls();
            self.abandon_calls();
            if !self
                .state
                .scheduler
                .wait_for_departure(Instant::now() + DEPARTURE)
            {
                tracing::warn!("handlers still run behind a server that has stopped");
            }
        }
        self.with_ports(|turn, place| {
            if let Some(port) = port_of(place) {
                turn.close(port, CloseRecipients::ToAll);
            }
        });
        self.end_connections();
        self.state.close_half_closed();
        *lock(&self.phase) = ServerPhase::Stopped;
        self.stopped.notify_all();
        #[cfg(all(feature = "signal", unix))]
        for handle in lock(&self.signals).drain(..) {
            handle.close();
        }
    }

    /// Serves until the process receives SIGTERM or SIGINT, or another thread shuts the server down. Then it
    /// [shuts down](Self::shutdown): services are unregistered, and calls have the time `drain` to be answered. Returns
    /// the number of the signal, if it was one. A second signal ends the process at once, as it would by default, and
    /// so does every one that comes after this has returned.
    ///
    /// Signals that arrive before this is called end the process; call it right behind
    /// [`start`](super::ServerBuilder::start).
    ///
    /// # Errors
    /// The signals cannot be caught. The server still serves then.
    #[cfg(all(feature = "signal", unix))]
    pub fn serve_until_signal(&self, drain: Duration) -> io::Result<Option<i32>> {
        let mut signals = EndSignals::catch()?;
        lock(&self.signals).push(signals.handle());
        if *lock(&self.phase) == ServerPhase::Stopped {
            return Ok(None);
        }
        let signal = signals.wait();
        if let Some(signal) = signal {
            tracing::info!(signal, "shutting down");
        }
        self.shutdown(drain);
        Ok(signal)
    }

    /// Ends the connections that are left, now that the threads have gone: one that its thread put back just when the
    /// server began to stop was not told yet.
    fn end_connections(&self) {
        let mut thread = ThreadContext::default();
        for (slot, state) in self.state.scheduler.take_ready() {
            if slot.stream().is_some() {
                turn::stop(&self.state, &slot, state, &mut thread);
            }
        }
        for slot in self.state.slots.all() {
            if slot.stream().is_some()
                && let Some(state) = slot.claim()
            {
                turn::stop(&self.state, &slot, state, &mut thread);
            }
            self.state.slots.remove(slot.id);
        }
    }

    fn begin_stopping(&self) -> bool {
        let mut phase = lock(&self.phase);
        let is_first = *phase == ServerPhase::Serving;
        if is_first {
            *phase = ServerPhase::Stopping;
        }
        is_first
    }

    /// Ends connections at which nothing is carried out; threads that wait for others wake up and do the same.
    fn close_connections(&self) {
        let mut thread = ThreadContext::default();
        for slot in self.state.slots.all() {
            slot.stop_receiving();
            if slot.stream().is_none() {
                continue;
            }
            let mut place = slot.claim();
            let receives = stream_of(&mut place).is_some_and(|state| state.served.receives_last());
            if let Some(state) = place {
                if receives && !self.state.scheduler.is_stepped() {
                    // A handler may run, which is not this thread's business.
                    self.state.scheduler.push_ready(&self.state, &slot, state);
                } else {
                    turn::serve(&self.state, &slot, state, &mut thread, false);
                }
            }
        }
        self.with_ports(|turn, place| {
            if let Some(port) = port_of(place) {
                turn.close(port, CloseRecipients::ToIdle);
            }
        });
    }

    /// Waits until all threads have left and answers in packets have arrived; returns whether the threads have left by
    /// `deadline`.
    fn drain(&self, deadline: Instant) -> bool {
        self.state.watchdog.close();
        loop {
            let has_ports = self.ports().next().is_some();
            let until = if has_ports {
                deadline.min(Instant::now() + DRAIN_TICK)
            } else {
                deadline
            };
            let have_left = self.state.scheduler.wait_for_departure(until);
            // Looked at behind that: a thread may have left an answer.
            let mut have_arrived = true;
            self.with_ports(|turn, place| {
                turn.run(place);
                have_arrived &= port_of(place).is_some_and(|port| !port.served.has_unarrived());
            });
            let left = deadline.saturating_duration_since(Instant::now());
            if have_left && have_arrived || left.is_zero() {
                return have_left;
            }
            if have_left {
                thread::sleep(DRAIN_TICK.min(left));
            }
        }
    }

    fn ports(&self) -> impl Iterator<Item = Arc<SocketSlot>> {
        let slots = self.state.slots.all().into_iter();
        slots.filter(|slot| slot.stream().is_none())
    }

    /// Does something with each port that no thread has.
    fn with_ports(&self, mut body: impl FnMut(&mut PortTurn<'_>, &mut Option<Box<SlotState>>)) {
        let mut thread = ThreadContext::default();
        for slot in self.ports() {
            let carrier: &Carrier = match &slot.socket {
                SlotSocket::Port(carrier) => carrier,
                SlotSocket::Stream(_) => continue,
            };
            let mut place = slot.claim();
            if place.is_none() {
                continue;
            }
            let mut turn = PortTurn {
                server: &self.state,
                slot: &slot,
                carrier,
                thread: &mut thread,
            };
            body(&mut turn, &mut place);
            if let Some(state) = place {
                slot.lend(state);
            }
        }
    }

    /// Answers the calls with streams that still run, and waits a moment until their connections have ended.
    fn end_streaming_calls(&self) {
        let mut thread = ThreadContext::default();
        for slot in self.state.slots.all() {
            if slot.has_had_streams()
                && let Some(state) = slot.signal(END_STREAMS)
            {
                turn::serve(&self.state, &slot, state, &mut thread, false);
            }
        }
        let scheduler = &self.state.scheduler;
        scheduler.wait_for_streams(Instant::now() + DEPARTURE);
    }

    fn abandon_calls(&self) {
        self.state.scheduler.abandon_jobs();
        let shared = &self.state.shared;
        for slot in self.state.slots.all() {
            slot.hang_up();
            shared.handlers.cancel_all(slot.id);
            if let Some(mut state) = slot.claim() {
                if let SlotState::Stream(stream) = &mut *state {
                    stream.served.cancel_all(shared);
                }
                slot.lend(state);
            }
        }
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
