//! What goes out: batches that are sent in parts or not at all, and what is known of the calls in them.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{
    AbandonedCall, CallDraft, Event, LeanCall, StartError, StartedCall, TransmitBatch, UnsentCall,
    WireProtocol,
};
use tenon_proto::lean::{ByteOrder, Extras, Features, MessageDraft, PIECE};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_proto::onc::record;
use tenon_wire::Buffer;

use crate::common::{Random, ShownOnFailure, seeds};
use crate::ends::{End, FIRST_CALL, pair};
use crate::pair::{
    Pair, SECOND, answer, carry, client_config, known, server_config, take_in, waiters,
};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// A pair that has bound the service.
fn lean() -> Pair {
    let mut pair = Pair::lean(ORDER, ORDER);
    pair.call(&known(5), 0, b"", "to bind the service");
    pair.serve();
    assert_eq!(pair.take_answers(), ["to bind the service: "]);
    pair
}

/// Takes the next batch of the client.
fn poll(pair: &mut Pair) -> TransmitBatch {
    let mut batch = TransmitBatch::default();
    assert!(pair.client.connection.poll_transmit(&mut batch));
    batch
}

/// All calls of the client, by their numbers.
fn abandon_all(pair: &mut Pair) -> Vec<AbandonedCall<&'static str>> {
    let mut calls = pair.client.connection.abandon_all();
    calls.sort_unstable_by_key(|call| call.number);
    calls
}

// ---- Batches ----

#[test]
fn a_batch_shows_what_is_left_of_it() {
    let mut pair = lean();
    pair.client.connection.ping();
    pair.call(&known(5), 1, b"short", "short");
    pair.call(&known(5), 1, &[7; 2 * PIECE], "long");
    let mut batch = poll(&mut pair);
    let whole = batch.slices().concat();
    assert_eq!((batch.remaining(), batch.is_sent()), (whole.len(), false));
    assert_eq!(batch.single_slice(), None, "a ping, a call, and a piece");
    let mut sent = 0;
    for step in [1, 15, 20, 40, 1000] {
        batch.advance(step);
        sent += step;
        assert_eq!(batch.slices().concat(), whole[sent..]);
        assert_eq!(batch.remaining(), whole.len() - sent);
    }
    assert_eq!(batch.single_slice(), Some(&whole[sent..]), "of the piece");
    batch.advance(batch.remaining());
    assert!(batch.is_sent());
    assert_eq!(batch.single_slice(), Some(&[][..]));
    pair.client.connection.handle_transmitted(&mut batch);
    assert_eq!(batch.remaining(), 0);
}

#[test]
fn what_waits_together_is_sent_together() {
    for mut pair in [lean(), Pair::onc()] {
        for waiter in ["a", "b", "c"] {
            match pair.client.connection.protocol() {
                Some(WireProtocol::Lean) => pair.call(&known(5), 1, b"x", waiter),
                _ => pair.call_onc(b"x", waiter),
            };
        }
        let mut batch = poll(&mut pair);
        let bytes = batch.single_slice().expect("one behind the other").to_vec();
        assert!(
            !pair
                .client
                .connection
                .poll_transmit(&mut TransmitBatch::default())
        );
        batch.advance(bytes.len());
        pair.client.connection.handle_transmitted(&mut batch);
        let calls = take_in(&mut pair.server, &bytes).unwrap().calls;
        assert_eq!(calls.len(), 3);
    }
}

#[test]
fn a_connection_is_idle_when_nothing_waits() {
    let mut pair = lean();
    assert!(pair.client.connection.is_send_idle());
    assert!(!pair.client.connection.has_transmit());
    pair.client.connection.ping();
    assert!(pair.client.connection.has_transmit());
    assert!(!pair.client.connection.is_send_idle());
    pair.client.transmit_all();
    assert!(pair.client.connection.is_send_idle());
    pair.call(&known(5), 1, b"", "call");
    assert!(!pair.client.connection.is_send_idle());
    pair.client.transmit_all();
    assert!(pair.client.connection.is_send_idle());
}

// ---- Batches that fail ----

/// Three calls that wait behind a ping, if the protocol has pings; returns where in the batch each of them ends.
fn three_calls(pair: &mut Pair) -> Vec<usize> {
    let is_lean = pair.client.connection.protocol() == Some(WireProtocol::Lean);
    let (mut end, header) = if is_lean { (16, 16) } else { (0, 44) };
    if is_lean {
        pair.client.connection.ping();
    }
    let mut ends = Vec::new();
    for (waiter, size) in [("a", 0), ("b", 8), ("c", 40)] {
        let arguments = vec![7; size];
        if is_lean {
            pair.call(&known(5), 1, &arguments, waiter);
        } else {
            pair.call_onc(&arguments, waiter);
        }
        end += header + size;
        ends.push(end);
    }
    ends
}

