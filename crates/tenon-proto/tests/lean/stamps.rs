//! Time stamps: asked for, given byte by byte, written anew when they are sent, and not believed.

use tenon_proto::lean::client::{ClientEngine, Event};
use tenon_proto::lean::server::{Received, Reply, ServerEngine};
use tenon_proto::lean::{
    ByteOrder, Exception, Extension, Extras, Features, Incoming, MessageReader, Preamble, Stamps,
    Status, stamp_sent,
};
use tenon_wire::Buffer;

use crate::support::F::{self, B, D, H, W};
use crate::support::{LIMIT, ORDERS, Pair, bytes, client_preamble, known, read, server_preamble};

const STAMPS: Stamps = Stamps {
    clock: 0x0102_0304_0506_0708,
    rate: 1_000_000_000,
    received: 10,
    dispatched: 20,
    done: 20,
    sent: 30,
};

/// What a reply with [`STAMPS`] carries, sent at `sent`.
fn extension(sent: u64) -> [F; 9] {
    let Stamps { clock, rate, .. } = STAMPS;
    [
        H(1),
        H(0),
        W(48),
        D(clock),
        D(rate),
        D(10),
        D(20),
        D(20),
        D(sent),
    ]
}

fn pair(order: ByteOrder, client: Features, server: Features) -> Pair {
    let with = |preamble: Preamble, features| Preamble {
        features,
        ..preamble
    };
    let mut pair = Pair::before_preambles(order, order);
    pair.client = ClientEngine::new(with(client_preamble(order), client), 1);
    pair.server = ServerEngine::new(with(server_preamble(order), server));
    pair.serve_owed(|_, _, _| panic!("no call yet"));
    pair.take_answers();
    pair
}

/// A call that asks for stamps and what is before it.
fn asking(pair: &mut Pair) -> Vec<u8> {
    asking_of(7, pair)
}

/// The same for this procedure.
fn asking_of(procedure: u16, pair: &mut Pair) -> Vec<u8> {
    let extras = Extras {
        time_left: None,
        extensions: &[Stamps::REQUEST],
        ..Extras::default()
    };
    pair.call_with(&known(5), procedure, b"", &extras, "call").1
}

/// What `answer` makes of a call that asks for stamps, without that its service is bound.
fn answer_to(pair: &mut Pair, answer: impl Fn(Reply, &mut Buffer)) -> Vec<u8> {
    let stream = asking(pair);
    let mut wanted = false;
    pair.send_to_server(&stream, |_, received, out| match received {
        Received::Call(call) => {
            out.clear();
            wanted = call.wants_stamps;
            answer(Reply::begin_stamped(out, call.caller), out);
        }
        other => panic!("{other:?}"),
    })
    .unwrap();
    assert!(wanted);
    let reply = pair.out.as_slice().to_vec();
    pair.out.clear();
    reply
}

#[test]
fn stamps_are_given_as_specified() {
    for order in ORDERS {
        let mut pair = pair(order, Features::STAMPS, Features::STAMPS);
        let asked = [F::W(0xd07e_0102), W(1), H(0), H(7), W(8), H(1), H(0), W(0)];
        let stream = asking(&mut pair);
        assert!(stream.ends_with(&bytes(order, &asked)), "{order:?}");
        pair = self::pair(order, Features::STAMPS, Features::STAMPS);
        let reply = answer_to(&mut pair, |reply, out| {
            out.extend(b"pong");
            reply.seal_stamped(out, &STAMPS);
        });
        let header = [W(0xd07e_0202), W(1), H(0), H(7), W(60)];
        let expected = [&header[..], &extension(30), &[B(b"pong\0\0\0\0")]].concat();
        assert_eq!(reply, bytes(order, &expected), "{order:?}");
    }
}

/// Behind the server's preamble, between other messages.
#[test]
fn when_a_reply_is_sent_is_said_anew() {
    for order in ORDERS {
        let stamped = |sent| {
            let header = [W(0xd07e_0202), W(1), H(0), H(7), W(60)];
            [&header[..], &extension(sent), &[B(b"pong\0\0\0\0")]].concat()
        };
        let other = [W(0xd07e_0202), W(2), H(0), H(7), W(64), H(2), H(0), W(56)];
        let all = |sent| {
            let stream = [
                server_preamble(order).encode().to_vec(),
                bytes(order, &[W(0xd07e_0200), W(9), H(0), H(7), W(0)]),
                bytes(order, &stamped(sent)),
                bytes(order, &other),
                vec![7; 56],
                bytes(order, &stamped(sent)),
            ];
            stream.concat()
        };
        let mut out = Buffer::default();
        out.extend(&all(30));
        stamp_sent(&mut out, order, 99);
        assert_eq!(out.as_slice(), all(99), "{order:?}");
    }
}

