//! Both ends call each other over a stream that delays and cuts as it likes, with hundreds of calls in flight,
//! messages of up to several pieces, cancellations, deadlines and closes. A seed decides everything that happens, so
//! that a failure is repeated by its seed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{CallState, Caller, DeferredId, Event, StartError, WireProtocol};
use tenon_proto::lean::{ByteOrder, CloseReason, Features};

use crate::common::Random;
use crate::ends::{End, pair};
use crate::layer::Scrambler;

const CALLS: u32 = 150;

/// One direction of a stream: bytes arrive in order, each piece at its time.
#[derive(Default)]
struct Pipe {
    pieces: VecDeque<(Instant, Vec<u8>)>,
}

impl Pipe {
    fn send(&mut self, random: &mut Random, now: Instant, bytes: Vec<u8>) {
        let last = self.pieces.back().map_or(now, |(at, _)| *at);
        let at = last.max(now + Duration::from_micros(random.of_bits(11) as u64));
        self.pieces.push_back((at, bytes));
    }

    /// Hands a part of what has arrived to an end; returns whether there was any.
    fn deliver(&mut self, random: &mut Random, now: Instant, to: &mut End) -> bool {
        let Some((_, piece)) = self.pieces.front_mut().filter(|(at, _)| *at <= now) else {
            return false;
        };
        let wanted = (1 + random.of_bits(18)).min(piece.len());
        let taken = to
            .receive(&piece[..wanted])
            .expect("nothing breaks the protocol");
        piece.drain(..taken);
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        taken > 0
    }
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Answered,
    Cancelled,
    Expired,
    /// Withdrawn before anything of it was sent, or not begun by a peer that closes.
    NotExecuted,
}

/// A call that an end carries out later than it was received.
struct Deferred {
    id: DeferredId,
    caller: Caller,
    arguments: Vec<u8>,
}

/// What a test knows of one end.
struct Side {
    end: End,
    /// Bytes on their way to this end.
    inbound: Pipe,
    /// Number and arguments of each call in flight, by its waiter.
    waiting: HashMap<u32, (u32, Vec<u8>)>,
    outcomes: HashMap<u32, Outcome>,
    deferred: Vec<Deferred>,
    started: u32,
    /// Whether this end may call the other.
    may_call: bool,
}

struct Simulation {
    random: Random,
    now: Instant,
    protocol: WireProtocol,
    sides: [Side; 2],
    /// The first bytes of the arguments of calls that were carried out: they name end and waiter.
    executed: HashSet<[u8; 8]>,
}

