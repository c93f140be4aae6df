//! Both ends call each other over a stream that delays and cuts as it likes, with many calls in flight, messages of up
//! to several pieces, cancellations, deadlines, exceptions, services that are not bound, closes and losses of the
//! connection. A seed decides everything that happens, so that a failure is repeated by its seed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{
    Caller, DeferredCallState, DeferredId, Event, ReplyDraft, ReplyError, StartError, WireProtocol,
};
use tenon_proto::lean::{
    ByteOrder, CloseReason, Exception, Extras, Features, Interface, PIECE, Status,
};
use tenon_wire::Buffer;

use crate::common::{Random, ShownOnFailure, seeds};
use crate::ends::{End, PROGRAM, pair};
use crate::layer::Scrambler;

/// Calls that each end makes.
const CALLS: u32 = 150;

/// What happens before everything is let come to its end.
const STEPS: usize = 8000;

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
    fn deliver(&mut self, random: &mut Random, now: Instant, to: &mut End, bits: usize) -> bool {
        let Some((_, piece)) = self.pieces.front_mut().filter(|(at, _)| *at <= now) else {
            return false;
        };
        let wanted = (1 + random.of_bits(bits)).min(piece.len());
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Outcome {
    Answered,
    Cancelled,
    Expired,
    /// Answered with an exception.
    Failed(Status),
    /// Taken back before all of it was sent, not begun by a peer that closes, or of a service that is not bound.
    NotExecuted,
    /// The connection was lost, and it may have been carried out.
    Lost,
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

/// Which way a call has gone that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Course {
    protocol: WireProtocol,
    /// Whether the server has called the client.
    is_call_back: bool,
    /// Whether a layer has scrambled the bytes.
    is_layered: bool,
    /// Whether arguments and results have gone in pieces.
    is_in_pieces: bool,
}

/// What the ends have to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Mostly little, by either protocol; some calls have too little time.
    Mixed,
    /// Messages of several pieces in both directions, with small ones between them, and time for all.
    InPieces,
}