#[test]
fn of_a_batch_that_fails_the_calls_were_sent_whose_last_byte_was() {
    for make in [lean, Pair::onc] {
        let length = *three_calls(&mut make()).last().unwrap();
        for cut in 0..=length {
            let mut pair = make();
            let ends = three_calls(&mut pair);
            let mut batch = poll(&mut pair);
            assert_eq!(batch.remaining(), length);
            batch.advance(cut);
            let connection = &mut pair.client.connection;
            connection.handle_transmit_failed(&mut batch);
            assert_eq!((batch.remaining(), connection.queued_bytes()), (0, 0));
            let calls = abandon_all(&mut pair);
            assert_eq!(waiters(&calls), ["a", "b", "c"]);
            let was_sent: Vec<bool> = calls.iter().map(|call| call.was_sent).collect();
            let expected: Vec<bool> = ends.iter().map(|end| *end <= cut).collect();
            assert_eq!(was_sent, expected, "cut at {cut}");
        }
    }
}

#[test]
fn a_long_call_was_sent_with_its_last_piece() {
    let length = 3 * PIECE + 1000;
    for fails_at in 0..4 {
        let mut pair = lean();
        pair.call(&known(5), 1, &vec![7; length], "long");
        for _ in 0..fails_at {
            let mut batch = poll(&mut pair);
            batch.advance(batch.remaining());
            pair.client.connection.handle_transmitted(&mut batch);
        }
        let mut batch = poll(&mut pair);
        batch.advance(batch.remaining() - 1);
        let connection = &mut pair.client.connection;
        connection.handle_transmit_failed(&mut batch);
        assert_eq!(connection.queued_bytes(), 0, "nothing of it is kept");
        assert!(!connection.poll_transmit(&mut batch));
        assert!(!abandon_all(&mut pair)[0].was_sent);
    }
}

#[test]
fn a_long_call_of_onc_rpc_was_sent_with_its_last_byte() {
    for (missing, was_sent) in [(0, true), (1, false), (100_000, false)] {
        let mut pair = Pair::onc();
        pair.call_onc(&[7; 200_000], "long");
        let mut batch = poll(&mut pair);
        batch.advance(batch.remaining() - missing);
        let connection = &mut pair.client.connection;
        connection.handle_transmit_failed(&mut batch);
        assert_eq!(connection.queued_bytes(), 0);
        assert_eq!(abandon_all(&mut pair)[0].was_sent, was_sent);
    }
}

/// The thread that receives finds the connection lost while another one sends.
#[test]
fn a_batch_may_come_back_when_the_connection_is_lost_already() {
    for (is_sent, is_renewed) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut pair = lean();
        pair.call(&known(5), 1, &[7; 3 * PIECE], "long");
        let mut batch = poll(&mut pair);
        assert_eq!(abandon_all(&mut pair).len(), 1);
        if is_renewed {
            pair.client.receiver = pair.client.connection.renew();
        }
        let connection = &mut pair.client.connection;
        if is_sent {
            batch.advance(batch.remaining());
            connection.handle_transmitted(&mut batch);
        } else {
            connection.handle_transmit_failed(&mut batch);
        }
        let preamble = if is_renewed { 32 } else { 0 };
        assert_eq!(connection.queued_bytes(), preamble);
        assert_eq!(
            pair.client.transmit_all().len(),
            preamble,
            "of the next one"
        );
    }
}

#[test]
fn a_long_reply_is_not_continued_over_the_next_connection() {
    let client = ConnectionConfig {
        incoming_calls_max: 16,
        ..client_config(ORDER)
    };
    let mut pair = Pair::greeted(client, server_config(ORDER));
    let interface = known(5);
    let of = (&interface, 1);
    let deadline = pair.now + SECOND;
    let server = &mut pair.server;
    let call = server.call_lean(of, b"", &Extras::default(), deadline, "back");
    call.unwrap();
    let calls = carry(&mut pair.server, &mut pair.client).calls;
    pair.client.transmit_all();
    answer(&mut pair.client, calls[0].caller, &[7; 3 * PIECE]);
    let mut batch = poll(&mut pair);
    assert!(abandon_all(&mut pair).is_empty());
    pair.client.receiver = pair.client.connection.renew();
    batch.advance(batch.remaining());
    pair.client.connection.handle_transmitted(&mut batch);
    assert_eq!(pair.client.transmit_all().len(), 32, "the preamble alone");
    assert_eq!(pair.client.connection.queued_bytes(), 0);
}

