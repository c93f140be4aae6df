//! The end of a connection that has begun it, by either protocol, under any sequence of its own acts and of bytes from
//! its peer, beside a map that remembers what is in flight.
#![no_main]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use tenon_fuzz::connection::{LIMIT, push_item, services, start, transmit_all};
use tenon_proto::ROOM_FIRST;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{
    AbandonedCall, CallTimeout, Caller, Connection, DeferredId, Event, ReplyDraft, ServiceTable,
    StartError, StreamId, WireProtocol,
};
use tenon_proto::lean::{ByteOrder, CallStreams, CloseReason, Exception, Preamble, Status};
use tenon_wire::Buffer;

const STEP: Duration = Duration::from_millis(100);
const CALLS_MAX: u32 = 20;
const STREAMS_MAX: u16 = 4;

fuzz_target!(|data: &[u8]| {
    let [seed, how, steps @ ..] = data else {
        return;
    };
    let server = Preamble {
        order: match how % 2 {
            0 => ByteOrder::Little,
            _ => ByteOrder::Big,
        },
        streams_max: STREAMS_MAX,
        ..Preamble::server(LIMIT as u32, CALLS_MAX)
    };
    let protocol = match how & 4 {
        0 => WireProtocol::Lean,
        _ => WireProtocol::Onc,
    };
    let mut model = Model::new(protocol, server, u32::MAX - u32::from(*seed), how & 8 == 0);
    if how & 2 == 0 {
        model.greet();
    }
    let mut left = steps;
    while let Some((step, rest)) = left.split_first() {
        let (input, rest) = rest.split_at(rest.len().min(usize::from(step >> 3)));
        if !model.step(step & 7, input) {
            model.connect_again();
        }
        left = rest;
    }
});

struct Model {
    protocol: WireProtocol,
    connection: Connection<u64>,
    receiver: Receiver,
    services: ServiceTable,
    server: Preamble,
    /// The waiter and the deadline of every call, by its number.
    in_flight: BTreeMap<u32, (u64, Instant)>,
    /// Streams of which items may be sent or come; some may be over.
    streams: Vec<StreamId>,
    /// Calls with streams of the peer that are not answered.
    deferred: Vec<(DeferredId, Caller)>,
    /// Bytes of items that are not given back.
    held: Vec<(StreamId, u64)>,
    now: Instant,
    calls: u64,
}

impl Model {
    /// Calls back are served if the end `serves`.
    fn new(protocol: WireProtocol, server: Preamble, seed: u32, serves: bool) -> Self {
        let config = ConnectionConfig {
            receive_max: LIMIT,
            incoming_calls_max: if serves { 16 } else { 0 },
            incoming_streams_max: if serves { usize::from(STREAMS_MAX) } else { 0 },
            ..ConnectionConfig::client()
        };
        let (connection, receiver) = Connection::client(config, protocol, seed);
        Self {
            protocol,
            connection,
            receiver,
            services: services(),
            server,
            in_flight: BTreeMap::new(),
            streams: Vec::new(),
            deferred: Vec::new(),
            held: Vec::new(),
            now: Instant::now(),
            calls: 0,
        }
    }

    fn greet(&mut self) {
        if self.protocol == WireProtocol::Lean {
            let preamble = self.server.encode();
            assert!(self.receive(&preamble));
        }
    }

    /// The connection is lost; what was in flight is given up, and goes on if it was not sent.
    fn connect_again(&mut self) {
        let mut unsent = Vec::new();
        for call in self.connection.abandon_all() {
            let deadline = self.forget(&call);
            unsent.extend(call.unsent.map(|unsent| (unsent, call.waiter, deadline)));
        }
        assert!(self.in_flight.is_empty());
        self.streams.clear();
        self.deferred.clear();
        self.held.clear();
        self.receiver = self.connection.renew(self.now);
        self.greet();
        for (mut call, waiter, deadline) in unsent {
            assert_eq!(call.deadline, deadline);
            if let Ok(started) = self.connection.restart_call(&mut call, waiter) {
                self.remember(started.number, waiter, deadline);
            }
        }
    }

    fn remember(&mut self, number: u32, waiter: u64, deadline: Instant) {
        let before = self.in_flight.insert(number, (waiter, deadline));
        assert_eq!(before, None, "a number in flight is not taken again");
    }

