//! Both ends call each other with streams of arguments, of results, of both and of none, over a stream of bytes that
//! delays and cuts as it likes: items from nothing to several hundred KiB, slow readers, writers that wait for room,
//! calls that are cancelled, answered early, cut off by a close or by the loss of the connection. A seed decides
//! everything that happens, so that a failure is repeated by its seed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{
    Caller, DeferredCallState, DeferredId, Event, PushError, ReplyDraft, ReplyError, StartError,
    StreamId, WireProtocol,
};
use tenon_proto::lean::{
    ByteOrder, CallStreams, CloseReason, Exception, Extras, Features, Interface, STREAM_WINDOW,
    Status,
};
use tenon_wire::Buffer;

use crate::common::{Random, ShownOnFailure, seeds};
use crate::ends::{End, PROGRAM, pair};
use crate::layer::Scrambler;

/// Calls that each end makes.
const CALLS: u32 = 24;

/// What happens before everything is let come to its end.
const STEPS: usize = 4000;

const HOUR: Duration = Duration::from_secs(3600);

/// One direction of a stream of bytes, which arrive in order, each piece at its time.
#[derive(Default)]
struct Pipe {
    pieces: VecDeque<(Instant, Vec<u8>)>,
    /// The longest delay has so many bits of microseconds.
    delay_bits: usize,
}

impl Pipe {
    fn send(&mut self, random: &mut Random, now: Instant, bytes: Vec<u8>) {
        let last = self.pieces.back().map_or(now, |(at, _)| *at);
        let delay = Duration::from_micros(random.of_bits(self.delay_bits) as u64);
        self.pieces.push_back((last.max(now + delay), bytes));
    }

    /// Hands a part of what has arrived to an end; returns whether there was any.
    fn deliver(&mut self, random: &mut Random, now: Instant, to: &mut End) -> bool {
        let Some((_, piece)) = self.pieces.front_mut().filter(|(at, _)| *at <= now) else {
            return false;
        };
        let wanted = (1 + random.of_bits(20)).min(piece.len());
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

/// Names a stream in the whole simulation, and decides what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct StreamKey {
    /// The end that makes the call, and its waiter.
    caller: usize,
    waiter: u32,
    /// True for the stream of the result.
    is_result: bool,
}

impl StreamKey {
    fn random(self, index: u64) -> Random {
        let call = (self.caller as u64) << 32 | u64::from(self.waiter);
        let mut random = Random(call << 1 | u64::from(self.is_result));
        let seed = random.next();
        Random(seed.wrapping_add(index))
    }

    /// Returns whether it has more than the first window in any case.
    fn is_long(self) -> bool {
        self.waiter.is_multiple_of(4)
    }

    /// The number of items.
    fn count(self) -> u64 {
        let mut random = self.random(u64::MAX);
        match random.below(4) {
            _ if self.is_long() => 4 + random.below(12) as u64,
            0 => random.below(200) as u64,
            _ => random.below(8) as u64,
        }
    }

    fn item(self, index: u64) -> Vec<u8> {
        let mut random = self.random(index);
        let is_short = self.count() < 10;
        let length = match random.below(8) {
            _ if self.is_long() => (20 << 10) + random.below(1 << 18),
            0 => 0,
            1 | 2 if is_short => random.of_bits(19),
            3 => random.of_bits(15),
            _ => random.of_bits(10),
        };
        let mut item = vec![random.next() as u8; length];
        for (at, byte) in item.iter_mut().zip(index.to_be_bytes()) {
            *at = byte;
        }
        item
    }
}

/// The sender of the items of a stream.
struct Writer {
    key: StreamKey,
    /// Items that were begun.
    begun: u64,
    /// Messages of the last of them that are not handed over.
    parts: VecDeque<Buffer>,
    waits_for_room: bool,
    has_ended: bool,
}

impl Writer {
    fn new(key: StreamKey) -> Self {
        Self {
            key,
            begun: 0,
            parts: VecDeque::new(),
            waits_for_room: false,
            has_ended: false,
        }
    }

