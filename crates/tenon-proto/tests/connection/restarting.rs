//! Calls whose connection was lost before they were sent whole, and which are started again over the next one.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{Event, StartError, TransmitBatch, UnsentCall, WireProtocol};
use tenon_proto::lean::{ByteOrder, Features, PIECE};

use crate::common::{Random, ShownOnFailure, seeds};
use crate::ends::{End, FIRST_CALL, pair};
use crate::pair::{Pair, SECOND, client_config, known, server_config};
use crate::sending::bound;

const ORDER: ByteOrder = ByteOrder::NATIVE;

#[test]
fn a_call_that_was_not_sent_whole_is_started_again_over_the_next_connection() {
    for make in [bound, Pair::onc] {
        for (length, batches, sent) in [
            (100, 0, 0),
            (100, 1, 50),
            (3 * PIECE, 0, 0),
            (3 * PIECE, 1, 100),
            (3 * PIECE, 2, 100),
        ] {
            let mut pair = make();
            let arguments = Random(9).bytes(length);
            let deadline = pair.now + SECOND;
            match pair.client.connection.protocol() {
                Some(WireProtocol::Lean) => pair.call(&known(5), 1, &arguments, "call"),
                _ => pair.call_onc(&arguments, "call"),
            };
            for _ in 1..batches {
                pair.client.transmit();
            }
            let mut batch = TransmitBatch::default();
            if batches > 0 && pair.client.connection.poll_transmit(&mut batch) {
                batch.advance(sent);
                pair.client.connection.handle_transmit_failed(&mut batch);
            }
            let mut calls = pair.abandon_all();
            // One of ONC RPC does not go in pieces: it was sent with the first batch.
            let Some(mut unsent) = calls[0].unsent.take() else {
                assert!(calls[0].was_sent && batches == 2);
                continue;
            };
            assert!(!calls[0].was_sent && unsent.deadline == deadline);
            pair.renew();
            if pair.client.connection.protocol() == Some(WireProtocol::Lean) {
                let client = &mut pair.client.connection;
                let refused = client.restart_call(&mut unsent, "again");
                assert!(matches!(refused, Err(StartError::AwaitsPreamble { .. })));
                assert!(pair.serve().is_empty());
                pair.take_answers();
            }
            let client = &mut pair.client.connection;
            let number = client.restart_call(&mut unsent, "again").unwrap().number;
            assert_eq!(client.call_deadline(number), Some(deadline));
            let calls = pair.serve();
            assert!(calls.len() == 1 && calls[0].arguments == arguments);
            pair.answer(calls[0].caller, b"done");
            assert_eq!(pair.take_answers(), ["again: done"]);
        }
    }
}

#[test]
fn a_call_that_is_started_again_is_counted_once() {
    let mut pair = Pair::onc();
    pair.call_onc(b"", "call");
    let mut calls = pair.abandon_all();
    pair.renew();
    let client = &mut pair.client.connection;
    let mut unsent = calls.remove(0).unsent.unwrap();
    client.restart_call(&mut unsent, "again").unwrap();
    let counters = client.outgoing_counters();
    assert_eq!((counters.calls, counters.cancellations), (1, 0));
}

// ---- At random ----

/// Calls over connections that break anywhere, one after the other.
struct Breaking {
    random: Random,
    protocol: WireProtocol,
    client: End<u32>,
    server: End<u32>,
    server_config: ConnectionConfig,
    now: Instant,
    batch: TransmitBatch,
    is_sending: bool,
    started: u32,
    /// Calls that were not sent whole over the connection before.
    unsent: VecDeque<(UnsentCall, u32)>,
    /// Calls that ended, and whether they may have been carried out.
    ended: Vec<(u32, bool)>,
    executed: HashSet<u32>,
}

/// What a call carries beside its number.
fn content(waiter: u32) -> Vec<u8> {
    let mut random = Random(waiter.into());
    let bits = [8, 12, 17][random.below(3)];
    let length = random.of_bits(bits);
    let word = random.next().to_be_bytes();
    let words = std::iter::repeat_n(word, length.div_ceil(8));
    words.flatten().take(length).collect()
}

