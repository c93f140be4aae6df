//! A client and a server over a stream that delays and cuts as it likes, with thousands of calls in
//! flight. A seed decides everything that happens, so that a failure is repeated by its seed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::lean::client::{
    BindError, ClientEngine, Event, NotStarted, Outgoing, ReplyError, Timeout,
};
use tenon_proto::lean::server::{Caller, Catalog, Received, Reply, ServerEngine};
use tenon_proto::lean::{
    CallState, Calls, Draft, Exception, Extension, Extras, Incoming, Interface, MessageReader,
    Preamble, Reason, Status,
};
use tenon_wire::Buffer;

use crate::common::Random;
use crate::support::{ORDERS, known};

const ARGUMENTS_MAX: usize = 300;
const CLIENT_LIMIT: u32 = 64 << 10;

/// One direction of a connection: bytes arrive in order, each piece at its time.
#[derive(Default)]
struct Pipe {
    pieces: VecDeque<(Instant, Vec<u8>)>,
}

impl Pipe {
    fn send(&mut self, random: &mut Random, now: Instant, bytes: &[u8]) {
        let last = self.pieces.back().map_or(now, |(at, _)| *at);
        let delay = Duration::from_micros(random.of_bits(11) as u64);
        let at = last.max(now + delay);
        self.pieces.push_back((at, bytes.to_vec()));
    }

    /// Reads a piece of what has arrived by `now`, as one `read` would; false if nothing is there.
    fn read(&mut self, random: &mut Random, now: Instant, reader: &mut MessageReader) -> bool {
        let mut wanted = 1 + random.of_bits(12);
        let mut taken = 0;
        let room = reader.room();
        while let Some((_, piece)) = self.pieces.front_mut().filter(|(at, _)| *at <= now) {
            let step = wanted.min(piece.len()).min(room.len() - taken);
            room[taken..taken + step].copy_from_slice(&piece[..step]);
            piece.drain(..step);
            (taken, wanted) = (taken + step, wanted - step);
            if !piece.is_empty() {
                break;
            }
            self.pieces.pop_front();
        }
        reader.filled(taken);
        taken > 0
    }
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Refused(Status),
    Unbound,
    Cancelled,
    Expired,
    Unbegun,
}

struct Simulation {
    random: Random,
    now: Instant,
    to_server: Pipe,
    to_client: Pipe,
    client: ClientEngine<u32>,
    client_order: tenon_proto::lean::ByteOrder,
    client_reader: MessageReader,
    server: ServerEngine,
    server_reader: MessageReader,
    catalog: Catalog,
    interfaces: Vec<Arc<Interface>>,
    /// Calls that the server has taken in and not answered.
    running: Calls<(Caller, Vec<u8>)>,
    /// The numbers of those, to choose from.
    begun: Vec<u32>,
    executed: HashSet<u32>,
    /// The number of each call in flight, and its arguments, by the waiter.
    waiting: HashMap<u32, (u32, Vec<u8>)>,
    fates: Vec<Option<Fate>>,
    most_in_flight: usize,
    is_over: bool,
}

impl Simulation {
    fn new(seed: u64, calls_max: u32) -> Self {
        let mut random = Random(seed);
        let (client_order, server_order) = (ORDERS[random.below(2)], ORDERS[random.below(2)]);
        let own = Preamble {
            order: client_order,
            ..Preamble::client(CLIENT_LIMIT)
        };
        let theirs = Preamble {
            order: server_order,
            ..Preamble::server(1 << 20, calls_max)
        };
        let mut catalog = Catalog::default();
        catalog.add(known(5));
        catalog.add(Arc::new(Interface::unknown(400, 1)));
        let other = Interface {
            fingerprint: 9,
            ..(*known(5)).clone()
        };
        Self {
            now: Instant::now(),
            to_server: Pipe::default(),
            to_client: Pipe::default(),
            client: ClientEngine::new(own, random.word()),
            client_order,
            client_reader: MessageReader::new(CLIENT_LIMIT as usize),
            server: ServerEngine::new(theirs),
            server_reader: MessageReader::new(1 << 20),
            catalog,
            interfaces: vec![
                known(5),
                Arc::new(Interface::unknown(400, 1)),
                Arc::new(other),
            ],
            running: Calls::new(calls_max as usize),
            begun: Vec::new(),
            executed: HashSet::new(),
            waiting: HashMap::new(),
            fates: Vec::new(),
            most_in_flight: 0,
            is_over: false,
            random,
        }
    }

