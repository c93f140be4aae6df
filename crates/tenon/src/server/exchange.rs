//! The packet exchange at a UDP port: lean calls in datagrams, beside those of ONC RPC.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use tenon_proto::exchange::server::{
    CallKey, Farewell, ServerCounters, ServerEngine, ServerLimits as ExchangeLimits, ServerSecrets,
};
use tenon_proto::exchange::{DATAGRAM_HERE, is_one_of_many};
use tenon_proto::lean::server::Call;
use tenon_wire::Buffer;

use super::core::Core;
use super::lean::{self, LeanJob};
use super::limits::ServerLimits;
use super::lock;
use super::port::{Socket, note};
use super::services::{Execution, Origin};
use super::workers::ReplyTo;
use crate::account;
use crate::trains::Trains;

/// What a UDP port has of the packet exchange. An attendant has it while a call is executed where it
/// was received; nobody else waits for it longer than a packet takes.
#[derive(Debug)]
pub(super) struct Exchange(Mutex<State>);

#[derive(Debug)]
struct State {
    engine: ServerEngine<SocketAddr>,
    trains: Trains<SocketAddr>,
}

impl Exchange {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        let preamble = lean::preamble(limits);
        let exchange_limits = ExchangeLimits {
            datagram_max_here: DATAGRAM_HERE,
            bytes: limits.receive_bytes,
            ..ExchangeLimits::default()
        };
        let engine = ServerEngine::new(preamble, exchange_limits, secrets(), Instant::now());
        let trains = Trains::default();
        Self(Mutex::new(State { engine, trains }))
    }

    /// When something is to be done even if nothing comes. An attendant that is at it looks itself.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.0.try_lock() {
            Ok(state) => state.engine.poll_timeout(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().engine.poll_timeout(),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// What nobody may foresee. The standard library's hashers have keys from the system's randomness.
fn secrets() -> ServerSecrets {
    let word = || RandomState::new().build_hasher().finish();
    let mut key = [0; 16];
    key[..8].copy_from_slice(&word().to_ne_bytes());
    key[8..].copy_from_slice(&word().to_ne_bytes());
    ServerSecrets {
        key,
        incarnation: word() as u32,
        seed: word(),
    }
}

impl Socket {
    /// Takes in a packet, and carries out the call that it makes whole. What there is to say is sent
    /// if it `is_alone`; of several that came together it [goes out](Self::send_exchange) at the end. `out` is
    /// empty.
    pub(super) fn take_packet(
        self: &Arc<Self>,
        core: &Core,
        packet: &[u8],
        is_alone: bool,
        peer: SocketAddr,
        out: &mut Buffer,
    ) {
        if is_one_of_many(packet) {
            self.carrier.expect_train(packet.len());
        }
        let mut state = lock(&self.exchange.0);
        let before = state.engine.counters();
        let catalog = core.services.catalog();
        let (engine, now) = (&mut state.engine, Instant::now());
        if engine.poll_timeout().is_some_and(|at| at <= now) {
            engine.handle_timeout(now);
        }
        if let Some(request) = engine.handle_datagram(now, peer, packet, catalog) {
            let (key, call) = (request.key, found(request.call));
            match request.is_null {
                true => lean::answer_stamped_null(call.caller, call.found_at, out),
                false => self.execute_packet(core, key, &call, peer, out),
            }
            if !out.is_empty() {
                if call.wants_stamps {
                    lean::stamp_replies(out);
                }
                state.engine.reply(key, out);
            }
        }
        count(core, before, state.engine.counters());
        if is_alone {
            self.send_packets(core, &mut state);
        }
    }

    /// Executes a call where it was received, or hands it to the workers.
    #[inline]
    fn execute_packet(
        self: &Arc<Self>,
        core: &Core,
        key: CallKey,
        call: &Call<'_>,
        peer: SocketAddr,
        out: &mut Buffer,
    ) {
        match core.services.lean_execution(call.service) {
            Execution::Inline => lean::execute_inline(call, core, self.origin(peer), out),
            Execution::Workers => {
                let job = LeanJob::received_now(call);
                let reply_to = ReplyTo::Exchange(Arc::clone(self), key, job, peer);
                let job = core.workers.job(call.arguments, reply_to);
                if core.workers.submit(job).is_some() {
                    lean::refuse_for_number(call.caller, core, out);
                }
            }
        }
    }

    /// Sends what there is to say.
    pub(super) fn send_exchange(&self, core: &Core) {
        self.send_packets(core, &mut lock(&self.exchange.0));
    }

    /// Executes a call that has waited, and sends its answer. `out` is empty.
    pub(super) fn answer_late(
        &self,
        core: &Core,
        key: CallKey,
        job: &LeanJob,
        arguments: &[u8],
        peer: SocketAddr,
        out: &mut Buffer,
    ) {
        lean::execute_known(core, None, self.origin(peer), job, arguments, out);
        if job.found_at.is_some() {
            lean::stamp_replies(out);
        }
        let mut state = lock(&self.exchange.0);
        state.engine.reply(key, out);
        self.send_packets(core, &mut state);
        drop(state);
        // Whoever watches may have to look at the port earlier than before.
        core.parking.wake();
    }

    /// Tells clients that the server stops, unless a call is still carried out where it was received.
    pub(super) fn say_goodbye(&self, core: &Core, to: Farewell) {
        let mut state = match self.exchange.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        state.engine.say_goodbye(to);
        self.send_packets(core, &mut state);
    }

    /// Does what is due by `now`.
    pub(super) fn look_at_time(&self, core: &Core, now: Instant) {
        let mut state = match self.exchange.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if state.engine.poll_timeout().is_some_and(|at| at <= now) {
            state.engine.handle_timeout(now);
            self.send_packets(core, &mut state);
        }
    }

    fn origin(&self, peer: SocketAddr) -> Origin {
        Origin {
            transport: self.carrier.transport(),
            peer: Some(peer),
        }
    }

    fn send_packets(&self, core: &Core, state: &mut MutexGuard<'_, State>) {
        let State { engine, trains } = &mut **state;
        // Calls are not told that nobody waits for them any more: their services would not hear it.
        while engine.poll_event().is_some() {}
        let mut poll = |packet: &mut Buffer| {
            // Nobody looks at the clock for nothing.
            let has_transmit = engine.has_transmit();
            has_transmit.then(|| engine.poll_transmit(Instant::now(), packet))?
        };
        while let Some((train, to)) = trains.next(&mut poll) {
            // What finds no room is lost, as it may be anywhere on its way.
            let sent = self.carrier.try_send_to(train, to).map(|_| ());
            note(core, sent, to);
        }
    }
}

/// A call that was found among what came.
#[inline]
fn found(call: Call<'_>) -> Call<'_> {
    match call.wants_stamps {
        false => call,
        true => Call {
            found_at: account::now(),
            ..call
        },
    }
}

fn count(core: &Core, before: ServerCounters, now: ServerCounters) {
    let tally = &core.tally;
    tally.add(tenon_proto::onc::server::ServerCounters {
        calls: now.calls - before.calls,
        pings: now.pings - before.pings,
        refusals: now.refusals - before.refusals,
        violations: 0,
    });
}
