//! Preambles: what is agreed on, what is refused, and what is no preamble at all.

use tenon_proto::lean::client::{ClientEngine, HandshakeError, NotStarted, Outgoing};
use tenon_proto::lean::server::ServerEngine;
use tenon_proto::lean::{
    ByteOrder, CALLS_MIN, Fault, Features, MESSAGE_MIN, PREAMBLE, Preamble, Reason, RefusalReason,
    Refused, Versions, Violation,
};
use tenon_wire::Buffer;

use crate::support::{SECOND, client_preamble, server_preamble};

fn versions(low: u16, high: u16) -> Versions {
    Versions { low, high }
}

/// The bytes of a preamble with another byte, and a check that fits if `mended`.
fn changed(at: usize, byte: u8, mended: bool) -> [u8; PREAMBLE] {
    let mut bytes = client_preamble(ByteOrder::Little).encode();
    bytes[at] = byte;
    if mended {
        let check = bytes[..28].iter().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        bytes[28..].copy_from_slice(&check.to_be_bytes());
    }
    bytes
}

#[test]
fn the_highest_common_version_holds() {
    let cases = [
        (versions(1, 1), versions(1, 1), Some(1)),
        (versions(1, 3), versions(2, 5), Some(3)),
        (versions(2, 9), versions(1, 2), Some(2)),
        (versions(1, 1), versions(2, 3), None),
        (versions(4, 5), versions(2, 3), None),
    ];
    for (one, other, common) in cases {
        assert_eq!(one.common(other), common);
        assert_eq!(other.common(one), common);
    }
}

#[test]
fn every_preamble_comes_back_as_it_was() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let preamble = Preamble {
            versions: versions(3, 700),
            order,
            refusal: Some(RefusalReason(77)),
            features: Features(0xdead_beef),
            message_max: u32::MAX,
            calls_max: 12345,
        };
        assert_eq!(Preamble::decode(&preamble.encode()), Ok(preamble));
    }
}

#[test]
fn every_change_of_a_byte_is_noticed() {
    for at in 0..PREAMBLE {
        for flip in 1..=255 {
            let original = client_preamble(ByteOrder::Little).encode();
            let bytes = changed(at, original[at] ^ flip, false);
            let fault = Preamble::decode(&bytes).unwrap_err().fault;
            match at {
                0..8 => assert!(matches!(fault, Fault::NotLean { .. }), "{fault}"),
                _ => assert!(matches!(fault, Fault::Check { .. }), "{fault}"),
            }
        }
    }
}

#[test]
fn what_a_preamble_must_not_say_is_named() {
    let cases = [
        (9, 0, 8, Fault::NoVersion(versions(0, 1))),
        (9, 2, 8, Fault::NoVersion(versions(2, 1))),
        (12, 0, 12, Fault::Order(0)),
        (12, 3, 12, Fault::Order(3)),
        (14, 1, 14, Fault::NotZero(0x100)),
        (15, 7, 14, Fault::NotZero(7)),
        (21, 0, 20, Fault::MessageLimit(0)),
    ];
    for (at, byte, offset, fault) in cases {
        let violation = Violation { at: offset, fault };
        assert_eq!(Preamble::decode(&changed(at, byte, true)), Err(violation));
    }
    let unknown_features = Preamble::decode(&changed(16, 0xff, true)).unwrap();
    assert_eq!(unknown_features.features, Features(0xff00_0000));
}

#[test]
fn a_server_refuses_what_it_does_not_speak_and_the_client_knows_both_ranges() {
    let mut client = ClientEngine::<()>::new(client_preamble(ByteOrder::Little), 0);
    let mut server = ServerEngine::new(Preamble {
        versions: versions(2, 3),
        ..server_preamble(ByteOrder::Little)
    });
    let mut out = Buffer::default();
    let offered = client_preamble(ByteOrder::Little);
    let refused = server.handle_preamble(&offered, &mut out).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::VERSION);

    let answer = Preamble::decode(out.as_slice().first_chunk().unwrap()).unwrap();
    let refused = Refused {
        reason: RefusalReason::VERSION,
        theirs: versions(2, 3),
        ours: versions(1, 1),
    };
    let error = client.handle_preamble(&answer).unwrap_err();
    assert_eq!(error, HandshakeError::Refused(refused));
    assert_eq!(
        error.to_string(),
        "the server speaks versions 2 to 3 of the lean protocol, this client version 1"
    );
    assert_eq!(client.peer(), None);
}