impl Breaking {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let protocol = [WireProtocol::Onc, WireProtocol::Lean][random.below(2)];
        let features = [Features::default(), Features::all()][random.below(2)];
        let orders = [ByteOrder::Little, ByteOrder::Big];
        let client = ConnectionConfig {
            features,
            ..client_config(orders[random.below(2)])
        };
        let server_config = server_config(ORDER);
        let (client, server) = pair(protocol, client, server_config.clone());
        Self {
            random,
            protocol,
            client,
            server,
            server_config,
            now: Instant::now(),
            batch: TransmitBatch::default(),
            is_sending: false,
            started: 0,
            unsent: VecDeque::new(),
            ended: Vec::new(),
            executed: HashSet::new(),
        }
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0..4 => self.start(),
            4..5 => self.cancel(),
            5..7 => self.restart(),
            _ => self.send(),
        }
    }

    fn start(&mut self) {
        let mut arguments = self.started.to_be_bytes().to_vec();
        arguments.extend(content(self.started));
        let deadline = self.now + SECOND;
        let waiter = self.started;
        match self
            .client
            .call(self.protocol, &arguments, deadline, waiter)
        {
            Ok(_) => self.started += 1,
            Err(StartError::TooManyCalls { .. } | StartError::AwaitsPreamble { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn restart(&mut self) {
        let Some((mut call, waiter)) = self.unsent.pop_front() else {
            return;
        };
        match self.client.connection.restart_call(&mut call, waiter) {
            Ok(_) => {}
            Err(StartError::TooManyCalls { .. } | StartError::AwaitsPreamble { .. }) => {
                self.unsent.push_front((call, waiter));
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn cancel(&mut self) {
        // Numbers ascend, and some were given away again.
        let number = FIRST_CALL + self.random.below(self.started as usize + 10) as u32;
        if let Some(call) = self.client.connection.cancel_call(number) {
            self.ended.push((call.waiter, call.was_sent));
        }
    }

    /// Sends a part of what there is, as a socket with little room would.
    fn send(&mut self) {
        let connection = &mut self.client.connection;
        if !self.is_sending {
            self.is_sending = connection.poll_transmit(&mut self.batch);
        }
        if self.is_sending && self.random.below(10) == 0 {
            self.is_sending = !connection.put_back(&mut self.batch);
            return;
        }
        let bytes = self.batch.slices().concat();
        let step = (1 + self.random.of_bits(18)).min(bytes.len());
        self.batch.advance(step);
        if self.is_sending && self.batch.is_sent() {
            connection.handle_transmitted(&mut self.batch);
            self.is_sending = false;
        }
        self.serve(&bytes[..step]);
        self.answer();
    }

    fn serve(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            at += self.server.receive(&bytes[at..]).unwrap();
            while let Some(frame) = self.server.receiver.next_frame().unwrap() {
                let services = &self.server.services;
                let event = self.server.connection.handle_frame(frame, services);
                if let Event::Called(call) = event.unwrap() {
                    let (waiter, rest) = call.arguments.split_first_chunk().unwrap();
                    let waiter = u32::from_be_bytes(*waiter);
                    assert!(rest == content(waiter), "other arguments");
                    assert!(self.executed.insert(waiter), "carried out twice");
                    let mut reply = End::<u32>::reply(call.caller, b"");
                    self.server.connection.push_reply(&mut reply);
                }
            }
        }
    }

    fn answer(&mut self) {
        let bytes = self.server.transmit_all();
        let mut at = 0;
        while at < bytes.len() {
            at += self.client.receive(&bytes[at..]).unwrap();
            while let Some(frame) = self.client.receiver.next_frame().unwrap() {
                let services = &self.client.services;
                let event = self.client.connection.handle_frame(frame, services);
                if let Event::Answered(answer) = event.unwrap() {
                    self.ended.push((answer.waiter, true));
                }
            }
        }
    }

    /// The connection breaks, which its owner first learns from sending, or from receiving. Another one follows.
    fn break_off(&mut self) {
        let is_found_by_sender = self.random.below(2) == 0;
        let connection = &mut self.client.connection;
        if is_found_by_sender {
            connection.handle_transmit_failed(&mut self.batch);
        }
        let mut calls = connection.abandon_all();
        if !is_found_by_sender {
            connection.handle_transmit_failed(&mut self.batch);
        }
        self.is_sending = false;
        assert_eq!((connection.queued_bytes(), connection.in_flight()), (0, 0));
        calls.sort_unstable_by_key(|call| call.number);
        for call in calls {
            match call.unsent {
                Some(unsent) => {
                    assert!(!call.was_sent);
                    self.unsent.push_back((unsent, call.waiter));
                }
                // Its message is in the batch if it was not sent.
                None => self.ended.push((call.waiter, call.was_sent)),
            }
        }
        self.client.receiver = self.client.connection.renew(std::time::Instant::now());
        let config = self.client.config.clone();
        (_, self.server) = pair::<u32>(self.protocol, config, self.server_config.clone());
    }

    /// Everything that was begun comes to its end.
    fn finish(mut self) {
        for _ in 0..100_000 {
            self.restart();
            self.send();
            let is_over = self.unsent.is_empty()
                && self.client.connection.in_flight() == 0
                && self.client.connection.queued_bytes() == 0;
            if is_over && !self.is_sending {
                break;
            }
        }
        let different: HashSet<u32> = self.ended.iter().map(|(waiter, _)| *waiter).collect();
        assert_eq!(different.len(), self.started as usize, "every call ended");
        assert_eq!(self.ended.len(), self.started as usize, "once");
        for (waiter, may_be_executed) in self.ended {
            let is_executed = self.executed.contains(&waiter);
            assert!(may_be_executed || !is_executed, "call {waiter}");
        }
    }
}

#[test]
fn a_call_that_is_reported_as_not_sent_was_not_carried_out() {
    for seed in seeds(300) {
        let _shown = ShownOnFailure(seed);
        let mut breaking = Breaking::new(seed);
        for _ in 0..breaking.random.below(4) {
            for _ in 0..breaking.random.below(200) {
                breaking.step();
            }
            breaking.break_off();
        }
        breaking.finish();
    }
}
