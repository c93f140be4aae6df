//! Binding: which services can be called, which cannot, and what the caller is told.

use std::sync::Arc;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{
    BindError, ConnectionError, SERVICES_MAX, ServiceTable, StartError, WireProtocol,
};
use tenon_proto::lean::{
    BindRefusal, ByteOrder, Difference, Extras, Fault, Interface, PREAMBLE, Part, Violation,
};
use tenon_proto::onc::message::Refused;

use crate::fields::Field::{self, Double, Word};
use crate::fields::{ORDERS, bytes, head, kinds};
use crate::pair::{
    Pair, SECOND, answer, carry, client_config, known, part, server_config, take_in,
};

/// What a client of `interface` is told that calls twice before anything is known of the server.
fn told(interface: &Arc<Interface>) -> Vec<String> {
    let mut told = Vec::new();
    for order in ORDERS {
        let client = client_config(ByteOrder::Little);
        let mut pair = Pair::new(WireProtocol::Lean, client, server_config(order));
        pair.call(interface, 1, b"", "first");
        pair.call(interface, 1, b"", "second");
        for call in pair.serve() {
            pair.answer(call.caller, b"done");
        }
        let before = std::mem::replace(&mut told, pair.take_answers());
        assert!(before.is_empty() || before == told);
    }
    told
}

#[test]
fn a_service_is_bound_by_its_first_call_without_a_round_trip() {
    let answered = ["first: done", "second: done"];
    assert_eq!(told(&known(5)), answered);
    let unknown_here = Arc::new(Interface::unknown(300, 5));
    assert_eq!(told(&unknown_here), answered);
    let unknown_there = known(2);
    assert_eq!(told(&unknown_there), answered);
}

#[test]
fn calls_of_a_service_that_is_not_bound_are_refused_with_the_reason() {
    let with_parts = |parts| Interface {
        fingerprint: 99,
        parts,
        ..(*known(5)).clone()
    };
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
            with_parts(vec![part("point", 1), part("procedure MOVE", 3)]),
            "the server was built from another interface: procedure MOVE differs",
        ),
        (
            with_parts(vec![part("line", 7), part("point", 8)]),
            "the server was built from another interface: it lacks line, point differs, it has \
             procedure MOVE beside",
        ),
        (
            with_parts(Vec::new()),
            "the server was built from another interface: the fingerprints differ",
        ),
    ];
    for (interface, why) in cases {
        let expected = [
            format!("first unbound: {why}"),
            format!("second unbound: {why}"),
        ];
        assert_eq!(told(&Arc::new(interface)), expected);
    }
}

/// Version 5 as another end has it: with these procedures.
fn with_procedures(procedures: &[(&str, u64, u32)]) -> Arc<Interface> {
    let procedures = procedures
        .iter()
        .map(|(name, fingerprint, procedure)| Part {
            name: (*name).into(),
            fingerprint: *fingerprint,
            layout: 0,
            procedure: *procedure,
        });
    Arc::new(Interface {
        fingerprint: 99,
        parts: procedures.chain([part("point", 9)]).collect(),
        ..(*known(5)).clone()
    })
}

/// Carries what both ends have to say until they have said it all, and starts calls again that were not begun.
/// Returns what the client was told, and the procedures that were called.
fn settle(pair: &mut Pair) -> (Vec<String>, Vec<u32>) {
    let (mut told, mut called) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        for call in pair.serve() {
            called.push(call.procedure);
            pair.answer(call.caller, b"done");
        }
        let received = carry(&mut pair.server, &mut pair.client);
        told.extend(received.told);
        for call in received.unbegun {
            let mut unsent = call.unsent.unwrap();
            let started = pair
                .client
                .connection
                .restart_call(&mut unsent, call.waiter);
            started.unwrap();
        }
    }
    (told, called)
}

