//! Clients of ONC RPC against a server, over a network that does what it likes: calls are carried out at most once with
//! the duplicate request cache, at least once without, and every call ends, in time and with its own answer. A seed
//! decides everything that happens, so that a failure is repeated by its seed; hours pass in microseconds.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{CallDraft, Caller, ReplyDraft, ServiceTable};
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tenon_proto::endpoint::{
    CallFailure, ClientEndpoint, DATAGRAM_SIZE_MAX, DatagramCallId, DatagramCallKey,
    Retransmission, ServerEndpoint,
};
use tenon_proto::exchange::ReassembledMessage;
use tenon_proto::exchange::server::{ServerLimits, ServerSecrets};
use tenon_proto::lean::Preamble;
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::Buffer;

use crate::common::{Random, ShownOnFailure, seeds};
use crate::exchange::support::{address, server_address};
use crate::network::{Datagram, Faults, Network};

const DEADLINE: Duration = Duration::from_secs(30);

const RETRANSMISSION: Retransmission = Retransmission {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(3),
};

/// Long enough for every retransmission and its delay, and large enough for every call.
const ROOMY: DuplicateLimits = DuplicateLimits {
    bytes: 16 << 10,
    age: Duration::from_secs(60),
    protected_calls: 128,
    protected_age: Duration::from_secs(60),
};

/// No reply is remembered for longer than a moment.
const FORGETFUL: DuplicateLimits = DuplicateLimits {
    age: Duration::ZERO,
    ..ROOMY
};

/// Room for fewer calls than a busy client makes while another one repeats one of its own.
const TIGHT: DuplicateLimits = DuplicateLimits {
    protected_calls: 24,
    ..ROOMY
};

/// Address of a client that has no engine, only calls without end.
const BUSY_PORT: u16 = 999;

/// Calls of each client, and how many of them it has in flight.
const CALLS: u64 = 24;
const IN_FLIGHT: usize = 3;
const CLIENTS: u64 = 2;

/// What happens in a run.
#[derive(Debug, Clone, Copy)]
struct Plan {
    faults: Faults,
    cache: DuplicateLimits,
    /// Milliseconds that a call takes at most.
    busy_ms: usize,
    /// Calls that the server has no room for, and that are given up, in times per thousand.
    drops: u32,
    cancels: u32,
    /// Calls of one more client, which has no losses, for each event.
    busy: u32,
}

impl Plan {
    /// Faults of all kinds but damage that arrives, and a server that remembers every call.
    fn of(seed: u64) -> Self {
        let mut random = Random(!seed);
        let faults = Faults {
            loss: random.below(600) as u32,
            duplication: random.below(300) as u32,
            delay_us: random.below(1_500_000),
            ..Faults::default()
        };
        Self {
            faults,
            cache: ROOMY,
            busy_ms: 500,
            drops: random.below(300) as u32,
            cancels: random.below(20) as u32,
            busy: 0,
        }
    }
}

/// What a client waits for.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// The number of the call among all calls, which is its argument.
    number: u64,
    id: Option<DatagramCallId>,
    started: Instant,
}

/// How the calls of one run ended, by their number.
#[derive(Debug, Default)]
struct Outcome {
    /// Calls answered by a reply to which nothing had happened, and what it said.
    done: BTreeMap<u64, u64>,
    /// Calls answered by a reply that was damaged, or answers damage.
    tainted: u64,
    expired: u64,
    cancelled: u64,
    /// How often every call was carried out.
    executions: HashMap<u64, u64>,
    retransmissions: u64,
    /// Calls of the busy client.
    busy: u32,
    /// Replies that made way, and those of them that were promised.
    evicted: u64,
    evicted_early: u64,
}

struct Client {
    endpoint: ClientEndpoint<u64>,
    address: SocketAddr,
    in_flight: BTreeMap<u64, Waiting>,
    started: u64,
}

/// A call that is being carried out.
struct Execution {
    key: DatagramCallKey<SocketAddr>,
    caller: Caller,
    number: u64,
    is_tainted: bool,
    until: Instant,
}

struct Simulation {
    plan: Plan,
    random: Random,
    now: Instant,
    network: Network,
    clients: Vec<Client>,
    server: ServerEndpoint<SocketAddr>,
    services: ServiceTable,
    running: Vec<Execution>,
    outcome: Outcome,
}

