//! Binding: who is called, who is not, and what the caller is told.

use std::sync::Arc;

use tenon_proto::lean::client::BindError;
use tenon_proto::lean::server::{Catalog, Received, Reply, SERVICES_MAX, ServerEngine};
use tenon_proto::lean::{
    BindRefusal, ByteOrder, Difference, Fault, Goodbye, Incoming, Interface, MessageReader, Part,
    Reason, Violation,
};
use tenon_wire::Buffer;

use crate::support::F::{D, H, W};
use crate::support::{LIMIT, ORDERS, Pair, bytes, client_preamble, known, part, read};

/// What a client of `interface` is told when it calls at once, twice.
fn told(interface: &Arc<Interface>) -> Vec<String> {
    let mut told = Vec::new();
    for order in ORDERS {
        let mut pair = Pair::before_preambles(ByteOrder::Little, order);
        let mut stream = pair.call(interface, 1, b"", "first").1;
        stream.extend(pair.call(interface, 1, b"", "second").1);
        let serve = |_: &mut _, received: Received<'_>, out: &mut Buffer| match received {
            Received::Call(call) => Reply::begin(out, call.caller).seal(out),
            other => panic!("{other:?}"),
        };
        pair.send_to_server(&stream, serve).unwrap();
        let before = std::mem::replace(&mut told, pair.take_answers());
        assert!(before.is_empty() || before == told);
    }
    told
}

#[test]
fn a_service_is_bound_by_the_first_call_of_it_without_a_round_trip() {
    assert_eq!(told(&known(5)), ["bound 0", "first: ", "second: "]);
    let unknown_here = Arc::new(Interface::unknown(300, 5));
    assert_eq!(told(&unknown_here)[0], "bound 0");
    let unknown_there = known(2);
    assert_eq!(told(&unknown_there)[0], "bound 0");
}

#[test]
fn a_service_that_is_not_there_refuses_its_calls_with_the_reason() {
    let cases = [
        (
            Interface::unknown(301, 1),
            "the server does not have program 301",
        ),
        (
            Interface::unknown(300, 4),
            "the server has versions 2 to 5 of program 300, not 4",
        ),
        (
            Interface {
                fingerprint: 99,
                parts: vec![part("point", 1), part("procedure MOVE", 3)],
                ..(*known(5)).clone()
            },
            "the server was built from another interface: procedure MOVE differs",
        ),
        (
            Interface {
                fingerprint: 99,
                parts: vec![part("line", 7), part("point", 8)],
                ..(*known(5)).clone()
            },
            "the server was built from another interface: it lacks line, point differs, it has \
             procedure MOVE beside",
        ),
        (
            Interface {
                fingerprint: 99,
                parts: Vec::new(),
                ..(*known(5)).clone()
            },
            "the server was built from another interface: the fingerprints differ",
        ),
    ];
    for (interface, why) in cases {
        let expected = [
            format!("unbound 0: {why}"),
            format!("first unbound: {why}"),
            format!("second unbound: {why}"),
        ];
        assert_eq!(told(&Arc::new(interface)), expected);
    }
}

#[test]
fn several_services_have_numbers_of_their_own_and_a_refused_one_stays_refused() {
    let mut pair = Pair::new(ByteOrder::Little, ByteOrder::Big);
    let (missing, other) = (
        Arc::new(Interface::unknown(9, 9)),
        Arc::new(Interface::unknown(400, 1)),
    );
    let bind = |pair: &mut Pair, interface: &Arc<Interface>| pair.client.bind(interface);
    assert_eq!(bind(&mut pair, &known(5)), Ok(0));
    assert_eq!(bind(&mut pair, &missing), Ok(1));
    assert_eq!(bind(&mut pair, &other), Ok(2));
    assert_eq!(bind(&mut pair, &known(5)), Ok(0), "another Arc of the same");
    pair.serve_owed(|_, _, _| panic!("no call"));
    let told = [
        "bound 0",
        "unbound 1: the server does not have program 9",
        "bound 2",
    ];
    assert_eq!(pair.take_answers(), told);
    let refusal = Arc::new(BindRefusal::NoProgram { program: 9 });
    assert_eq!(bind(&mut pair, &missing), Err(BindError::Refused(refusal)));
    let (_, call) = pair.call(&other, 3, b"", "other");
    let mut services = Vec::new();
    pair.send_to_server(&call, |_, received, _| match received {
        Received::Call(call) => services.push(call.service),
        other => panic!("{other:?}"),
    })
    .unwrap();
    assert_eq!(services, [2]);
    let counters = pair.server.counters();
    assert_eq!((counters.binds, counters.bind_refusals), (2, 1));
}

/// What a server answers to binds with these numbers.
fn bind_numbers(numbers: impl Iterator<Item = u16>) -> Result<Vec<u8>, Violation> {
    let mut catalog = Catalog::default();
    catalog.add(Arc::new(Interface::unknown(300, 1)));
    let mut engine = ServerEngine::new(client_preamble(ByteOrder::Little));
    let mut stream = client_preamble(ByteOrder::Little).encode().to_vec();
    for number in numbers {
        let fields = [W(0xd07e_0500), W(0), H(number), H(0), W(16)];
        stream.extend(bytes(ByteOrder::Little, &fields));
        stream.extend(bytes(ByteOrder::Little, &[W(300), W(1), D(0)]));
    }
    let mut out = Buffer::default();
    let mut reader = MessageReader::new(LIMIT);
    read(&mut reader, &stream, usize::MAX, |incoming| {
        if let Incoming::Message(message) = incoming {
            engine.handle_message(&catalog, &message, &mut out)?;
        }
        Ok(())
    })?;
    Ok(out.as_slice().to_vec())
}

