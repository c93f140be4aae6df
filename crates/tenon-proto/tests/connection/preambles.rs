//! The handshake of the lean protocol: what is agreed on, and how a connection is refused.

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{ConnectionError, StartError, WireProtocol};
use tenon_proto::lean::{
    ByteOrder, CALLS_MIN, CloseReason, Extras, Fault, Features, MESSAGE_MIN, PREAMBLE, Preamble,
    RefusalReason, Refused, Versions, Violation,
};

use crate::pair::{LIMIT, Pair, SECOND, client_config, known, server_config, take_in};

const ORDER: ByteOrder = ByteOrder::NATIVE;

fn pair() -> Pair {
    Pair::new(
        WireProtocol::Lean,
        client_config(ORDER),
        server_config(ORDER),
    )
}

fn versions(low: u16, high: u16) -> Versions {
    Versions { low, high }
}

/// A preamble that the server might have sent.
fn server_preamble() -> Preamble {
    Preamble::server(LIMIT as u32, 64)
}

fn refused(reason: RefusalReason, theirs: Versions) -> ConnectionError {
    let ours = Versions::OURS;
    ConnectionError::Refused(Refused {
        reason,
        theirs,
        ours,
    })
}

/// What the server answers to a preamble.
fn answer(pair: &mut Pair, preamble: &Preamble) -> (Preamble, Option<ConnectionError>) {
    let outcome = take_in(&mut pair.server, &preamble.encode());
    let sent = pair.server.transmit_all();
    assert_eq!(sent.len(), PREAMBLE, "all that is said");
    let answer = Preamble::decode(sent.first_chunk().unwrap()).unwrap();
    (answer, outcome.err())
}

/// What the client makes of the server's preamble.
fn take(pair: &mut Pair, preamble: &Preamble) -> Result<(), ConnectionError> {
    take_in(&mut pair.client, &preamble.encode()).map(drop)
}

#[test]
fn each_end_says_once_what_it_grants() {
    let mut pair = pair();
    let hello = pair.client.transmit_all();
    let expected = Preamble {
        features: Features::all(),
        ..Preamble::client(LIMIT as u32)
    };
    assert_eq!(hello, expected.encode(), "before anything else");
    let client = Preamble::decode(hello.first_chunk().unwrap()).unwrap();
    assert_eq!(pair.server.transmit_all(), [], "the client speaks first");
    let (server, error) = answer(&mut pair, &client);
    assert_eq!(error, None);
    assert_eq!(
        (server.message_max, server.calls_max),
        (LIMIT as u32, 64),
        "what it grants"
    );
    assert_eq!(pair.server.connection.peer(), Some(&client));
    assert_eq!(pair.client.connection.peer(), None);
    take(&mut pair, &server).unwrap();
    assert_eq!(pair.client.connection.peer(), Some(&server));
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(end.connection.protocol(), Some(WireProtocol::Lean));
        assert_eq!(end.transmit_all(), []);
    }
}

#[test]
fn a_client_that_takes_calls_says_how_many() {
    let client = ConnectionConfig {
        incoming_calls_max: 20,
        ..client_config(ORDER)
    };
    let pair = Pair::greeted(client, server_config(ORDER));
    let peer = pair.server.connection.peer().unwrap();
    assert_eq!(peer.calls_max, 20);
}

#[test]
fn a_server_refuses_versions_that_it_does_not_speak_and_says_which_it_speaks() {
    let mut pair = pair();
    let offered = Preamble {
        versions: versions(2, 3),
        ..Preamble::client(LIMIT as u32)
    };
    let (answer, error) = answer(&mut pair, &offered);
    assert_eq!(error, Some(refused(RefusalReason::VERSION, versions(2, 3))));
    assert_eq!(answer.refusal, Some(RefusalReason::VERSION));
    assert_eq!(answer.versions, Versions::OURS);
    assert_eq!(pair.server.connection.peer(), None);
    pair.server.connection.close(CloseReason::DONE, "");
    assert_eq!(pair.server.transmit_all(), [], "nothing follows a refusal");
}