    fn forget(&mut self, call: &AbandonedCall<u64>) -> Instant {
        let (waiter, deadline) = self.in_flight.remove(&call.number).expect("in flight");
        assert_eq!(call.waiter, waiter);
        assert!(!(call.was_sent && call.unsent.is_some()));
        deadline
    }

    /// Does a step; false once the connection is over.
    fn step(&mut self, step: u8, input: &[u8]) -> bool {
        let goes_on = match step {
            0 | 1 => self.start(input),
            2 => self.receive(input),
            3 => self.receive_message(input),
            4 => self.answer_one(input),
            5 => self.cancel(input.len()),
            6 => self.pass_time(input.len() as u32),
            _ => self.speak(input),
        };
        assert_eq!(self.connection.in_flight(), self.in_flight.len());
        goes_on
    }

    fn start(&mut self, input: &[u8]) -> bool {
        let first = input.first().copied().unwrap_or(0);
        let program = u32::from(first % 4);
        let streams = CallStreams {
            argument: first & 16 != 0,
            result: first & 32 != 0,
        };
        let procedure = u16::from(input.get(1).copied().unwrap_or(1));
        let deadline = self.now + STEP * input.len() as u32;
        let waiter = self.calls + 1;
        let (of, call) = ((program, procedure), (deadline, waiter));
        let connection = &mut self.connection;
        match start(connection, self.protocol, of, streams, input, call) {
            Ok(call) => {
                self.calls += 1;
                if self.protocol == WireProtocol::Lean && streams.any() {
                    self.streams.push(StreamId::own(call.number));
                }
                self.remember(call.number, waiter, deadline);
            }
            Err(StartError::TooManyCalls { limit }) => assert!(limit <= CALLS_MAX as usize),
            Err(StartError::TooManyStreams { limit }) => {
                assert_eq!(limit, usize::from(STREAMS_MAX))
            }
            Err(StartError::AwaitsPreamble { .. } | StartError::AwaitsBinding { .. }) => {
                assert!(streams.any());
            }
            Err(StartError::Closing | StartError::Bind(_)) => {}
            Err(other) => panic!("{other}"),
        }
        true
    }

