//! Every packet byte by byte.

use std::time::{Duration, Instant};

use tenon_proto::exchange::client::{ClientEngine, ClientLimits};
use tenon_proto::exchange::server::{CloseRecipients, ServerEngine, ServerLimits};
use tenon_proto::exchange::{Failure, Reason, is_packet};
use tenon_proto::lean::{ByteOrder, Preamble};
use tenon_wire::Buffer;

use crate::exchange::support::{
    Pair, address, client_of, crc32c, known, message, outgoing, packet, server_of, services,
};

fn show(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).map(|line| {
        let words = line.iter().map(|byte| format!("{byte:02x}"));
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn check(name: &str, got: &[u8], expected: &[u8]) {
    assert!(is_packet(got), "{name}");
    assert_eq!(show(got), show(expected), "{name}");
}

#[test]
fn the_check_is_that_of_rfc_3720() {
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

/// The name of the first conversation of a client whose seed is 0.
const FIRST: u64 = 0xbcf5_46d5_fbc3_36c0;

#[test]
fn from_the_greeting_to_the_second_call() {
    let order = ByteOrder::Little;
    let mut pair = Pair::new(order, order);
    pair.now += Duration::from_millis(5);
    pair.start(&message(order, 7, b"arguments"));

    let hello = pair.take_from_client();
    let client = Preamble {
        order,
        ..Preamble::client(64 << 20)
    };
    let size = 1448_u32.to_be_bytes();
    let expected = packet(
        (1, 0, FIRST, 0, 0, 1, 0, 0),
        &[&client.encode(), &size, &[0; 28]],
    );
    check("hello", &hello, &expected);

    assert!(pair.bring_to_server(&hello).is_none());
    let welcome = pair.take_from_server();
    let cookie = &welcome[72..88];
    assert_eq!(cookie[..8], *b"\0\0\0\0\0\0\0\x05", "milliseconds");
    let server = Preamble {
        order,
        ..Preamble::server(64 << 20, 64)
    };
    let incarnation = 3_u32.to_be_bytes();
    let retention = 60_000_u32.to_be_bytes();
    let expected = packet(
        (2, 0, FIRST, 0, 0, 1, 0, 0),
        &[
            &server.encode(),
            &size,
            &incarnation,
            cookie,
            &retention,
            &[0; 4],
        ],
    );
    check("welcome", &welcome, &expected);
    assert_eq!(hello.len(), welcome.len(), "nothing is gained by a hello");

    pair.bring_to_client(&welcome);
    let call = pair.take_from_client();
    let opening: [&[u8]; 4] = [cookie, &client.encode(), &size, &[0; 4]];
    let opening = opening.concat();
    let bind: &[u8] = b"\0\x05\x7e\xd0\0\0\0\0\0\0\0\0\x10\0\0\0\
        \x2c\x01\0\0\x05\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11";
    let first = b"\0\x01\x7e\xd0\x01\0\0\0\0\0\x07\0\x09\0\0\0arguments\0\0\0\0\0\0\0";
    let expected = packet((3, 1, FIRST, 0, 0, 1, 0, 1), &[&opening, bind, first]);
    check("first call", &call, &expected);

    pair.now += Duration::from_millis(1);
    let key = pair.bring_to_server(&call).expect("a call");
    pair.now += Duration::from_micros(300);
    pair.answer(key, b"result");
    let reply = pair.take_from_server();
    let bound: &[u8] = b"\0\x06\x7e\xd0\0\0\0\0\0\0\0\0\x08\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11";
    let result = b"\0\x02\x7e\xd0\x01\0\0\0\0\0\x07\0\x06\0\0\0result\0\0";
    let expected = packet((4, 0, FIRST, 0, 300, 1, 0, 1), &[bound, result]);
    check("first reply", &reply, &expected);
    pair.bring_to_client(&reply);
    assert_eq!(pair.results, [b"result"]);

    pair.start(&message(order, 7, b"more"));
    let call = pair.take_from_client();
    let second = b"\0\x01\x7e\xd0\x02\0\0\0\0\0\x07\0\x04\0\0\0more\0\0\0\0";
    let expected = packet((3, 0, FIRST, 0, 0, 2, 0, 1), &[second]);
    check("second call", &call, &expected);
    let key = pair.bring_to_server(&call).expect("a call");
    pair.answer(key, b"result");
    let result = b"\0\x02\x7e\xd0\x02\0\0\0\0\0\x07\0\x06\0\0\0result\0\0";
    let expected = packet((4, 0, FIRST, 0, 0, 2, 0, 1), &[result]);
    check("second reply", &pair.take_from_server(), &expected);
}

#[test]
fn what_is_rare() {
    let order = ByteOrder::Big;
    let mut pair = Pair::new(order, order);
    pair.call(b"warm up");

    let id = pair.start(&message(order, 7, b"long"));
    let call = pair.take_from_client();
    let running = pair.bring_to_server(&call).expect("a call");
    pair.pass_time();
    let again = pair.take_from_client();
    assert_eq!(again[7], 2, "it asks");
    assert!(pair.bring_to_server(&again).is_none());
    let ack = pair.take_from_server();
    let expected = packet((5, 0, FIRST, 0, 1, 2, 1, 1), &[]);
    check("running", &ack, &expected);
    pair.bring_to_client(&ack);
    pair.pass_time();
    let probe = pair.take_from_client();
    check("probe", &probe, &packet((6, 0, FIRST, 0, 0, 2, 0, 0), &[]));
    pair.bring_to_server(&probe);
    check("running", &pair.take_from_server(), &expected);

    assert!(pair.client.cancel(id).is_some());
    let cancel = pair.take_from_client();
    check(
        "cancel",
        &cancel,
        &packet((7, 0, FIRST, 0, 0, 2, 0, 0), &[]),
    );
    pair.bring_to_server(&cancel);
    check("still running", &pair.take_from_server(), &expected);
    pair.answer(running, b"too late");
    let over = packet((5, 0, FIRST, 0, 2, 2, 1, 1), &[]);
    check("over", &pair.take_from_server(), &over);

    pair.server = server_of(order, ServerLimits::default(), 77, pair.now);
    pair.now += Duration::from_millis(1234);
    pair.bring_to_server(&cancel);
    let reset = pair.take_from_server();
    let expected = packet((8, 0, FIRST, 0, 0, 2, 77, 1234), &[]);
    check("reset", &reset, &expected);
    assert_eq!(reset.len(), cancel.len(), "nothing is gained by a packet");
}

#[test]
fn a_server_that_stops_names_the_calls_that_it_has_begun() {
    let order = ByteOrder::Big;
    let mut pair = Pair::new(order, order);
    pair.call(b"warm up");
    let mut calls = Vec::new();
    for _ in 0..3 {
        pair.start(&message(order, 7, b"slow"));
        calls.push(pair.take_from_client());
    }
    // The second of them never arrives.
    pair.bring_to_server(&calls[0]).unwrap();
    pair.bring_to_server(&calls[2]).unwrap();
    pair.server.send_close(CloseRecipients::ToIdle);
    assert_eq!(pair.poll_server(), None);
    pair.server.send_close(CloseRecipients::ToAll);
    let goodbye = pair.take_from_server();
    let begun: &[u8] = b"\0\0\0\0\0\0\0\x02\0\x02\0\0\0\0\0\x01";
    let expected = packet((9, 0, FIRST, 0, 0, 0, 3, 2), &[begun]);
    check("goodbye", &goodbye, &expected);
    assert_eq!(pair.server.conversations(), 0);
    pair.bring_to_client(&goodbye);
    let stopped = Failure {
        reason: Reason::Stopped,
        may_have_run: true,
    };
    assert_eq!(pair.failures, [stopped; 2]);
    // The other one waits for the server that follows.
    let hello = pair.take_from_client();
    assert_eq!(hello[6], 1);
}

#[test]
fn fragments_and_what_has_arrived_of_them() {
    let order = ByteOrder::Big;
    let mut pair = Pair::new(order, order);
    pair.call(b"warm up");
    let arguments: Vec<u8> = (0..10_000_u32).map(|n| (n % 251) as u8).collect();
    pair.start(&message(order, 7, &arguments));
    let fragments: Vec<Vec<u8>> = std::iter::from_fn(|| pair.poll_client()).collect();
    assert_eq!(fragments.len(), 8, "1416 bytes each");
    let mut whole = b"\xd0\x7e\x01\0\0\0\0\x02\0\0\0\x07\0\0\x27\x10".to_vec();
    whole.extend(&arguments);
    for (index, data) in whole.chunks(1416).enumerate() {
        let flags = if index == 7 { 2 } else { 0 };
        let expected = packet((3, flags, FIRST, 0, 0, 2, index as u32, 8), &[data]);
        check("fragment", &fragments[index], &expected);
    }
    for index in [0, 2, 3, 7] {
        assert!(pair.bring_to_server(&fragments[index]).is_none());
    }
    let ack = pair.take_from_server();
    let expected = packet((5, 0, FIRST, 0, 0, 2, 1, 8), &[&[0b1100_0100]]);
    check("ack", &ack, &expected);
    pair.bring_to_client(&ack);
    // Three that were sent later have arrived: the first is lost, the others may be under way.
    let repeated: Vec<Vec<u8>> = std::iter::from_fn(|| pair.poll_client()).collect();
    let numbers: Vec<u8> = repeated.iter().map(|packet| packet[27]).collect();
    assert_eq!(numbers, [1, 4]);
    for packet in repeated.iter().chain(&fragments[5..6]) {
        assert!(pair.bring_to_server(packet).is_none());
    }
    let key = pair
        .bring_to_server(&fragments[6])
        .expect("the call is whole");
    let ack = pair.take_from_server();
    check("whole", &ack, &packet((5, 0, FIRST, 0, 1, 2, 8, 8), &[]));

    pair.answer(key, &arguments);
    let answers: Vec<Vec<u8>> = std::iter::from_fn(|| pair.poll_server()).collect();
    assert_eq!(answers.len(), 8);
    for answer in answers.iter().rev() {
        pair.bring_to_client(answer);
    }
    assert_eq!(pair.results, [b"warm up", &arguments[..]]);
    let ack = pair.take_from_client();
    check("whole", &ack, &packet((5, 0, FIRST, 0, 2, 2, 8, 8), &[]));
    assert!(pair.server.bytes() > 10_000);
    pair.bring_to_server(&ack);
    assert_eq!(pair.server.bytes(), 0);
}

#[test]
fn a_refused_greeting() {
    let now = Instant::now();
    let order = ByteOrder::Little;
    let limits = ServerLimits {
        conversations: 0,
        ..ServerLimits::default()
    };
    let mut server: ServerEngine<_> = server_of(order, limits, 1, now);
    let mut client: ClientEngine<()> = client_of(order, ClientLimits::default(), 0);
    let service = client.bind(&known(5), 7).unwrap();
    let mut call = message(order, 1, b"");
    let call_of = outgoing(service, 1, now);
    client.start(now, &call_of, &mut call, ()).unwrap();
    let mut hello = Buffer::default();
    assert!(client.poll_transmit(now, &mut hello));
    server.handle_datagram(now, address(2, 1), hello.as_slice(), &services());
    let mut welcome = Buffer::default();
    server.poll_transmit(now, &mut welcome).unwrap();
    assert_eq!(welcome.as_slice()[32 + 13], 2, "too many");
    assert!(client.handle_datagram(now, welcome.as_slice()).is_none());
    let Some(event) = client.poll_event() else {
        panic!("the call fails");
    };
    let text = format!("{event:?}");
    assert!(text.contains("may_have_run: false"), "{text}");
}