#[test]
fn every_refusal_says_why() {
    let cases = [
        (RefusalReason::BUSY, "the server has too many connections"),
        (RefusalReason::STOPPING, "the server stops"),
        (
            RefusalReason::PREAMBLE,
            "the server found this client's preamble damaged",
        ),
        (
            RefusalReason(99),
            "the server refuses for a reason unknown here, 99",
        ),
    ];
    for (reason, text) in cases {
        let mut client = ClientEngine::<()>::new(client_preamble(ByteOrder::Big), 0);
        let answer = server_preamble(ByteOrder::Big).refusing(reason);
        let answer = Preamble::decode(&answer.encode()).unwrap();
        let error = client.handle_preamble(&answer).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_server_whose_versions_have_nothing_in_common_is_refused_even_if_it_does_not_refuse() {
    let mut client = ClientEngine::<()>::new(client_preamble(ByteOrder::Little), 0);
    let answer = Preamble {
        versions: versions(2, 2),
        ..server_preamble(ByteOrder::Little)
    };
    assert!(client.handle_preamble(&answer).is_err());
}

#[test]
fn a_client_that_refuses_and_a_server_that_takes_no_calls_are_not_believed() {
    let mut server = ServerEngine::new(server_preamble(ByteOrder::Little));
    let refusing = client_preamble(ByteOrder::Little).refusing(RefusalReason::BUSY);
    let mut out = Buffer::default();
    let refused = server.handle_preamble(&refusing, &mut out).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::PREAMBLE);
    assert_eq!(out.as_slice()[13], RefusalReason::PREAMBLE.0);

    let mut client = ClientEngine::<()>::new(client_preamble(ByteOrder::Little), 0);
    let idle = Preamble {
        calls_max: CALLS_MIN - 1,
        ..server_preamble(ByteOrder::Little)
    };
    let violation = Violation {
        at: 24,
        fault: Fault::CallLimit(CALLS_MIN - 1),
    };
    let error = client.handle_preamble(&idle).unwrap_err();
    assert_eq!(error, HandshakeError::Violation(violation));
}

#[test]
fn features_hold_if_both_offer_them_and_not_before_the_answer() {
    let offer = |features| Preamble {
        features,
        ..client_preamble(ByteOrder::Little)
    };
    let mut client = ClientEngine::<()>::new(offer(Features(0b011)), 0);
    assert_eq!(client.features(), Features::default());
    let answer = Preamble {
        features: Features(0b110),
        ..server_preamble(ByteOrder::Little)
    };
    client.handle_preamble(&answer).unwrap();
    assert_eq!(client.features(), Features(0b010));
    assert!(!client.features().has(Features::STAMPS));
}

#[test]
fn until_the_answer_a_client_sends_what_every_server_takes() {
    let mut client = ClientEngine::new(client_preamble(ByteOrder::Little), 0);
    let now = std::time::Instant::now();
    let outgoing = |size| Outgoing {
        service: 0,
        procedure: 1,
        size,
        deadline: now + SECOND,
    };
    let (most, more) = (MESSAGE_MIN as usize, MESSAGE_MIN as usize + 8);
    for call in 0..CALLS_MIN {
        client.start(&outgoing(most), call).unwrap();
    }
    let refused = client.start(&outgoing(most), 0).unwrap_err();
    assert_eq!(refused, NotStarted::TooManyCalls { limit: 16 });
    let refused = client.start(&outgoing(more), 0).unwrap_err();
    assert_eq!(refused, NotStarted::AwaitsPreamble { size: more });

    let answer = server_preamble(ByteOrder::Little);
    client.handle_preamble(&answer).unwrap();
    client.start(&outgoing(more), 0).unwrap();
    let limit = answer.message_max as usize;
    let refused = client.start(&outgoing(limit + 8), 0).unwrap_err();
    let size = limit + 8;
    assert_eq!(refused, NotStarted::TooLarge { size, limit });
}

#[test]
fn limits_below_the_least_are_raised_to_it() {
    let server = Preamble::server(1, 1);
    assert_eq!(
        (server.message_max, server.calls_max),
        (MESSAGE_MIN, CALLS_MIN)
    );
    assert_eq!(Preamble::client(1).calls_max, 0);
}

#[test]
fn a_server_that_must_end_before_it_has_greeted_refuses() {
    let cases = [
        (Reason::STOPPING, RefusalReason::STOPPING),
        (Reason::DONE, RefusalReason::STOPPING),
        (Reason::LIMITS, RefusalReason::BUSY),
        (Reason::VIOLATION, RefusalReason::PREAMBLE),
    ];
    for (reason, refusal) in cases {
        let own = server_preamble(ByteOrder::Little);
        let mut server = ServerEngine::new(own);
        let mut out = Buffer::default();
        server.goodbye(reason, "nobody reads this", &mut out);
        assert_eq!(out.as_slice(), own.refusing(refusal).encode());
        let late = server.handle_preamble(&client_preamble(ByteOrder::Big), &mut out);
        assert_eq!(late.unwrap_err().reason, RefusalReason::STOPPING);
        server.goodbye(reason, "nor this", &mut out);
        assert_eq!(out.len(), PREAMBLE, "all that is said");
    }
}