struct Simulation {
    random: Random,
    now: Instant,
    protocol: WireProtocol,
    load: Load,
    is_layered: bool,
    /// Whether both ends take messages in pieces.
    has_pieces: bool,
    answered: HashMap<Course, usize>,
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
    fn new(seed: u64, load: Load) -> Self {
        let mut random = Random(seed);
        let protocol = match load {
            Load::Mixed => [WireProtocol::Onc, WireProtocol::Lean][random.below(2)],
            Load::InPieces => WireProtocol::Lean,
        };
        let mut client = config(&mut random, ConnectionConfig::client(), protocol);
        let mut server = config(&mut random, ConnectionConfig::server(), protocol);
        if load == Load::InPieces {
            for config in [&mut client, &mut server] {
                config.features = Features::all();
                config.receive_max = 1 << 20;
            }
        }
        let is_bidirectional = load == Load::InPieces || random.below(2) == 0;
        if !is_bidirectional {
            client.incoming_calls_max = 0;
        }
        let has_pieces = protocol == WireProtocol::Lean
            && client
                .features
                .common(server.features)
                .has(Features::PIECES);
        let (mut client, mut server) = pair(protocol, client, server);
        let is_layered = random.below(3) == 0;
        if is_layered {
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
            load,
            is_layered,
            has_pieces,
            answered: HashMap::new(),
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
            90..92 if self.load == Load::Mixed || self.random.below(20) == 0 => self.cancel(at),
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
        let calls = match self.load {
            Load::Mixed => CALLS,
            Load::InPieces => CALLS / 8,
        };
        if !side.may_call || side.started >= calls {
            return;
        }
        // A server knows the protocol, and a lean one what it is granted, once something has come.
        if side.end.connection.protocol().is_none() {
            return;
        }
        let waiter = side.started;
        let length = match (self.load, self.random.below(8)) {
            (Load::Mixed, 0) => self.random.of_bits(19),
            (Load::InPieces, 0..3) => PIECE + self.random.below(1 << 18),
            _ => self.random.of_bits(9),
        };
        let length = length.min(receive_max - 200);
        let mut arguments = vec![at as u8; 8];
        arguments[4..].copy_from_slice(&waiter.to_be_bytes());
        arguments.extend(self.random.bytes(length));
        let limit = match self.load {
            Load::Mixed => Duration::from_micros(2000 + self.random.of_bits(17) as u64),
            Load::InPieces => Duration::from_secs(60),
        };
        let deadline = self.now + limit;
        let started = match protocol {
            WireProtocol::Onc => side.end.call(protocol, &arguments, deadline, waiter),
            WireProtocol::Lean => {
                let version = if self.random.below(20) == 0 { 9 } else { 1 };
                let interface = Arc::new(Interface::unknown(PROGRAM, version));
                let extras = Extras {
                    time_left: self.random.per_mille(300).then_some(limit),
                    ..Extras::default()
                };
                let of = (&interface, 1);
                side.end
                    .call_lean(of, &arguments, &extras, deadline, waiter)
            }
        };
        match started {
            Ok(call) => {
                side.started += 1;
                side.waiting.insert(waiter, (call.number, arguments));
            }
            Err(StartError::Bind(_)) => {
                side.started += 1;
                side.outcomes.insert(waiter, Outcome::NotExecuted);
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
        let bits = match self.load {
            Load::Mixed => 18,
            Load::InPieces => 22,
        };
        if (side.inbound).deliver(&mut self.random, self.now, &mut side.end, bits) {
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
                let outcome = match answer.outcome {
                    Ok(results) => {
                        assert!(results == arguments, "the results of another call");
                        let course = Course {
                            protocol: self.protocol,
                            is_call_back: at == 1,
                            is_layered: self.is_layered,
                            is_in_pieces: self.has_pieces && arguments.len() > PIECE,
                        };
                        *self.answered.entry(course).or_default() += 1;
                        Outcome::Answered
                    }
                    Err(ReplyError::Exception(exception)) => Outcome::Failed(exception.status),
                    Err(ReplyError::Unbound(_)) => {
                        assert!(!self.executed.contains(&arguments[..8]));
                        Outcome::NotExecuted
                    }
                    Err(other) => panic!("{other:?}"),
                };
                assert_eq!(outcomes.insert(answer.waiter, outcome), None);
            }
            Event::Called(call) => {
                let name: [u8; 8] = *call.arguments.first_chunk().unwrap();
                assert_eq!(name[0], 1 - at as u8, "a call of the other end");
                assert!(self.executed.insert(name), "carried out twice");
                let arguments = call.arguments.to_vec();
                let caller = call.caller;
                let id = match self.random.below(2) {
                    0 => end.connection.defer(&caller, call.deadline(self.now)),
                    _ => None,
                };
                match id {
                    Some(id) => deferred.push(Deferred {
                        id,
                        caller,
                        arguments,
                    }),
                    None => {
                        let state = DeferredCallState::Awaited;
                        let mut reply = reply(&mut self.random, caller, &arguments, state);
                        end.connection.push_reply(&mut reply);
                    }
                }
            }
            Event::Cancelled(id) => {
                let state = end.connection.deferred_state(id);
                assert_eq!(state, Some(DeferredCallState::Cancelled));
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
            Event::Unbegun(_) => panic!("both ends have the same interfaces"),
            Event::Items(_) | Event::StreamEnded(_) => panic!("no call has streams"),
            Event::CancelledHere(_) | Event::Pong(_) | Event::Progress | Event::Handled => {}
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
        let state = side.end.connection.finish_deferred(call.id).unwrap();
        let mut reply = reply(&mut self.random, call.caller, &call.arguments, state);
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
            let connection = &mut self.sides[at].end.connection;
            while let Some(id) = connection.poll_expired(self.now) {
                assert_eq!(
                    connection.deferred_state(id),
                    Some(DeferredCallState::Expired)
                );
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

    fn run(&mut self) {
        let closes_at = self.random.below(STEPS * 3 / 2);
        for step in 0..STEPS {
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
        for side in &mut self.sides {
            assert_eq!(side.end.connection.in_flight(), 0);
            assert_eq!(side.end.connection.deferred(), 0);
            assert!(side.end.receiver.is_between_frames());
            // What was given up was answered, too: all that is granted is free again.
            let granted = side.end.connection.peer().map_or(0, |peer| peer.calls_max);
            for waiter in 0..granted {
                let started = side.end.call(self.protocol, b"", self.now, waiter);
                let is_closed = started == Err(StartError::Closing);
                assert!(started.is_ok() || is_closed, "{started:?}");
            }
        }
    }

    /// The connection is lost anywhere.
    fn break_off(&mut self) {
        for _ in 0..self.random.below(2000) {
            self.step();
        }
        for at in 0..2 {
            let calls = self.sides[at].end.connection.abandon_all();
            for call in calls {
                let (_, arguments) = self.sides[at].waiting.remove(&call.waiter).unwrap();
                let outcome = self.abandoned(call.was_sent, &arguments, Outcome::Lost);
                self.sides[at].outcomes.insert(call.waiter, outcome);
            }
        }
    }

    /// How many calls ended how, when all of them have.
    fn outcomes(&self) -> HashMap<Outcome, usize> {
        let mut counts = HashMap::new();
        for side in &self.sides {
            assert!(side.waiting.is_empty());
            assert_eq!(side.outcomes.len(), side.started as usize);
            for outcome in side.outcomes.values() {
                *counts.entry(*outcome).or_default() += 1;
            }
        }
        counts
    }
}

/// Answers a call with its arguments, as long as it is waited for; some fail, and some have too much to say.
fn reply(
    random: &mut Random,
    caller: Caller,
    arguments: &[u8],
    state: DeferredCallState,
) -> Buffer {
    let mut reply = Buffer::default();
    let draft = ReplyDraft::begin(&mut reply, caller);
    reply.extend(arguments);
    let ReplyDraft::Lean(lean) = draft else {
        draft.seal(&mut reply);
        return reply;
    };
    let status = match (state, random.below(50)) {
        (DeferredCallState::Cancelled, _) => Status::CANCELLED,
        (DeferredCallState::Expired, _) => Status::DEADLINE,
        (DeferredCallState::Awaited, 0) => Status::FAILED,
        (DeferredCallState::Awaited, number) => {
            if number == 1 {
                reply.extend(&vec![0; 2 << 20]);
            }
            lean.seal(&mut reply);
            return reply;
        }
    };
    let exception = Exception::new(status, "because");
    lean.refuse(&mut reply, &exception).seal(&mut reply);
    reply
}

/// Runs this for as many seeds as the environment asks for, or `count`; returns how many calls ended how, and how many
/// were answered by which course.
fn run(
    load: Load,
    count: u64,
    run: impl Fn(&mut Simulation),
) -> (HashMap<Outcome, usize>, HashMap<Course, usize>) {
    let mut totals: HashMap<Outcome, usize> = HashMap::new();
    let mut courses: HashMap<Course, usize> = HashMap::new();
    for seed in seeds(count) {
        let _shown = ShownOnFailure(seed);
        let mut simulation = Simulation::new(seed, load);
        run(&mut simulation);
        for (outcome, count) in simulation.outcomes() {
            *totals.entry(outcome).or_default() += count;
        }
        for (course, count) in simulation.answered {
            *courses.entry(course).or_default() += count;
        }
    }
    println!("{totals:?}\n{courses:#?}");
    (totals, courses)
}

#[test]
fn calls_come_to_one_end_in_both_directions() {
    let (totals, courses) = run(Load::Mixed, 60, Simulation::run);
    for outcome in [
        Outcome::Answered,
        Outcome::Cancelled,
        Outcome::Expired,
        Outcome::NotExecuted,
        Outcome::Failed(Status::FAILED),
        Outcome::Failed(Status::TOO_LARGE),
    ] {
        assert!(
            totals.get(&outcome).is_some_and(|count| *count > 20),
            "{outcome:?}"
        );
    }
    for protocol in [WireProtocol::Onc, WireProtocol::Lean] {
        assert_answered(&courses, protocol, false);
    }
}

/// Pieces of several messages, of calls and replies in both directions, go between each other, with and without a layer
/// below.
#[test]
fn messages_in_pieces_arrive_in_both_directions() {
    let (totals, courses) = run(Load::InPieces, 40, Simulation::run);
    assert!(totals[&Outcome::Answered] > 300 && totals[&Outcome::Cancelled] > 20);
    assert_answered(&courses, WireProtocol::Lean, true);
}

/// Checks that calls were answered in both directions, with and without a layer.
fn assert_answered(courses: &HashMap<Course, usize>, protocol: WireProtocol, is_in_pieces: bool) {
    for is_call_back in [false, true] {
        for is_layered in [false, true] {
            let course = Course {
                protocol,
                is_call_back,
                is_layered,
                is_in_pieces,
            };
            let count = courses.get(&course).copied().unwrap_or_default();
            assert!(count > 5, "{count} answers: {course:?}");
        }
    }
}

#[test]
fn when_the_connection_is_lost_anywhere_every_call_has_ended_or_is_given_up() {
    let (totals, _) = run(Load::Mixed, 80, Simulation::break_off);
    assert!(totals[&Outcome::Lost] > 100 && totals[&Outcome::NotExecuted] > 100);
}

/// The receiving end hangs up; what it has carried out before it has carried out once.
#[test]
fn a_record_over_the_limit_ends_the_connection_and_no_other_call_wrongly() {
    for seed in seeds(100) {
        let _shown = ShownOnFailure(seed);
        let mut random = Random(seed);
        let server = ConnectionConfig {
            receive_max: 2000,
            ..ConnectionConfig::server()
        };
        let client = ConnectionConfig {
            fragment_max: 4 + random.below(3000),
            ..ConnectionConfig::client()
        };
        let (mut client, mut server) = pair::<u32>(WireProtocol::Onc, client, server);
        let mut sizes = Vec::new();
        for waiter in 0..60 {
            let size = random.below(2100);
            sizes.push(size);
            let deadline = Instant::now() + Duration::from_secs(60);
            let arguments = vec![7; size];
            let protocol = WireProtocol::Onc;
            client.call(protocol, &arguments, deadline, waiter).unwrap();
        }
        let bytes = client.transmit_all();
        let mut executed = Vec::new();
        let mut at = 0;
        let error = loop {
            let end = (at + 1 + random.of_bits(12)).min(bytes.len());
            match server.receive(&bytes[at..end]) {
                Ok(taken) => at += taken,
                Err(error) => break Some(error),
            }
            let outcome = loop {
                match server.receiver.next_frame() {
                    Err(error) => break Err(error),
                    Ok(None) => break Ok(()),
                    Ok(Some(frame)) => {
                        let event = server.connection.handle_frame(frame, &server.services);
                        if let Ok(Event::Called(call)) = event {
                            executed.push(call.arguments.len());
                        }
                    }
                }
            };
            if let Err(error) = outcome {
                break Some(error.into());
            }
            if at == bytes.len() {
                break None;
            }
        };
        let first_too_large = sizes.iter().position(|size| size + 40 > 2000);
        assert_eq!(error.is_some(), first_too_large.is_some());
        assert_eq!(executed, sizes[..first_too_large.unwrap_or(60)]);
    }
}