#[test]
fn a_refused_client_knows_the_versions_of_both_ends() {
    let mut pair = pair();
    let answer = Preamble {
        versions: versions(2, 3),
        ..server_preamble().refusing(RefusalReason::VERSION)
    };
    let error = take(&mut pair, &answer).unwrap_err();
    assert_eq!(error, refused(RefusalReason::VERSION, versions(2, 3)));
    assert_eq!(
        error.to_string(),
        "the server speaks versions 2 to 3 of the lean protocol, this client version 1"
    );
    assert_eq!(pair.client.connection.peer(), None);
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
        let error = take(&mut pair(), &server_preamble().refusing(reason));
        assert_eq!(error.unwrap_err().to_string(), text);
    }
}

#[test]
fn a_server_without_a_common_version_is_refused_even_if_it_does_not_refuse() {
    let answer = Preamble {
        versions: versions(2, 2),
        ..server_preamble()
    };
    let error = take(&mut pair(), &answer).unwrap_err();
    assert_eq!(error, refused(RefusalReason::VERSION, versions(2, 2)));
}

#[test]
fn a_client_that_refuses_is_refused_itself() {
    let mut pair = pair();
    let refusing = Preamble::client(LIMIT as u32).refusing(RefusalReason::BUSY);
    let (answer, error) = answer(&mut pair, &refusing);
    assert_eq!(answer.refusal, Some(RefusalReason::PREAMBLE));
    assert_eq!(
        error,
        Some(refused(RefusalReason::PREAMBLE, Versions::OURS))
    );
}

#[test]
fn a_server_that_grants_too_few_calls_breaks_the_protocol() {
    let answer = Preamble {
        calls_max: CALLS_MIN - 1,
        ..server_preamble()
    };
    let fault = Fault::CallLimit(CALLS_MIN - 1);
    let error = take(&mut pair(), &answer).unwrap_err();
    assert_eq!(error, ConnectionError::Lean(Violation { at: 24, fault }));
}

#[test]
fn features_hold_if_both_ends_offer_them_and_not_before_the_answer() {
    for (client, server, common) in [(0b011, 0b110, 0b010), (0b101, 0b010, 0), (3, 3, 3)] {
        let offers = |features, of| ConnectionConfig {
            features: Features(features),
            ..of
        };
        let mut pair = Pair::new(
            WireProtocol::Lean,
            offers(client, client_config(ORDER)),
            offers(server, server_config(ORDER)),
        );
        pair.serve();
        assert_eq!(pair.client.connection.features(), Features::default());
        pair.take_answers();
        for end in [&pair.client, &pair.server] {
            assert_eq!(end.connection.features(), Features(common));
        }
    }
}

#[test]
fn before_the_answer_a_client_sends_what_every_server_accepts() {
    let mut pair = pair();
    let deadline = pair.now + SECOND;
    let start = |pair: &mut Pair, size: usize| {
        let interface = known(5);
        let arguments = vec![0; size - 16];
        let of = (&interface, 1);
        let extras = Extras::default();
        let client = &mut pair.client;
        client.call_lean(of, &arguments, &extras, deadline, "call")
    };
    let (most, more) = (MESSAGE_MIN as usize, MESSAGE_MIN as usize + 8);
    for _ in 0..CALLS_MIN {
        start(&mut pair, most).unwrap();
    }
    let (limit, size) = (CALLS_MIN as usize, more);
    let refused = start(&mut pair, most);
    assert_eq!(refused, Err(StartError::TooManyCalls { limit }));
    let refused = start(&mut pair, more);
    assert_eq!(refused, Err(StartError::AwaitsPreamble { size }));

    take(&mut pair, &server_preamble()).unwrap();
    start(&mut pair, more).unwrap();
    start(&mut pair, LIMIT).unwrap();
    let (size, limit) = (LIMIT + 8, LIMIT);
    let refused = start(&mut pair, size);
    assert_eq!(refused, Err(StartError::TooLarge { size, limit }));
}