/// The argument of a call and the result of the same: the number of the call and its complement, so that damage is
/// noticed.
fn encode(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&(!number).to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<u64> {
    let number = u64::from_be_bytes(*bytes.first_chunk()?);
    (bytes == encode(number)).then_some(number)
}

fn whole() -> ReassembledMessage {
    ReassembledMessage::new(&Preamble::client(0))
}

impl Simulation {
    fn new(seed: u64, plan: Plan) -> Self {
        let mut random = Random(seed);
        let now = Instant::now();
        // Both clients number their calls alike.
        let first = random.word();
        let client = |index| Client {
            endpoint: ClientEndpoint::onc(first, RETRANSMISSION),
            address: address(2, 1000 + index as u16),
            in_flight: BTreeMap::new(),
            started: 0,
        };
        let mut services = ServiceTable::default();
        services.add(300, 1, None);
        let secrets = ServerSecrets {
            key: [1; 16],
            incarnation: 1,
            seed,
        };
        Self {
            plan,
            network: Network::new(plan.faults),
            clients: (0..CLIENTS).map(client).collect(),
            server: ServerEndpoint::new(
                &ConnectionConfig::server(),
                ServerLimits::default(),
                plan.cache,
                secrets,
                Some(DATAGRAM_SIZE_MAX),
                now,
            ),
            services,
            running: Vec::new(),
            outcome: Outcome::default(),
            now,
            random,
        }
    }

    /// Lets time pass from event to event until every call has ended.
    fn run(mut self) -> Outcome {
        for _ in 0..100_000 {
            (0..self.clients.len()).for_each(|index| self.start_calls(index));
            let Some(next) = self.next_event() else {
                let counters = self.clients.iter().map(|client| client.endpoint.counters());
                self.outcome.retransmissions = counters.map(|count| count.retransmissions).sum();
                let counters = self.server.counters();
                self.outcome.evicted = counters.replies_evicted;
                self.outcome.evicted_early = counters.replies_evicted_early;
                return self.outcome;
            };
            self.now = self.now.max(next);
            (0..self.plan.busy).for_each(|_| self.serve_busy());
            while let Some(datagram) = self.network.receive(self.now) {
                self.deliver(&datagram);
            }
            self.finish_executions();
            (0..self.clients.len()).for_each(|index| self.handle_timeout(index));
            self.give_up();
        }
        panic!("the simulation does not end");
    }

    /// `None` once no call is in flight.
    fn next_event(&self) -> Option<Instant> {
        let timeouts = self.clients.iter();
        let timeout = timeouts.filter_map(|client| client.endpoint.poll_timeout());
        let timeout = timeout.min()?;
        let executions = self.running.iter().map(|execution| execution.until);
        let others = executions.chain(self.network.next_arrival());
        Some(others.fold(timeout, Instant::min))
    }

    fn start_calls(&mut self, index: usize) {
        let client = &mut self.clients[index];
        while client.started < CALLS && client.in_flight.len() < IN_FLIGHT {
            let number = client.started * CLIENTS + index as u64;
            client.started += 1;
            let mut call = Buffer::default();
            CallTemplate::new(300, 1, &Credential::None).begin(&mut call, 7);
            call.extend(&encode(number));
            let deadline = self.now + DEADLINE;
            let id = client
                .endpoint
                .start_call(self.now, &CallDraft::Onc, &mut call, deadline, number)
                .unwrap();
            let waiting = Waiting {
                number,
                id: Some(id),
                started: self.now,
            };
            client.in_flight.insert(number, waiting);
        }
        self.transmit_of_client(index);
    }

    fn transmit_of_client(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let mut out = Buffer::default();
        while client.endpoint.poll_transmit(self.now, &mut out) {
            let datagram = Datagram {
                from: client.address,
                to: server_address(),
                bytes: out.as_slice().to_vec(),
                is_tainted: false,
            };
            self.network.send(&mut self.random, self.now, datagram);
            out.clear();
        }
    }

    /// Sends what the server has to say, all of which comes from something that was damaged or from nothing that was.
    fn transmit_of_server(&mut self, is_tainted: bool) {
        let mut out = Buffer::default();
        while let Some(to) = self.server.poll_transmit(self.now, &mut out) {
            let datagram = Datagram {
                from: server_address(),
                to,
                bytes: out.as_slice().to_vec(),
                is_tainted,
            };
            self.network.send(&mut self.random, self.now, datagram);
            out.clear();
        }
    }

    fn deliver(&mut self, datagram: &Datagram) {
        if datagram.to == server_address() {
            return self.serve(datagram);
        }
        let mut clients = self.clients.iter_mut();
        let client = clients
            .find(|client| client.address == datagram.to)
            .unwrap();
        let mut whole = whole();
        let answer = client
            .endpoint
            .handle_datagram(self.now, &datagram.bytes, &mut whole);
        let Some(answer) = answer else {
            return;
        };
        let waiting = client.in_flight.remove(&answer.waiter).unwrap();
        let is_late = self.now > waiting.started + DEADLINE;
        assert!(!is_late, "a reply behind the deadline");
        if datagram.is_tainted {
            self.outcome.tainted += 1;
            return;
        }
        let results = answer.outcome.expect("every intact call is carried out");
        let said = decode(results).expect("an intact reply is well formed");
        let before = self.outcome.done.insert(waiting.number, said);
        assert_eq!(before, None, "one answer to a call");
    }

    fn serve(&mut self, datagram: &Datagram) {
        let mut whole = whole();
        let received = self.server.handle_datagram(
            self.now,
            datagram.from,
            &datagram.bytes,
            &self.services,
            &mut whole,
        );
        if let Some(received) = received {
            if self.random.per_mille(self.plan.drops) {
                self.server.drop_call(received.key);
                return;
            }
            // Damaged arguments are refused by a service; here it is enough to know them.
            let number = decode(received.call.arguments).unwrap_or(u64::MAX);
            *self.outcome.executions.entry(number).or_default() += 1;
            let busy = self.random.below(self.plan.busy_ms + 1) as u64;
            self.running.push(Execution {
                key: received.key,
                caller: received.call.caller,
                number,
                is_tainted: datagram.is_tainted,
                until: self.now + Duration::from_millis(busy),
            });
        }
        self.transmit_of_server(datagram.is_tainted);
    }

    /// Carries out a call of the busy client, whose reply arrives.
    fn serve_busy(&mut self) {
        let from = address(2, BUSY_PORT);
        let xid = self.outcome.busy;
        self.outcome.busy += 1;
        let call: Vec<u8> = crate::common::words(&[xid, 0, 2, 300, 1, 7, 0, 0, 0, 0]);
        let mut whole = whole();
        let received =
            self.server
                .handle_datagram(self.now, from, &call, &self.services, &mut whole);
        let received = received.unwrap();
        let mut reply = Buffer::default();
        ReplyDraft::begin(&mut reply, received.call.caller).seal(&mut reply);
        let answered = self.server.answer(self.now, received.key, &mut reply);
        answered.unwrap();
        let mut out = Buffer::default();
        assert_eq!(self.server.poll_transmit(self.now, &mut out), Some(from));
    }

    fn finish_executions(&mut self) {
        let now = self.now;
        let finished = self.running.extract_if(.., |call| call.until <= now);
        for execution in finished.collect::<Vec<_>>() {
            let mut reply = Buffer::default();
            let draft = ReplyDraft::begin(&mut reply, execution.caller);
            reply.extend(&encode(execution.number));
            draft.seal(&mut reply);
            let answered = self.server.answer(now, execution.key, &mut reply);
            answered.unwrap();
            self.transmit_of_server(execution.is_tainted);
        }
    }

    fn handle_timeout(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.endpoint.handle_timeout(self.now);
        while let Some(failed) = client.endpoint.poll_failure() {
            assert_eq!(failed.failure, CallFailure::Expired);
            let waiting = client.in_flight.remove(&failed.waiter).unwrap();
            assert_eq!(self.now, waiting.started + DEADLINE, "given up in time");
            self.outcome.expired += 1;
        }
        self.transmit_of_client(index);
    }

    fn give_up(&mut self) {
        if !self.random.per_mille(self.plan.cancels) {
            return;
        }
        let index = self.random.below(self.clients.len());
        let client = &mut self.clients[index];
        if let Some((number, waiting)) = client.in_flight.pop_first() {
            let id = waiting.id.unwrap();
            assert_eq!(client.endpoint.cancel(id), Some(number));
            self.outcome.cancelled += 1;
        }
    }
}

/// Runs a plan, and checks that every call ended and that those that were done got what they asked for.
fn run(seed: u64, plan: Plan) -> Outcome {
    let _shown = ShownOnFailure((seed, plan));
    let outcome = Simulation::new(seed, plan).run();
    let done = outcome.done.len() as u64;
    let ended = done + outcome.tainted + outcome.expired + outcome.cancelled;
    assert_eq!(ended, CALLS * CLIENTS);
    for (number, said) in &outcome.done {
        assert_eq!(number, said, "the answer to another call");
        assert!(outcome.executions[number] >= 1, "call {number}");
    }
    outcome
}

#[test]
fn without_faults_every_call_is_carried_out_once_and_none_is_sent_again() {
    for seed in seeds(20) {
        let plan = Plan {
            faults: Faults::default(),
            cache: ROOMY,
            busy_ms: 90,
            drops: 0,
            cancels: 0,
            busy: 0,
        };
        let outcome = run(seed, plan);
        assert_eq!(outcome.done.len() as u64, CALLS * CLIENTS);
        assert!(outcome.executions.values().all(|&times| times == 1));
        assert_eq!(outcome.retransmissions, 0);
    }
}

#[test]
fn no_call_is_carried_out_twice_whatever_is_lost_doubled_and_reordered() {
    let mut total = Outcome::default();
    let mut done = 0;
    for seed in seeds(1000) {
        let outcome = run(seed, Plan::of(seed));
        assert!(outcome.executions.values().all(|&times| times == 1));
        total.expired += outcome.expired;
        total.cancelled += outcome.cancelled;
        total.retransmissions += outcome.retransmissions;
        done += outcome.done.len();
    }
    println!("{done} done, {total:?}");
    let was_bad = total.expired > 0 && total.cancelled > 0 && total.retransmissions > 10_000;
    assert!(was_bad && done > 10_000, "the network was too kind");
}

/// One client that is busy, and others whose replies get lost: what the busy one does is forgotten first.
#[test]
fn no_call_is_carried_out_twice_beside_a_busy_client() {
    let mut total = Outcome::default();
    for seed in seeds(100) {
        let plan = Plan {
            cache: TIGHT,
            busy: 20,
            ..Plan::of(seed)
        };
        let outcome = run(seed, plan);
        assert!(outcome.executions.values().all(|&times| times == 1));
        assert_eq!(outcome.evicted_early, 0, "seed {seed}");
        total.retransmissions += outcome.retransmissions;
        total.evicted += outcome.evicted;
        total.busy += outcome.busy;
    }
    println!("{total:?}");
    let was_bad = total.retransmissions > 1000 && total.evicted > u64::from(total.busy) / 2;
    assert!(was_bad, "the cache had room for all");
}

#[test]
fn a_server_that_remembers_no_replies_carries_calls_out_at_least_once() {
    let mut repeated = 0;
    for seed in seeds(300) {
        let plan = Plan {
            cache: FORGETFUL,
            ..Plan::of(seed)
        };
        let outcome = run(seed, plan);
        let executions = outcome.executions.values();
        repeated += executions.filter(|times| **times > 1).count();
    }
    assert!(repeated > 0, "the cache is what prevents this");
}

/// A damaged xid may bring a caller the answer to another call, which nothing in the protocol could tell; what no
/// damage has touched is right all the same.
#[test]
fn damage_that_arrives_neither_hangs_a_call_nor_touches_another() {
    let mut tainted = 0;
    for seed in seeds(500) {
        let mut plan = Plan::of(seed);
        plan.faults.damage = 1 + Random(seed).below(200) as u32;
        tainted += run(seed, plan).tainted;
    }
    assert!(tainted > 0, "the network was too kind");
}

#[test]
fn calls_to_a_server_that_does_not_answer_end_at_their_deadlines() {
    let mut plan = Plan {
        cancels: 0,
        ..Plan::of(1)
    };
    plan.faults.loss = 1000;
    assert_eq!(run(1, plan).expired, CALLS * CLIENTS);
}
