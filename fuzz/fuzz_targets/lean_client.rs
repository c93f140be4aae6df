//! The client's side of a lean connection under any sequence of its own acts and of bytes from a
//! server, beside a map that remembers what is in flight.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use tenon_proto::ROOM_FIRST;
use tenon_proto::lean::client::{ClientEngine, Event, NotStarted, Outgoing, Timeout};
use tenon_proto::lean::{
    ByteOrder, HEADER, Incoming, Interface, Message, MessageReader, Preamble, Reason,
};
use tenon_wire::Buffer;

const STEP: Duration = Duration::from_millis(100);
const LIMIT: u32 = 64 << 10;
const CALLS_MAX: u32 = 20;

fuzz_target!(|data: &[u8]| {
    let [seed, order, steps @ ..] = data else {
        return;
    };
    let server = Preamble {
        order: match order % 2 {
            0 => ByteOrder::Little,
            _ => ByteOrder::Big,
        },
        ..Preamble::server(LIMIT, CALLS_MAX)
    };
    let mut model = Model {
        engine: ClientEngine::new(Preamble::client(LIMIT), u32::MAX - u32::from(*seed)),
        reader: MessageReader::new(LIMIT as usize),
        server,
        in_flight: BTreeMap::new(),
        now: Instant::now(),
        calls: 0,
    };
    if order & 2 == 0 {
        assert!(model.receive(&server.encode()));
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
    engine: ClientEngine<u64>,
    reader: MessageReader,
    server: Preamble,
    /// The waiter and the deadline of every call, by its number.
    in_flight: BTreeMap<u32, (u64, Instant)>,
    now: Instant,
    calls: u64,
}

impl Model {
    /// The connection is over; what was in flight is given up.
    fn connect_again(&mut self) {
        for (id, waiter) in self.engine.cancel_all() {
            let (expected, _) = self.in_flight.remove(&id).expect("in flight");
            assert_eq!(waiter, expected);
        }
        assert!(self.in_flight.is_empty());
        self.engine.renew();
        self.reader = MessageReader::new(LIMIT as usize);
        let server = self.server;
        assert!(self.receive(&server.encode()));
    }

    /// Does a step; false once the connection is over.
    fn step(&mut self, step: u8, input: &[u8]) -> bool {
        let goes_on = match step {
            0 | 1 => self.start(input),
            2 => self.receive(input),
            3 => self.receive_message(input),
            4 => self.answer_somebody(input),
            5 => self.cancel(input.len()),
            6 => self.pass_time(input.len() as u32),
            _ => self.speak(input.len()),
        };
        assert_eq!(self.engine.in_flight(), self.in_flight.len());
        goes_on
    }

    fn start(&mut self, input: &[u8]) -> bool {
        let program = u32::from(input.first().copied().unwrap_or(0) % 4);
        let interface = Interface {
            fingerprint: u64::from(program),
            ..Interface::unknown(program, 1)
        };
        let Ok(service) = self.engine.bind(&Arc::new(interface)) else {
            return true;
        };
        let deadline = self.now + STEP * input.len() as u32;
        let outgoing = Outgoing {
            service,
            procedure: u16::from(input.get(1).copied().unwrap_or(1)),
            size: HEADER,
            deadline,
        };
        match self.engine.start(&outgoing, self.calls + 1) {
            Ok(id) => {
                self.calls += 1;
                let before = self.in_flight.insert(id, (self.calls, deadline));
                assert_eq!(before, None, "a number in flight is not taken again");
                assert!(self.in_flight.len() <= CALLS_MAX as usize);
            }
            Err(NotStarted::TooManyCalls { limit }) => assert!(limit <= CALLS_MAX as usize),
            Err(NotStarted::Closed) => {}
            Err(other) => panic!("{other}"),
        }
        true
    }

    /// Bytes as they are.
    fn receive(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let room = self.reader.room();
            let taken = bytes.len().min(room.len());
            assert!(taken > 0, "there is always room");
            room[..taken].copy_from_slice(&bytes[..taken]);
            self.reader.filled(taken);
            assert!(self.reader.capacity() <= ROOM_FIRST, "not much has come");
            bytes = &bytes[taken..];
            loop {
                match self.reader.next_message() {
                    Ok(Some(Incoming::Preamble(theirs))) => {
                        if self.engine.handle_preamble(&theirs).is_err() {
                            return false;
                        }
                    }
                    Ok(Some(Incoming::Message(message))) => {
                        if !handle(&mut self.engine, &mut self.in_flight, &message) {
                            return false;
                        }
                    }
                    Ok(None) => break,
                    Err(_) => return false,
                }
            }
        }
        true
    }

    /// A message whose header is in order but for the fields that the input holds.
    fn receive_message(&mut self, input: &[u8]) -> bool {
        let [kind, flags, id, service, procedure, body @ ..] = input else {
            return true;
        };
        self.message(*kind, *flags, u32::from(*id), *service, *procedure, body)
    }

    fn answer_somebody(&mut self, input: &[u8]) -> bool {
        let Some(id) = self.any(input.len()) else {
            return true;
        };
        let [kind, procedure, body @ ..] = input else {
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
        if let Some(id) = self.any(which) {
            let (waiter, _) = self.in_flight.remove(&id).expect("in flight");
            assert_eq!(self.engine.cancel(id), Some(waiter));
        }
        true
    }

    fn pass_time(&mut self, steps: u32) -> bool {
        self.now += STEP * steps;
        let ids: Vec<u32> = self.in_flight.keys().copied().collect();
        for id in ids {
            let (waiter, deadline) = self.in_flight[&id];
            match self.engine.handle_timeout(id, self.now) {
                Some(Timeout::Expired(expired)) => {
                    assert!(expired == waiter && self.now >= deadline);
                    self.in_flight.remove(&id);
                }
                Some(Timeout::Wait(next)) => assert!(next == deadline && next > self.now),
                None => panic!("a call in flight is not known"),
            }
        }
        true
    }

    /// What the engine says is legal; a server reads it.
    fn speak(&mut self, what: usize) -> bool {
        match what % 8 {
            0 => self.engine.goodbye(Reason::DONE, ""),
            1 => drop(self.engine.ping()),
            _ => {}
        }
        let mut out = Buffer::default();
        let spoke = self.engine.poll_transmit(&mut out);
        assert_eq!(spoke, !out.is_empty());
        assert!(!self.engine.poll_transmit(&mut out));
        assert_eq!(out.len() % 8, 0);
        true
    }

    fn any(&self, which: usize) -> Option<u32> {
        let count = self.in_flight.len().max(1);
        self.in_flight.keys().nth(which % count).copied()
    }
}

/// Hands a message to the engine; false if that ends the connection.
fn handle(
    engine: &mut ClientEngine<u64>,
    in_flight: &mut BTreeMap<u32, (u64, Instant)>,
    message: &Message<'_>,
) -> bool {
    match engine.handle_message(message) {
        Ok(Event::Answer(answer)) => {
            let (waiter, _) = in_flight.remove(&answer.id).expect("in flight");
            assert_eq!(answer.waiter, waiter);
            assert_eq!(answer.id, message.header.id);
        }
        Ok(Event::Goodbye(_)) => {
            for (id, waiter) in engine.take_unbegun() {
                assert_eq!(in_flight.remove(&id).expect("in flight").0, waiter);
            }
        }
        Ok(_) => {}
        Err(_) => return false,
    }
    true
}