    fn is_done(&self) -> bool {
        self.parts.is_empty() && self.begun == self.key.count()
    }

    /// Divides an item as a driver does.
    fn begin_next(&mut self, end: &End, id: StreamId) {
        let item = self.key.item(self.begun);
        self.begun += 1;
        let mut buffer = Buffer::default();
        let draft = end.connection.item_draft(id);
        draft.begin(&mut buffer);
        buffer.extend(&item);
        if draft.seal(&mut buffer) {
            return self.parts.push_back(buffer);
        }
        let mut rest = &item[..];
        while !rest.is_empty() {
            let mut part = Buffer::default();
            let taken = draft.split(rest, &mut part);
            rest = &rest[taken..];
            self.parts.push_back(part);
        }
    }
}

/// The receiver of the items of a stream.
struct Reader {
    key: StreamKey,
    /// Items that came whole.
    came: u64,
    partial: Vec<u8>,
    /// Bytes that are not given back.
    held: u64,
    is_wanted: bool,
    has_ended: bool,
}

impl Reader {
    fn new(key: StreamKey) -> Self {
        Self {
            key,
            came: 0,
            partial: Vec::new(),
            held: 0,
            is_wanted: true,
            has_ended: false,
        }
    }
}

/// A call of this end that is in flight.
struct OwnCall {
    waiter: u32,
    streams: CallStreams,
    arguments: Vec<u8>,
    writer: Option<Writer>,
    reader: Option<Reader>,
}

/// A call of the peer that is not answered.
struct PeerCall {
    id: DeferredId,
    caller: Caller,
    arguments: Vec<u8>,
    is_cancelled: bool,
    writer: Option<Writer>,
    reader: Option<Reader>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Outcome {
    /// Answered behind all items of its streams.
    Complete,
    /// Answered before the callee had all items of the arguments, or had sent all of the result.
    Early,
    Cancelled,
    /// Cancelled before it was sent.
    Unsent,
    /// Not begun by a peer that closes.
    Unbegun,
    /// The connection was lost.
    Lost,
}

/// Something that has to happen in some run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Occasion {
    /// A call by the client or the server, with these streams, over a layer or not, ended so.
    Call {
        caller: usize,
        streams: CallStreams,
        outcome: Outcome,
    },
    Layered(Outcome),
    WriterWaited,
    ReaderStopped,
    /// More bytes were held than the first window has.
    WindowGrew,
    LongItem,
    EmptyItem,
    CancelledAtCallee,
}

struct Side {
    end: End,
    /// Bytes on their way to this end.
    inbound: Pipe,
    /// By their numbers.
    own: BTreeMap<u32, OwnCall>,
    of_peer: BTreeMap<u32, PeerCall>,
    /// Bytes of streams that are over, to be given back.
    left_over: Vec<(StreamId, u64)>,
    started: u32,
    ended: u32,
}

struct Simulation {
    random: Random,
    now: Instant,
    is_layered: bool,
    sides: [Side; 2],
    /// The calls that have reached their callees.
    begun: HashSet<(usize, u32)>,
    occasions: HashMap<Occasion, usize>,
}

fn config(random: &mut Random, of: ConnectionConfig) -> ConnectionConfig {
    let orders = [ByteOrder::Little, ByteOrder::Big];
    let features = [Features::default(), Features::all()];
    ConnectionConfig {
        receive_max: 1 << 20,
        incoming_calls_max: 16,
        incoming_streams_max: 1 + random.of_bits(3),
        stream_window_max: STREAM_WINDOW << random.below(4),
        features: features[usize::from(random.below(3) > 0)],
        byte_order: orders[random.below(2)],
        ..of
    }
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let client = config(&mut random, ConnectionConfig::client());
        let server = config(&mut random, ConnectionConfig::server());
        let (mut client, mut server) = pair(WireProtocol::Lean, client, server);
        let is_layered = random.below(4) == 0;
        if is_layered {
            for end in [&mut client, &mut server] {
                let layer = Box::new(Scrambler::new(end.is_server));
                end.connection.put_layer(layer, &mut end.receiver).unwrap();
            }
        }
        let delay_bits = random.below(15);
        let side = |end| Side {
            end,
            inbound: Pipe {
                delay_bits,
                ..Pipe::default()
            },
            own: BTreeMap::new(),
            of_peer: BTreeMap::new(),
            left_over: Vec::new(),
            started: 0,
            ended: 0,
        };
        Self {
            random,
            now: Instant::now(),
            is_layered,
            sides: [side(client), side(server)],
            begun: HashSet::new(),
            occasions: HashMap::new(),
        }
    }