fn config(random: &mut Random, of: ConnectionConfig, protocol: WireProtocol) -> ConnectionConfig {
    let features = [Features::default(), Features::PIECES, Features::all()];
    let orders = [ByteOrder::Little, ByteOrder::Big];
    ConnectionConfig {
        receive_max: (64 << 10) + 16 + random.of_bits(20),
        incoming_calls_max: match protocol {
            // A client of ONC RPC cannot say whether it takes calls.
            WireProtocol::Onc => 1 + random.of_bits(7),
            WireProtocol::Lean => 16 + random.of_bits(7),
        },
        fragment_max: 16 + random.of_bits(16),
        features: features[random.below(features.len())],
        byte_order: orders[random.below(2)],
        ..of
    }
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let protocol = [WireProtocol::Onc, WireProtocol::Lean][random.below(2)];
        let mut client = config(&mut random, ConnectionConfig::client(), protocol);
        let server = config(&mut random, ConnectionConfig::server(), protocol);
        let is_bidirectional = random.below(2) == 0;
        if !is_bidirectional {
            client.incoming_calls_max = 0;
        }
        let (mut client, mut server) = pair(protocol, client, server);
        if random.below(3) == 0 {
            for end in [&mut client, &mut server] {
                let layer = Box::new(Scrambler::new(end.is_server));
                end.connection.put_layer(layer, &mut end.receiver).unwrap();
            }
        }
        let side = |end, may_call| Side {
            end,
            inbound: Pipe::default(),
            waiting: HashMap::new(),
            outcomes: HashMap::new(),
            deferred: Vec::new(),
            started: 0,
            may_call,
        };
        Self {
            random,
            now: Instant::now(),
            protocol,
            sides: [side(client, true), side(server, is_bidirectional)],
            executed: HashSet::new(),
        }
    }

    fn step(&mut self) {
        let at = self.random.below(2);
        match self.random.below(100) {
            0..25 => self.start_call(at),
            25..45 => self.transmit(at),
            45..75 => self.deliver(at),
            75..90 => self.answer_deferred(at),
            90..92 => self.cancel(at),
            _ => self.pass_time(),
        }
    }

    fn start_call(&mut self, at: usize) {
        let protocol = self.protocol;
        let [first, second] = &self.sides;
        let receive_max = first
            .end
            .config
            .receive_max
            .min(second.end.config.receive_max);
        let side = &mut self.sides[at];
        if !side.may_call || side.started >= CALLS {
            return;
        }
        // A server knows the protocol, and a lean one what it is granted, once something has come.
        if side.end.connection.protocol().is_none() {
            return;
        }
        let waiter = side.started;
        let length = if self.random.below(8) == 0 {
            self.random.of_bits(19)
        } else {
            self.random.of_bits(9)
        };
        let length = length.min(receive_max - 200);
        let mut arguments = vec![at as u8; 8];
        arguments[4..].copy_from_slice(&waiter.to_be_bytes());
        arguments.extend(self.random.bytes(length));
        let limit = Duration::from_micros(2000 + self.random.of_bits(17) as u64);
        match side
            .end
            .call(protocol, &arguments, self.now + limit, waiter)
        {
            Ok(call) => {
                side.started += 1;
                side.waiting.insert(waiter, (call.number, arguments));
            }
            Err(
                StartError::TooManyCalls { .. }
                | StartError::AwaitsPreamble { .. }
                | StartError::Closing,
            ) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn transmit(&mut self, at: usize) {
        let bytes = self.sides[at].end.transmit();
        if !bytes.is_empty() {
            self.sides[1 - at]
                .inbound
                .send(&mut self.random, self.now, bytes);
        }
    }

    fn deliver(&mut self, at: usize) {
        let side = &mut self.sides[at];
        if side
            .inbound
            .deliver(&mut self.random, self.now, &mut side.end)
        {
            while self.take_frame(at) {}
        }
    }

    /// Takes in the next message that an end has received; returns whether there was one.
    fn take_frame(&mut self, at: usize) -> bool {
        let Side {
            end,
            waiting,
            outcomes,
            deferred,
            ..
        } = &mut self.sides[at];
        let frame = end
            .receiver
            .next_frame()
            .expect("nothing breaks the protocol");
        let Some(frame) = frame else {
            return false;
        };
        let event = end.connection.handle_frame(frame, &end.services);
        match event.expect("nothing breaks the protocol") {
            Event::Answered(answer) => {
                let (number, arguments) = waiting.remove(&answer.waiter).unwrap();
                assert_eq!(answer.number, number);
                if let Ok(results) = &answer.outcome {
                    assert_eq!(*results, arguments);
                }
                assert_eq!(outcomes.insert(answer.waiter, Outcome::Answered), None);
            }
            Event::Called(call) => {
                let name = *call.arguments.first_chunk().unwrap();
                assert_eq!(name[0], 1 - at as u8, "a call of the other end");
                assert!(self.executed.insert(name), "carried out twice");
                let arguments = call.arguments.to_vec();
                let caller = call.caller;
                let id = match self.random.below(2) {
                    0 => end.connection.defer(&caller, None),
                    _ => None,
                };
                match id {
                    Some(id) => deferred.push(Deferred {
                        id,
                        caller,
                        arguments,
                    }),
                    None => {
                        let mut reply = End::<u32>::reply(caller, &arguments);
                        end.connection.push_reply(&mut reply);
                    }
                }
            }
            Event::Cancelled(id) => {
                let state = end.connection.deferred_state(id);
                assert_eq!(state, Some(CallState::Cancelled));
            }
            Event::PeerClosing(closing) => {
                for call in closing.unbegun {
                    let (_, arguments) = waiting.remove(&call.waiter).unwrap();
                    let name: [u8; 8] = *arguments.first_chunk().unwrap();
                    assert!(
                        !self.executed.contains(&name),
                        "carried out though it was not begun"
                    );
                    assert_eq!(outcomes.insert(call.waiter, Outcome::NotExecuted), None);
                }
            }
            Event::Pong(_) | Event::Progress | Event::Handled => {}
        }
        // What is received while a message is used must not disturb it.
        if self.random.below(4) == 0 {
            let detached = end.receiver.detach();
            if let Some(detached) = detached {
                assert!(detached.frame().is_some());
                end.receiver.reattach(detached);
            }
        }
        true
    }

    fn answer_deferred(&mut self, at: usize) {
        let side = &mut self.sides[at];
        if side.deferred.is_empty() {
            return;
        }
        let index = self.random.below(side.deferred.len());
        let call = side.deferred.swap_remove(index);
        assert!(side.end.connection.finish_deferred(call.id).is_some());
        let mut reply = End::<u32>::reply(call.caller, &call.arguments);
        side.end.connection.push_reply(&mut reply);
    }

    fn cancel(&mut self, at: usize) {
        let side = &mut self.sides[at];
        let mut waiters: Vec<u32> = side.waiting.keys().copied().collect();
        waiters.sort_unstable();
        if waiters.is_empty() {
            return;
        }
        let waiter = waiters[self.random.below(waiters.len())];
        let (number, arguments) = side.waiting.remove(&waiter).unwrap();
        let call = side.end.connection.cancel_call(number).unwrap();
        assert_eq!(call.waiter, waiter);
        let outcome = self.abandoned(call.was_sent, &arguments, Outcome::Cancelled);
        self.sides[at].outcomes.insert(waiter, outcome);
    }

    fn abandoned(&self, was_sent: bool, arguments: &[u8], sent: Outcome) -> Outcome {
        if was_sent {
            return sent;
        }
        let name: [u8; 8] = *arguments.first_chunk().unwrap();
        assert!(
            !self.executed.contains(&name),
            "carried out though it was not sent"
        );
        Outcome::NotExecuted
    }

    fn pass_time(&mut self) {
        self.now += Duration::from_micros(self.random.of_bits(9) as u64);
        for at in 0..2 {
            while let Some(call) = self.sides[at].end.connection.poll_late_call(self.now) {
                let (_, arguments) = self.sides[at].waiting.remove(&call.waiter).unwrap();
                let outcome = self.abandoned(call.was_sent, &arguments, Outcome::Expired);
                let before = self.sides[at].outcomes.insert(call.waiter, outcome);
                assert_eq!(before, None);
            }
        }
    }

    /// Lets all that was begun come to its end.
    fn finish(&mut self) {
        for _ in 0..100_000 {
            for at in 0..2 {
                self.transmit(at);
                self.deliver(at);
                self.answer_deferred(at);
            }
            self.now += Duration::from_micros(100);
            let is_over = self.sides.iter().all(|side| {
                side.waiting.is_empty()
                    && side.inbound.pieces.is_empty()
                    && side.deferred.is_empty()
                    && side.end.connection.queued_bytes() == 0
            });
            if is_over {
                return;
            }
            self.pass_time();
        }
        panic!("it does not come to an end");
    }

    fn run(mut self) {
        let closes_at = self.random.below(12_000);
        for step in 0..8000 {
            self.step();
            if step == closes_at {
                let at = self.random.below(2);
                let connection = &mut self.sides[at].end.connection;
                // A server that stops before the handshake refuses the connection.
                if connection.peer().is_some() {
                    connection.close(CloseReason::DONE, "");
                }
            }
        }
        self.finish();
        for side in &self.sides {
            assert_eq!(side.outcomes.len(), side.started as usize);
            assert_eq!(side.end.connection.in_flight(), 0);
            assert_eq!(side.end.connection.deferred(), 0);
            assert!(side.end.receiver.is_between_frames());
        }
    }
}

#[test]
fn calls_come_to_one_end_in_both_directions() {
    let seeds = std::env::var("TENON_SIMULATION_SEEDS");
    let seeds = seeds
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(60);
    for seed in 0..seeds {
        eprintln!("seed {seed}");
        Simulation::new(seed).run();
    }
}
