//! Every message of the lean protocol byte by byte, in both orders and both directions.

use std::sync::Arc;
use std::time::Duration;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{Caller, ReplyDraft};
use tenon_proto::lean::{
    self, ByteOrder, CloseReason, Exception, Extension, Extras, HEADER, Interface, PIECE, Status,
};
use tenon_wire::Buffer;

use crate::fields::Field::{self, Bytes, Double, Half, Word};
use crate::fields::{ORDERS, bytes, flags, head, head_with, kinds};
use crate::pair::{Pair, SECOND, Served, answer, carry, client_config, known, server_config};

/// A call of the end that has accepted the connection has this flag, and everything that belongs to it.
const REVERSE: u32 = flags::REVERSE;

fn check(name: &str, order: ByteOrder, got: &[u8], expected: &[&[Field]]) {
    assert_eq!(got, bytes(order, &expected.concat()), "{name}, {order:?}");
}

/// A pair whose client accepts calls, too.
fn pair(client: ByteOrder, server: ByteOrder) -> Pair {
    let client = ConnectionConfig {
        incoming_calls_max: 16,
        ..client_config(client)
    };
    Pair::greeted(client, server_config(server))
}

#[test]
fn a_call_as_a_little_endian_machine_sends_it() {
    let mut pair = pair(ByteOrder::Little, ByteOrder::Little);
    pair.call(&known(5), 3, b"", "first");
    pair.serve();
    pair.call(&known(5), 0x0102, b"hello", "second");
    let golden = b"\0\x01\x7e\xd0\x02\0\0\0\0\0\x02\x01\x05\0\0\0hello\0\0\0";
    assert_eq!(pair.client.transmit_all(), golden);
}

#[test]
fn calls_of_a_client() {
    for order in ORDERS {
        let mut pair = pair(order, ByteOrder::NATIVE);
        let id = pair.call(&known(5), 7, b"abcdefgh", "call").number;
        let sent = pair.client.transmit_all();
        let bind = [Word(300), Word(5), Double(0x1122_3344_5566_7788)];
        let expected: [&[Field]; 4] = [
            &head(kinds::BIND, 0, 0, 0, 16),
            &bind,
            &head(kinds::CALL, id, 0, 7, 8),
            &[Bytes(b"abcdefgh")],
        ];
        check("bind and call", order, &sent, &expected);

        let extras = Extras {
            time_left: Some(Duration::from_millis(1500)),
            ..Extras::default()
        };
        let call = pair.call_with(&known(5), 8, b"x", &extras, "with time");
        let sent = pair.client.transmit_all();
        let expected: [&[Field]; 2] = [
            &head_with(kinds::CALL, flags::TIME, call.number, (0, 8), 9),
            &[Double(1_500_000), Bytes(b"x\0\0\0\0\0\0\0")],
        ];
        check("call with time", order, &sent, &expected);

        let extension = |kind, content| Extension { kind, content };
        let extras = Extras {
            time_left: Some(Duration::from_micros(5)),
            extensions: &[extension(1, b"12345678"), extension(0x8002, b"abc")],
            ..Extras::default()
        };
        let call = pair.call_with(&known(5), 9, b"", &extras, "with extensions");
        let sent = pair.client.transmit_all();
        let both = flags::TIME | flags::EXTENSIONS;
        let expected: [&[Field]; 4] = [
            &head_with(kinds::CALL, both, call.number, (0, 9), 40),
            &[Double(5)],
            &[Half(1), Half(1), Word(8), Bytes(b"12345678")],
            &[Half(0x8002), Half(0), Word(3), Bytes(b"abc\0\0\0\0\0")],
        ];
        check("call with extensions", order, &sent, &expected);

        pair.client.connection.cancel_call(call.number).unwrap();
        let sent = pair.client.transmit_all();
        let expected: [&[Field]; 1] = [&head(kinds::CANCEL, call.number, 0, 0, 0)];
        check("cancel", order, &sent, &expected);
    }
}

#[test]
fn calls_of_a_server() {
    for order in ORDERS {
        let mut pair = pair(ByteOrder::NATIVE, order);
        let deadline = pair.now + SECOND;
        let interface = known(5);
        let extras = Extras {
            time_left: Some(Duration::from_micros(5)),
            ..Extras::default()
        };
        let of = (&interface, 7);
        let server = &mut pair.server;
        let call = server.call_lean(of, b"abcdefgh", &extras, deadline, "reverse");
        let id = call.unwrap().number;
        let sent = pair.server.transmit_all();
        let bind = [Word(300), Word(5), Double(0x1122_3344_5566_7788)];
        let expected: [&[Field]; 4] = [
            &head_with(kinds::BIND, REVERSE, 0, (0, 0), 16),
            &bind,
            &head_with(kinds::CALL, REVERSE | flags::TIME, id, (0, 7), 16),
            &[Double(5), Bytes(b"abcdefgh")],
        ];
        check("bind and call", order, &sent, &expected);
        pair.server.connection.cancel_call(id).unwrap();
        let sent = pair.server.transmit_all();
        let expected: [&[Field]; 1] = [&head_with(kinds::CANCEL, REVERSE, id, (0, 0), 0)];
        check("cancel", order, &sent, &expected);
    }
}

