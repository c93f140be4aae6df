//! Time stamps: asked for, given byte by byte, written anew when they are sent, and not believed.

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Frame;
use tenon_proto::connection::{Caller, Event, ReplyDraft, TransmitBatch};
use tenon_proto::lean::{self, ByteOrder, Exception, Extension, Extras, Features, Stamps, Status};
use tenon_wire::Buffer;

use crate::fields::Field::{self, Bytes, Double, Half, Word};
use crate::fields::{ORDERS, bytes, flags, head, head_with, kinds};
use crate::pair::{Pair, Served, client_config, known, server_config};

pub const STAMPS: Stamps = Stamps {
    clock: 0x0102_0304_0506_0708,
    rate: 1_000_000_000,
    received: 10,
    dispatched: 20,
    done: 20,
    sent: 30,
    packets: None,
};

/// A reply of procedure 7 to call 1 that carries [`STAMPS`], sent at `sent`, and "pong".
fn stamped_reply(order: ByteOrder, sent: u64) -> Vec<u8> {
    let Stamps { clock, rate, .. } = STAMPS;
    let extension = [Half(1), Half(0), Word(48), Double(clock), Double(rate)];
    let times = [Double(10), Double(20), Double(20), Double(sent)];
    let fields = [
        &head_with(kinds::REPLY, flags::EXTENSIONS, 1, (0, 7), 60)[..],
        &extension,
        &times,
        &[Bytes(b"pong\0\0\0\0")],
    ];
    bytes(order, &fields.concat())
}

fn pair(order: ByteOrder, client: Features, server: Features) -> Pair {
    let with = |config, features| ConnectionConfig { features, ..config };
    let client = with(client_config(order), client);
    Pair::greeted(client, with(server_config(order), server))
}

/// Two ends that both offer stamps; the client's bytes are in `order`.
pub fn stamping_pair(order: ByteOrder) -> Pair {
    pair(order, Features::STAMPS, Features::STAMPS)
}

/// Calls this procedure and asks for stamps; returns the call, if it has reached a service.
fn ask(pair: &mut Pair, procedure: u16) -> Option<Served> {
    ask_for(pair, procedure, &[Stamps::REQUEST])
}