#[test]
fn a_server_that_closes_before_the_handshake_refuses_with_the_reason() {
    let cases = [
        (CloseReason::STOPPING, RefusalReason::STOPPING),
        (CloseReason::DONE, RefusalReason::STOPPING),
        (CloseReason::LIMITS, RefusalReason::BUSY),
        (CloseReason::IDLE, RefusalReason::BUSY),
    ];
    for (reason, refusal) in cases {
        let mut pair = pair();
        let server = &mut pair.server.connection;
        server.close(reason, "not said, as a preamble has no text");
        assert_eq!(pair.server.transmit_all(), [], "the protocol is not known");
        let (answer, error) = answer(&mut pair, &Preamble::client(0));
        assert_eq!(answer.refusal, Some(refusal));
        assert_eq!(error, Some(refused(refusal, Versions::OURS)));
        pair.server.connection.close(reason, "nor is this");
        assert_eq!(pair.server.transmit_all(), []);
    }
}

#[test]
fn a_client_whose_preamble_is_damaged_is_refused_with_the_reason() {
    let mut pair = pair();
    let mut preamble = Preamble::client(0).encode();
    preamble[20] ^= 1;
    pair.server.receive(&preamble).unwrap();
    let server = &mut pair.server;
    let received = server
        .connection
        .next_received(&mut server.receiver, &server.services);
    let error = received.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("byte 28 of the stream: the preamble is damaged"),
        "{text}"
    );
    server.connection.close(CloseReason::VIOLATION, &text);
    let sent = server.transmit_all();
    let answer = Preamble::decode(sent[..].first_chunk().unwrap()).unwrap();
    assert_eq!(answer.refusal, Some(RefusalReason::PREAMBLE));
    assert_eq!(sent.len(), PREAMBLE, "all that is said");
}

#[test]
fn a_peer_of_another_protocol_is_told_nothing() {
    for stream in [&b"GET / HTTP/1.1"[..], &[0; 4].repeat(100)] {
        let mut pair = pair();
        let server = &mut pair.server;
        let known = server.receive(stream).map(drop);
        let services = &server.services;
        let received = known.and_then(|()| {
            let connection = &mut server.connection;
            connection
                .next_received(&mut server.receiver, services)
                .map(drop)
        });
        let text = received.unwrap_err().to_string();
        server.connection.close(CloseReason::VIOLATION, &text);
        assert_eq!(server.transmit_all(), [], "{text}");
    }
}

/// The owner knows that a lean client is there, and has too many connections to wait for its preamble.
#[test]
fn a_server_may_refuse_before_the_preamble_of_its_client_has_come() {
    let mut pair = pair();
    pair.server.connection.refuse(RefusalReason::BUSY);
    let sent = pair.server.transmit_all();
    let preamble = Preamble::decode(sent.first_chunk().unwrap()).unwrap();
    assert_eq!(preamble.refusal, Some(RefusalReason::BUSY));
    let hello = pair.client.transmit_all();
    let late = take_in(&mut pair.server, &hello).unwrap_err();
    assert!(matches!(late, ConnectionError::Refused(_)), "{late}");
    assert_eq!(pair.server.transmit_all(), [], "it has been said");
    let error = take_in(&mut pair.client, &sent).unwrap_err();
    assert_eq!(error, refused(RefusalReason::BUSY, Versions::OURS));
}

#[test]
fn a_server_learns_from_the_first_message_which_protocol_is_spoken() {
    let mut pair = Pair::onc();
    assert_eq!(pair.server.connection.protocol(), None);
    pair.call_onc(b"", "call");
    assert_eq!(pair.serve().len(), 1);
    let protocol = pair.server.connection.protocol();
    assert_eq!(protocol, Some(WireProtocol::Onc));
}
