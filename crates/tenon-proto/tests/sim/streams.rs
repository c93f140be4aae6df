//! Calls over a stream: in any pieces, in any fragments, answered in any order, cut off anywhere.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::client::ClientEngine;
use tenon_proto::onc::message::{CallTemplate, set_xid};
use tenon_proto::onc::record::{self, RecordReader};
use tenon_proto::onc::server::{Programs, Received, Reply, ServerCounters};
use tenon_wire::Buffer;

use crate::common::Random;
use crate::{PROCEDURE, PROGRAM, VERSION};

const CALLS: usize = 60;
const IN_FLIGHT: usize = 10;
const ARGUMENTS_MAX: usize = 3000;
const RECORD_MAX: usize = ARGUMENTS_MAX + 40;

/// One direction of a connection.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
}

impl Pipe {
    /// Reads a piece into the reader, as one `read` would; false if nothing is there.
    fn read(&mut self, random: &mut Random, reader: &mut RecordReader) -> bool {
        let piece = 1 + random.of_bits(12);
        let room = reader.room();
        let taken = piece.min(room.len()).min(self.bytes.len());
        for (place, byte) in room.iter_mut().zip(self.bytes.drain(..taken)) {
            *place = byte;
        }
        reader.filled(taken);
        taken > 0
    }
}

struct Simulation {
    random: Random,
    now: Instant,
    to_server: Pipe,
    to_client: Pipe,
    engine: ClientEngine<Vec<u8>>,
    client_reader: RecordReader,
    server_reader: RecordReader,
    programs: Programs,
    /// Calls that the server has taken in and not answered: xid and arguments.
    taken_in: Vec<(u32, Vec<u8>)>,
    executions: HashMap<Vec<u8>, u32>,
    started: usize,
    done: Vec<Vec<u8>>,
}

impl Simulation {
    fn new(seed: u64, server_record_max: usize) -> Self {
        let mut random = Random(seed);
        let mut programs = Programs::default();
        programs.add(PROGRAM, VERSION);
        Self {
            now: Instant::now(),
            to_server: Pipe::default(),
            to_client: Pipe::default(),
            engine: ClientEngine::stream(random.word()),
            client_reader: RecordReader::new(RECORD_MAX),
            server_reader: RecordReader::new(server_record_max),
            programs,
            taken_in: Vec::new(),
            executions: HashMap::new(),
            started: 0,
            done: Vec::new(),
            random,
        }
    }

    /// Does one thing at random; false once the server has hung up.
    fn step(&mut self) -> bool {
        match self.random.below(4) {
            0 => self.start_call(),
            1 => return self.serve(),
            2 => self.answer(),
            _ => self.take_replies(),
        }
        true
    }

    fn start_call(&mut self) {
        if self.started == CALLS || self.engine.in_flight() == IN_FLIGHT {
            return;
        }
        self.started += 1;
        let length = self.random.below(ARGUMENTS_MAX - 8);
        let mut arguments = self.random.bytes(length);
        arguments.extend(self.started.to_be_bytes());
        let deadline = self.now + Duration::from_secs(1);
        let xid = self.engine.start(self.now, deadline, arguments.clone());
        let mut call = Buffer::default();
        CallTemplate::new(PROGRAM, VERSION, &Credential::None).begin(&mut call, PROCEDURE);
        set_xid(&mut call, xid);
        call.extend(&arguments);
        record::seal(&mut call, 0, 1 + self.random.below(RECORD_MAX));
        self.to_server.bytes.extend(call.as_slice());
    }

    fn serve(&mut self) -> bool {
        self.to_server
            .read(&mut self.random, &mut self.server_reader);
        let mut counters = ServerCounters::default();
        loop {
            let message = match self.server_reader.next_record() {
                Ok(Some(message)) => message,
                Ok(None) => return true,
                Err(_) => return false,
            };
            let Received::Call(call) = self.programs.handle_message(message, &mut counters) else {
                panic!("only calls were sent");
            };
            let arguments = call.arguments.to_vec();
            *self.executions.entry(arguments.clone()).or_default() += 1;
            self.taken_in.push((call.xid, arguments));
        }
    }