    fn step(&mut self, calls: usize) {
        match self.random.below(100) {
            0..40 => self.start_call(calls),
            40..60 => self.serve(),
            60..78 => self.answer(),
            78..93 => self.take_answers(),
            93..95 => self.give_up(),
            95..99 => self.now += Duration::from_micros(self.random.of_bits(9) as u64),
            _ => self.let_time_run_out(),
        }
        self.transmit();
        self.most_in_flight = self.most_in_flight.max(self.client.in_flight());
    }

    fn transmit(&mut self) {
        let mut owed = Buffer::default();
        if self.client.poll_transmit(&mut owed) {
            self.to_server
                .send(&mut self.random, self.now, owed.as_slice());
        }
    }

    fn start_call(&mut self, calls: usize) {
        if self.fates.len() == calls {
            return;
        }
        let which = self.random.below(20).min(2);
        let interface = Arc::clone(&self.interfaces[2 - which]);
        let waiter = self.fates.len() as u32;
        let service = match self.client.bind(&interface) {
            Ok(service) => service,
            Err(BindError::Refused(_)) => {
                self.fates.push(Some(Fate::Unbound));
                return;
            }
            Err(BindError::NoNumbers) => unreachable!("there are three services"),
        };
        let length = self.random.below(ARGUMENTS_MAX);
        let mut arguments = waiter.to_be_bytes().to_vec();
        arguments.extend(self.random.bytes(length));
        let limit = Duration::from_millis(1 + self.random.of_bits(7) as u64);
        let stamp = [Extension {
            kind: Extension::STAMPS,
            content: b"stamp",
        }];
        let extras = Extras {
            time_left: self.random.per_mille(300).then_some(limit),
            extensions: &stamp[..self.random.below(2)],
            ..Extras::default()
        };
        let procedure = 1 + self.random.below(5) as u16;
        let mut call = Buffer::default();
        let draft = Draft::call(&mut call, self.client_order, procedure, &extras);
        call.extend(&arguments);
        let size = draft.seal(&mut call);
        let deadline = self.now + limit;
        let outgoing = Outgoing {
            service,
            procedure,
            size,
            deadline,
        };
        match self.client.start(&outgoing, waiter) {
            Ok(id) => {
                self.transmit();
                draft.stamp(&mut call, id, service);
                self.to_server
                    .send(&mut self.random, self.now, call.as_slice());
                self.waiting.insert(waiter, (id, arguments));
                self.fates.push(None);
            }
            Err(NotStarted::TooManyCalls { .. }) => {}
            Err(NotStarted::Closed) => assert!(self.is_over),
            Err(other) => panic!("{other}"),
        }
    }

    fn serve(&mut self) {
        self.to_server
            .read(&mut self.random, self.now, &mut self.server_reader);
        let mut out = Buffer::default();
        while let Some(incoming) = self.server_reader.next_message().expect("a legal stream") {
            let message = match incoming {
                Incoming::Preamble(theirs) => {
                    let taken = self.server.handle_preamble(&theirs, &mut out);
                    assert_eq!(taken.is_err(), self.is_over);
                    continue;
                }
                Incoming::Message(message) => message,
            };
            let received = self
                .server
                .handle_message(&self.catalog, &message, &mut out);
            match received.expect("a legal message") {
                Received::Call(call) => {
                    let id = call.caller.id;
                    assert!(self.executed.insert(id), "call {id} came twice");
                    assert_eq!(call.order, self.client_order);
                    let kept = (call.caller, call.arguments.to_vec());
                    let deadline = call.deadline(self.now);
                    self.running
                        .begin(id, deadline, kept)
                        .expect("no more than was granted");
                    self.begun.push(id);
                }
                Received::Cancel(id) => {
                    self.running.cancel(id);
                }
                Received::Goodbye(_) | Received::Pong(_) | Received::StampedNull(_) => {
                    panic!("nobody says so")
                }
                Received::Handled => {}
            }
        }
        while let Some((id, _)) = self.running.poll_expired(self.now) {
            assert_eq!(self.running.state(id), Some(CallState::Expired));
        }
        self.reply(&out);
    }

    fn reply(&mut self, out: &Buffer) {
        if !out.is_empty() {
            self.to_client
                .send(&mut self.random, self.now, out.as_slice());
        }
    }

