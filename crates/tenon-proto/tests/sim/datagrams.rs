//! Calls over datagrams: done at most once with the duplicate request cache, at least once without,
//! never late, never wrong.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::client::{ClientEngine, Retransmission, Timeout};
use tenon_proto::onc::duplicates::{CallKey, DuplicateCache, DuplicateLimits, Verdict};
use tenon_proto::onc::message::{CallTemplate, set_xid};
use tenon_proto::onc::record;
use tenon_proto::onc::server::{Programs, Received, Reply, ServerCounters};
use tenon_wire::Buffer;

use crate::common::Random;
use crate::network::{Datagram, End, Faults, Network};
use crate::{PROCEDURE, PROGRAM, VERSION};

const DEADLINE: Duration = Duration::from_secs(30);

const RETRANSMISSION: Retransmission = Retransmission {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(3),
};

/// Long enough for every retransmission and its delay, and large enough for every call.
const ROOMY: DuplicateLimits = DuplicateLimits {
    entries: 64,
    bytes: 4096,
    age: Duration::from_secs(60),
};

/// Calls made one after the other, by each of so many callers at once.
const CALLS: u64 = 12;
const CALLERS: u64 = 4;

/// What a caller waits for.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// The number of the call, which is its argument.
    number: u64,
    started: Instant,
}

/// How the calls of one simulation ended, by their number.
#[derive(Debug, Default)]
struct Outcome {
    /// Calls answered by a reply that nothing had happened to, and what it said.
    done: BTreeMap<u64, u64>,
    /// Calls answered by a reply that something had happened to.
    tainted: u64,
    expired: u64,
    /// How often every call was carried out.
    executions: HashMap<u64, u64>,
    retransmissions: u64,
}

struct Simulation {
    random: Random,
    now: Instant,
    network: Network,
    client: Client,
    server: Server,
}

struct Client {
    engine: ClientEngine<Waiting>,
    template: CallTemplate,
    /// What is sent again, by xid.
    calls: BTreeMap<u32, Buffer>,
    next_call: u64,
    outcome: Outcome,
}

struct Server {
    programs: Programs,
    cache: Option<DuplicateCache<u8>>,
    /// Calls that are being carried out, with the time they take.
    in_progress: Vec<(Instant, Execution)>,
    executions: HashMap<u64, u64>,
    counters: ServerCounters,
}

struct Execution {
    key: CallKey<u8>,
    xid: u32,
    number: u64,
    tainted: bool,
}

/// The argument of a call and the result of the same: the number of the call and its complement,
/// so that damage does not pass unseen.
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

impl Simulation {
    fn new(seed: u64, faults: Faults, cache: Option<DuplicateLimits>) -> Self {
        let mut random = Random(seed);
        let mut programs = Programs::default();
        programs.add(PROGRAM, VERSION);
        Self {
            now: Instant::now(),
            network: Network::new(faults),
            client: Client {
                engine: ClientEngine::datagram(random.word(), RETRANSMISSION),
                template: CallTemplate::new(PROGRAM, VERSION, &Credential::None),
                calls: BTreeMap::new(),
                next_call: 0,
                outcome: Outcome::default(),
            },
            server: Server {
                programs,
                cache: cache.map(DuplicateCache::new),
                in_progress: Vec::new(),
                executions: HashMap::new(),
                counters: ServerCounters::default(),
            },
            random,
        }
    }

    /// Lets time pass from event to event until every call has ended.
    fn run(mut self) -> Outcome {
        for _ in 0..CALLERS {
            self.start_call();
        }
        for _ in 0..100_000 {
            let Some(next) = self.next_event() else {
                let mut outcome = self.client.outcome;
                outcome.executions = self.server.executions;
                outcome.retransmissions = self.client.engine.counters().retransmissions;
                return outcome;
            };
            self.now = self.now.max(next);
            self.deliver();
            self.finish_executions();
            self.handle_timeouts();
            assert!(self.client.engine.in_flight() as u64 <= CALLERS);
        }
        panic!("the simulation does not end");
    }

    /// `None` once no call is in flight.
    fn next_event(&self) -> Option<Instant> {
        let client = &self.client;
        let timeouts = client
            .calls
            .keys()
            .filter_map(|&xid| client.engine.next_timeout(xid));
        let executions = self.server.in_progress.iter().map(|(at, _)| *at);
        let timeout = timeouts.min()?;
        let others = executions.chain(self.network.next_arrival());
        Some(others.fold(timeout, Instant::min))
    }