#[test]
fn procedures_that_agree_are_called_although_the_versions_differ() {
    let mut pair = Pair::lean(ByteOrder::Big, ByteOrder::Little);
    let other = with_procedures(&[
        ("procedure MOVE", 2, 7),
        ("procedure TURN", 3, 8),
        ("procedure NEXT", 0, 9),
    ]);
    let differs =
        "the server was built from another interface: it lacks procedure TURN, point differs";
    for waiters in [
        ["move", "turn", "again"],
        ["later", "turn later", "at last"],
    ] {
        let mut expected = vec![
            format!("{}: done", waiters[0]),
            format!("{}: done", waiters[2]),
        ];
        pair.call(&other, 7, b"", waiters[0]);
        if waiters[1] == "turn" {
            // Nothing is known of the server yet.
            pair.call(&other, 8, b"", "turn");
            expected.insert(0, format!("turn unbound: {differs}"));
        } else {
            let deadline = pair.now + SECOND;
            let client = &mut pair.client;
            let of = (&other, 8);
            match client.call_lean(of, b"", &Extras::default(), deadline, "turn") {
                Err(StartError::Bind(error)) => assert_eq!(error.to_string(), differs),
                other => panic!("{other:?}"),
            }
        }
        pair.call(&other, 7, b"", waiters[2]);
        assert_eq!(settle(&mut pair), (expected, vec![7, 7]));
    }
    assert_eq!(pair.client.connection.in_flight(), 0);
    let counters = pair.client.connection.outgoing_counters();
    assert_eq!(
        (counters.calls, counters.successes, counters.refusals),
        (5, 4, 1)
    );
}

#[test]
fn a_call_that_was_given_up_is_not_sent_again() {
    let mut pair = Pair::lean(ByteOrder::Little, ByteOrder::Little);
    let other = with_procedures(&[("procedure MOVE", 2, 7)]);
    let call = pair.call(&other, 7, b"", "given up");
    pair.client.connection.cancel_call(call.number).unwrap();
    assert_eq!(settle(&mut pair), (Vec::new(), Vec::new()));
    pair.call(&other, 7, b"", "next");
    assert_eq!(settle(&mut pair), (vec!["next: done".to_owned()], vec![7]));
}

#[test]
fn calls_over_four_mebibytes_in_all_wait_until_the_service_is_bound() {
    for (interface, number) in [
        (known(5), 0),
        (with_procedures(&[("procedure MOVE", 2, 7)]), 1),
    ] {
        let mut pair = Pair::lean(ByteOrder::Little, ByteOrder::Little);
        let long = vec![0; 1000 << 10];
        let waiters = ["one", "two", "three", "four"];
        for waiter in waiters {
            pair.call(&interface, 7, &long, waiter);
        }
        let deadline = pair.now + SECOND;
        let of = (&interface, 7);
        let client = &mut pair.client;
        let started = client.call_lean(of, &long, &Extras::default(), deadline, "long");
        assert!(
            matches!(started, Err(StartError::AwaitsBinding { .. })),
            "{started:?}"
        );
        let done = waiters.map(|waiter| format!("{waiter}: done"));
        assert_eq!(settle(&mut pair), (done.to_vec(), vec![7; 4]));
        assert_eq!(pair.call(&interface, 7, &long, "long").service, number);
        assert_eq!(settle(&mut pair), (vec!["long: done".to_owned()], vec![7]));
    }
}

#[test]
fn a_version_that_speaks_onc_rpc_only_is_not_bound() {
    let mut pair = Pair::lean(ByteOrder::Little, ByteOrder::Big);
    let mut services = ServiceTable::default();
    services.add(300, 1, Some(known(1)));
    services.add(300, 7, None);
    services.add(400, 1, None);
    pair.server.services = services;
    pair.call(&Arc::new(Interface::unknown(300, 7)), 1, b"", "version");
    pair.call(&Arc::new(Interface::unknown(400, 1)), 1, b"", "program");
    assert!(pair.serve().is_empty());
    let told = [
        "version unbound: the server has versions 1 to 1 of program 300, not 7",
        "program unbound: the server does not have program 400",
    ];
    assert_eq!(pair.take_answers(), told);
}

