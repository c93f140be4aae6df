//! A caller that waits alone, and finds the reply to its call among nothing else.

use tenon_proto::connection::framing::{Frame, Receiver};
use tenon_proto::connection::{StartedCall, WireProtocol};
use tenon_proto::lean::{ByteOrder, Exception, Status};

use crate::common::{record, words};
use crate::fields::ORDERS;
use crate::pair::{Pair, known};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// A pair whose client waits for one call alone, and the reply to it with these results.
fn waiting(
    protocol: WireProtocol,
    server: ByteOrder,
    results: &[u8],
) -> (Pair, StartedCall, Vec<u8>) {
    let mut pair = match protocol {
        WireProtocol::Onc => Pair::onc(),
        WireProtocol::Lean => Pair::lean(ORDER, server),
    };
    for _ in 0..2 {
        let call = match protocol {
            WireProtocol::Onc => pair.call_onc(b"", "call"),
            WireProtocol::Lean => pair.call(&known(5), 1, b"", "call"),
        };
        let served = pair.serve().remove(0);
        pair.answer(served.caller, results);
        if pair.client.connection.outgoing_counters().successes == 1 {
            let reply = pair.server.transmit_all();
            return (pair, call, reply);
        }
        // With this one the service is bound.
        pair.take_answers();
    }
    panic!("two calls");
}

/// Takes the reply out of what the client has received.
fn take(receiver: &mut Receiver, call: &StartedCall) -> Option<Vec<u8>> {
    let place = receiver.take_lone_reply(call)?;
    Some(receiver.last_content()[place].to_vec())
}

const PROTOCOLS: [WireProtocol; 2] = [WireProtocol::Onc, WireProtocol::Lean];

#[test]
fn a_reply_alone_is_taken_with_its_results() {
    for protocol in PROTOCOLS {
        for results in [&b""[..], b"results!", &[7; 5000]] {
            let (mut pair, call, reply) = waiting(protocol, ORDER, results);
            let receiver = &mut pair.client.receiver;
            assert_eq!(take(receiver, &call), None, "nothing has come");
            let place = receiver.room().as_ptr_range();
            pair.client.receive(&reply).unwrap();
            let receiver = &mut pair.client.receiver;
            let found = receiver.take_lone_reply(&call).unwrap();
            let found = &receiver.last_content()[found];
            assert_eq!(found, results);
            assert!(results.is_empty() || place.contains(&found.as_ptr()));
            assert!(receiver.is_between_frames());
            assert_eq!(take(receiver, &call), None, "it was taken");
            let number = call.number;
            assert!(pair.client.connection.finish_call(number, |_| true));
        }
    }
}

/// Whatever is not taken is the next frame.
#[test]
fn anything_else_is_left_as_it_is() {
    for protocol in PROTOCOLS {
        let (mut pair, call, reply) = waiting(protocol, ORDER, b"results!");
        let other = StartedCall {
            number: call.number + 1,
            ..call
        };
        pair.client.receive(&reply[..reply.len() - 1]).unwrap();
        assert_eq!(take(&mut pair.client.receiver, &call), None, "not complete");
        pair.client.receive(&reply[reply.len() - 1..]).unwrap();
        assert_eq!(
            take(&mut pair.client.receiver, &other),
            None,
            "another call"
        );
        pair.client.receive(&reply).unwrap();
        assert_eq!(take(&mut pair.client.receiver, &call), None, "two of them");
        assert!(pair.client.receiver.next_frame().unwrap().is_some());
        assert!(take(&mut pair.client.receiver, &call).is_some());
    }
}

#[test]
fn a_reply_of_another_procedure_or_order_is_not_taken() {
    let (mut pair, call, reply) = waiting(WireProtocol::Lean, ORDER, b"results!");
    pair.client.receive(&reply).unwrap();
    let receiver = &mut pair.client.receiver;
    let procedure = StartedCall {
        procedure: 2,
        ..call
    };
    let service = StartedCall { service: 1, ..call };
    assert_eq!(take(receiver, &procedure), None);
    assert_eq!(take(receiver, &service), None);
    assert!(take(receiver, &call).is_some());

    let swapped = ORDERS.into_iter().find(|order| *order != ORDER).unwrap();
    let (mut pair, call, reply) = waiting(WireProtocol::Lean, swapped, b"results!");
    pair.client.receive(&reply).unwrap();
    assert_eq!(take(&mut pair.client.receiver, &call), None);
    assert!(pair.client.receiver.next_frame().unwrap().is_some());
}

#[test]
fn refusals_and_exceptions_are_not_taken() {
    let (mut pair, call, _) = waiting(WireProtocol::Onc, ORDER, b"");
    for reply in [
        words(&[call.number, 1, 0, 0, 0, 5]),
        words(&[call.number, 1, 0, 2, 4, 0, 0, 42]),
    ] {
        pair.client.receive(&record(&reply)).unwrap();
        assert_eq!(take(&mut pair.client.receiver, &call), None);
        assert!(pair.client.receiver.next_frame().unwrap().is_some());
    }

    let mut pair = Pair::lean(ORDER, ORDER);
    let call = pair.call(&known(5), 1, b"", "call");
    let served = pair.serve().remove(0);
    pair.take_answers();
    pair.refuse(served.caller, &Exception::new(Status::FAILED, ""));
    let sent = pair.server.transmit_all();
    pair.client.receive(&sent).unwrap();
    assert_eq!(take(&mut pair.client.receiver, &call), None);
}

#[test]
fn the_content_of_the_last_frame_is_what_follows_its_header() {
    for protocol in PROTOCOLS {
        let (mut pair, _, reply) = waiting(protocol, ORDER, b"results!");
        pair.client.receive(&reply).unwrap();
        let receiver = &mut pair.client.receiver;
        let expected = match receiver.next_frame().unwrap().unwrap() {
            Frame::Record(record) => record.to_vec(),
            Frame::Message(message) => message.content().to_vec(),
            Frame::Preamble(_) => panic!("a reply"),
        };
        assert!(expected.ends_with(b"results!"));
        assert_eq!(receiver.last_content(), expected);
        receiver.room();
        assert_eq!(receiver.last_content(), b"");
    }
}