    fn start_call(&mut self) {
        if self.client.next_call == CALLS * CALLERS {
            return;
        }
        let number = self.client.next_call;
        self.client.next_call += 1;
        let waiting = Waiting {
            number,
            started: self.now,
        };
        let client = &mut self.client;
        let xid = client.engine.start(self.now, self.now + DEADLINE, waiting);
        let mut call = Buffer::default();
        client.template.begin(&mut call, PROCEDURE);
        set_xid(&mut call, xid);
        call.extend(&encode(number));
        client.calls.insert(xid, call);
        self.send_call(xid);
    }

    fn send_call(&mut self, xid: u32) {
        let bytes = record::message(&self.client.calls[&xid]).to_vec();
        self.send(End::Server, bytes, false);
    }

    fn send(&mut self, to: End, bytes: Vec<u8>, tainted: bool) {
        let datagram = Datagram { to, bytes, tainted };
        self.network.send(&mut self.random, self.now, datagram);
    }

    fn deliver(&mut self) {
        while let Some(datagram) = self.network.receive(self.now) {
            match datagram.to {
                End::Client => self.deliver_reply(&datagram),
                End::Server => self.deliver_call(&datagram),
            }
        }
    }

    fn deliver_reply(&mut self, datagram: &Datagram) {
        let received = self.client.engine.handle_reply(&datagram.bytes);
        let Some(answer) = received.expect("datagrams cannot break a connection") else {
            return;
        };
        let Waiting { number, started } = answer.waiter;
        assert!(self.now <= started + DEADLINE, "a reply after the deadline");
        let outcome = &mut self.client.outcome;
        if datagram.tainted {
            outcome.tainted += 1;
        } else {
            let results = answer.outcome.expect("every intact call is carried out");
            let said = decode(results).expect("an intact reply is well formed");
            assert_eq!(
                outcome.done.insert(number, said),
                None,
                "one answer per call"
            );
        }
        self.client.calls.remove(&answer.xid);
        self.start_call();
    }

    fn handle_timeouts(&mut self) {
        let xids: Vec<u32> = self.client.calls.keys().copied().collect();
        for xid in xids {
            match self.client.engine.handle_timeout(xid, self.now) {
                Some(Timeout::Retransmit(_)) => self.send_call(xid),
                Some(Timeout::Expired(waiting)) => {
                    assert_eq!(self.now, waiting.started + DEADLINE, "given up in time");
                    self.client.outcome.expired += 1;
                    self.client.calls.remove(&xid);
                    self.start_call();
                }
                Some(Timeout::Wait(_)) | None => {}
            }
        }
    }

    fn deliver_call(&mut self, datagram: &Datagram) {
        let server = &mut self.server;
        let received = server
            .programs
            .handle_message(&datagram.bytes, &mut server.counters);
        match received {
            Received::Call(call) => {
                let key = CallKey::new(0, &call);
                let number = decode(call.arguments);
                self.execute(key, call.xid, number, datagram.tainted);
            }
            Received::Ping(xid) => self.reply(xid, &[], datagram.tainted),
            Received::Refuse(xid, refused) => {
                assert!(datagram.tainted, "{refused}: an intact call is not refused");
                let mut reply = Buffer::default();
                Reply::begin(&mut reply, xid).refuse(&mut reply, refused);
                self.send(End::Client, record::message(&reply).to_vec(), true);
            }
            Received::Unanswerable(_) => {}
        }
    }

    fn execute(&mut self, key: CallKey<u8>, xid: u32, number: Option<u64>, tainted: bool) {
        let saved = match &mut self.server.cache {
            None => None,
            Some(cache) => match cache.check(key, self.now) {
                Verdict::New => None,
                Verdict::Done(reply) => Some(reply.to_vec()),
                Verdict::InProgress | Verdict::Full => return,
            },
        };
        if let Some(reply) = saved {
            return self.send(End::Client, reply, tainted);
        }
        // Damaged arguments are refused in life; here it is enough that they are not carried out.
        let number = number.unwrap_or(u64::MAX);
        *self.server.executions.entry(number).or_default() += 1;
        let takes = Duration::from_millis(self.random.below(500) as u64);
        let execution = Execution {
            key,
            xid,
            number,
            tainted,
        };
        self.server.in_progress.push((self.now + takes, execution));
    }

