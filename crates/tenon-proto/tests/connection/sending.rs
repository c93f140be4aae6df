//! What goes out: batches that are sent in parts or not at all, and what is known of the calls in them.

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{CallDraft, LeanCall, StartedCall, TransmitBatch, WireProtocol};
use tenon_proto::lean::{ByteOrder, Extras, MessageDraft, PIECE};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_proto::onc::record;
use tenon_wire::Buffer;

use crate::pair::{
    Pair, SECOND, answer, carry, client_config, known, server_config, take_in, waiters,
};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// A lean pair of which the service is bound.
pub fn bound() -> Pair {
    let mut pair = Pair::lean(ORDER, ORDER);
    pair.call(&known(5), 0, b"", "to bind the service");
    pair.serve();
    assert_eq!(pair.take_answers(), ["to bind the service: "]);
    pair
}

// ---- Batches ----

#[test]
fn a_batch_shows_what_is_left_of_it() {
    let mut pair = bound();
    pair.client.connection.ping();
    pair.call(&known(5), 1, b"short", "short");
    pair.call(&known(5), 1, &[7; 2 * PIECE], "long");
    let mut batch = pair.poll_batch();
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
    for mut pair in [bound(), Pair::onc()] {
        for waiter in ["a", "b", "c"] {
            match pair.client.connection.protocol() {
                Some(WireProtocol::Lean) => pair.call(&known(5), 1, b"x", waiter),
                _ => pair.call_onc(b"x", waiter),
            };
        }
        let mut batch = pair.poll_batch();
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
    let mut pair = bound();
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
    for make in [bound, Pair::onc] {
        let length = *three_calls(&mut make()).last().unwrap();
        for cut in 0..=length {
            let mut pair = make();
            let ends = three_calls(&mut pair);
            let mut batch = pair.poll_batch();
            assert_eq!(batch.remaining(), length);
            batch.advance(cut);
            let connection = &mut pair.client.connection;
            connection.handle_transmit_failed(&mut batch);
            assert_eq!((batch.remaining(), connection.queued_bytes()), (0, 0));
            let calls = pair.abandon_all();
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
        let mut pair = bound();
        pair.call(&known(5), 1, &vec![7; length], "long");
        for _ in 0..fails_at {
            let mut batch = pair.poll_batch();
            batch.advance(batch.remaining());
            pair.client.connection.handle_transmitted(&mut batch);
        }
        let mut batch = pair.poll_batch();
        batch.advance(batch.remaining() - 1);
        let connection = &mut pair.client.connection;
        connection.handle_transmit_failed(&mut batch);
        assert_eq!(connection.queued_bytes(), 0, "nothing of it is kept");
        assert!(!connection.poll_transmit(&mut batch));
        assert!(!pair.abandon_all()[0].was_sent);
    }
}

#[test]
fn a_long_call_of_onc_rpc_was_sent_with_its_last_byte() {
    for (missing, was_sent) in [(0, true), (1, false), (100_000, false)] {
        let mut pair = Pair::onc();
        pair.call_onc(&[7; 200_000], "long");
        let mut batch = pair.poll_batch();
        batch.advance(batch.remaining() - missing);
        let connection = &mut pair.client.connection;
        connection.handle_transmit_failed(&mut batch);
        assert_eq!(connection.queued_bytes(), 0);
        assert_eq!(pair.abandon_all()[0].was_sent, was_sent);
    }
}

/// The thread that receives finds the connection lost while another one sends.
#[test]
fn a_batch_may_come_back_when_the_connection_is_lost_already() {
    for (is_sent, is_renewed) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut pair = bound();
        pair.call(&known(5), 1, &[7; 3 * PIECE], "long");
        let mut batch = pair.poll_batch();
        assert_eq!(pair.abandon_all().len(), 1);
        if is_renewed {
            pair.renew();
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
    let mut batch = pair.poll_batch();
    assert!(pair.abandon_all().is_empty());
    pair.renew();
    batch.advance(batch.remaining());
    pair.client.connection.handle_transmitted(&mut batch);
    assert_eq!(pair.client.transmit_all().len(), 32, "the preamble alone");
    assert_eq!(pair.client.connection.queued_bytes(), 0);
}

// ---- Calls that are taken back ----

#[test]
fn a_call_whose_piece_is_under_way_is_cancelled_behind_it() {
    let mut pair = bound();
    let call = pair.call(&known(5), 1, &[7; 3 * PIECE], "long").number;
    let mut batch = pair.poll_batch();
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
    let mut pair = bound();
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
            let mut pair = bound();
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
    for make in [bound, Pair::onc] {
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
            let calls = pair.abandon_all();
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
    for make in [bound, Pair::onc] {
        let mut pair = make();
        three_calls(&mut pair);
        let mut batch = pair.poll_batch();
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
    let mut pair = bound();
    let number = pair.call(&known(5), 1, b"", "call").number;
    let mut batch = pair.poll_batch();
    assert!(pair.client.connection.put_back(&mut batch));
    let abandoned = pair.client.connection.cancel_call(number).unwrap();
    assert!(!abandoned.was_sent);
    assert_eq!(pair.client.transmit_all(), []);
}

#[test]
fn a_long_message_is_put_back_before_a_byte_of_it_was_sent() {
    let mut pair = Pair::onc();
    pair.call_onc(&[7; 200_000], "long");
    let mut batch = pair.poll_batch();
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
    let mut short = bound();
    short.call(&known(5), 1, b"", "call");
    let mut batch = short.poll_batch();
    batch.advance(1);
    assert!(!short.client.connection.put_back(&mut batch));
    assert_eq!(batch.remaining(), 15, "it is as it was");

    let mut long = bound();
    long.call(&known(5), 1, &[7; 3 * PIECE], "long");
    let mut batch = long.poll_batch();
    assert!(!long.client.connection.put_back(&mut batch), "a piece");
    assert_eq!(batch.remaining(), 16 + PIECE);
}