// ---- Calls that are taken back ----

#[test]
fn a_call_whose_piece_is_under_way_is_cancelled_behind_it() {
    let mut pair = lean();
    let call = pair.call(&known(5), 1, &[7; 3 * PIECE], "long").number;
    let mut batch = poll(&mut pair);
    let abandoned = pair.client.connection.cancel_call(call).unwrap();
    assert!(!abandoned.was_sent);
    let first = batch.slices().concat();
    batch.advance(first.len());
    pair.client.connection.handle_transmitted(&mut batch);
    let rest = pair.client.transmit_all();
    assert_eq!(rest.len(), 16, "only the cancellation follows");
    let received = take_in(&mut pair.server, &[first, rest].concat()).unwrap();
    assert!(received.calls.is_empty());
    assert!(pair.server.receiver.is_between_frames());
    assert_eq!(pair.client.connection.queued_bytes(), 0);
}

#[test]
fn a_call_that_was_started_and_not_handed_over_is_withdrawn() {
    let mut pair = Pair::onc();
    let mut message = Buffer::default();
    CallTemplate::new(300, 5, &Credential::None).begin(&mut message, 1);
    let deadline = pair.now + SECOND;
    let client = &mut pair.client.connection;
    let call = client.start_call(&CallDraft::Onc, &mut message, deadline, "call");
    let number = call.unwrap().number;
    let withdrawn = client.withdraw_call(number).unwrap();
    assert_eq!((withdrawn.waiter, withdrawn.was_sent), ("call", false));
    assert!(client.withdraw_call(number).is_none());
    assert_eq!(client.in_flight(), 0);
    assert_eq!(pair.client.transmit_all(), []);
}

/// The owner has sent a call itself, and the socket has taken nothing.
#[test]
fn a_call_that_was_marked_as_sent_and_was_not_is_withdrawn_in_silence() {
    let mut pair = lean();
    let call = pair.call(&known(5), 1, b"", "call");
    let connection = &mut pair.client.connection;
    connection.mark_sent(&call);
    let withdrawn = connection.withdraw_call(call.number).unwrap();
    assert!(!withdrawn.was_sent, "it will not be");
    assert_eq!(pair.client.transmit_all(), []);
    assert_eq!(pair.client.connection.queued_bytes(), 0);
}

#[test]
fn of_calls_that_wait_any_may_be_withdrawn() {
    for length in [10, 5000, 2 * PIECE] {
        for taken in 0..3 {
            let mut pair = lean();
            let calls: Vec<u32> = ["a", "b", "c"]
                .iter()
                .map(|waiter| {
                    let arguments = [waiter.as_bytes(), &vec![7; length]].concat();
                    pair.call(&known(5), 1, &arguments, waiter).number
                })
                .collect();
            pair.client.connection.withdraw_call(calls[taken]).unwrap();
            let served = pair.serve();
            let first: Vec<u8> = served.iter().map(|call| call.arguments[0]).collect();
            let mut expected = vec![b'a', b'b', b'c'];
            expected.remove(taken);
            assert_eq!(first, expected, "{length} bytes");
            assert_eq!(pair.client.connection.queued_bytes(), 0);
        }
    }
}

// ---- Calls that are sent outside of the queue, and batches that are put back ----

#[test]
fn the_rest_of_a_call_that_its_owner_sends_is_a_batch() {
    for make in [lean, Pair::onc] {
        let length = make().client.transmit_all().len();
        assert_eq!(length, 0, "the queue is empty");
        for sent in [0, 1, 20, 50] {
            let mut pair = make();
            let (call, mut message) = written(&mut pair);
            let whole = message.as_slice().to_vec();
            pair.client.connection.mark_sent(&call);
            let mut batch = TransmitBatch::of_call(&call, &mut message, sent);
            assert!(message.is_empty());
            assert_eq!(batch.slices().concat(), whole[sent..]);
            assert_eq!(batch.remaining(), whole.len() - sent);
            pair.client.connection.handle_transmit_failed(&mut batch);
            let calls = abandon_all(&mut pair);
            assert!(!calls[0].was_sent && calls[0].unsent.is_some());
        }
    }
}

