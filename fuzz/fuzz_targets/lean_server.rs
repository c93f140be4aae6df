//! What a server makes of any lean stream, however it is cut into pieces, and that all of its answers
//! are messages that a client's reader understands.
#![no_main]

use std::collections::HashSet;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tenon_proto::ROOM_FIRST;
use tenon_proto::lean::server::{Catalog, Received, Reply, ServerEngine};
use tenon_proto::lean::{ByteOrder, Incoming, Interface, Kind, MessageReader, Part, Preamble};
use tenon_wire::Buffer;

const LIMIT: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    let [order, piece, stream @ ..] = data else {
        return;
    };
    let client = Preamble {
        order: match order % 2 {
            0 => ByteOrder::Little,
            _ => ByteOrder::Big,
        },
        ..Preamble::client(0)
    };
    // Random bytes would hardly get past a preamble, with its check.
    let stream = match order & 2 {
        0 => [&client.encode(), stream].concat(),
        _ => stream.to_vec(),
    };
    let piece = usize::from(*piece) + 1;
    let (answers, begun) = serve(&stream, piece);
    assert_eq!(serve(&stream, usize::MAX), (answers.clone(), begun.clone()));
    check(&answers, &begun);
});

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.add(Arc::new(Interface {
        fingerprint: 0x0101_0101_0101_0101,
        parts: vec![Part {
            name: "point".into(),
            fingerprint: 7,
        }],
        ..Interface::unknown(1, 1)
    }));
    catalog.add(Arc::new(Interface::unknown(1, 3)));
    catalog
}

/// The answers to a stream, and the calls that were begun.
fn serve(mut stream: &[u8], piece: usize) -> (Vec<u8>, Vec<u32>) {
    let catalog = catalog();
    let mut engine = ServerEngine::new(Preamble::server(LIMIT as u32, 16));
    let mut reader = MessageReader::new(LIMIT);
    let mut out = Buffer::default();
    let mut begun = Vec::new();
    while !stream.is_empty() {
        let received = reader.received() as usize;
        let room = reader.room();
        let taken = piece.min(stream.len()).min(room.len());
        assert!(taken > 0, "there is always room");
        room[..taken].copy_from_slice(&stream[..taken]);
        reader.filled(taken);
        assert!(reader.capacity() <= ROOM_FIRST.max(2 * (received + taken)));
        stream = &stream[taken..];
        loop {
            let message = match reader.next_message() {
                Ok(Some(Incoming::Preamble(theirs))) => {
                    if engine.handle_preamble(&theirs, &mut out).is_err() {
                        return (out.as_slice().to_vec(), begun);
                    }
                    continue;
                }
                Ok(Some(Incoming::Message(message))) => message,
                Ok(None) => break,
                Err(_) => return (out.as_slice().to_vec(), begun),
            };
            assert_eq!(message.header.message_length() % 8, 0);
            match engine.handle_message(&catalog, &message, &mut out) {
                Ok(Received::Call(call)) => {
                    assert!(call.service < 2 && call.procedure != 0);
                    assert!(call.extensions.count() <= message.header.length as usize / 8);
                    begun.push(call.caller.id);
                    let reply = Reply::begin(&mut out, call.caller);
                    out.extend(call.arguments);
                    reply.seal(&mut out);
                }
                Ok(_) => {}
                Err(_) => return (out.as_slice().to_vec(), begun),
            }
        }
    }
    (out.as_slice().to_vec(), begun)
}

/// Every call that was begun has one answer, and all that was said is legal.
fn check(answers: &[u8], begun: &[u32]) {
    assert_eq!(begun.iter().collect::<HashSet<_>>().len(), begun.len());
    let mut reader = MessageReader::new(LIMIT);
    let mut left = answers;
    let mut replies = Vec::new();
    while !left.is_empty() {
        let room = reader.room();
        let taken = room.len().min(left.len());
        room[..taken].copy_from_slice(&left[..taken]);
        reader.filled(taken);
        left = &left[taken..];
        while let Some(incoming) = reader.next_message().expect("a legal stream") {
            if let Incoming::Message(message) = incoming {
                message.parts().expect("a legal message");
                if message.header.kind == Kind::Reply && message.header.procedure != 0 {
                    replies.push(message.header.id);
                }
            }
        }
    }
    assert!(reader.is_between_messages());
    assert_eq!(replies, begun);
}