#[test]
fn services_have_numbers_of_their_own_and_a_refused_one_stays_refused() {
    let mut pair = Pair::lean(ByteOrder::Little, ByteOrder::Big);
    let missing = Arc::new(Interface::unknown(9, 9));
    let other = Arc::new(Interface::unknown(400, 1));
    fn number(pair: &mut Pair, interface: &Arc<Interface>) -> u16 {
        pair.call(interface, 3, b"", "call").service
    }
    assert_eq!(number(&mut pair, &known(5)), 0);
    assert_eq!(number(&mut pair, &missing), 1);
    assert_eq!(number(&mut pair, &other), 2);
    assert_eq!(number(&mut pair, &known(5)), 0, "another Arc of the same");
    let calls = pair.serve();
    let services: Vec<usize> = calls.iter().map(|call| call.service).collect();
    assert_eq!(services, [0, 2, 0]);
    let told = pair.take_answers();
    assert_eq!(told, ["call unbound: the server does not have program 9"]);
    let of = (&missing, 3);
    let deadline = pair.now + SECOND;
    let client = &mut pair.client;
    let started = client.call_lean(of, b"", &Extras::default(), deadline, "again");
    let refusal = Arc::new(BindRefusal::NoProgram { program: 9 });
    let refused = StartError::Bind(BindError::Refused(refusal));
    assert_eq!(started, Err(refused));
    assert_eq!(pair.server.connection.incoming_counters().refusals, 2);
}

#[test]
fn each_direction_has_services_of_its_own() {
    let client = ConnectionConfig {
        incoming_calls_max: 16,
        ..client_config(ByteOrder::Little)
    };
    let mut pair = Pair::greeted(client, server_config(ByteOrder::Big));
    let other = Arc::new(Interface::unknown(400, 1));
    pair.call(&known(5), 1, b"", "to the server");
    let deadline = pair.now + SECOND;
    let server = &mut pair.server;
    for (interface, waiter) in [(&other, "other"), (&known(5), "to the client")] {
        let of = (interface, 1);
        let call = server.call_lean(of, b"", &Extras::default(), deadline, waiter);
        call.unwrap();
    }
    let calls = carry(&mut pair.server, &mut pair.client).calls;
    let services: Vec<usize> = calls.iter().map(|call| call.service).collect();
    assert_eq!(services, [2, 0]);
    for call in calls {
        answer(&mut pair.client, call.caller, b"from the client");
    }
    let served = carry(&mut pair.client, &mut pair.server);
    assert_eq!(served.calls[0].service, 0);
    assert_eq!(
        served.told,
        ["other: from the client", "to the client: from the client"]
    );
}

/// What a server answers to binds with these numbers.
fn bind_numbers(numbers: impl Iterator<Item = u16>) -> Result<Vec<u8>, ConnectionError> {
    let order = ByteOrder::Little;
    let mut pair = Pair::lean(order, order);
    let mut stream = Vec::new();
    for number in numbers {
        stream.extend(bytes(order, &head(kinds::BIND, 0, number, 0, 16)));
        stream.extend(bytes(order, &[Word(300), Word(5), Double(0)]));
    }
    take_in(&mut pair.server, &stream)?;
    Ok(pair.server.transmit_all())
}

#[test]
fn a_number_that_is_not_the_next_breaks_the_protocol() {
    let at = |at, expected, got| {
        let fault = Fault::ServiceNumber { expected, got };
        Err(Violation { at, fault }.into())
    };
    assert_eq!(bind_numbers([1].into_iter()), at(40, 0, 1));
    assert_eq!(bind_numbers([0, 0].into_iter()), at(72, 1, 0));
    assert_eq!(bind_numbers([0, 2].into_iter()), at(72, 1, 2));
    let all = (0..=u16::MAX).chain([0]);
    let at_the_end = 32 + 65_536 * 32 + 8;
    assert_eq!(bind_numbers(all), at(at_the_end, 65_536, 0));
}