/// Procedure 0 is answered by whoever has a clock if its client wants stamps, and otherwise by the engine.
#[test]
fn procedure_0_is_stamped_like_the_others() {
    for order in ORDERS {
        let mut pair = pair(order, Features::STAMPS, Features::STAMPS);
        let stream = asking_of(0, &mut pair);
        let mut found = 0;
        pair.send_to_server(&stream, |_, received, out| match received {
            Received::StampedNull(caller) => {
                found += 1;
                out.clear();
                Reply::begin_stamped(out, caller).seal_stamped(out, &STAMPS);
            }
            other => panic!("{other:?}"),
        })
        .unwrap();
        assert_eq!(found, 1);
        let header = [W(0xd07e_0202), W(1), H(0), H(0), W(56)];
        let expected = bytes(order, &[&header[..], &extension(30)].concat());
        assert_eq!(pair.out.as_slice(), expected, "{order:?}");
        assert_eq!(pair.server.counters().pings, 1);
    }
    for (client, server) in [
        (Features::default(), Features::STAMPS),
        (Features::STAMPS, Features::default()),
    ] {
        let mut pair = pair(ByteOrder::Little, client, server);
        let stream = asking_of(0, &mut pair);
        let answered = pair.send_to_server(&stream, |_, received, _| panic!("{received:?}"));
        answered.unwrap();
        let expected = bytes(ByteOrder::Little, &[W(0xd07e_0200), W(1), H(0), H(0), W(0)]);
        assert!(pair.out.as_slice().ends_with(&expected));
    }
}

#[test]
fn an_exception_carries_no_stamps() {
    let mut pair = pair(ByteOrder::Little, Features::STAMPS, Features::STAMPS);
    let answer = answer_to(&mut pair, |reply, out| {
        let exception = Exception::new(Status::FAILED, "");
        reply.refuse(out, &exception).seal_stamped(out, &STAMPS);
    });
    let expected = [W(0xd07e_0300), W(1), H(0), H(7), W(8), W(4), W(0)];
    assert_eq!(answer, bytes(ByteOrder::Little, &expected));
}

#[test]
fn who_has_not_both_offered_them_gets_none() {
    let none = Features::default();
    for (client, server) in [
        (none, none),
        (Features::STAMPS, none),
        (none, Features::STAMPS),
    ] {
        let mut pair = pair(ByteOrder::Little, client, server);
        let stream = asking(&mut pair);
        let mut calls = 0;
        pair.send_to_server(&stream, |_, received, _| match received {
            Received::Call(call) => {
                assert!(!call.wants_stamps, "{client:?}, {server:?}");
                calls += 1;
            }
            other => panic!("{other:?}"),
        })
        .unwrap();
        assert_eq!(calls, 1);
    }
}

/// The stamps that a client finds in a reply with these extensions.
fn found(order: ByteOrder, extensions: &[Extension<'_>]) -> Option<Stamps> {
    let mut pair = pair(order, Features::STAMPS, Features::STAMPS);
    let (_, stream) = pair.call(&known(5), 7, b"", "call");
    let extras = Extras {
        time_left: None,
        extensions,
        ..Extras::default()
    };
    pair.send_to_server(&stream, |_, received, out| match received {
        Received::Call(call) => {
            let reply = Reply::begin_with(out, call.caller, &extras);
            out.extend(b"pong");
            reply.seal(out);
        }
        other => panic!("{other:?}"),
    })
    .unwrap();
    let mut found = None;
    let mut reader = MessageReader::new(LIMIT);
    let hello = server_preamble(order).encode();
    read(&mut reader, &hello, 64, |_| Ok(())).unwrap();
    read(&mut reader, pair.out.as_slice(), usize::MAX, |incoming| {
        if let Incoming::Message(message) = incoming
            && let Event::Answer(answer) = pair.client.handle_message(&message)?
        {
            assert_eq!(answer.outcome.unwrap(), b"pong");
            found = Some(Stamps::find(answer.extensions));
        }
        Ok(())
    })
    .unwrap();
    found.expect("an answer")
}

#[test]
fn stamps_that_make_no_sense_are_none() {
    let numbers = |numbers: &[u64]| numbers.iter().map(|number| D(*number)).collect::<Vec<_>>();
    let long = vec![0; 4096];
    for order in ORDERS {
        let find = |kind, fields: &[F]| {
            let content = bytes(order, fields);
            let content = &content[..];
            found(order, &[Extension { kind, content }])
        };
        let good = numbers(&[STAMPS.clock, STAMPS.rate, 10, 20, 20, 30]);
        assert_eq!(find(1, &good), Some(STAMPS));
        let largest = numbers(&[u64::MAX; 6]);
        assert_eq!(find(1, &largest).map(|stamps| stamps.sent), Some(u64::MAX));
        let bad = [
            (1, numbers(&[])),
            (1, numbers(&[1, 1, 1, 1, 1])),
            (1, numbers(&[1, 1, 1, 1, 1, 1, 1])),
            (1, [&good[..5], &[W(30)]].concat()),
            (1, numbers(&[1, 0, 10, 20, 20, 30])),
            (1, numbers(&[1, 1, 21, 20, 20, 30])),
            (1, numbers(&[1, 1, 10, 20, 19, 30])),
            (1, numbers(&[1, 1, 10, 20, 20, 19])),
            (2, good.clone()),
        ];
        for (kind, fields) in bad {
            assert_eq!(find(kind, &fields), None, "{:?}", bytes(order, &fields));
        }
        let content = &long[..];
        assert_eq!(found(order, &[Extension { kind: 1, content }]), None);
        assert_eq!(found(order, &[]), None);
        let behind = bytes(order, &good);
        let both = [
            Extension {
                kind: 9,
                content: b"first",
            },
            Extension {
                kind: 1,
                content: &behind,
            },
        ];
        assert_eq!(found(order, &both), Some(STAMPS));
    }
}