    /// Answers some call that is not the one that came first.
    fn answer(&mut self) {
        if self.taken_in.is_empty() {
            return;
        }
        let which = self.random.below(self.taken_in.len());
        let (xid, results) = self.taken_in.swap_remove(which);
        let mut buffer = Buffer::default();
        let reply = Reply::begin(&mut buffer, xid);
        buffer.extend(&results);
        reply.seal(&mut buffer, 1 + self.random.below(RECORD_MAX));
        self.to_client.bytes.extend(buffer.as_slice());
    }

    fn take_replies(&mut self) {
        self.to_client
            .read(&mut self.random, &mut self.client_reader);
        while let Some(message) = self.client_reader.next_record().expect("legal records") {
            let answer = self.engine.handle_reply(message).expect("a legal reply");
            let answer = answer.expect("every reply is waited for");
            assert_eq!(answer.outcome, Ok(&answer.waiter[..]));
            self.done.push(answer.waiter);
        }
    }

    fn assert_done_calls_were_carried_out_once(&self) {
        for arguments in &self.done {
            assert_eq!(self.executions[arguments], 1);
        }
    }
}

#[test]
fn every_call_is_answered_with_its_own_results() {
    for seed in 0..100 {
        let mut simulation = Simulation::new(seed, RECORD_MAX);
        for step in 0.. {
            assert!(step < 1_000_000, "seed {seed} hangs");
            assert!(simulation.step(), "seed {seed}: the server hung up");
            if simulation.done.len() == CALLS {
                break;
            }
        }
        simulation.assert_done_calls_were_carried_out_once();
        assert!(simulation.client_reader.is_between_records());
        assert!(simulation.server_reader.is_between_records());
    }
}

#[test]
fn when_the_connection_breaks_anywhere_every_call_is_either_done_or_given_up() {
    for seed in 0..300 {
        let mut simulation = Simulation::new(seed, RECORD_MAX);
        for _ in 0..simulation.random.below(1000) {
            simulation.step();
        }
        let given_up = simulation.engine.cancel_all().count();
        assert_eq!(simulation.done.len() + given_up, simulation.started);
        simulation.assert_done_calls_were_carried_out_once();
    }
}

#[test]
fn a_call_over_the_servers_limit_ends_the_connection_and_no_other_call_wrongly() {
    for seed in 0..100 {
        let mut simulation = Simulation::new(seed, RECORD_MAX / 2);
        let mut steps = 0;
        while simulation.step() {
            steps += 1;
            assert!(
                steps < 1_000_000,
                "seed {seed}: the limit was never noticed"
            );
        }
        simulation.assert_done_calls_were_carried_out_once();
        let most = RECORD_MAX / 2;
        assert!(
            simulation
                .executions
                .keys()
                .all(|arguments| arguments.len() < most)
        );
    }
}

#[test]
fn whatever_bytes_arrive_both_sides_survive_them() {
    let mut programs = Programs::default();
    programs.add(PROGRAM, VERSION);
    for seed in 0..2000 {
        let mut random = Random(seed);
        let mut pipe = Pipe::default();
        pipe.bytes.extend(hostile_stream(&mut random));
        let mut reader = RecordReader::new(500);
        let mut engine = ClientEngine::stream(random.word());
        engine.start(Instant::now(), Instant::now(), ());
        while pipe.read(&mut random, &mut reader) {
            while let Ok(Some(message)) = reader.next_record() {
                assert!(message.len() <= 500);
                programs.handle_message(message, &mut ServerCounters::default());
                let _ = engine.handle_reply(message);
            }
        }
    }
}

/// Records that are nearly right: small words, so that marks, lengths and statuses are plausible.
fn hostile_stream(random: &mut Random) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..random.below(400) {
        let mut word = (random.of_bits(9) as u32).to_be_bytes();
        if random.per_mille(200) {
            word[0] = 0x80;
        }
        if random.per_mille(10) {
            word[random.below(4)] = random.next() as u8;
        }
        stream.extend(word);
    }
    stream
}
