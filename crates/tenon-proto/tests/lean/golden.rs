//! Every message byte by byte, in both orders.

use tenon_proto::lean::client::ReplyError;
use tenon_proto::lean::client::{ClientEngine, Event};
use tenon_proto::lean::server::{Received, Reply};
use tenon_proto::lean::{
    ByteOrder, Exception, Extension, Extras, Interface, Reason, RefusalReason, Status,
};
use tenon_wire::Buffer;

use crate::support::F::{B, D, H, W};
use crate::support::{F, ORDERS, Pair, bytes, catalog, client_preamble, known, server_preamble};
use std::sync::Arc;
use std::time::Duration;

/// The first word of a header.
fn word(kind: u32, flags: u32) -> F {
    W(0xd07e_0000 | kind << 8 | flags)
}

fn check(name: &str, order: ByteOrder, got: &[u8], expected: &[F]) {
    assert_eq!(got, bytes(order, expected), "{name}, {order:?}");
}

/// A preamble with the check behind it.
fn checked(fields: &[u8; 28]) -> Vec<u8> {
    let check = fields.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    [&fields[..], &check.to_be_bytes()].concat()
}

#[test]
fn preambles() {
    let client = checked(
        b"\x7ftenon\r\n\
        \0\x01\0\x01\x01\0\0\0\
        \0\0\0\0\0\x10\0\0\
        \0\0\0\0",
    );
    let server = checked(
        b"\x7ftenon\r\n\
        \0\x01\0\x01\x02\x02\0\0\
        \0\0\0\0\0\x10\0\0\
        \0\0\0\x40",
    );
    assert_eq!(client_preamble(ByteOrder::Little).encode()[..], client);
    let refusing = server_preamble(ByteOrder::Big).refusing(RefusalReason::BUSY);
    assert_eq!(refusing.encode()[..], server);
}

#[test]
fn a_call_to_the_byte_as_a_little_endian_machine_sends_it() {
    let mut pair = Pair::new(ByteOrder::Little, ByteOrder::Little);
    pair.call(&known(5), 3, b"", "first");
    let (_, call) = pair.call(&known(5), 0x0102, b"hello", "second");
    let golden = b"\0\x01\x7e\xd0\x02\0\0\0\0\0\x02\x01\x05\0\0\0hello\0\0\0";
    assert_eq!(call, golden);
}

#[test]
fn what_a_client_sends() {
    for order in ORDERS {
        let mut pair = Pair::new(order, ByteOrder::NATIVE);
        let (id, call) = pair.call(&known(5), 7, b"abcdefgh", "call");
        let expected = [
            &[word(5, 0), W(0), H(0), H(0), W(16)][..],
            &[W(300), W(5), D(0x1122_3344_5566_7788)],
            &[word(1, 0), W(id), H(0), H(7), W(8), B(b"abcdefgh")],
        ];
        check("bind and call", order, &call, &expected.concat_fields());

        let extras = Extras {
            time_left: Some(Duration::from_millis(1500)),
            extensions: &[],
            ..Extras::default()
        };
        let (id, call) = pair.call_with(&known(5), 8, b"x", &extras, "deadline");
        let expected = [word(1, 1), W(id), H(0), H(8), W(9), D(1_500_000)];
        let expected = [&expected[..], &[B(b"x\0\0\0\0\0\0\0")]];
        check("call with time", order, &call, &expected.concat_fields());

        let extras = Extras {
            time_left: Some(Duration::from_micros(5)),
            extensions: &[
                Extension {
                    kind: 1,
                    content: b"12345678",
                },
                Extension {
                    kind: 0x8002,
                    content: b"abc",
                },
            ],
            ..Extras::default()
        };
        let (id, call) = pair.call_with(&known(5), 9, b"", &extras, "extensions");
        let expected = [
            &[word(1, 3), W(id), H(0), H(9), W(40), D(5)][..],
            &[H(1), H(1), W(8), B(b"12345678")],
            &[H(0x8002), H(0), W(3), B(b"abc\0\0\0\0\0")],
        ];
        check("extensions", order, &call, &expected.concat_fields());

        let mut owed = |act: &mut dyn FnMut(&mut ClientEngine<&'static str>)| {
            act(&mut pair.client);
            let mut out = Buffer::default();
            assert!(pair.client.poll_transmit(&mut out));
            assert!(!pair.client.poll_transmit(&mut Buffer::default()));
            out.as_slice().to_vec()
        };
        let cancel = owed(&mut |client| assert_eq!(client.cancel(id), Some("extensions")));
        let expected = [word(4, 0), W(id), H(0), H(0), W(0)];
        check("cancel", order, &cancel, &expected);

        let ping = owed(&mut |client| assert_eq!(client.ping(), 1));
        let expected = [word(8, 0), W(1), H(0), H(0), W(0)];
        check("ping", order, &ping, &expected);

        let goodbye = owed(&mut |client| client.goodbye(Reason::DONE, "enough"));
        let expected = [
            &[word(10, 0), W(0), H(0), H(0), W(24)][..],
            &[W(0), W(0), W(0), W(6), B(b"enough\0\0")],
        ];
        check("goodbye", order, &goodbye, &expected.concat_fields());
    }
}

