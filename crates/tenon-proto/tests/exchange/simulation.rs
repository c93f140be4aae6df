//! Clients and a server that is restarted now and then, over a network that does what it likes. A
//! seed decides everything that happens, so that a failure is repeated by its seed.
//!
//! `TENON_SIMULATION_SEEDS` says how many seeds each test has, and `TENON_SIMULATION_FIRST` which is the first.
//! The longest runs so far are of 2026-11-22, not optimised: 5000 seeds of small calls, a million packets, and 5000 of
//! restarted servers, two million packets, in a minute and a half; 828 of a server with little room.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon_proto::exchange::client::{CallId, ClientEngine, ClientEvent, ClientLimits};
use tenon_proto::exchange::server::{CallKey, ServerEngine, ServerEvent, ServerLimits};
use tenon_proto::exchange::{Failure, Ignored, Reason};
use tenon_proto::lean::client::{NotStarted, ReplyError};
use tenon_proto::lean::server::{Caller, Catalog, Reply};
use tenon_proto::lean::{ByteOrder, Status};
use tenon_wire::Buffer;

use crate::common::Random;
use crate::network::{Datagram, Faults, Network};
use crate::support::{
    ORDERS, address, catalog, client_of, known, message, outgoing, server_address, server_of,
};

/// What happens in a run.
#[derive(Debug, Clone, Copy)]
struct Plan {
    seed: u64,
    faults: Faults,
    clients: usize,
    calls: usize,
    /// Calls in flight, at most.
    in_flight: usize,
    /// Bytes of arguments and results, at most; most are much smaller.
    bytes_max: usize,
    /// So many arguments and results are small, and one is not.
    one_large_in: usize,
    /// The server is restarted so many times in a thousand steps.
    restarts: u32,
    /// A client has another address so many times in a thousand steps.
    moves: u32,
    /// A call is given up so many times in a thousand steps.
    cancels: u32,
    deadline_s: usize,
    /// Bytes of requests and answers that the server keeps of all conversations, and three quarters as many of one.
    room: usize,
}

/// Room that is never full.
const PLENTY: usize = 40 << 20;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    Refused(Status),
    Failed(Failure),
    Cancelled,
}

struct Call {
    client: usize,
    id: Option<CallId>,
    deadline: Instant,
    answer_bytes: usize,
    seed: u64,
    executed: u32,
    fate: Option<Fate>,
}

struct Running {
    key: CallKey,
    caller: Caller,
    call: usize,
    until: Instant,
}

struct Client {
    engine: ClientEngine<usize>,
    order: ByteOrder,
    address: SocketAddr,
}

struct World {
    plan: Plan,
    random: Random,
    now: Instant,
    network: Network,
    clients: Vec<Client>,
    server: ServerEngine<SocketAddr>,
    limits: ServerLimits,
    incarnation: u32,
    catalog: Catalog,
    running: Vec<Running>,
    calls: Vec<Call>,
    datagram: Buffer,
}

/// What a call of this seed carries beside its number: the other end knows it, too.
fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let words = std::iter::repeat_with(|| random.next().to_be_bytes());
    words
        .take(bytes.div_ceil(8))
        .flatten()
        .take(bytes)
        .collect()
}

impl World {
    fn new(plan: Plan) -> Self {
        let mut random = Random(plan.seed);
        let now = Instant::now();
        let limits = ServerLimits {
            conversations: 40,
            bytes_of_conversation: plan.room / 4 * 3,
            bytes: plan.room,
            ..ServerLimits::default()
        };
        let client = |index: usize| {
            let order = ORDERS[random.below(2)];
            Client {
                engine: client_of(order, ClientLimits::default(), random.next()),
                order,
                address: address(2 + index as u8, 1000),
            }
        };
        let clients = (0..plan.clients).map(client).collect();
        Self {
            plan,
            now,
            network: Network::new(plan.faults),
            clients,
            server: server_of(ORDERS[random.below(2)], limits, 1, now),
            limits,
            incarnation: 1,
            catalog: catalog(),
            running: Vec::new(),
            calls: Vec::new(),
            datagram: Buffer::default(),
            random,
        }
    }