    /// Bytes as they are.
    fn receive(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let room = self.receiver.room();
            let taken = bytes.len().min(room.len());
            assert!(taken > 0, "there is always room");
            room[..taken].copy_from_slice(&bytes[..taken]);
            if self.receiver.handle_received(taken).is_err() {
                return false;
            }
            assert!(
                self.receiver.capacity() <= 2 * ROOM_FIRST,
                "not much has come"
            );
            bytes = &bytes[taken..];
            loop {
                match self.take_frame() {
                    Some(true) => {}
                    Some(false) => return false,
                    None => break,
                }
            }
        }
        true
    }

    /// Takes in the next message, if one has come whole; false if it ends the connection.
    fn take_frame(&mut self) -> Option<bool> {
        let frame = match self.receiver.next_frame() {
            Ok(frame) => frame?,
            Err(_) => return Some(false),
        };
        match self.connection.handle_frame(frame, &self.services) {
            Ok(Event::Answered(answer)) => {
                let (waiter, _) = self.in_flight.remove(&answer.number).expect("in flight");
                assert_eq!(answer.waiter, waiter);
                let metadata = answer.extensions.answer_metadata();
                assert_eq!(metadata.to_owned().view(), metadata);
            }
            Ok(Event::PeerClosing(closing)) => {
                let unbegun = closing.unbegun;
                for call in &unbegun {
                    self.forget(call);
                }
            }
            Ok(Event::Called(call)) => {
                assert!(call.service < 2);
                if call.streams.any() && call.procedure != 0 {
                    let caller = call.caller;
                    match (self.connection.defer(&caller, None), caller) {
                        (Some(id), _) => {
                            self.deferred.push((id, caller));
                            self.streams.push(StreamId::of_peer(caller.number()));
                        }
                        (None, Caller::Lean(caller)) => {
                            let exception = Exception::new(Status::OVERLOADED, "");
                            self.connection.refuse_call(caller, &exception);
                        }
                        (None, Caller::Onc { .. }) => panic!("it has no streams"),
                    }
                    return Some(true);
                }
                let mut reply = Buffer::default();
                let draft = ReplyDraft::begin(&mut reply, call.caller);
                reply.extend(call.arguments);
                draft.seal(&mut reply);
                self.connection.push_reply(&mut reply);
            }
            Ok(Event::Items(item)) => {
                assert!(self.streams.contains(&item.id));
                self.held.push((item.id, item.size));
            }
            Ok(Event::StreamEnded(id)) => assert!(self.streams.contains(&id) && !id.is_own),
            Ok(_) => {}
            Err(_) => return Some(false),
        }
        Some(true)
    }

    /// A message whose header is in order but for the fields that the input holds.
    fn receive_message(&mut self, input: &[u8]) -> bool {
        let [kind, flags, id, service, procedure, body @ ..] = input else {
            return true;
        };
        self.message(*kind, *flags, u32::from(*id), *service, *procedure, body)
    }

    fn answer_one(&mut self, input: &[u8]) -> bool {
        let (Some(id), [kind, procedure, body @ ..]) = (self.any(input.len()), input) else {
            return true;
        };
        self.message(2 + kind % 2, 0, id, 0, *procedure, body)
    }

    fn message(
        &mut self,
        kind: u8,
        flags: u8,
        id: u32,
        service: u8,
        procedure: u8,
        body: &[u8],
    ) -> bool {
        if self.protocol == WireProtocol::Onc {
            let record = [&id.to_be_bytes()[..], &[0, 0, 0, kind % 2], body].concat();
            let mark = 0x8000_0000 | record.len() as u32;
            return self.receive(&[&mark.to_be_bytes()[..], &record].concat());
        }
        let word = 0xd07e_0000 | u32::from(kind) << 8 | u32::from(flags);
        let mut fields = [
            word.to_be_bytes(),
            id.to_be_bytes(),
            [0, service, 0, procedure],
            (body.len() as u32).to_be_bytes(),
        ];
        if self.server.order == ByteOrder::Little {
            fields.iter_mut().for_each(|field| field.reverse());
            fields[2].rotate_left(2);
        }
        let mut message = fields.concat();
        message.extend(body);
        message.resize(message.len().next_multiple_of(8), 0);
        self.receive(&message)
    }

    fn cancel(&mut self, which: usize) -> bool {
        if let Some(number) = self.any(which) {
            let call = self.connection.cancel_call(number).expect("in flight");
            self.forget(&call);
            assert!(self.connection.cancel_call(number).is_none());
        }
        true
    }

    fn pass_time(&mut self, steps: u32) -> bool {
        self.now += STEP * steps;
        let numbers: Vec<u32> = self.in_flight.keys().copied().collect();
        for number in numbers {
            let (_, deadline) = self.in_flight[&number];
            match self.connection.handle_call_timeout(number, self.now) {
                Some(CallTimeout::Expired(call)) => {
                    assert!(self.now >= deadline);
                    self.forget(&call);
                }
                Some(CallTimeout::Wait(next)) => assert!(next == deadline && next > self.now),
                None => panic!("a call in flight is not known"),
            }
        }
        true
    }

    /// Sends what there is to say, of which some belongs to streams. What is said by the lean protocol has whole words.
    fn speak(&mut self, input: &[u8]) -> bool {
        if self.protocol == WireProtocol::Lean {
            match input.len() % 8 {
                0 => self.connection.close(CloseReason::DONE, ""),
                1 => drop(self.connection.ping()),
                2 => self.give_back(),
                3 => self.answer_deferred(),
                _ => {}
            }
        }
        if let [which, what, ..] = input
            && !self.streams.is_empty()
        {
            let id = self.streams[usize::from(*which) % self.streams.len()];
            match what % 4 {
                0 => self.connection.end_stream(id),
                1 => self.connection.stop_receiving(id),
                _ => {
                    let item = vec![7; usize::from(*what) << 8];
                    // There may be no room, and the stream may be over.
                    let _ = push_item(&mut self.connection, id, &item);
                }
            }
        }
        let sent = transmit_all(&mut self.connection);
        assert!(self.protocol == WireProtocol::Onc || sent.len().is_multiple_of(8));
        assert!(!self.connection.has_transmit());
        true
    }

    fn give_back(&mut self) {
        for (id, bytes) in self.held.drain(..) {
            self.connection.give_back(id, bytes);
        }
    }

    fn answer_deferred(&mut self) {
        if let Some((id, caller)) = self.deferred.pop() {
            let mut reply = Buffer::default();
            ReplyDraft::begin(&mut reply, caller).seal(&mut reply);
            let state = self.connection.answer_deferred(id, &mut reply);
            assert!(state.is_some() && reply.is_empty());
        }
    }

    fn any(&self, which: usize) -> Option<u32> {
        let count = self.in_flight.len().max(1);
        self.in_flight.keys().nth(which % count).copied()
    }
}