    /// Answers some calls, not those that came first.
    fn answer(&mut self) {
        let mut out = Buffer::default();
        for _ in 0..self.random.below(4) {
            if self.begun.is_empty() {
                break;
            }
            let which = self.random.below(self.begun.len());
            let id = self.begun.swap_remove(which);
            let ((caller, arguments), state) = self.running.finish(id).expect("it runs");
            let reply = Reply::begin(&mut out, caller);
            out.extend(&arguments);
            let status = match (state, self.random.below(50)) {
                (CallState::Cancelled, _) => Some(Status::CANCELLED),
                (CallState::Expired, _) => Some(Status::DEADLINE),
                (CallState::Awaited, 0) => Some(Status::FAILED),
                (CallState::Awaited, 1) => {
                    out.extend(&[0; CLIENT_LIMIT as usize]);
                    None
                }
                (CallState::Awaited, _) => None,
            };
            match status {
                Some(status) => reply
                    .refuse(&mut out, &Exception::new(status, "because"))
                    .seal(&mut out),
                None => reply.seal(&mut out),
            }
        }
        self.reply(&out);
    }

    fn take_answers(&mut self) {
        self.to_client
            .read(&mut self.random, self.now, &mut self.client_reader);
        loop {
            let incoming = self.client_reader.next_message().expect("a legal stream");
            let message = match incoming {
                None => return,
                Some(Incoming::Preamble(theirs)) => {
                    if self.client.handle_preamble(&theirs).is_err() {
                        assert!(self.is_over && self.executed.is_empty());
                        for (_, waiter) in self.client.cancel_all() {
                            self.waiting.remove(&waiter);
                            settle(&mut self.fates, waiter, Fate::Unbegun);
                        }
                    }
                    continue;
                }
                Some(Incoming::Message(message)) => message,
            };
            match self
                .client
                .handle_message(&message)
                .expect("a legal message")
            {
                Event::Answer(answer) => {
                    let (id, arguments) = self.waiting.remove(&answer.waiter).expect("it waits");
                    assert_eq!(answer.id, id);
                    let fate = match answer.outcome {
                        Ok(results) => {
                            assert_eq!(results, arguments);
                            Fate::Answered
                        }
                        Err(ReplyError::Exception(exception)) => Fate::Refused(exception.status),
                        Err(ReplyError::Unbound(_)) => Fate::Unbound,
                    };
                    settle(&mut self.fates, answer.waiter, fate);
                }
                Event::Goodbye(_) => {
                    for (id, waiter) in self.client.take_unbegun() {
                        assert!(!self.executed.contains(&id), "call {id} was begun");
                        self.waiting.remove(&waiter);
                        settle(&mut self.fates, waiter, Fate::Unbegun);
                    }
                }
                Event::Bound(service) => assert!(service < 3),
                Event::Unbound(..) | Event::Handled => {}
                Event::Pong(_) => panic!("nobody asked"),
            }
        }
    }

    fn any_waiting(&mut self) -> Option<(u32, u32)> {
        let nth = self.random.below(self.waiting.len().max(1));
        let (waiter, (id, _)) = self.waiting.iter().nth(nth)?;
        Some((*waiter, *id))
    }

    fn give_up(&mut self) {
        if let Some((waiter, id)) = self.any_waiting() {
            assert_eq!(self.client.cancel(id), Some(waiter));
            self.waiting.remove(&waiter);
            settle(&mut self.fates, waiter, Fate::Cancelled);
        }
    }

    fn let_time_run_out(&mut self) {
        let ids: Vec<(u32, u32)> = self.waiting.iter().map(|(w, (id, _))| (*w, *id)).collect();
        for (waiter, id) in ids {
            if let Some(Timeout::Expired(expired)) = self.client.handle_timeout(id, self.now) {
                assert_eq!(expired, waiter);
                self.waiting.remove(&waiter);
                settle(&mut self.fates, waiter, Fate::Expired);
            }
        }
    }

    /// Nothing is begun any more, and what is under way arrives.
    fn settle_down(&mut self) {
        for _ in 0..1_000_000 {
            self.now += Duration::from_micros(200);
            self.serve();
            self.answer();
            self.take_answers();
            self.transmit();
            let is_quiet = self.to_server.pieces.is_empty() && self.to_client.pieces.is_empty();
            if is_quiet && self.begun.is_empty() && self.waiting.is_empty() {
                return;
            }
        }
        panic!("{} calls wait for ever", self.waiting.len());
    }

