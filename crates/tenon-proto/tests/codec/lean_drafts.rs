//! Messages of the lean protocol while they are written: what is filled in late.

use std::time::Duration;

use tenon_proto::lean::{
    ByteOrder, Extras, Flags, Header, Kind, MessageDraft, Preamble, stamp_sent,
};
use tenon_wire::Buffer;

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

/// A call behind something else, written with `before` as its time and given `left` before it is sent.
fn call(order: ByteOrder, before: Option<Duration>, left: Option<Duration>) -> Vec<u8> {
    let mut buffer = Buffer::default();
    buffer.extend(b"in front");
    let extras = Extras {
        time_left: before,
        ..Extras::default()
    };
    let draft = MessageDraft::call(&mut buffer, order, 1, &extras);
    buffer.extend(b"arguments");
    draft.seal(&mut buffer);
    if let Some(left) = left {
        draft.set_time_left(&mut buffer, left);
    }
    buffer.as_slice().to_vec()
}

#[test]
fn a_call_that_waited_to_be_sent_says_what_is_left_of_its_time() {
    let second = Duration::from_secs(1);
    for order in ORDERS {
        let waited = call(order, Some(second), Some(second / 7));
        assert_eq!(waited, call(order, Some(second / 7), None));
        let endless = call(order, None, Some(second));
        assert_eq!(endless, call(order, None, None), "it has no time to say");
    }
}

#[test]
fn a_call_is_finished_as_it_is_sealed_and_stamped() {
    for order in ORDERS {
        for length in 0..20 {
            let begin = || {
                let mut buffer = Buffer::default();
                buffer.extend(b"in front");
                let draft = MessageDraft::call(&mut buffer, order, 7, &Extras::default());
                buffer.extend(&vec![0xee; length]);
                (buffer, draft)
            };
            let (mut sealed, draft) = begin();
            assert_eq!(draft.size(&sealed), draft.seal(&mut sealed));
            draft.stamp(&mut sealed, 99, 3);
            let (mut finished, draft) = begin();
            draft.finish(&mut finished, 99, 3);
            assert_eq!(sealed.as_slice(), finished.as_slice());
        }
    }
}

#[test]
fn a_header_says_how_long_its_message_is() {
    let cases = [
        (0, 16),
        (1, 24),
        (8, 24),
        (9, 32),
        (u32::MAX, 0x1_0000_0010),
    ];
    for (length, message) in cases {
        let header = Header {
            kind: Kind::Call,
            flags: Flags::default(),
            id: 0,
            service: 0,
            procedure: 0,
            length,
        };
        assert_eq!(header.message_length(), message);
    }
}

/// A reply with an extension of this kind and content.
fn reply(order: ByteOrder, kind: u16, content: &[u8]) -> Vec<u8> {
    let header = Header {
        kind: Kind::Reply,
        flags: Flags(Flags::EXTENSIONS),
        id: 1,
        service: 0,
        procedure: 7,
        length: 8 + content.len() as u32,
    };
    let word = |number: u16| match order {
        ByteOrder::Little => number.to_le_bytes(),
        ByteOrder::Big => number.to_be_bytes(),
    };
    let [a, b] = word(content.len() as u16);
    let length = match order {
        ByteOrder::Little => [a, b, 0, 0],
        ByteOrder::Big => [0, 0, a, b],
    };
    let extension = [&word(kind)[..], &word(0), &length, content].concat();
    [&header.encode(order)[..], &extension].concat()
}

/// The content of stamps whose last says `sent`.
fn stamps(order: ByteOrder, sent: u64) -> Vec<u8> {
    let numbers = [7, 1_000_000_000, 10, 20, 20, sent];
    let bytes = numbers.map(|number: u64| match order {
        ByteOrder::Little => number.to_le_bytes(),
        ByteOrder::Big => number.to_be_bytes(),
    });
    bytes.concat()
}

/// Replies with stamps are told apart from all else that is sent with them, the preamble in front included.
#[test]
fn the_time_of_sending_is_written_into_every_reply_with_stamps_and_nothing_else() {
    for order in ORDERS {
        let plain = Header {
            kind: Kind::Reply,
            flags: Flags::default(),
            id: 9,
            service: 0,
            procedure: 7,
            length: 0,
        };
        let sent_at = |sent| {
            let messages = [
                Preamble::server(1 << 20, 64).encode().to_vec(),
                plain.encode(order).to_vec(),
                reply(order, 1, &stamps(order, sent)),
                reply(order, 2, &[7; 56]),
                reply(order, 1, b"too few "),
                reply(order, 1, &stamps(order, sent)),
            ];
            messages.concat()
        };
        let mut out = Buffer::default();
        out.extend(&sent_at(30));
        stamp_sent(&mut out, order, 99);
        assert_eq!(out.as_slice(), sent_at(99), "{order:?}");
    }
}
