//! Metadata and credentials: byte by byte as they are specified, and refused where they break a rule.

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Frame;
use tenon_proto::connection::{Event, ReplyDraft};
use tenon_proto::lean::{
    ByteOrder, Exception, Extension, Extras, Features, Metadata, Stamps, Status,
};
use tenon_proto::onc::auth::{AuthSys, Credential};
use tenon_wire::Buffer;

use crate::fields::Field::{self, Bytes, Double, Half, Word};
use crate::fields::{ORDERS, bytes, flags, head_with, kinds};
use crate::pair::{Pair, Served, client_config, known, server_config};

/// Bytes of the metadata of [`sample`].
const SIZE: u32 = 13;

/// The pairs of [`sample`], and their padding.
const PAIRS: [Field; 7] = [
    Half(1),
    Half(2),
    Bytes(b"khi"),
    Half(1),
    Half(1),
    Bytes(b"k-"),
    Bytes(b"\0\0\0"),
];

fn sample() -> Metadata {
    let mut metadata = Metadata::new();
    metadata.append("k", "hi").unwrap();
    metadata.append("k", "-").unwrap();
    metadata
}

fn pair(order: ByteOrder) -> Pair {
    Pair::greeted(client_config(order), server_config(order))
}

/// An extension that carries fields in this order.
fn extension(kind: u16, content: &[u8]) -> Extension<'_> {
    Extension { kind, content }
}