    fn run(&mut self) {
        let mut steps = 0_u64;
        while self.calls.len() < self.plan.calls || self.open_calls() > 0 {
            steps += 1;
            assert!(steps < 20_000_000, "it does not end");
            self.act();
            self.exchange();
        }
    }

    fn open_calls(&self) -> usize {
        self.calls.iter().filter(|call| call.fate.is_none()).count()
    }

    /// What owners and fate do between packets.
    fn act(&mut self) {
        match self.random.below(1000) as u32 {
            n if n < self.plan.restarts => self.restart(),
            n if n < self.plan.restarts + self.plan.moves => self.move_client(),
            n if n < self.plan.restarts + self.plan.moves + self.plan.cancels => self.give_up(),
            n if n < 500 => self.start_call(),
            _ => {}
        }
    }

    fn start_call(&mut self) {
        let busy = self.clients.iter().map(|client| client.engine.in_flight());
        if self.calls.len() >= self.plan.calls || busy.sum::<usize>() >= self.plan.in_flight {
            return;
        }
        let which = self.random.below(self.clients.len());
        let bytes = match self.random.below(self.plan.one_large_in) {
            0 => self.random.below(self.plan.bytes_max),
            _ => self.random.of_bits(10),
        };
        let answer_bytes = match self.random.below(self.plan.one_large_in) {
            0 => self.random.below(self.plan.bytes_max),
            _ => self.random.of_bits(10),
        };
        // What the server takes is not known yet.
        let knows_limits = self.clients[which].engine.peer().is_some();
        let (bytes, answer_bytes) = match knows_limits {
            true => (bytes, answer_bytes),
            false => (bytes % 1000, answer_bytes),
        };
        let number = self.calls.len();
        let seed = self.random.next();
        let mut arguments = (number as u64).to_be_bytes().to_vec();
        arguments.extend(seed.to_be_bytes());
        arguments.extend((bytes as u64).to_be_bytes());
        arguments.extend(content(seed, bytes));
        let client = &mut self.clients[which];
        let version = [5, 5, 5, 2][self.random.below(4)];
        let interface = match version {
            5 => known(5),
            version => std::sync::Arc::new(tenon_proto::lean::Interface::unknown(300, version)),
        };
        let service = client.engine.bind(&interface).unwrap();
        let mut message = message(client.order, 7, &arguments);
        let limit = Duration::from_millis(self.random.below(self.plan.deadline_s * 1000) as u64);
        let mut call = outgoing(service, 7, self.now);
        call.deadline = self.now + limit;
        match client.engine.start(self.now, &call, &mut message, number) {
            Ok(id) => self.calls.push(Call {
                client: which,
                id: Some(id),
                deadline: call.deadline,
                answer_bytes,
                seed,
                executed: 0,
                fate: None,
            }),
            Err(NotStarted::TooManyCalls { .. } | NotStarted::AwaitsPreamble { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn give_up(&mut self) {
        let open: Vec<usize> = (0..self.calls.len())
            .filter(|number| self.calls[*number].fate.is_none())
            .collect();
        if open.is_empty() {
            return;
        }
        let number = open[self.random.below(open.len())];
        let call = &self.calls[number];
        let engine = &mut self.clients[call.client].engine;
        assert_eq!(engine.cancel(call.id.unwrap()), Some(number));
        self.settle(number, Fate::Cancelled);
    }

    fn restart(&mut self) {
        self.incarnation += 1;
        self.running.clear();
        let order = ORDERS[self.random.below(2)];
        self.server = server_of(order, self.limits, self.incarnation, self.now);
    }

    fn move_client(&mut self) {
        let which = self.random.below(self.clients.len());
        let client = &mut self.clients[which];
        client.address.set_port(client.address.port() + 1);
    }

    /// Sends all that there is to send, and goes to the next moment at which something happens.
    fn exchange(&mut self) {
        self.transmit();
        let next = [
            self.network.next_arrival(),
            self.server.poll_timeout(),
            self.running.iter().map(|running| running.until).min(),
        ];
        let clients = self.clients.iter();
        let clients = clients.filter_map(|client| client.engine.poll_timeout());
        let next = next.into_iter().flatten().chain(clients).min();
        let pause = Duration::from_micros(self.random.of_bits(14) as u64);
        self.now = self.now.max(next.unwrap_or(self.now).min(self.now + pause));
        self.answer();
        while let Some(datagram) = self.network.receive(self.now) {
            self.receive(&datagram);
        }
        self.let_time_pass();
        self.check_bounds();
    }

    fn transmit(&mut self) {
        for index in 0..self.clients.len() {
            loop {
                self.datagram.clear();
                let client = &mut self.clients[index];
                if !client.engine.poll_transmit(self.now, &mut self.datagram) {
                    break;
                }
                let datagram = Datagram {
                    from: client.address,
                    to: server_address(),
                    bytes: self.datagram.as_slice().to_vec(),
                };
                assert!(datagram.bytes.len() <= 1448);
                self.network.send(&mut self.random, self.now, datagram);
            }
        }
        loop {
            self.datagram.clear();
            let Some(to) = self.server.poll_transmit(self.now, &mut self.datagram) else {
                break;
            };
            let datagram = Datagram {
                from: server_address(),
                to,
                bytes: self.datagram.as_slice().to_vec(),
            };
            self.network.send(&mut self.random, self.now, datagram);
        }
    }

    fn receive(&mut self, datagram: &Datagram) {
        if datagram.to == server_address() {
            return self.serve(datagram);
        }
        let mut clients = self.clients.iter_mut();
        let Some(client) = clients.find(|client| client.address == datagram.to) else {
            return;
        };
        let Some(answer) = client.engine.handle_datagram(self.now, &datagram.bytes) else {
            return;
        };
        let number = answer.waiter;
        assert_eq!(self.calls[number].id, Some(answer.id));
        let fate = match answer.outcome {
            Ok(result) => {
                let call = &self.calls[number];
                let expected = content(!call.seed, call.answer_bytes);
                assert!(result == expected, "a wrong result of call {number}");
                Fate::Answered
            }
            Err(ReplyError::Exception(exception)) => Fate::Refused(exception.status),
            Err(ReplyError::Unbound(refusal)) => panic!("{refusal}"),
        };
        self.settle(number, fate);
    }

    fn serve(&mut self, datagram: &Datagram) {
        let request =
            self.server
                .handle_datagram(self.now, datagram.from, &datagram.bytes, &self.catalog);
        let Some(request) = request else { return };
        let arguments = request.call.arguments;
        let word = |at: usize| u64::from_be_bytes(arguments[at..at + 8].try_into().unwrap());
        let (number, seed, bytes) = (word(0) as usize, word(8), word(16) as usize);
        assert_eq!(request.call.procedure, 7);
        assert!(arguments[24..] == content(seed, bytes), "wrong arguments");
        let call = &mut self.calls[number];
        call.executed += 1;
        assert_eq!(call.executed, 1, "call {number} was executed again");
        let busy = match self.random.below(10) {
            0 => self.random.of_bits(24),
            1..4 => self.random.of_bits(15),
            _ => 0,
        };
        self.running.push(Running {
            key: request.key,
            caller: request.call.caller,
            call: number,
            until: self.now + Duration::from_micros(busy as u64),
        });
    }

    fn answer(&mut self) {
        let mut done = Vec::new();
        let now = self.now;
        self.running.retain(|running| {
            let is_done = running.until <= now;
            if is_done {
                done.push((running.key, running.caller, running.call));
            }
            !is_done
        });
        for (key, caller, number) in done {
            let call = &self.calls[number];
            let mut message = Buffer::default();
            let reply = Reply::begin(&mut message, caller);
            message.extend(&content(!call.seed, call.answer_bytes));
            reply.seal(&mut message);
            self.server.reply(key, &mut message);
            assert!(message.is_empty());
        }
    }

    fn let_time_pass(&mut self) {
        for index in 0..self.clients.len() {
            let engine = &mut self.clients[index].engine;
            if engine.poll_timeout().is_some_and(|at| at <= self.now) {
                engine.handle_timeout(self.now);
            }
            while let Some(ClientEvent::Failed {
                id,
                waiter,
                failure,
            }) = self.clients[index].engine.poll_event()
            {
                let call = &self.calls[waiter];
                assert_eq!(call.id, Some(id));
                if failure.reason == Reason::Expired {
                    assert!(call.deadline <= self.now);
                }
                self.settle(waiter, Fate::Failed(failure));
            }
        }
        if self.server.poll_timeout().is_some_and(|at| at <= self.now) {
            self.server.handle_timeout(self.now);
        }
        while let Some(ServerEvent::Cancelled(key)) = self.server.poll_event() {
            // Half of the services notice.
            let now = self.now;
            let is_seen = self.random.below(2) == 0;
            let running = self.running.iter_mut();
            for running in running.filter(|running| is_seen && running.key == key) {
                running.until = now;
            }
        }
    }

    fn settle(&mut self, number: usize, fate: Fate) {
        let call = &mut self.calls[number];
        let before = call.fate.replace(fate);
        assert_eq!(before, None, "call {number} ended twice");
    }

    fn check_bounds(&self) {
        let limits = &self.limits;
        // A fragment is let in by its length, and may be given memory that another message left behind: at most
        // twice what its message needs.
        let slack = 2 * self.plan.bytes_max;
        let bytes = self.server.bytes();
        assert!(bytes <= limits.bytes + slack, "{bytes} bytes");
        assert!(self.server.conversations() <= limits.conversations);
        for call in self.calls.iter().filter(|call| call.fate.is_none()) {
            assert!(
                call.deadline + Duration::from_secs(1) > self.now,
                "it hangs"
            );
        }
    }

    /// Nothing begins any more, the network is quiet again, and all state goes.
    fn end(&mut self) {
        self.network.faults = Faults::default();
        // Within minutes: an answer is sent eight times in a row to a client that has given its lane to another call,
        // and again when a packet that is late asks for it.
        self.rest(300);
        for call in &self.calls {
            match call.fate.expect("every call ends") {
                Fate::Answered => assert_eq!(call.executed, 1),
                Fate::Failed(failure) if !failure.may_have_run => {
                    assert_eq!(call.executed, 0, "{failure}");
                }
                Fate::Refused(status) => assert_eq!(status, Status::TOO_LARGE),
                Fate::Failed(_) | Fate::Cancelled => assert!(call.executed <= 1),
            }
        }
        assert_eq!(self.server.conversations(), 0);
        assert_eq!(self.server.bytes(), 0);
        for client in &self.clients {
            assert_eq!(client.engine.lanes_in_use(), 0);
            assert_eq!(client.engine.in_flight(), 0);
            assert_eq!(client.engine.bytes(), 0);
            assert_eq!(client.engine.under_way(), 0);
        }
    }

    fn rest(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            self.exchange();
            self.now += Duration::from_millis(500);
        }
    }

    fn count(&self, of: impl Fn(Fate) -> bool) -> usize {
        let fates = self.calls.iter().filter_map(|call| call.fate);
        fates.filter(|fate| of(*fate)).count()
    }
}

/// Runs a plan for as many seeds as the environment asks for, or `seeds`.
fn run(seeds: u64, plan: impl Fn(&mut Random) -> Plan) -> Totals {
    let asked = std::env::var("TENON_SIMULATION_SEEDS").ok();
    let first = std::env::var("TENON_SIMULATION_FIRST").ok();
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
    let first: u64 = number(first).unwrap_or(0);
    let seeds = number(asked).unwrap_or(seeds);
    let mut totals = Totals::default();
    for seed in first..first + seeds {
        let mut plan = plan(&mut Random(seed ^ 0x5eed));
        plan.seed = seed;
        let shown = ShowPlan(plan);
        let mut world = World::new(plan);
        world.run();
        world.end();
        std::mem::forget(shown);
        totals.add(&world);
    }
    totals
}

/// Shows the plan of a run that fails.
struct ShowPlan(Plan);

impl Drop for ShowPlan {
    fn drop(&mut self) {
        eprintln!("{:?}", self.0);
    }
}

#[derive(Debug, Default)]
struct Totals {
    answered: usize,
    failed: usize,
    surely_not_run: usize,
    cancelled: usize,
    refused: usize,
    repeated: u64,
    damaged: u64,
    conversations: u64,
    packets: u64,
    failures: BTreeMap<String, usize>,
}

impl Totals {
    fn add(&mut self, world: &World) {
        self.answered += world.count(|fate| fate == Fate::Answered);
        self.failed += world.count(|fate| matches!(fate, Fate::Failed(_)));
        self.surely_not_run +=
            world.count(|fate| matches!(fate, Fate::Failed(failure) if !failure.may_have_run));
        self.cancelled += world.count(|fate| fate == Fate::Cancelled);
        self.refused += world.count(|fate| matches!(fate, Fate::Refused(_)));
        self.packets += world.network.sent;
        for call in &world.calls {
            if let Some(Fate::Failed(failure)) = call.fate {
                *self.failures.entry(failure.to_string()).or_default() += 1;
            }
        }
        for client in &world.clients {
            let counters = client.engine.counters();
            self.repeated += counters.repeated;
            self.damaged += counters.ignored.of(Ignored::Damaged);
            self.conversations += counters.conversations;
        }
    }
}

#[test]
fn small_calls_over_a_bad_network() {
    let totals = run(100, |random| Plan {
        seed: 0,
        faults: Faults {
            loss: random.below(301) as u32,
            duplication: random.below(301) as u32,
            damage: random.below(101) as u32,
            ghosts: random.below(50) as u32,
            delay_us: random.of_bits(16),
        },
        clients: 1 + random.below(3),
        calls: 60,
        in_flight: 1 + random.below(40),
        bytes_max: 4000,
        one_large_in: 8,
        restarts: 0,
        moves: 0,
        cancels: 10,
        deadline_s: 60,
        room: PLENTY,
    });
    println!("{totals:?}");
    assert!(totals.answered > totals.failed * 4, "{totals:?}");
    assert!(totals.repeated > 0 && totals.damaged > 0 && totals.cancelled > 0);
}

#[test]
fn a_server_that_is_restarted_and_clients_that_move() {
    let totals = run(100, |random| Plan {
        seed: 0,
        faults: Faults {
            loss: random.below(301) as u32,
            duplication: random.below(301) as u32,
            damage: random.below(51) as u32,
            ghosts: random.below(200) as u32,
            delay_us: random.of_bits(18),
        },
        clients: 1 + random.below(3),
        calls: 80,
        in_flight: 1 + random.below(60),
        bytes_max: 20_000,
        one_large_in: 8,
        restarts: random.below(6) as u32,
        moves: random.below(3) as u32,
        cancels: 10,
        deadline_s: 40,
        room: PLENTY,
    });
    println!("{totals:?}");
    assert!(totals.answered > 0 && totals.failed > 0 && totals.surely_not_run > 0);
}

#[test]
fn messages_of_megabytes() {
    let totals = run(4, |random| Plan {
        seed: 0,
        faults: Faults {
            loss: random.below(301) as u32,
            duplication: random.below(301) as u32,
            damage: random.below(51) as u32,
            ghosts: 5,
            delay_us: random.of_bits(13),
        },
        clients: 1 + random.below(2),
        calls: 12,
        in_flight: 1 + random.below(4),
        bytes_max: 3 << 20,
        one_large_in: 3,
        restarts: 0,
        moves: 0,
        cancels: random.below(2) as u32,
        deadline_s: 600,
        room: PLENTY,
    });
    println!("{totals:?}");
    assert!(totals.answered > 0, "{totals:?}");
}

/// Requests and answers that the server has no room for are refused, and what it keeps stays within it.
#[test]
fn a_server_with_little_room() {
    let totals = run(20, |random| Plan {
        seed: 0,
        faults: Faults {
            loss: random.below(201) as u32,
            duplication: random.below(201) as u32,
            damage: random.below(51) as u32,
            ghosts: random.below(50) as u32,
            delay_us: random.of_bits(16),
        },
        clients: 1 + random.below(3),
        calls: 60,
        in_flight: 4 + random.below(40),
        bytes_max: 120_000,
        one_large_in: 2,
        restarts: 0,
        moves: 0,
        cancels: 10,
        deadline_s: 60,
        room: 200_000,
    });
    println!("{totals:?}");
    let no_room = totals.failures.keys().any(|why| why.contains("room"));
    assert!(
        totals.answered > 0 && totals.refused > 0 && no_room,
        "{totals:?}"
    );
}
