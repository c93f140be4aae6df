//! Times of packets: put into a sealed reply behind its other extensions, byte by byte, and not believed.

use tenon_proto::connection::{Caller, ReplyDraft};
use tenon_proto::lean::{
    self, ByteOrder, Exception, Extension, Extras, Metadata, PacketTimes, SentReply, Stamps, Status,
};
use tenon_wire::Buffer;

use crate::fields::Field::{self, Bytes, Double, Half, Word};
use crate::fields::{ORDERS, bytes, flags, head_with, kinds};
use crate::stamps::{STAMPS, ask_for, stamping_pair};

const TIMES: PacketTimes = PacketTimes {
    received: 8,
    earlier: Some(SentReply {
        sent: 1,
        began: 2,
        scheduled: 3,
        transmitted: 4,
    }),
};

/// The caller of a call that asks for both kinds of times.
fn caller(order: ByteOrder) -> Caller {
    let mut pair = stamping_pair(order);
    let call = ask_for(&mut pair, 7, &[Stamps::REQUEST, PacketTimes::REQUEST]);
    call.expect("a call for a service").caller
}

/// A sealed reply with [`STAMPS`] and "pong".
fn sealed(caller: Caller, metadata: Option<&Metadata>) -> Buffer {
    let mut reply = Buffer::default();
    let mut draft = ReplyDraft::begin_stamped(&mut reply, caller);
    reply.extend(b"pong");
    if let Some(metadata) = metadata {
        draft = draft.with_metadata(&mut reply, metadata);
    }
    draft.seal_stamped(&mut reply, &STAMPS);
    reply
}

#[test]
fn they_are_the_last_extension_of_a_reply() {
    let mut metadata = Metadata::new();
    metadata.append("k", b"v").expect("it fits");
    let stamps = |more| {
        let head = [Half(1), Half(more), Word(48)];
        let Stamps { clock, rate, .. } = STAMPS;
        let numbers = [clock, rate, 10, 20, 20, 30].map(Double);
        [&head[..], &numbers].concat()
    };
    let pair = [
        Half(2),
        Half(1),
        Word(6),
        Half(1),
        Half(1),
        Bytes(b"kv\0\0"),
    ];
    let times = [
        [Half(4), Half(0), Word(40)].to_vec(),
        [8, 1, 2, 3, 4].map(Double).to_vec(),
    ];
    let times = times.concat();
    for order in ORDERS {
        for (metadata, between, length) in [(None, &[][..], 108), (Some(&metadata), &pair[..], 124)]
        {
            let caller = caller(order);
            let mut reply = sealed(caller, metadata);
            assert_eq!(caller.put_packet_times(&mut reply, &TIMES), Some(30));
            let head = head_with(kinds::REPLY, flags::EXTENSIONS, 1, (0, 7), length);
            let end = [Bytes(b"pong\0\0\0\0")];
            let fields = [&head[..], &stamps(1), between, &times, &end].concat();
            assert_eq!(
                reply.as_slice(),
                bytes(order, &fields),
                "{order:?} {length}"
            );
        }
    }
}

#[test]
fn a_message_without_stamps_stays_as_it_is() {
    for order in ORDERS {
        let caller = caller(order);
        let plain = {
            let mut reply = Buffer::default();
            let draft = ReplyDraft::begin(&mut reply, caller);
            reply.extend(b"pong");
            draft.seal(&mut reply);
            reply
        };
        let exception = {
            let Caller::Lean(caller) = caller else {
                panic!("a lean call");
            };
            let mut reply = Buffer::default();
            let draft = lean::ReplyDraft::begin_stamped(&mut reply, caller);
            let exception = Exception::new(Status::FAILED, "");
            draft.refuse(&mut reply, &exception).seal(&mut reply);
            reply
        };
        for mut reply in [plain, exception, Buffer::default()] {
            let before = reply.as_slice().to_vec();
            assert_eq!(caller.put_packet_times(&mut reply, &TIMES), None);
            assert_eq!(reply.as_slice(), before);
        }
    }
}

/// The times that a client finds in a reply with these extensions.
fn found(order: ByteOrder, extensions: &[Extension<'_>]) -> Option<PacketTimes> {
    let Caller::Lean(caller) = caller(order) else {
        panic!("a lean call");
    };
    let extras = Extras {
        extensions,
        ..Extras::default()
    };
    let mut reply = Buffer::default();
    lean::ReplyDraft::begin_with(&mut reply, caller, &extras).seal(&mut reply);
    let content = &reply.as_slice()[lean::HEADER..];
    PacketTimes::find(lean::Extensions::checked(content, order))
}

#[test]
fn malformed_times_count_as_none() {
    let numbers =
        |numbers: &[u64]| -> Vec<Field> { numbers.iter().map(|it| Double(*it)).collect() };
    for order in ORDERS {
        let find = |kind, fields: &[Field]| {
            let content = bytes(order, fields);
            let content = &content[..];
            found(order, &[Extension { kind, content }])
        };
        let none = |received| PacketTimes {
            received,
            earlier: None,
        };
        assert_eq!(find(4, &numbers(&[8, 1, 2, 3, 4])), Some(TIMES));
        assert_eq!(find(4, &numbers(&[8, 0, 0, 0, 0])), Some(none(8)));
        assert_eq!(find(4, &numbers(&[0, 0, 2, 3, 4])), Some(none(0)));
        // Not in order.
        assert_eq!(find(4, &numbers(&[8, 1, 2, 4, 3])), Some(none(8)));
        assert_eq!(find(4, &numbers(&[8, 3, 2, 4, 5])), Some(none(8)));
        assert_eq!(find(4, &numbers(&[8, 1, 2, 3])), None);
        assert_eq!(find(4, &numbers(&[8, 1, 2, 3, 4, 5])), None);
        assert_eq!(find(1, &numbers(&[8, 1, 2, 3, 4])), None);
    }
}