    fn count(&self, of: impl Fn(Fate) -> bool) -> usize {
        self.fates
            .iter()
            .flatten()
            .filter(|fate| of(**fate))
            .count()
    }
}

fn settle(fates: &mut [Option<Fate>], waiter: u32, fate: Fate) {
    let before = fates[waiter as usize].replace(fate);
    assert_eq!(before, None, "call {waiter} ended twice");
}

#[test]
fn every_call_ends_once_and_as_it_should() {
    let mut seen = [0; 5];
    for seed in 0..20 {
        let mut simulation = Simulation::new(seed, 64);
        while simulation.fates.len() < 2000 {
            simulation.step(2000);
        }
        simulation.settle_down();
        assert!(simulation.fates.iter().all(Option::is_some), "seed {seed}");
        assert!(simulation.client_reader.is_between_messages());
        assert!(simulation.server_reader.is_between_messages());
        // What was given up was answered, too: the server's limit is free again.
        assert_eq!(simulation.running.in_flight(), 0);
        let outgoing = Outgoing {
            service: 0,
            procedure: 1,
            size: 16,
            deadline: simulation.now,
        };
        for waiter in 0..64 {
            assert!(
                simulation.client.start(&outgoing, waiter).is_ok(),
                "seed {seed}"
            );
        }
        let fates: [fn(Fate) -> bool; 5] = [
            |fate| fate == Fate::Answered,
            |fate| matches!(fate, Fate::Refused(Status::FAILED | Status::TOO_LARGE)),
            |fate| fate == Fate::Unbound,
            |fate| fate == Fate::Cancelled,
            |fate| fate == Fate::Expired,
        ];
        for (count, fate) in seen.iter_mut().zip(fates) {
            *count += simulation.count(fate);
        }
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}

#[test]
fn thousands_of_calls_in_flight_are_told_apart() {
    for seed in 0..2 {
        let mut simulation = Simulation::new(seed, 10_000);
        simulation.to_client.pieces.clear();
        while simulation.client.peer().is_none() {
            simulation.transmit();
            simulation.now += Duration::from_millis(1);
            simulation.serve();
            simulation.take_answers();
        }
        while simulation.fates.len() < 20_000 {
            match simulation.random.below(10) {
                0..8 => simulation.start_call(20_000),
                8 => simulation.serve(),
                _ => simulation.answer(),
            }
            simulation.transmit();
            simulation.most_in_flight =
                simulation.most_in_flight.max(simulation.client.in_flight());
            if simulation.client.in_flight() > 6000 {
                simulation.now += Duration::from_millis(1);
                simulation.take_answers();
            }
        }
        simulation.settle_down();
        assert!(simulation.most_in_flight > 5000);
        assert!(simulation.fates.iter().all(Option::is_some), "seed {seed}");
    }
}

#[test]
fn behind_a_goodbye_nothing_is_begun_and_everything_else_is_answered() {
    let mut unbegun = 0;
    for seed in 0..100 {
        let mut simulation = Simulation::new(seed, 64);
        for _ in 0..simulation.random.below(2000) {
            simulation.step(1000);
        }
        simulation.is_over = true;
        let mut out = Buffer::default();
        simulation
            .server
            .goodbye(Reason::STOPPING, "maintenance", &mut out);
        simulation.reply(&out);
        for _ in 0..simulation.random.below(100) {
            simulation.step(1000);
        }
        simulation.settle_down();
        assert!(simulation.fates.iter().all(Option::is_some), "seed {seed}");
        unbegun += simulation.count(|fate| fate == Fate::Unbegun);
    }
    assert!(unbegun > 100, "{unbegun}");
}

#[test]
fn when_the_connection_breaks_anywhere_every_call_is_either_done_or_given_up() {
    for seed in 0..200 {
        let mut simulation = Simulation::new(seed, 64);
        for _ in 0..simulation.random.below(3000) {
            simulation.step(1000);
        }
        for (_, waiter) in simulation.client.cancel_all() {
            settle(&mut simulation.fates, waiter, Fate::Cancelled);
        }
        assert!(simulation.fates.iter().all(Option::is_some), "seed {seed}");
    }
}