#[test]
fn what_a_server_sends() {
    for order in ORDERS {
        let mut pair = Pair::new(ByteOrder::NATIVE, order);
        let (first, call) = pair.call(&known(5), 7, b"", "first");
        let mut caller = None;
        let mut keep = |_: &mut _, received: Received<'_>, _: &mut Buffer| match received {
            Received::Call(call) => caller = Some(call.caller),
            other => panic!("{other:?}"),
        };
        pair.send_to_server(&call, &mut keep).unwrap();
        let caller = caller.unwrap();
        let expected = [
            &[word(6, 0), W(0), H(0), H(0), W(8)][..],
            &[D(0x1122_3344_5566_7788)],
        ];
        check(
            "bound",
            order,
            pair.out.as_slice(),
            &expected.concat_fields(),
        );

        let answered = |answer: &dyn Fn(&mut Buffer)| {
            let mut out = Buffer::default();
            out.extend(&[0; 8]);
            answer(&mut out);
            out.as_slice()[8..].to_vec()
        };
        let reply = answered(&|out| {
            let reply = Reply::begin(out, caller);
            out.extend(b"result");
            reply.seal(out);
        });
        let expected = [word(2, 0), W(first), H(0), H(7), W(6)];
        let expected = [&expected[..], &[B(b"result\0\0")]].concat_fields();
        check("reply", order, &reply, &expected);

        let stamps = [Extension {
            kind: Extension::STAMPS,
            content: &[],
        }];
        let extras = Extras {
            time_left: Some(Duration::ZERO),
            extensions: &stamps,
            ..Extras::default()
        };
        let reply = answered(&|out| Reply::begin_with(out, caller, &extras).seal(out));
        let expected = [word(2, 2), W(first), H(0), H(7), W(8), H(1), H(0), W(0)];
        check("reply with an extension", order, &reply, &expected);

        let exception = answered(&|out| {
            let reply = Reply::begin(out, caller);
            out.extend(b"half a result");
            let exception = Exception {
                details: b"why",
                ..Exception::new(Status::RAISED, "no")
            };
            reply.refuse(out, &exception).seal(out);
        });
        let expected = [
            &[word(3, 0), W(first), H(0), H(7), W(19)][..],
            &[W(12), W(2), B(b"no\0\0\0\0\0\0"), B(b"why\0\0\0\0\0")],
        ];
        check("exception", order, &exception, &expected.concat_fields());

        pair.out.clear();
        let server = &mut pair.server;
        server.ping(9, &mut pair.out);
        let expected = [word(8, 0), W(9), H(0), H(0), W(0)];
        check("ping", order, pair.out.as_slice(), &expected);

        pair.client.ping();
        pair.out.clear();
        pair.serve_owed(|_, _, _| panic!("the engine answers itself"));
        let expected = [word(9, 0), W(1), H(0), H(0), W(0)];
        check("pong", order, pair.out.as_slice(), &expected);

        pair.out.clear();
        pair.server.goodbye(Reason::STOPPING, "", &mut pair.out);
        let expected = [
            &[word(10, 0), W(first), H(0), H(0), W(16)][..],
            &[W(1), W(1), W(0), W(0)],
        ];
        check(
            "goodbye",
            order,
            pair.out.as_slice(),
            &expected.concat_fields(),
        );
    }
}