/// A call that has reached the server's service, and what was said of its binding.
fn served(pair: &mut Pair) -> (Served, Vec<u8>) {
    pair.call(&known(5), 7, b"", "call");
    let call = pair.serve().remove(0);
    let said = pair.server.transmit_all();
    (call, said)
}

/// The bytes of a reply.
fn reply(caller: Caller, write: impl FnOnce(lean::ReplyDraft, &mut Buffer)) -> Vec<u8> {
    let mut out = Buffer::default();
    out.extend(b"in front");
    let ReplyDraft::Lean(draft) = ReplyDraft::begin(&mut out, caller) else {
        panic!("a lean call");
    };
    write(draft, &mut out);
    out.as_slice()[8..].to_vec()
}

#[test]
fn answers_of_a_server() {
    for order in ORDERS {
        let mut pair = pair(ByteOrder::NATIVE, order);
        let (call, bound) = served(&mut pair);
        let (id, caller) = (call.caller.number(), call.caller);
        let expected: [&[Field]; 2] = [
            &head(kinds::BOUND, 0, 0, 0, 8),
            &[Double(0x1122_3344_5566_7788)],
        ];
        check("bound", order, &bound, &expected);

        answer(&mut pair.server, caller, b"result");
        let sent = pair.server.transmit_all();
        let expected: [&[Field]; 2] = [&head(kinds::REPLY, id, 0, 7, 6), &[Bytes(b"result\0\0")]];
        check("reply", order, &sent, &expected);

        let exception = Exception {
            details: b"why",
            ..Exception::new(Status::RAISED, "no")
        };
        pair.refuse(caller, &exception);
        let sent = pair.server.transmit_all();
        let expected: [&[Field]; 3] = [
            &head(kinds::EXCEPTION, id, 0, 7, 19),
            &[Word(12), Word(2), Bytes(b"no\0\0\0\0\0\0")],
            &[Bytes(b"why\0\0\0\0\0")],
        ];
        check("exception", order, &sent, &expected);

        let stamps = [Extension {
            kind: Extension::STAMPS,
            content: &[],
        }];
        let extras = Extras {
            time_left: Some(Duration::ZERO),
            extensions: &stamps,
            ..Extras::default()
        };
        let Caller::Lean(lean_caller) = caller else {
            panic!("a lean call");
        };
        let mut out = Buffer::default();
        lean::ReplyDraft::begin_with(&mut out, lean_caller, &extras).seal(&mut out);
        let expected: [&[Field]; 2] = [
            &head_with(kinds::REPLY, flags::EXTENSIONS, id, (0, 7), 8),
            &[Half(1), Half(0), Word(0)],
        ];
        check("reply with an extension", order, out.as_slice(), &expected);
    }
}

#[test]
fn answers_of_a_client() {
    for order in ORDERS {
        let mut pair = pair(order, ByteOrder::NATIVE);
        let deadline = pair.now + SECOND;
        let interface = known(5);
        let of = (&interface, 7);
        let server = &mut pair.server;
        let call = server.call_lean(of, b"", &Extras::default(), deadline, "reverse");
        let id = call.unwrap().number;
        let calls = carry(&mut pair.server, &mut pair.client).calls;
        let said = pair.client.transmit_all();
        let expected: [&[Field]; 2] = [
            &head_with(kinds::BOUND, REVERSE, 0, (0, 0), 8),
            &[Double(0x1122_3344_5566_7788)],
        ];
        check("bound", order, &said, &expected);
        let caller = calls[0].caller;
        answer(&mut pair.client, caller, b"result");
        let sent = pair.client.transmit_all();
        let expected: [&[Field]; 2] = [
            &head_with(kinds::REPLY, REVERSE, id, (0, 7), 6),
            &[Bytes(b"result\0\0")],
        ];
        check("reply", order, &sent, &expected);
        let exception = Exception::new(Status::FAILED, "");
        let sent = reply(caller, |draft, out| {
            draft.refuse(out, &exception).seal(out);
        });
        let expected: [&[Field]; 2] = [
            &head_with(kinds::EXCEPTION, REVERSE, id, (0, 7), 8),
            &[Word(4), Word(0)],
        ];
        check("exception", order, &sent, &expected);
    }
}

