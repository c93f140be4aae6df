//! The packet exchange at a UDP port: lean calls in datagrams, beside those of ONC RPC.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};
use std::time::Instant;

use tenon_net::Carrier;
use tenon_proto::exchange::server::{
    CallKey, Farewell, Request, ServerCounters, ServerEngine, ServerEvent,
    ServerLimits as ExchangeLimits, ServerSecrets,
};
use tenon_proto::exchange::{DATAGRAM_HERE, Whole, is_one_of_many};
use tenon_proto::lean::server::Call;
use tenon_wire::Buffer;

use super::core::Core;
use super::datagrams::note;
use super::lean::{self, LeanJob};
use super::limits::ServerLimits;
use super::lock;
use super::offer::Offer;
use super::port::Socket;
use super::services::{Execution, Origin};
use super::workers::ReplyTo;
use crate::account;
use crate::trains::Trains;

/// Bytes of memory that the largest request takes beside its message.
const BESIDE_MESSAGE: usize = 64 << 10;

/// What a UDP port has of the packet exchange.
#[derive(Debug)]
pub struct Exchange {
    engine: ServerEngine<SocketAddr>,
    trains: Trains<SocketAddr>,
    /// What was counted already of what the engine has seen.
    counted: ServerCounters,
}

impl Exchange {
    /// The exchange of a port that is opened now.
    pub fn new(limits: &ServerLimits) -> Self {
        let preamble = lean::preamble(limits);
        // One host leaves others half of it, unless a single message needs more.
        let of_host =
            (limits.receive_bytes / 2).max(preamble.message_max as usize + BESIDE_MESSAGE);
        let exchange_limits = ExchangeLimits {
            datagram_max_here: DATAGRAM_HERE,
            bytes_of_conversation: of_host,
            bytes_of_host: of_host,
            bytes: limits.receive_bytes,
            ..ExchangeLimits::default()
        };
        Self {
            engine: ServerEngine::new(preamble, exchange_limits, secrets(), Instant::now()),
            trains: Trains::default(),
            counted: ServerCounters::default(),
        }
    }

    /// Takes in a packet that came through `carrier`; the call, if that makes one whole, which is to be
    /// [carried out](carry_out). One of several packets is put together in `whole`.
    #[inline]
    fn take_in<'m>(
        &mut self,
        offer: &Offer,
        carrier: &Carrier,
        packet: &'m [u8],
        peer: SocketAddr,
        whole: &'m mut Whole,
    ) -> Option<Request<'m>> {
        if is_one_of_many(packet) {
            carrier.expect_train(packet.len());
        }
        let (catalog, now) = (offer.services.catalog(), Instant::now());
        self.look_at_time(now);
        let request = self
            .engine
            .handle_datagram_into(now, peer, packet, catalog, whole);
        if request.is_none() {
            self.count(offer);
        }
        request
    }

    /// Takes in a packet as [`take_in`](Self::take_in) does, and has its call executed while nobody else uses the
    /// exchange.
    pub fn take_in_and_carry_out(
        &mut self,
        offer: &Offer,
        carrier: &Carrier,
        packet: &[u8],
        peer: SocketAddr,
        (whole, out): (&mut Whole, &mut Buffer),
        execute: impl FnOnce(CallKey, &Call<'_>, &mut Buffer),
    ) {
        if let Some(request) = self.take_in(offer, carrier, packet, peer, whole) {
            let key = carry_out(request, out, execute);
            self.answer(offer, key, out);
        }
    }

    /// Answers a call that was [carried out](carry_out), unless it is answered later.
    #[inline]
    fn answer(&mut self, offer: &Offer, key: CallKey, out: &mut Buffer) {
        if !out.is_empty() {
            self.reply(key, out);
        }
        self.count(offer);
    }

    /// Counts what was taken in; a call when it was handed to its service.
    fn count(&mut self, offer: &Offer) {
        let (before, now) = (self.counted, self.engine.counters());
        self.counted = now;
        offer.tally.add(tenon_proto::onc::server::ServerCounters {
            calls: now.calls - before.calls,
            pings: now.pings - before.pings,
            refusals: now.refusals - before.refusals,
            violations: 0,
        });
    }

    /// Answers a call. An empty buffer is given back for the answer.
    pub fn reply(&mut self, key: CallKey, answer: &mut Buffer) {
        self.engine.reply(key, answer);
    }

    /// A call for which nobody waits any more. It is to be answered all the same, by anything.
    #[inline]
    pub fn next_cancelled(&mut self) -> Option<CallKey> {
        let ServerEvent::Cancelled(key) = self.engine.poll_event()?;
        Some(key)
    }

    /// Sends what there is to say.
    pub fn send(&mut self, offer: &Offer, carrier: &Carrier) {
        let Self { engine, trains, .. } = self;
        let mut poll = |packet: &mut Buffer| {
            // Nobody looks at the clock for nothing.
            let has_transmit = engine.has_transmit();
            has_transmit.then(|| engine.poll_transmit(Instant::now(), packet))?
        };
        while let Some((train, to)) = trains.next(&mut poll) {
            // What finds no room is lost, as it may be anywhere on its way.
            let sent = carrier.try_send_to(train, to).map(|_| ());
            note(offer, sent, to);
        }
    }

    /// When something is to be done even if nothing comes.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    /// When an answer may have to be sent again.
    #[inline]
    pub(super) fn next_repeat(&self) -> Option<Instant> {
        self.engine.next_repeat()
    }

    /// Does what is due by `now`; says whether anything was.
    #[inline]
    pub fn look_at_time(&mut self, now: Instant) -> bool {
        let is_due = self.next_timeout().is_some_and(|at| at <= now);
        if is_due {
            self.engine.handle_timeout(now);
        }
        is_due
    }

    /// Whether an answer is still to be sent, or one of several packets has not arrived and its client has not
    /// been silent for too long.
    pub fn has_unarrived(&self) -> bool {
        self.engine.has_unarrived()
    }

    /// Takes no calls any more, and has clients told that the server stops.
    pub fn say_goodbye(&mut self, to: Farewell) {
        self.engine.say_goodbye(to);
    }
}