#[test]
fn what_a_server_says_when_it_does_not_bind() {
    let other = Interface {
        fingerprint: 99,
        ..(*known(5)).clone()
    };
    let cases: [(&str, Interface, Vec<F>); 3] = [
        (
            "no program",
            Interface::unknown(301, 1),
            vec![W(24), W(1), W(0), W(0), W(0), D(0)],
        ),
        (
            "no version",
            Interface::unknown(300, 3),
            vec![W(24), W(2), W(2), W(5), W(0), D(0)],
        ),
        (
            "other interface",
            other,
            [
                &[W(80), W(3), W(0), W(0), W(2), D(0x1122_3344_5566_7788)][..],
                &[D(1), W(0), W(5), B(b"point\0\0\0")],
                &[D(2), W(0), W(14), B(b"procedure MOVE\0\0")],
            ]
            .concat_fields(),
        ),
    ];
    for order in ORDERS {
        for (name, interface, body) in &cases {
            let mut pair = Pair::new(ByteOrder::NATIVE, order);
            pair.client.bind(&Arc::new(interface.clone())).unwrap();
            pair.serve_owed(|_, _, _| panic!("the engine answers itself"));
            let head = [word(7, 0), W(0), H(0), H(0)];
            let expected = [&head[..], &body[..]].concat_fields();
            check(name, order, pair.out.as_slice(), &expected);
        }
    }
}

#[test]
fn what_one_writes_the_other_reads() {
    for client in ORDERS {
        for server in ORDERS {
            let mut pair = Pair::new(client, server);
            let extras = Extras {
                time_left: Some(Duration::from_micros(77)),
                extensions: &[
                    Extension {
                        kind: 1,
                        content: b"stamp",
                    },
                    Extension {
                        kind: 2,
                        content: b"",
                    },
                ],
                ..Extras::default()
            };
            let (id, call) = pair.call_with(&known(5), 300, b"arguments", &extras, "call");
            let answer = |_: &mut _, received: Received<'_>, out: &mut Buffer| {
                let Received::Call(call) = received else {
                    panic!("{received:?}");
                };
                assert_eq!((call.caller.id, call.service, call.procedure), (id, 0, 300));
                assert_eq!(call.order, client);
                assert_eq!(call.time_left, Some(Duration::from_micros(77)));
                assert_eq!(call.arguments, b"arguments");
                let found: Vec<_> = call.extensions.collect();
                assert_eq!(found, extras.extensions);
                let reply = Reply::begin_with(out, call.caller, &extras);
                out.extend(b"results");
                reply.seal(out);
            };
            pair.send_to_server(&call, answer).unwrap();
            let stream = pair.out.as_slice().to_vec();
            let mut answers = 0;
            let mut reader = std::mem::replace(
                &mut pair.client_reader,
                tenon_proto::lean::MessageReader::new(0),
            );
            crate::support::read(&mut reader, &stream, 3, |incoming| {
                let tenon_proto::lean::Incoming::Message(message) = incoming else {
                    panic!("a second preamble");
                };
                if let Event::Answer(answer) = pair.client.handle_message(&message)? {
                    answers += 1;
                    assert_eq!((answer.id, answer.waiter), (id, "call"));
                    assert_eq!(answer.order, server);
                    assert_eq!(answer.outcome, Ok::<_, ReplyError<'_>>(&b"results"[..]));
                    let found: Vec<_> = answer.extensions.collect();
                    assert_eq!(found, extras.extensions);
                }
                Ok(())
            })
            .unwrap();
            assert_eq!(answers, 1);
        }
    }
    assert!(catalog().add(known(5)).is_none(), "it is there already");
}

/// Joins lists of fields.
trait ConcatFields {
    fn concat_fields(self) -> Vec<F>;
}

impl<const N: usize> ConcatFields for [&[F]; N] {
    fn concat_fields(self) -> Vec<F> {
        self.concat()
    }
}