#[test]
fn what_both_ends_say_of_the_connection() {
    for order in ORDERS {
        let mut pair = pair(order, order);
        for end in [&mut pair.client, &mut pair.server] {
            assert_eq!(end.connection.ping(), 1);
        }
        let pings = [pair.client.transmit_all(), pair.server.transmit_all()];
        for ping in &pings {
            let expected: [&[Field]; 1] = [&head(kinds::PING, 1, 0, 0, 0)];
            check("ping", order, ping, &expected);
        }
        let told = crate::pair::take_in(&mut pair.server, &pings[0]).unwrap();
        assert_eq!(told.told, [""; 0], "it is answered");
        let expected: [&[Field]; 1] = [&head(kinds::PONG, 1, 0, 0, 0)];
        check("pong", order, &pair.server.transmit_all(), &expected);

        let (call, _) = served(&mut pair);
        pair.server.connection.close(CloseReason::STOPPING, "");
        let sent = pair.server.transmit_all();
        let expected: [&[Field]; 2] = [
            &head(kinds::CLOSE, call.caller.number(), 0, 0, 16),
            &[Word(1), Word(1), Word(0), Word(0)],
        ];
        check("close behind a call", order, &sent, &expected);
        pair.client.connection.close(CloseReason::DONE, "enough");
        let sent = pair.client.transmit_all();
        let expected: [&[Field]; 2] = [
            &head(kinds::CLOSE, 0, 0, 0, 24),
            &[Word(0), Word(0), Word(0), Word(6), Bytes(b"enough\0\0")],
        ];
        check("close without a call", order, &sent, &expected);
    }
}

#[test]
fn a_service_that_is_not_bound() {
    let other = Interface {
        fingerprint: 99,
        ..(*known(5)).clone()
    };
    let parts: &[Field] = &[
        Word(3),
        Word(0),
        Word(0),
        Word(2),
        Double(0x1122_3344_5566_7788),
        Double(1),
        Double(0),
        Word(0),
        Word(5),
        Bytes(b"point\0\0\0"),
        Double(2),
        Double(0),
        Word(7),
        Word(14),
        Bytes(b"procedure MOVE\0\0"),
    ];
    let cases: [(&str, Interface, u32, &[Field]); 3] = [
        (
            "no program",
            Interface::unknown(301, 1),
            24,
            &[Word(1), Word(0), Word(0), Word(0), Double(0)],
        ),
        (
            "no version",
            Interface::unknown(300, 3),
            24,
            &[Word(2), Word(2), Word(5), Word(0), Double(0)],
        ),
        ("other interface", other, 96, parts),
    ];
    for order in ORDERS {
        for (name, interface, length, body) in &cases {
            let mut pair = pair(ByteOrder::NATIVE, order);
            let call = pair.call(&Arc::new(interface.clone()), 7, b"", "call");
            assert!(pair.serve().is_empty());
            let sent = pair.server.transmit_all();
            let expected: [&[Field]; 4] = [
                &head(kinds::UNBOUND, 0, 0, 0, *length),
                body,
                &head(kinds::EXCEPTION, call.number, 0, 7, 8),
                &[Word(1), Word(0)],
            ];
            check(name, order, &sent, &expected);
        }
    }
}

/// Version 5 as a client has it that was built from another file: MOVE is the same, TURN is not there.
fn with_turn() -> Arc<Interface> {
    let mut interface = (*known(5)).clone();
    interface.fingerprint = 99;
    interface.parts.push(tenon_proto::lean::Part {
        name: "procedure TURN".into(),
        fingerprint: 0x0807_0605_0403_0201,
        layout: 0,
        procedure: 8,
    });
    Arc::new(interface)
}

#[test]
fn a_service_that_is_bound_for_some_procedures() {
    for order in ORDERS {
        let mut pair = pair(order, ByteOrder::NATIVE);
        let first = pair.call(&with_turn(), 7, b"abcdefgh", "call").number;
        assert!(pair.serve().is_empty());
        let received = carry(&mut pair.server, &mut pair.client);
        let mut unsent = received.unbegun.into_iter().next().unwrap();
        let mut unsent = unsent.unsent.take().unwrap();
        let started = pair.client.connection.restart_call(&mut unsent, "again");
        let sent = pair.client.transmit_all();
        let expected: [&[Field]; 5] = [
            &head(kinds::BIND, 0, 1, 0, 32),
            &[Word(300), Word(5), Double(99)],
            &[Word(7), Word(0), Double(2)],
            &head(kinds::CALL, first + 1, 1, 7, 8),
            &[Bytes(b"abcdefgh")],
        ];
        assert_eq!(started.unwrap().number, first + 1);
        check("bind of procedures and call", order, &sent, &expected);
        let received = crate::pair::take_in(&mut pair.server, &sent).unwrap();
        assert_eq!(received.calls.len(), 1);
        // Only what was named is bound.
        let stream = bytes(order, &head(kinds::CALL, first + 2, 1, 8, 0));
        let received = crate::pair::take_in(&mut pair.server, &stream).unwrap();
        assert_eq!(received.calls, []);
        let expected: [&[Field]; 4] = [
            &head(kinds::BOUND, 0, 1, 0, 8),
            &[Double(0x1122_3344_5566_7788)],
            &head(kinds::EXCEPTION, first + 2, 1, 8, 8),
            &[Word(1), Word(0)],
        ];
        let sent = pair.server.transmit_all();
        check(
            "bound, and a call of what is not",
            ByteOrder::NATIVE,
            &sent,
            &expected,
        );
    }
}