/// Has a call executed: what is in `out` afterwards, which is empty before, [answers](Exchange::answer) it. If nothing
/// is, it is answered later.
#[inline]
fn carry_out(
    request: Request<'_>,
    out: &mut Buffer,
    execute: impl FnOnce(CallKey, &Call<'_>, &mut Buffer),
) -> CallKey {
    let (key, call) = (request.key, found(request.call));
    match request.is_null {
        true => lean::answer_stamped_null(call.caller, call.found_at, out),
        false => execute(key, &call, out),
    }
    if call.wants_stamps && !out.is_empty() {
        lean::stamp_replies(out);
    }
    key
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

/// While a call is executed where it was received, others may answer calls, but the exchange is its attendant's for all
/// else. Nobody waits for it longer than a packet takes.
impl Socket {
    /// When something is to be done even if nothing comes. None while a packet is taken in and its call executed:
    /// whoever is at it looks at the time with each packet.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.if_free(|exchange| exchange.next_timeout())?
    }

    /// Takes in a packet, and carries out the call that it makes whole. What there is to say is sent
    /// if it `is_alone`; of several that came together it [goes out](Self::send_exchange) at the end. `out` is
    /// empty.
    pub(super) fn take_packet(
        self: &Arc<Self>,
        core: &Core,
        packet: &[u8],
        is_alone: bool,
        peer: SocketAddr,
        (whole, out): (&mut Whole, &mut Buffer),
    ) {
        let mut exchange = lock(&self.exchange);
        if let Some(request) = exchange.take_in(core, &self.carrier, packet, peer, whole) {
            self.is_executing.store(true, Ordering::Relaxed);
            drop(exchange);
            let key = carry_out(request, out, |key, call, out| {
                self.execute_packet(core, key, call, peer, out);
            });
            exchange = lock(&self.exchange);
            self.is_executing.store(false, Ordering::Relaxed);
            exchange.answer(core, key, out);
        }
        if is_alone {
            self.send_packets(core, &mut exchange);
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
        self.send_packets(core, &mut lock(&self.exchange));
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
        let mut exchange = lock(&self.exchange);
        exchange.reply(key, out);
        self.send_packets(core, &mut exchange);
        drop(exchange);
        // Whoever watches may have to look at the port earlier than before.
        core.parking.wake();
    }

    /// Tells clients that the server stops, unless a call is still carried out where it was received.
    pub(super) fn say_goodbye(&self, core: &Core, to: Farewell) {
        self.if_free(|exchange| {
            exchange.say_goodbye(to);
            self.send_packets(core, exchange);
        });
    }

    /// Does what is due by `now`.
    pub(super) fn look_at_time(&self, core: &Core, now: Instant) {
        self.if_free(|exchange| {
            if exchange.look_at_time(now) {
                self.send_packets(core, exchange);
            }
        });
    }

    /// Does something with the exchange unless somebody is at it, or executes a call where it was received.
    pub(super) fn if_free<T>(&self, body: impl FnOnce(&mut Exchange) -> T) -> Option<T> {
        let mut exchange = match self.exchange.try_lock() {
            Ok(exchange) => exchange,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        match self.is_executing.load(Ordering::Relaxed) {
            true => None,
            false => Some(body(&mut exchange)),
        }
    }

    fn origin(&self, peer: SocketAddr) -> Origin {
        Origin {
            transport: self.carrier.transport(),
            peer: Some(peer),
        }
    }

    /// Sends what there is to say.
    pub(super) fn send_packets(&self, core: &Core, exchange: &mut Exchange) {
        // Calls are not told that nobody waits for them any more: their services would not hear it.
        while exchange.next_cancelled().is_some() {}
        exchange.send(core, &self.carrier);
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