/// A call that is started and written, and not handed over to be sent.
fn written(pair: &mut Pair) -> (StartedCall, Buffer) {
    let interface = known(5);
    let mut message = Buffer::default();
    let deadline = pair.now + SECOND;
    let client = &mut pair.client.connection;
    let draft = if client.protocol() == Some(WireProtocol::Onc) {
        CallTemplate::new(300, 5, &Credential::None).begin(&mut message, 1);
        message.extend(b"arguments...");
        record::seal(&mut message, 0, record::FRAGMENT_MAX);
        CallDraft::Onc
    } else {
        let draft = MessageDraft::call(&mut message, ORDER, 1, &Extras::default());
        message.extend(&[7; 40]);
        draft.seal(&mut message);
        CallDraft::Lean(LeanCall {
            draft,
            interface: &interface,
            procedure: 1,
        })
    };
    let call = client.start_call(&draft, &mut message, deadline, "written");
    (call.unwrap(), message)
}

#[test]
fn a_batch_of_which_nothing_was_sent_is_put_back_in_front() {
    for make in [lean, Pair::onc] {
        let mut pair = make();
        three_calls(&mut pair);
        let mut batch = poll(&mut pair);
        let bytes = batch.slices().concat();
        let later = three_calls(&mut pair);
        let queued = pair.client.connection.queued_bytes();
        assert_eq!(queued, *later.last().unwrap());
        let connection = &mut pair.client.connection;
        assert!(connection.put_back(&mut batch));
        assert_eq!(connection.queued_bytes(), bytes.len() + queued);
        assert_eq!(batch.remaining(), 0);
        let calls = pair.serve();
        let numbers: Vec<u32> = calls.iter().map(|call| call.caller.number()).collect();
        assert!(numbers.is_sorted() && numbers.len() == 6, "{numbers:?}");
    }
}

#[test]
fn calls_that_were_put_back_were_not_sent() {
    let mut pair = lean();
    let number = pair.call(&known(5), 1, b"", "call").number;
    let mut batch = poll(&mut pair);
    assert!(pair.client.connection.put_back(&mut batch));
    let abandoned = pair.client.connection.cancel_call(number).unwrap();
    assert!(!abandoned.was_sent);
    assert_eq!(pair.client.transmit_all(), []);
}

#[test]
fn a_long_message_is_put_back_before_a_byte_of_it_was_sent() {
    let mut pair = Pair::onc();
    pair.call_onc(&[7; 200_000], "long");
    let mut batch = poll(&mut pair);
    pair.call_onc(b"short", "short");
    assert!(pair.client.connection.put_back(&mut batch));
    let lengths: Vec<usize> = pair
        .serve()
        .iter()
        .map(|call| call.arguments.len())
        .collect();
    assert_eq!(lengths, [200_000, 5]);
    assert_eq!(pair.client.connection.queued_bytes(), 0);
}

#[test]
fn a_batch_of_which_something_was_sent_is_not_put_back() {
    let mut short = lean();
    short.call(&known(5), 1, b"", "call");
    let mut batch = poll(&mut short);
    batch.advance(1);
    assert!(!short.client.connection.put_back(&mut batch));
    assert_eq!(batch.remaining(), 15, "it is as it was");

    let mut long = lean();
    long.call(&known(5), 1, &[7; 3 * PIECE], "long");
    let mut batch = poll(&mut long);
    assert!(!long.client.connection.put_back(&mut batch), "a piece");
    assert_eq!(batch.remaining(), 16 + PIECE);
}

// ---- Calls that are started again ----

/// Brings the client's connection to a server that has never heard of it.
fn renew(pair: &mut Pair) {
    pair.client.receiver = pair.client.connection.renew();
    let protocol = pair.client.connection.protocol().unwrap();
    let config = client_config(ORDER);
    pair.server = Pair::new(protocol, config, server_config(ORDER)).server;
}

#[test]
fn a_call_that_was_not_sent_whole_is_started_again_over_the_next_connection() {
    for make in [lean, Pair::onc] {
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
            let mut calls = abandon_all(&mut pair);
            // One of ONC RPC does not go in pieces: it was sent with the first batch.
            let Some(mut unsent) = calls[0].unsent.take() else {
                assert!(calls[0].was_sent && batches == 2);
                continue;
            };
            assert!(!calls[0].was_sent && unsent.deadline == deadline);
            renew(&mut pair);
            if length > PIECE && pair.client.connection.protocol() == Some(WireProtocol::Lean) {
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
    let mut calls = abandon_all(&mut pair);
    renew(&mut pair);
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
        self.client.receiver = self.client.connection.renew();
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