    fn note(&mut self, occasion: Occasion) {
        *self.occasions.entry(occasion).or_default() += 1;
    }

    fn step(&mut self) {
        let at = self.random.below(2);
        match self.random.below(200) {
            0..10 => self.start_call(at),
            10..50 => self.transmit(at),
            50..90 => self.deliver(at),
            90..130 => self.write(at),
            130..160 => self.give_back(at),
            160..175 => self.answer(at, false),
            175 if self.random.below(2) == 0 => self.answer(at, true),
            176 if self.random.below(3) == 0 => self.cancel(at),
            177 if self.random.below(6) == 0 => self.stop_reader(at),
            _ => self.now += Duration::from_micros(self.random.of_bits(9) as u64),
        }
    }

    // ---- Calls ----

    fn start_call(&mut self, at: usize) {
        let side = &mut self.sides[at];
        // A server knows the protocol once something has come.
        if side.started >= CALLS || side.end.connection.protocol().is_none() {
            return;
        }
        let waiter = side.started;
        let mut flag = || self.random.below(2) == 0;
        let streams = CallStreams {
            argument: flag(),
            result: flag(),
        };
        let length = match (streams.any(), self.random.below(4)) {
            (_, 0) => self.random.of_bits(18),
            _ => self.random.of_bits(8),
        };
        let mut arguments = vec![at as u8; 8];
        arguments[4..].copy_from_slice(&waiter.to_be_bytes());
        arguments.extend(self.random.bytes(length));
        let extras = Extras {
            streams,
            ..Extras::default()
        };
        let interface = Arc::new(Interface::unknown(PROGRAM, 1));
        let of = (&interface, 1);
        let deadline = self.now + HOUR;
        let started = (side.end).call_lean(of, &arguments, &extras, deadline, waiter);
        match started {
            Ok(call) => {
                let key = |is_result| StreamKey {
                    caller: at,
                    waiter,
                    is_result,
                };
                side.started += 1;
                let call_state = OwnCall {
                    waiter,
                    streams,
                    arguments,
                    writer: streams.argument.then(|| Writer::new(key(false))),
                    reader: streams.result.then(|| Reader::new(key(true))),
                };
                side.own.insert(call.number, call_state);
                if self.random.below(30) == 0 {
                    self.cancel_call(at, call.number);
                }
            }
            Err(
                StartError::TooManyCalls { .. }
                | StartError::TooManyStreams { .. }
                | StartError::AwaitsPreamble { .. }
                | StartError::AwaitsBinding { .. }
                | StartError::Closing,
            ) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Notes that a call of an end is over, and so are its streams.
    fn end_call(&mut self, at: usize, number: u32, call: OwnCall, outcome: Outcome) {
        let side = &mut self.sides[at];
        side.ended += 1;
        side.keep(StreamId::own(number), call.reader);
        let streams = call.streams;
        self.note(Occasion::Call {
            caller: at,
            streams,
            outcome,
        });
        if self.is_layered && streams.any() {
            self.note(Occasion::Layered(outcome));
        }
    }

    fn cancel(&mut self, at: usize) {
        let numbers: Vec<u32> = self.sides[at].own.keys().copied().collect();
        if !numbers.is_empty() {
            let number = numbers[self.random.below(numbers.len())];
            self.cancel_call(at, number);
        }
    }

    fn cancel_call(&mut self, at: usize, number: u32) {
        let side = &mut self.sides[at];
        let call = side.own.remove(&number).unwrap();
        let abandoned = side.end.connection.cancel_call(number).unwrap();
        assert_eq!(abandoned.waiter, call.waiter);
        let outcome = match abandoned.was_sent {
            true => Outcome::Cancelled,
            false => {
                assert!(!self.begun.contains(&(at, call.waiter)));
                Outcome::Unsent
            }
        };
        self.end_call(at, number, call, outcome);
    }

    /// Answers a call: one that is finished, or `early` one of which items are missing.
    fn answer(&mut self, at: usize, early: bool) {
        let side = &mut self.sides[at];
        let may_be = side.of_peer.iter().filter(|(_, call)| {
            let is_sent = call.writer.as_ref().is_none_or(Writer::is_done);
            let is_read = call.reader.as_ref().is_none_or(|reader| reader.has_ended);
            let is_whole = (call.writer.as_ref()).is_none_or(|writer| writer.parts.is_empty());
            call.is_cancelled || is_sent && is_read || early && is_whole
        });
        let numbers: Vec<u32> = may_be.map(|(number, _)| *number).collect();
        if numbers.is_empty() {
            return;
        }
        let number = numbers[self.random.below(numbers.len())];
        let call = side.of_peer.remove(&number).unwrap();
        let sent = call.writer.as_ref().map_or(0, |writer| writer.begun);
        let mut reply = Buffer::default();
        let draft = ReplyDraft::begin(&mut reply, call.caller);
        let state = side.end.connection.deferred_state(call.id).unwrap();
        let is_cancelled = state == DeferredCallState::Cancelled;
        assert_eq!(is_cancelled, call.is_cancelled);
        match draft {
            ReplyDraft::Lean(lean) if is_cancelled => {
                let exception = Exception::new(Status::CANCELLED, "");
                lean.refuse(&mut reply, &exception).seal(&mut reply);
            }
            draft => {
                reply.extend(&sent.to_be_bytes());
                reply.extend(&call.arguments);
                draft.seal(&mut reply);
            }
        }
        let answered = (side.end.connection).answer_deferred(call.id, &mut reply);
        assert_eq!(answered, Some(state));
        side.keep(StreamId::of_peer(number), call.reader);
        if is_cancelled {
            self.note(Occasion::CancelledAtCallee);
        }
    }

    // ---- Streams ----

    /// Has the writer of a stream hand the next of its items over, as far as there is room.
    fn write(&mut self, at: usize) {
        let side = &mut self.sides[at];
        let own = side.own.iter_mut().map(|(number, call)| {
            let id = StreamId::own(*number);
            (id, &mut call.writer, false)
        });
        let of_peer = side.of_peer.iter_mut().map(|(number, call)| {
            let id = StreamId::of_peer(*number);
            (id, &mut call.writer, call.is_cancelled)
        });
        let writers = own.chain(of_peer).filter_map(|(id, writer, is_cancelled)| {
            let writer = writer.as_mut()?;
            (!writer.waits_for_room && !writer.has_ended).then_some((id, writer, is_cancelled))
        });
        let mut writers: Vec<_> = writers.collect();
        if writers.is_empty() {
            return;
        }
        let index = self.random.below(writers.len());
        let (id, writer, is_cancelled) = &mut writers[index];
        if writer.is_done() {
            writer.has_ended = true;
            if id.is_own {
                side.end.connection.end_stream(*id);
            }
            return;
        }
        if writer.parts.is_empty() {
            writer.begin_next(&side.end, *id);
        }
        let mut waited = false;
        while let Some(part) = writer.parts.front_mut() {
            match side.end.connection.push_item(*id, part) {
                Ok(()) => drop(writer.parts.pop_front()),
                Err(PushError::Full) => {
                    (writer.waits_for_room, waited) = (true, true);
                    break;
                }
                Err(PushError::Over) => {
                    assert!(*is_cancelled, "nobody has given the call up");
                    writer.has_ended = true;
                    break;
                }
            }
        }
        if waited {
            self.note(Occasion::WriterWaited);
        }
    }

    fn give_back(&mut self, at: usize) {
        let side = &mut self.sides[at];
        if let Some((id, bytes)) = side.left_over.pop() {
            side.end.connection.give_back(id, bytes);
            return;
        }
        let mut readers: Vec<_> = side
            .readers()
            .filter(|(_, reader)| reader.held > 0)
            .collect();
        if readers.is_empty() {
            return;
        }
        let index = self.random.below(readers.len());
        let (id, reader) = &mut readers[index];
        let bytes = match self.random.below(4) {
            0 => 1 + self.random.below(reader.held as usize) as u64,
            _ => reader.held,
        };
        reader.held -= bytes;
        let id = *id;
        side.end.connection.give_back(id, bytes);
    }

    fn stop_reader(&mut self, at: usize) {
        let side = &mut self.sides[at];
        let wanted = side.readers().filter(|(_, reader)| reader.is_wanted);
        let mut readers: Vec<_> = wanted.collect();
        if readers.is_empty() {
            return;
        }
        let index = self.random.below(readers.len());
        let (id, reader) = &mut readers[index];
        reader.is_wanted = false;
        let id = *id;
        side.end.connection.stop_receiving(id);
        self.note(Occasion::ReaderStopped);
    }

    // ---- Bytes ----

    fn transmit(&mut self, at: usize) {
        let bytes = self.sides[at].end.transmit();
        if !bytes.is_empty() {
            let inbound = &mut self.sides[1 - at].inbound;
            inbound.send(&mut self.random, self.now, bytes);
        }
        let side = &mut self.sides[at];
        while let Some(id) = side.end.connection.poll_writable() {
            let writer = match id.is_own {
                true => side.own.get_mut(&id.number).map(|call| &mut call.writer),
                false => side
                    .of_peer
                    .get_mut(&id.number)
                    .map(|call| &mut call.writer),
            };
            if let Some(Some(writer)) = writer {
                writer.waits_for_room = false;
            }
        }
    }

    fn deliver(&mut self, at: usize) {
        let side = &mut self.sides[at];
        if (side.inbound).deliver(&mut self.random, self.now, &mut side.end) {
            while self.take_frame(at) {}
        }
    }

    fn take_frame(&mut self, at: usize) -> bool {
        let side = &mut self.sides[at];
        let frame = (side.end.receiver.next_frame()).expect("nothing breaks the protocol");
        let Some(frame) = frame else {
            return false;
        };
        let event = side.end.connection.handle_frame(frame, &side.end.services);
        match event.expect("nothing breaks the protocol") {
            Event::Answered(answer) => {
                let number = answer.number;
                let call = side.own.remove(&number).unwrap();
                assert_eq!(answer.waiter, call.waiter);
                let results = match answer.outcome {
                    Ok(results) => results,
                    Err(ReplyError::Exception(exception)) => panic!("{exception:?}"),
                    Err(other) => panic!("{other:?}"),
                };
                let sent = u64::from_be_bytes(*results.first_chunk().unwrap());
                assert!(
                    results[8..] == call.arguments,
                    "the results of another call"
                );
                let mut is_early = call.writer.as_ref().is_some_and(|writer| !writer.has_ended);
                if let Some(reader) = &call.reader {
                    is_early |= sent < reader.key.count();
                    assert!(reader.partial.is_empty() || !reader.is_wanted);
                    assert!(
                        !reader.is_wanted || reader.came == sent,
                        "items are missing"
                    );
                }
                let outcome = match is_early {
                    true => Outcome::Early,
                    false => Outcome::Complete,
                };
                self.end_call(at, number, call, outcome);
            }
            Event::Called(call) => {
                let name: [u8; 8] = *call.arguments.first_chunk().unwrap();
                let waiter = u32::from_be_bytes(*name.last_chunk().unwrap());
                assert_eq!(name[0], 1 - at as u8, "a call of the other end");
                assert!(self.begun.insert((1 - at, waiter)), "carried out twice");
                let key = |is_result| StreamKey {
                    caller: 1 - at,
                    waiter,
                    is_result,
                };
                let (caller, streams) = (call.caller, call.streams);
                let arguments = call.arguments.to_vec();
                let id = side.end.connection.defer(&caller, None);
                let call_state = PeerCall {
                    id: id.expect("no more than is granted"),
                    caller,
                    arguments,
                    is_cancelled: false,
                    writer: streams.result.then(|| Writer::new(key(true))),
                    reader: streams.argument.then(|| Reader::new(key(false))),
                };
                let before = side.of_peer.insert(caller.number(), call_state);
                assert!(before.is_none());
            }
            Event::Items(item) => {
                let (id, size, has_more) = (item.id, item.size, item.has_more);
                let reader = match id.is_own {
                    true => side.own.get_mut(&id.number).map(|call| &mut call.reader),
                    false => side
                        .of_peer
                        .get_mut(&id.number)
                        .map(|call| &mut call.reader),
                };
                let reader = reader.expect("of a call in flight").as_mut();
                let reader = reader.expect("the call has the stream");
                assert!(reader.is_wanted && !reader.has_ended);
                reader.partial.extend(item.content);
                reader.held += size;
                let mut occasion = None;
                if !has_more {
                    assert!(reader.came < reader.key.count(), "an item too many");
                    let expected = reader.key.item(reader.came);
                    assert!(reader.partial == expected, "another item");
                    occasion = match expected.len() {
                        0 => Some(Occasion::EmptyItem),
                        200_000.. => Some(Occasion::LongItem),
                        _ => None,
                    };
                    reader.came += 1;
                    reader.partial.clear();
                }
                let has_grown = reader.held > STREAM_WINDOW.into();
                self.check_memory(at, id);
                if has_grown {
                    self.note(Occasion::WindowGrew);
                }
                if let Some(occasion) = occasion {
                    self.note(occasion);
                }
            }
            Event::StreamEnded(id) => {
                assert!(!id.is_own);
                let call = side.of_peer.get_mut(&id.number).unwrap();
                let reader = call.reader.as_mut().unwrap();
                assert!(!reader.has_ended && reader.partial.is_empty());
                assert_eq!(reader.came, reader.key.count(), "the end overtook an item");
                reader.has_ended = true;
            }
            Event::Cancelled(id) => {
                let call = side.of_peer.get_mut(&id.number()).unwrap();
                assert_eq!(call.id, id);
                call.is_cancelled = true;
            }
            Event::PeerClosing(closing) => {
                let unbegun = closing.unbegun;
                for call in unbegun {
                    assert!(!self.begun.contains(&(at, call.waiter)));
                    let state = self.sides[at].own.remove(&call.number).unwrap();
                    self.end_call(at, call.number, state, Outcome::Unbegun);
                }
            }
            Event::Unbegun(_) => panic!("both ends have the same interfaces"),
            Event::CancelledHere(_) | Event::Pong(_) | Event::Progress | Event::Handled => {}
        }
        true
    }

    /// What is received and not given back has room in the windows.
    fn check_memory(&mut self, at: usize, id: StreamId) {
        let side = &mut self.sides[at];
        let window = u64::from(side.end.config.stream_window_max);
        let left_over: u64 = side.left_over.iter().map(|(_, bytes)| bytes).sum();
        let mut total = left_over;
        for (of, reader) in side.readers() {
            total += reader.held;
            assert!(
                of != id || reader.held <= window,
                "over the window of a stream"
            );
        }
        assert!(total <= 4 * window, "over the window of the connection");
    }

    // ---- The end ----

    /// Lets all that was begun come to its end.
    fn finish(&mut self) {
        for _ in 0..100_000 {
            for at in 0..2 {
                self.transmit(at);
                self.deliver(at);
                self.write(at);
                self.give_back(at);
                self.answer(at, false);
                self.end_stopped(at);
            }
            self.now += Duration::from_micros(100);
            let is_over = self.sides.iter().all(|side| {
                side.own.is_empty()
                    && side.of_peer.is_empty()
                    && side.left_over.is_empty()
                    && side.inbound.pieces.is_empty()
                    && !side.end.connection.has_transmit()
            });
            if is_over {
                return;
            }
        }
        panic!("it does not come to an end");
    }

    /// Ends the calls of which this end does not read a stream any more: their writers may wait for ever.
    fn end_stopped(&mut self, at: usize) {
        let is_stopped =
            |reader: &Option<Reader>| reader.as_ref().is_some_and(|reader| !reader.is_wanted);
        let side = &mut self.sides[at];
        let own = side.own.iter().filter(|(_, call)| is_stopped(&call.reader));
        let own: Vec<u32> = own.map(|(number, _)| *number).collect();
        let of_peer = side.of_peer.values();
        let is_any = of_peer.filter(|call| is_stopped(&call.reader)).count() > 0;
        for number in own {
            self.cancel_call(at, number);
        }
        if is_any {
            self.answer(at, true);
        }
    }

    fn run(&mut self) {
        let closes_at = self.random.below(STEPS * 2);
        for step in 0..STEPS {
            self.step();
            let at = self.random.below(2);
            let connection = &mut self.sides[at].end.connection;
            // A server that stops before the handshake refuses the connection.
            if step == closes_at && connection.peer().is_some() {
                connection.close(CloseReason::DONE, "");
            }
        }
        self.finish();
        self.check_ended();
        for at in 0..2 {
            let side = &mut self.sides[at];
            assert_eq!(side.end.connection.in_flight(), 0);
            assert_eq!(side.end.connection.deferred(), 0);
            assert!(side.end.receiver.is_between_frames());
        }
        if closes_at >= STEPS {
            for at in 0..2 {
                self.check_free(at);
            }
        }
    }

    fn check_ended(&self) {
        for side in &self.sides {
            assert!(side.own.is_empty());
            assert_eq!(side.started, side.ended);
        }
    }

    /// All that is granted is free again: calls, and at least half of the credit of the connection.
    fn check_free(&mut self, at: usize) {
        let side = &mut self.sides[at];
        let interface = Arc::new(Interface::unknown(PROGRAM, 1));
        let granted = side.end.connection.peer().unwrap().streams_max;
        let extras = Extras {
            streams: CallStreams {
                argument: true,
                result: false,
            },
            ..Extras::default()
        };
        let mut pushed = 0;
        for waiter in 0..u32::from(granted) {
            let of = (&interface, 1);
            let started = side.end.call_lean(of, b"", &extras, self.now, waiter);
            // The service was not needed before, and is not bound.
            let Ok(call) = started else {
                assert!(matches!(started, Err(StartError::AwaitsBinding { .. })));
                return;
            };
            let id = StreamId::own(call.number);
            let mut message = Buffer::default();
            let draft = side.end.connection.item_draft(id);
            draft.begin(&mut message);
            message.extend(&[7; 30 << 10]);
            assert!(draft.seal(&mut message));
            if pushed < 4 {
                side.end.connection.push_item(id, &mut message).unwrap();
                pushed += 1;
            }
        }
        let sent = side.end.transmit_all().len();
        assert!(sent > pushed * (30 << 10), "{sent} bytes of {pushed} items");
    }

    /// The connection is lost anywhere.
    fn break_off(&mut self) {
        for _ in 0..self.random.below(STEPS) {
            self.step();
        }
        for at in 0..2 {
            let calls = self.sides[at].end.connection.abandon_all();
            for call in calls {
                let state = self.sides[at].own.remove(&call.number).unwrap();
                let may_restart = !call.was_sent && !state.streams.any();
                assert_eq!(call.unsent.is_some(), may_restart);
                let outcome = match call.was_sent {
                    true => Outcome::Lost,
                    false => Outcome::Unsent,
                };
                assert!(call.was_sent || !self.begun.contains(&(at, call.waiter)));
                self.end_call(at, call.number, state, outcome);
            }
        }
        self.check_ended();
    }
}

impl Side {
    fn readers(&mut self) -> impl Iterator<Item = (StreamId, &mut Reader)> {
        let own = self.own.iter_mut().filter_map(|(number, call)| {
            let reader = call.reader.as_mut()?;
            Some((StreamId::own(*number), reader))
        });
        let of_peer = self.of_peer.iter_mut().filter_map(|(number, call)| {
            let reader = call.reader.as_mut()?;
            Some((StreamId::of_peer(*number), reader))
        });
        own.chain(of_peer)
    }

    /// Keeps what the reader of a stream that is over has not given back.
    fn keep(&mut self, id: StreamId, reader: Option<Reader>) {
        if let Some(reader) = reader.filter(|reader| reader.held > 0) {
            self.left_over.push((id, reader.held));
        }
    }
}

/// Runs this for as many seeds as the environment asks for, or `count`; returns what has happened how often.
fn run(count: u64, run: impl Fn(&mut Simulation)) -> HashMap<Occasion, usize> {
    let mut totals: HashMap<Occasion, usize> = HashMap::new();
    for seed in seeds(count) {
        let _shown = ShownOnFailure(seed);
        let mut simulation = Simulation::new(seed);
        run(&mut simulation);
        for (occasion, count) in simulation.occasions {
            *totals.entry(occasion).or_default() += count;
        }
    }
    println!("{totals:?}");
    totals
}

/// Checks that calls of both ends with all kinds of streams have ended so.
fn assert_ended(totals: &HashMap<Occasion, usize>, outcome: Outcome, least: usize) {
    for caller in 0..2 {
        for (argument, result) in [(true, true), (true, false), (false, true), (false, false)] {
            let streams = CallStreams { argument, result };
            let occasion = Occasion::Call {
                caller,
                streams,
                outcome,
            };
            if outcome != Outcome::Early || streams.any() {
                assert_happened(totals, occasion, least);
            }
        }
    }
}

fn assert_happened(totals: &HashMap<Occasion, usize>, occasion: Occasion, least: usize) {
    let count = totals.get(&occasion).copied().unwrap_or_default();
    assert!(count >= least, "{count} times: {occasion:?}");
}

#[test]
fn streams_come_to_one_end_in_both_directions() {
    let totals = run(60, Simulation::run);
    for outcome in [Outcome::Complete, Outcome::Early, Outcome::Cancelled] {
        assert_ended(&totals, outcome, 3);
        assert_happened(&totals, Occasion::Layered(outcome), 3);
    }
    for outcome in [Outcome::Unsent, Outcome::Unbegun] {
        let of_outcome = totals.iter().filter(|(occasion, _)| {
            matches!(occasion, Occasion::Call { outcome: of, streams, .. }
                if *of == outcome && streams.any())
        });
        assert!(
            of_outcome.map(|(_, count)| count).sum::<usize>() >= 3,
            "{outcome:?}"
        );
    }
    for occasion in [
        Occasion::WriterWaited,
        Occasion::ReaderStopped,
        Occasion::WindowGrew,
        Occasion::LongItem,
        Occasion::EmptyItem,
        Occasion::CancelledAtCallee,
    ] {
        assert_happened(&totals, occasion, 10);
    }
}

#[test]
fn when_the_connection_is_lost_anywhere_every_call_with_streams_is_given_up() {
    let totals = run(60, Simulation::break_off);
    assert_ended(&totals, Outcome::Lost, 3);
}