/// Calls this procedure with `extensions`; returns the call, if it has reached a service.
pub fn ask_for(pair: &mut Pair, procedure: u16, extensions: &[Extension<'_>]) -> Option<Served> {
    let extras = Extras {
        extensions,
        ..Extras::default()
    };
    pair.call_with(&known(5), procedure, b"", &extras, "call");
    let call = pair.serve().pop();
    // That the service is bound, and the answer if the call has not reached it.
    pair.take_answers();
    call
}

/// Answers "pong" with stamps.
fn answer(pair: &mut Pair, caller: Caller) {
    let mut reply = Buffer::default();
    let draft = ReplyDraft::begin_stamped(&mut reply, caller);
    reply.extend(b"pong");
    draft.seal_stamped(&mut reply, &STAMPS);
    pair.server.connection.push_reply(&mut reply);
}

#[test]
fn a_call_asks_for_stamps_with_an_empty_extension() {
    for order in ORDERS {
        let mut pair = pair(order, Features::STAMPS, Features::STAMPS);
        let extras = Extras {
            extensions: &[Stamps::REQUEST],
            ..Extras::default()
        };
        pair.call_with(&known(5), 7, b"", &extras, "call");
        let sent = pair.client.transmit_all();
        let asked = head_with(kinds::CALL, flags::EXTENSIONS, 1, (0, 7), 8);
        let asked = [&asked[..], &[Half(1), Half(0), Word(0)]].concat();
        assert!(sent.ends_with(&bytes(order, &asked)), "{order:?}");
    }
}

#[test]
fn a_reply_carries_stamps_as_specified() {
    for order in ORDERS {
        let mut pair = pair(order, Features::STAMPS, Features::STAMPS);
        let call = ask(&mut pair, 7).unwrap();
        assert!(call.wants_stamps);
        answer(&mut pair, call.caller);
        let sent = pair.server.transmit_all();
        assert_eq!(sent, stamped_reply(order, 30), "{order:?}");
    }
}

/// Among all that a batch holds only replies with stamps are written to.
#[test]
fn the_time_of_sending_is_written_into_a_batch() {
    let order = ByteOrder::NATIVE;
    let mut pair = pair(order, Features::STAMPS, Features::STAMPS);
    let call = ask(&mut pair, 7).unwrap();
    answer(&mut pair, call.caller);
    pair.call(&known(5), 7, b"", "without stamps");
    let other = pair.serve().remove(0);
    pair.answer(other.caller, &[0; 100]);
    pair.server.connection.ping();
    let mut batch = TransmitBatch::default();
    assert!(pair.server.connection.poll_transmit(&mut batch));
    let before = batch.slices().concat();
    batch.stamp_sent(99);
    let after = batch.slices().concat();
    let (old, new) = (stamped_reply(order, 30), stamped_reply(order, 99));
    let at = before.windows(old.len()).position(|part| part == old);
    let mut expected = before;
    expected[at.unwrap()..][..new.len()].copy_from_slice(&new);
    assert_eq!(after, expected);
}

/// The connection has no clock: it leaves procedure 0 to its owner if stamps are wanted, and only then.
#[test]
fn procedure_0_is_stamped_like_the_others() {
    for order in ORDERS {
        let mut pair = pair(order, Features::STAMPS, Features::STAMPS);
        let call = ask(&mut pair, 0).unwrap();
        assert_eq!((call.procedure, call.wants_stamps), (0, true));
        answer(&mut pair, call.caller);
        assert_eq!(pair.take_answers(), ["call: pong"]);
        let counters = pair.server.connection.incoming_counters();
        assert_eq!((counters.pings, counters.calls), (1, 0));
    }
}

#[test]
fn stamps_are_not_given_unless_both_ends_have_offered_them() {
    let (none, stamps) = (Features::default(), Features::STAMPS);
    for (client, server) in [(none, none), (stamps, none), (none, stamps)] {
        let mut asked = pair(ByteOrder::Little, client, server);
        let call = ask(&mut asked, 7).unwrap();
        assert!(!call.wants_stamps, "{client:?}, {server:?}");
        let mut pinged = pair(ByteOrder::Little, client, server);
        assert_eq!(ask(&mut pinged, 0), None, "it is answered");
        assert_eq!(pinged.client.connection.in_flight(), 0);
    }
}

#[test]
fn an_exception_carries_no_stamps() {
    let mut pair = pair(ByteOrder::Little, Features::STAMPS, Features::STAMPS);
    let call = ask(&mut pair, 7).unwrap();
    let mut reply = Buffer::default();
    let ReplyDraft::Lean(draft) = ReplyDraft::begin_stamped(&mut reply, call.caller) else {
        panic!("a lean call");
    };
    let exception = Exception::new(Status::FAILED, "");
    let draft = draft.refuse(&mut reply, &exception);
    draft.seal_stamped(&mut reply, &STAMPS);
    let expected = [&head(kinds::EXCEPTION, 1, 0, 7, 8)[..], &[Word(4), Word(0)]];
    let expected = bytes(ByteOrder::Little, &expected.concat());
    assert_eq!(reply.as_slice(), expected);
}

#[test]
fn a_reply_of_onc_rpc_is_written_without_stamps() {
    let mut pair = Pair::onc();
    pair.call_onc(b"", "call");
    let caller = pair.serve()[0].caller;
    answer(&mut pair, caller);
    assert_eq!(pair.take_answers(), ["call: pong"]);
}

/// The stamps that a client finds in a reply with these extensions.
fn found(order: ByteOrder, extensions: &[Extension<'_>]) -> Option<Stamps> {
    let mut pair = pair(order, Features::STAMPS, Features::STAMPS);
    let Caller::Lean(caller) = ask(&mut pair, 7).unwrap().caller else {
        panic!("a lean call");
    };
    let extras = Extras {
        extensions,
        ..Extras::default()
    };
    let mut reply = Buffer::default();
    let draft = lean::ReplyDraft::begin_with(&mut reply, caller, &extras);
    reply.extend(b"pong");
    draft.seal(&mut reply);
    pair.server.connection.push_reply(&mut reply);
    let sent = pair.server.transmit_all();
    assert_eq!(pair.client.receive(&sent), Ok(sent.len()));
    let frame = pair.client.receiver.next_frame().unwrap();
    let Some(Frame::Message(message)) = frame else {
        panic!("{frame:?}");
    };
    let connection = &mut pair.client.connection;
    let event = connection.handle_frame(Frame::Message(message), &pair.client.services);
    let Ok(Event::Answered(answer)) = event else {
        panic!("{event:?}");
    };
    assert_eq!((answer.outcome, answer.order), (Ok(&b"pong"[..]), order));
    Stamps::find(answer.extensions)
}

#[test]
fn malformed_stamps_count_as_none() {
    let numbers = |numbers: &[u64]| numbers.iter().map(|number| Double(*number)).collect();
    let long = vec![0; 4096];
    for order in ORDERS {
        let find = |kind, fields: &[Field]| {
            let content = bytes(order, fields);
            let content = &content[..];
            found(order, &[Extension { kind, content }])
        };
        let good: Vec<Field> = numbers(&[STAMPS.clock, STAMPS.rate, 10, 20, 20, 30]);
        assert_eq!(find(1, &good), Some(STAMPS));
        let largest: Vec<Field> = numbers(&[u64::MAX; 6]);
        assert_eq!(find(1, &largest).map(|stamps| stamps.sent), Some(u64::MAX));
        let bad: [(u16, Vec<Field>); 9] = [
            (1, numbers(&[])),
            (1, numbers(&[1, 1, 1, 1, 1])),
            (1, numbers(&[1, 1, 1, 1, 1, 1, 1])),
            (1, [&good[..5], &[Word(30)]].concat()),
            (1, numbers(&[1, 0, 10, 20, 20, 30])),
            (1, numbers(&[1, 1, 21, 20, 20, 30])),
            (1, numbers(&[1, 1, 10, 20, 19, 30])),
            (1, numbers(&[1, 1, 10, 20, 20, 19])),
            (2, good.clone()),
        ];
        for (kind, fields) in bad {
            assert_eq!(find(kind, &fields), None, "{fields:?}");
        }
        let content = &long[..];
        assert_eq!(found(order, &[Extension { kind: 1, content }]), None);
        assert_eq!(found(order, &[]), None);
        let behind = bytes(order, &good);
        let extension = |kind, content| Extension { kind, content };
        let both = [extension(9, b"first"), extension(1, &behind)];
        assert_eq!(found(order, &both), Some(STAMPS));
    }
}