    fn finish_executions(&mut self) {
        let now = self.now;
        let finished = self.server.in_progress.extract_if(.., |(at, _)| *at <= now);
        for (_, execution) in finished.collect::<Vec<_>>() {
            let reply = reply(execution.xid, &encode(execution.number));
            if let Some(cache) = &mut self.server.cache {
                cache.finish(&execution.key, &reply, now);
                assert!(cache.len() <= ROOMY.entries);
            }
            self.send(End::Client, reply, execution.tainted);
        }
    }

    fn reply(&mut self, xid: u32, results: &[u8], tainted: bool) {
        self.send(End::Client, reply(xid, results), tainted);
    }
}

fn reply(xid: u32, results: &[u8]) -> Vec<u8> {
    let mut buffer = Buffer::default();
    Reply::begin(&mut buffer, xid);
    buffer.extend(results);
    record::message(&buffer).to_vec()
}

/// Faults of all kinds, the worse the further the seed is.
fn faults(seed: u64) -> Faults {
    let mut random = Random(!seed);
    Faults {
        loss: random.below(500) as u32,
        duplication: random.below(300) as u32,
        damage: random.below(200) as u32,
        unchecked: false,
        delay_ms: random.below(1500),
    }
}

/// Every call ended, and those that were done said what they had to say.
fn check_ends(seed: u64, outcome: &Outcome) {
    let ended = outcome.done.len() as u64 + outcome.tainted + outcome.expired;
    assert_eq!(ended, CALLS * CALLERS, "seed {seed}");
    for (number, said) in &outcome.done {
        assert_eq!(number, said, "seed {seed}: the answer to another call");
    }
}

#[test]
fn without_faults_every_call_is_done_and_nothing_sent_again() {
    for seed in 0..20 {
        let outcome = Simulation::new(seed, Faults::default(), Some(ROOMY)).run();
        check_ends(seed, &outcome);
        assert_eq!(outcome.expired, 0);
        assert!(outcome.executions.values().all(|&times| times == 1));
    }
}

#[test]
fn with_the_cache_a_call_that_is_done_was_carried_out_exactly_once_and_none_twice() {
    let (mut expired, mut retransmissions) = (0, 0);
    for seed in 0..1500 {
        let outcome = Simulation::new(seed, faults(seed), Some(ROOMY)).run();
        check_ends(seed, &outcome);
        for number in outcome.done.keys() {
            assert_eq!(outcome.executions[number], 1, "seed {seed}: call {number}");
        }
        assert!(
            outcome.executions.values().all(|&times| times == 1),
            "seed {seed}"
        );
        expired += outcome.expired;
        retransmissions += outcome.retransmissions;
    }
    assert!(
        expired > 0 && retransmissions > 10_000,
        "the network was too kind"
    );
}

#[test]
fn without_the_cache_a_call_that_is_done_was_carried_out_at_least_once() {
    let mut repeated = 0;
    for seed in 0..500 {
        let outcome = Simulation::new(seed, faults(seed), None).run();
        check_ends(seed, &outcome);
        for number in outcome.done.keys() {
            assert!(
                outcome.executions[number] >= 1,
                "seed {seed}: call {number}"
            );
        }
        repeated += outcome
            .executions
            .values()
            .filter(|&&times| times > 1)
            .count();
    }
    assert!(repeated > 0, "it is the cache that prevents this");
}

/// As if UDP had no checksum: damaged headers and arguments arrive. A damaged xid may then bring a
/// caller the answer to another call, which nothing in the protocol could tell; whatever no damage
/// has touched is right all the same.
#[test]
fn damage_that_arrives_neither_hangs_a_call_nor_touches_another() {
    let mut tainted = 0;
    for seed in 0..1000 {
        let faults = Faults {
            unchecked: true,
            ..faults(seed)
        };
        let outcome = Simulation::new(seed, faults, Some(ROOMY)).run();
        check_ends(seed, &outcome);
        tainted += outcome.tainted;
    }
    assert!(tainted > 0, "the network was too kind");
}

#[test]
fn with_nobody_there_every_call_ends_at_its_deadline() {
    let faults = Faults {
        loss: 1000,
        ..Faults::default()
    };
    let outcome = Simulation::new(1, faults, None).run();
    assert_eq!(outcome.expired, CALLS * CALLERS);
}