#[test]
fn a_long_call_in_pieces() {
    for order in ORDERS {
        let mut pair = pair(order, ByteOrder::NATIVE);
        pair.call(&known(5), 7, b"", "to bind the service");
        pair.serve();
        let extras = Extras {
            time_left: Some(Duration::from_micros(5)),
            ..Extras::default()
        };
        let arguments = vec![7; 2 * PIECE - 8 + 3];
        let id = pair
            .call_with(&known(5), 7, &arguments, &extras, "long")
            .number;
        let more = flags::MORE;
        let pieces: [(&[Field], usize); 3] = [
            (
                &[
                    &head_with(kinds::CALL, flags::TIME | more, id, (0, 7), PIECE as u32)[..],
                    &[Double(5)],
                ]
                .concat(),
                PIECE - 8,
            ),
            (
                &head_with(kinds::PIECE, more, id, (0, 0), PIECE as u32),
                PIECE,
            ),
            (&head(kinds::PIECE, id, 0, 0, 3), 3),
        ];
        for (head, length) in pieces {
            let mut expected = bytes(order, head);
            expected.extend(vec![7; length]);
            expected.resize(expected.len().next_multiple_of(8), 0);
            assert!(pair.client.transmit() == expected, "{order:?}");
        }
        assert_eq!(pair.client.transmit(), []);
    }
}

#[test]
fn a_long_reply_in_pieces_of_either_end() {
    for order in ORDERS {
        let mut pair = pair(order, order);
        let (call, _) = served(&mut pair);
        answer(&mut pair.server, call.caller, &vec![7; PIECE + 8]);
        let first = pair.server.transmit();
        let last = pair.server.transmit();
        let id = call.caller.number();
        let expected = head_with(kinds::REPLY, flags::MORE, id, (0, 7), PIECE as u32);
        assert_eq!(first[..HEADER], bytes(order, &expected));
        assert_eq!(
            last[..HEADER],
            bytes(order, &head(kinds::PIECE, id, 0, 0, 8))
        );

        let deadline = pair.now + SECOND;
        let interface = known(5);
        let of = (&interface, 7);
        let server = &mut pair.server;
        let call = server.call_lean(of, b"", &Extras::default(), deadline, "reverse");
        let id = call.unwrap().number;
        let calls = carry(&mut pair.server, &mut pair.client).calls;
        pair.client.transmit_all();
        answer(&mut pair.client, calls[0].caller, &vec![7; PIECE + 8]);
        let (first, last) = (pair.client.transmit(), pair.client.transmit());
        let more = REVERSE | flags::MORE;
        let expected = head_with(kinds::REPLY, more, id, (0, 7), PIECE as u32);
        assert_eq!(first[..HEADER], bytes(order, &expected));
        let expected = head_with(kinds::PIECE, REVERSE, id, (0, 0), 8);
        assert_eq!(last[..HEADER], bytes(order, &expected));
    }
}

#[test]
fn each_end_reads_what_the_other_writes() {
    let extension = |kind, content| Extension { kind, content };
    let extensions = [extension(1, b"stamp"), extension(2, b"")];
    let extras = Extras {
        time_left: Some(Duration::from_micros(77)),
        extensions: &extensions,
        ..Extras::default()
    };
    for client in ORDERS {
        for server in ORDERS {
            let mut pair = pair(client, server);
            let id = pair
                .call_with(&known(5), 300, b"arguments", &extras, "call")
                .number;
            let call = pair.serve().remove(0);
            assert_eq!((call.service, call.procedure), (0, 300));
            assert_eq!((call.order, call.caller.number()), (client, id));
            assert_eq!(call.time_left, extras.time_left);
            assert_eq!(call.arguments, b"arguments");
            let expected = [(1, b"stamp".to_vec()), (2, Vec::new())];
            assert_eq!(call.extensions, expected);
            let Caller::Lean(caller) = call.caller else {
                panic!("a lean call");
            };
            let mut reply = Buffer::default();
            let draft = lean::ReplyDraft::begin_with(&mut reply, caller, &extras);
            reply.extend(b"results");
            draft.seal(&mut reply);
            pair.server.connection.push_reply(&mut reply);
            assert_eq!(pair.take_answers(), ["call: results"]);
        }
    }
}