/// Calls procedure 7 with these extensions; returns the call if it has reached a service, and the answers if it has not.
fn call(pair: &mut Pair, extensions: &[Extension<'_>]) -> Result<Served, Vec<String>> {
    let extras = Extras {
        extensions,
        ..Extras::default()
    };
    pair.call_with(&known(5), 7, b"body", &extras, "call");
    let call = pair.serve().pop();
    let answers = pair.take_answers();
    call.ok_or(answers)
}

/// Calls with this metadata, which breaks a rule; returns what the caller is told.
fn refused(order: ByteOrder, extensions: &[Extension<'_>]) -> String {
    let mut pair = pair(order);
    let told = call(&mut pair, extensions).unwrap_err().concat();
    // The connection goes on.
    pair.call(&known(5), 7, b"next", "next");
    assert_eq!(pair.serve().len(), 1);
    told
}

#[test]
fn a_call_carries_metadata_as_specified() {
    let mut pair = pair(ByteOrder::NATIVE);
    let metadata = sample();
    let extras = Extras {
        extensions: &[Extension::of_metadata(&metadata)],
        ..Extras::default()
    };
    pair.call_with(&known(5), 7, b"body", &extras, "call");
    let sent = pair.client.transmit_all();
    let expected = [
        &head_with(kinds::CALL, flags::EXTENSIONS, 1, (0, 7), 28)[..],
        &[Half(2), Half(0), Word(SIZE)],
        &PAIRS,
        &[Bytes(b"body\0\0\0\0")],
    ];
    let expected = bytes(ByteOrder::NATIVE, &expected.concat());
    assert!(sent.ends_with(&expected), "{}", sent.escape_ascii());
}

/// What a service adds goes in front of the result, in the order of bytes of its end, behind time stamps.
#[test]
fn an_answer_carries_metadata_as_specified() {
    for order in ORDERS {
        for (fails, stamped) in [(false, false), (true, false), (false, true)] {
            let mut pair = pair(order);
            let Ok(called) = call(&mut pair, &[]) else {
                panic!("it is for a service");
            };
            let mut reply = Buffer::default();
            let draft = match stamped {
                true => ReplyDraft::begin_stamped(&mut reply, called.caller),
                false => ReplyDraft::begin(&mut reply, called.caller),
            };
            reply.extend(b"pong");
            let draft = match (draft, fails) {
                (ReplyDraft::Lean(draft), true) => {
                    let exception = Exception::new(Status::FAILED, "");
                    ReplyDraft::Lean(draft.refuse(&mut reply, &exception))
                }
                (draft, _) => draft,
            };
            let draft = draft.with_metadata(&mut reply, &sample());
            let stamps = Stamps {
                clock: 1,
                rate: 2,
                received: 3,
                dispatched: 4,
                done: 5,
                sent: 6,
                packets: None,
            };
            draft.seal_stamped(&mut reply, &stamps);
            let numbers: Vec<_> = (1..=6).map(Double).collect();
            let (kind, body): (_, &[Field]) = match fails {
                true => (kinds::EXCEPTION, &[Word(4), Word(0)]),
                false => (kinds::REPLY, &[Bytes(b"pong\0\0\0\0")]),
            };
            let before: Vec<Field> = match stamped {
                true => [&[Half(1), Half(1), Word(48)], &numbers[..]].concat(),
                false => Vec::new(),
            };
            let length = 24 + if fails { 8 } else { 4 } + if stamped { 56 } else { 0 };
            let expected = [
                &head_with(kind, flags::EXTENSIONS, 1, (0, 7), length)[..],
                &before,
                &[Half(2), Half(0), Word(SIZE)],
                &PAIRS,
                body,
            ];
            let expected = bytes(order, &expected.concat());
            assert_eq!(reply.as_slice(), expected, "{order:?} {fails} {stamped}");
        }
    }
}

#[test]
fn metadata_is_read_in_either_order_of_bytes() {
    for client in ORDERS {
        for server in ORDERS {
            let mut pair = Pair::greeted(client_config(client), server_config(server));
            let content = bytes(client, &PAIRS);
            let content = &content[..SIZE as usize];
            let asked = call(&mut pair, &[extension(2, content)]).unwrap();
            let mut reply = Buffer::default();
            let draft = ReplyDraft::begin(&mut reply, asked.caller);
            reply.extend(b"pong");
            draft.with_metadata(&mut reply, &sample()).seal(&mut reply);
            pair.server.connection.push_reply(&mut reply);
            let sent = pair.server.transmit_all();
            assert_eq!(pair.client.receive(&sent), Ok(sent.len()));
            let frame = pair.client.receiver.next_frame().unwrap();
            let Some(frame @ Frame::Message(_)) = frame else {
                panic!("{frame:?}");
            };
            let services = &pair.client.services;
            let event = pair.client.connection.handle_frame(frame, services);
            let Ok(Event::Answered(answer)) = event else {
                panic!("{event:?}");
            };
            assert_eq!(answer.outcome, Ok(&b"pong"[..]));
            assert_eq!(answer.extensions.answer_metadata().to_owned(), sample());
        }
    }
}

#[test]
fn metadata_that_breaks_a_rule_is_refused_and_the_connection_goes_on() {
    let cases: [(&str, &[Field]); 8] = [
        ("ends inside of the pair at byte 0", &[Half(1)]),
        (
            "ends inside of the pair at byte 0",
            &[Half(1), Half(2), Bytes(b"kv")],
        ),
        (
            "ends inside of the pair at byte 6",
            &[Half(1), Half(1), Bytes(b"kv"), Half(0xffff), Half(0xffff)],
        ),
        ("a key of 0 bytes", &[Half(0), Half(1), Bytes(b"v")]),
        ("the key \"K\" has", &[Half(1), Half(1), Bytes(b"Kv")]),
        ("the key \"\\0\" has", &[Half(1), Half(1), Bytes(b"\0v")]),
        (
            "byte 1 of the value of",
            &[Half(1), Half(2), Bytes(b"kv\n")],
        ),
        (
            "byte 0 of the value of",
            &[Half(1), Half(1), Bytes(b"k\xff")],
        ),
    ];
    for order in ORDERS {
        for (text, fields) in cases {
            let content = bytes(order, fields);
            let told = refused(order, &[extension(2, &content)]);
            assert!(told.contains("does not accept the metadata"), "{told}");
            assert!(told.contains(text), "{told}");
        }
    }
}

#[test]
fn metadata_that_is_too_large_or_there_twice_is_refused() {
    let order = ByteOrder::NATIVE;
    let mut large = Metadata::new();
    large
        .append("k", "x".repeat(Metadata::ACCEPTED - 5))
        .unwrap();
    assert_eq!(large.size(), Metadata::ACCEPTED);
    assert!(call(&mut pair(order), &[Extension::of_metadata(&large)]).is_ok());
    large.append("l", "").unwrap();
    let told = refused(order, &[Extension::of_metadata(&large)]);
    assert!(
        told.contains("metadata of 8197 bytes, where 8192"),
        "{told}"
    );

    let config = ConnectionConfig {
        metadata_max: Metadata::BYTES_MAX,
        ..server_config(order)
    };
    let mut generous = Pair::greeted(client_config(order), config);
    assert!(call(&mut generous, &[Extension::of_metadata(&large)]).is_ok());

    let sample = sample();
    let told = refused(
        order,
        &[
            Extension::of_metadata(&sample),
            Extension::of_metadata(&sample),
        ],
    );
    assert!(told.contains("metadata twice"), "{told}");
}

/// The body of AUTH_SYS is XDR, whatever the order of the rest.
#[test]
fn a_credential_is_a_body_of_auth_sys() {
    let user = AuthSys::new(b"here", 1000, 100, &[4, 24]).unwrap();
    let body = Credential::Sys(user).sys_body().unwrap();
    let expected = b"\0\0\0\0\0\0\0\x04here\0\0\x03\xe8\0\0\0\x64\0\0\0\x02\0\0\0\x04\0\0\0\x18";
    assert_eq!(body, expected);
    assert_eq!(Credential::None.sys_body(), None);
    for order in ORDERS {
        assert!(call(&mut pair(order), &[extension(3, &body)]).is_ok());
        let told = refused(order, &[extension(3, &body[1..])]);
        assert!(
            told.contains("may not") && told.contains("credential"),
            "{told}"
        );
        let told = refused(order, &[extension(3, &body), extension(3, &body)]);
        assert!(told.contains("two credentials"), "{told}");
    }
}

/// Time stamps and metadata are asked for together.
#[test]
fn a_call_with_metadata_may_ask_for_stamps() {
    let order = ByteOrder::NATIVE;
    let with = |config| ConnectionConfig {
        features: Features::STAMPS,
        ..config
    };
    let (client, server) = (with(client_config(order)), with(server_config(order)));
    let mut pair = Pair::greeted(client, server);
    let asked = call(
        &mut pair,
        &[Stamps::REQUEST, Extension::of_metadata(&sample())],
    )
    .unwrap();
    assert!(asked.wants_stamps);
    assert_eq!(asked.extensions.len(), 2);
}