#[test]
fn more_services_than_a_connection_may_have_are_refused() {
    let answers = bind_numbers(0..SERVICES_MAX as u16 + 2).unwrap();
    let (bound, unbound) = answers.split_at(SERVICES_MAX * 24);
    assert!(bound.chunks(24).all(|message| message[1] == 6));
    assert_eq!(unbound.len(), 2 * 40);
    let too_many = |message: &[u8]| message[1] == 7 && message[16] == 4;
    assert!(unbound.chunks(40).all(too_many));
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
    let mut pair = Pair::lean(ByteOrder::Big, ByteOrder::Little);
    let theirs = interface(1, theirs);
    pair.server.services.add(500, 1, Some(theirs));
    let ours = interface(2, ours);
    pair.call(&ours, 1, b"", "call");
    pair.serve();
    pair.take_answers();
    let of = (&ours, 1);
    let deadline = pair.now + SECOND;
    let client = &mut pair.client;
    match client.call_lean(of, b"", &Extras::default(), deadline, "again") {
        Err(StartError::Bind(BindError::Refused(refusal))) => match &*refusal {
            BindRefusal::OtherInterface { differences, .. } => differences.clone(),
            other => panic!("{other}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rename_is_told_as_what_it_is() {
    let of = |layout: u64, part: Part| Part { layout, ..part };
    let renamed = |name: &str| Difference::NamesDiffer(name.into());
    // A type with a field that was renamed, and a procedure that uses it.
    let ours = vec![of(5, part("point", 1)), of(6, part("procedure MOVE", 2))];
    let theirs = vec![of(5, part("point", 3)), of(6, part("procedure MOVE", 4))];
    let expected = [renamed("point"), renamed("procedure MOVE")];
    assert_eq!(differences(ours.clone(), theirs), expected);
    // A procedure with another name.
    let theirs = vec![of(5, part("point", 1)), of(6, part("procedure SHIFT", 4))];
    assert_eq!(
        differences(ours.clone(), theirs),
        [renamed("procedure MOVE")]
    );
    // One that takes something else under another name, and one of which no more is known.
    for layout in [7, 0] {
        let theirs = vec![
            of(5, part("point", 1)),
            of(layout, part("procedure SHIFT", 4)),
        ];
        let expected = [
            Difference::OnlyOurs("procedure MOVE".into()),
            Difference::OnlyTheirs("procedure SHIFT".into()),
        ];
        assert_eq!(differences(ours.clone(), theirs), expected);
    }
    let refusal = BindRefusal::OtherInterface {
        theirs: 1,
        ours: 2,
        differences: vec![renamed("point")],
    };
    assert_eq!(
        refusal.to_string(),
        "the server was built from another interface: point differs in names alone (renamed or swapped)"
    );
}

#[test]
fn a_table_of_parts_that_is_too_long_is_cut_and_nothing_is_said_of_the_rest() {
    let parts = |count: u64, fingerprint: u64| -> Vec<Part> {
        let names = (0..count).map(|number| format!("a_type_with_a_long_name_{number:04}"));
        names.map(|name| part(&name, fingerprint)).collect()
    };
    assert_eq!(differences(parts(5000, 1), parts(5000, 1)), []);
    let some = differences(parts(5000, 1), parts(5000, 2));
    assert!((500..5000).contains(&some.len()), "{}", some.len());
    let differs = |difference: &Difference| matches!(difference, Difference::Differs(_));
    assert!(some.iter().all(differs));
    let theirs = parts(1, 1).into_iter().chain(parts(3, 2).split_off(1));
    let beside = differences(parts(1, 1), theirs.collect());
    assert_eq!(beside.len(), 2);
    assert!(matches!(beside[0], Difference::OnlyTheirs(_)));
}

/// What a client is told by an unbound message with this body, which begins behind the preamble.
fn unbound(body: &[Field]) -> Result<Vec<String>, ConnectionError> {
    let order = ByteOrder::Little;
    let mut pair = Pair::lean(ByteOrder::Big, order);
    pair.call(&known(5), 1, b"", "call");
    let body = bytes(order, body);
    let mut stream = bytes(order, &head(kinds::UNBOUND, 0, 0, 0, body.len() as u32));
    stream.extend(body);
    let received = take_in(&mut pair.client, &stream)?;
    Ok(received.told)
}

#[test]
fn a_malformed_refusal_breaks_the_protocol() {
    let body = [Word(3), Word(0), Word(0), Word(1), Double(9)];
    let short = |expected, got| Fault::Short { expected, got };
    let cases = [
        (vec![], 16, short(4, 0)),
        (body[..4].to_vec(), 32, short(8, 0)),
        (
            [
                &body[..],
                &[Double(1), Double(1), Word(0), Word(9), Double(0)],
            ]
            .concat(),
            64,
            short(9, 8),
        ),
        (
            [&body[..], &[Double(1), Double(1), Word(0), Word(u32::MAX)]].concat(),
            64,
            short(u32::MAX.into(), 0),
        ),
    ];
    for (body, offset, fault) in cases {
        let at = PREAMBLE as u64 + offset;
        assert_eq!(unbound(&body), Err(Violation { at, fault }.into()));
    }
}

#[test]
fn a_reason_of_a_later_version_is_still_a_reason() {
    let body = [Word(9), Word(0), Word(0), Word(0), Double(0)];
    assert_eq!(unbound(&body), Ok(Vec::new()));
    let order = ByteOrder::Little;
    let mut pair = Pair::lean(ByteOrder::Big, order);
    let id = pair.call(&known(5), 1, b"", "call").number;
    let mut stream = bytes(order, &head(kinds::UNBOUND, 0, 0, 0, 24));
    stream.extend(bytes(order, &body));
    stream.extend(bytes(order, &head(kinds::EXCEPTION, id, 0, 1, 8)));
    stream.extend(bytes(order, &[Word(1), Word(0)]));
    let received = take_in(&mut pair.client, &stream).unwrap();
    let told = "call unbound: the server does not bind the service, for reason 9";
    assert_eq!(received.told, [told]);
}

#[test]
fn a_service_is_in_the_table_once() {
    let mut services = ServiceTable::default();
    assert_eq!(services.add(300, 2, None), Some(0));
    assert_eq!(services.add(300, 5, Some(known(5))), Some(1));
    assert_eq!(services.add(300, 2, Some(known(2))), None);
    assert_eq!(services.find(300, 5), Ok(1));
    let (low, high) = (2, 5);
    let mismatch = Refused::ProgramMismatch { low, high };
    assert_eq!(services.find(300, 3), Err(mismatch));
    assert_eq!(services.find(301, 2), Err(Refused::ProgramUnavailable));
}

/// As long as nothing is bound nothing is known of the services of the peer.
#[test]
fn a_call_of_a_service_that_was_not_asked_for_is_answered_with_an_exception() {
    let order = ByteOrder::NATIVE;
    let mut pair = Pair::lean(order, order);
    let stream = bytes(order, &head(kinds::CALL, 1, 7, 1, 0));
    assert!(take_in(&mut pair.server, &stream).unwrap().calls.is_empty());
    let mut expected = bytes(order, &head(kinds::EXCEPTION, 1, 7, 1, 8));
    expected.extend(bytes(order, &[Word(1), Word(0)]));
    assert_eq!(pair.server.transmit_all(), expected);
    assert_eq!(pair.server.connection.incoming_counters().refusals, 1);
}