#[test]
fn a_number_that_is_not_the_next_breaks_the_protocol() {
    let at = |at, expected, got| {
        let fault = Fault::ServiceNumber { expected, got };
        Err(Violation { at, fault })
    };
    assert_eq!(bind_numbers([1].into_iter()), at(40, 0, 1));
    assert_eq!(bind_numbers([0, 0].into_iter()), at(72, 1, 0));
    assert_eq!(bind_numbers([0, 2].into_iter()), at(72, 1, 2));
    let all = (0..=u16::MAX).chain([0]);
    let fault = bind_numbers(all).unwrap_err().fault;
    let (expected, got) = (65_536, 0);
    assert_eq!(fault, Fault::ServiceNumber { expected, got });
}

#[test]
fn more_services_than_a_connection_may_have_are_refused_and_cost_nothing() {
    let answers = bind_numbers(0..SERVICES_MAX as u16 + 2).unwrap();
    let (bound, unbound) = answers.split_at(SERVICES_MAX * 24);
    assert!(bound.chunks(24).all(|message| message[1] == 6));
    assert_eq!(unbound.len(), 2 * 40);
    assert!(
        unbound
            .chunks(40)
            .all(|message| message[1] == 7 && message[16] == 4)
    );
}

/// What a client with the parts `ours` is told by a server with the parts `theirs`.
fn differences(ours: Vec<Part>, theirs: Vec<Part>) -> Vec<Difference> {
    let interface = |fingerprint, parts| {
        Arc::new(Interface {
            fingerprint,
            parts,
            ..Interface::unknown(500, 1)
        })
    };
    let mut pair = Pair::new(ByteOrder::Big, ByteOrder::Little);
    pair.catalog.add(interface(1, theirs));
    let ours = interface(2, ours);
    pair.client.bind(&ours).unwrap();
    pair.serve_owed(|_, _, _| panic!("no call"));
    pair.take_answers();
    match pair.client.bind(&ours) {
        Err(BindError::Refused(refusal)) => match &*refusal {
            BindRefusal::OtherInterface { differences, .. } => differences.clone(),
            other => panic!("{other}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_table_of_parts_that_is_too_long_is_cut_and_nothing_is_said_of_the_rest() {
    let parts = |count: u64, fingerprint: u64| -> Vec<Part> {
        let names = (0..count).map(|number| format!("a_type_with_a_long_name_{number:04}"));
        let parts = names.map(|name| part(&name, fingerprint));
        parts.collect()
    };
    assert_eq!(differences(parts(5000, 1), parts(5000, 1)), []);
    let some = differences(parts(5000, 1), parts(5000, 2));
    assert!((500..5000).contains(&some.len()), "{}", some.len());
    assert!(
        some.iter()
            .all(|difference| matches!(difference, Difference::Differs(_)))
    );
    let beside = differences(parts(1, 1), parts(3, 1));
    assert_eq!(beside.len(), 2);
    assert!(matches!(beside[0], Difference::OnlyTheirs(_)));
}

#[test]
fn a_refusal_that_makes_no_sense_breaks_the_protocol() {
    let head = |length| [W(0xd07e_0700), W(0), H(0), H(0), W(length)];
    let body = [W(3), W(0), W(0), W(1), D(9)];
    let short = |expected, got| Fault::Short { expected, got };
    let cases = [
        (vec![], 16, short(4, 0)),
        (body[..4].to_vec(), 32, short(8, 0)),
        (
            [&body[..], &[D(1), W(1), W(0)]].concat(),
            52,
            Fault::NotZero(1),
        ),
        (
            [&body[..], &[D(1), W(0), W(9), D(0)]].concat(),
            56,
            short(9, 8),
        ),
        (
            [&body[..], &[D(1), W(0), W(u32::MAX)]].concat(),
            56,
            short(u32::MAX.into(), 0),
        ),
    ];
    for (body, at, fault) in cases {
        let mut pair = Pair::new(ByteOrder::Big, ByteOrder::Little);
        pair.client.bind(&known(5)).unwrap();
        let body = bytes(ByteOrder::Little, &body);
        let mut stream = bytes(ByteOrder::Little, &head(body.len() as u32));
        stream.extend(body);
        let at = at + 32;
        assert_eq!(pair.send_to_client(&stream), Err(Violation { at, fault }));
    }
}

#[test]
fn a_reason_of_a_later_version_is_still_a_reason() {
    let mut pair = Pair::new(ByteOrder::Big, ByteOrder::Little);
    pair.client.bind(&known(5)).unwrap();
    let fields = [W(0xd07e_0700), W(0), H(0), H(0), W(24)];
    let mut stream = bytes(ByteOrder::Little, &fields);
    stream.extend(bytes(ByteOrder::Little, &[W(9), W(0), W(0), W(0), D(0)]));
    let told = "unbound 0: the server does not bind the service, for reason 9";
    assert_eq!(pair.send_to_client(&stream), Ok(vec![told.to_owned()]));
}

#[test]
fn names_of_the_server_do_nothing_to_who_reads_them() {
    let beside = Difference::OnlyTheirs("\u{202e}struct \u{9b}1m".into());
    let told = "it has \\u{202e}struct \\u{9b}1m beside";
    assert_eq!(beside.to_string(), told);
    let goodbye = Goodbye {
        reason: Reason::STOPPING,
        last_call: None,
        message: "\r\u{1b}c".into(),
    };
    assert!(goodbye.to_string().ends_with(": \\r\\u{1b}c"), "{goodbye}");
}
