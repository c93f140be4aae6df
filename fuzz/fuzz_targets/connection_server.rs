//! What the end of a connection that has accepted it makes of any stream, however it is cut into pieces: either
//! protocol, or neither. All of its answers are messages that a client understands.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon_fuzz::connection::{LIMIT, push_item, services, transmit_all};
use tenon_proto::ROOM_FIRST;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::{Frame, Receiver};
use tenon_proto::connection::{
    Caller, Connection, DeferredId, Event, ReplyDraft, StreamId, WireProtocol,
};
use tenon_proto::lean::{
    ByteOrder, CallStreams, Exception, Extension, Extras, Flags, Header, Kind, MessageDraft,
    Metadata, MetadataView, Preamble, Status,
};
use tenon_proto::onc::message::{ReplyBody, ReplyHeader};
use tenon_wire::{Buffer, Decoder};

fuzz_target!(|data: &[u8]| {
    let [how, piece, stream @ ..] = data else {
        return;
    };
    let client = Preamble {
        order: match how % 2 {
            0 => ByteOrder::Little,
            _ => ByteOrder::Big,
        },
        ..Preamble::client(0)
    };
    // Random bytes would hardly get past a preamble, with its check, or the mark and the beginning of a call.
    let stream = match how >> 1 & 7 {
        0 => [&client.encode(), stream].concat(),
        1 => {
            let call = [&[0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1], stream].concat();
            let mark = 0x8000_0000 | call.len() as u32;
            [&mark.to_be_bytes()[..], &call].concat()
        }
        2 => [
            &client.encode()[..],
            &call_with_metadata(client.order, stream),
        ]
        .concat(),
        3 => [
            &client.encode()[..],
            &call_with_streams(client.order, stream),
        ]
        .concat(),
        _ => stream.to_vec(),
    };
    let piece = usize::from(*piece) + 1;
    let served = serve(&stream, piece);
    assert_eq!(serve(&stream, usize::MAX), served);
    let Served {
        protocol,
        answers,
        begun,
    } = served;
    match protocol {
        None => assert!(begun.is_empty()),
        Some(WireProtocol::Onc) => check_onc(&answers, &begun),
        Some(WireProtocol::Lean) => check_lean(&answers, &begun),
    }
});

/// A bind, and calls with streams and their messages, by these bytes.
fn call_with_streams(order: ByteOrder, bytes: &[u8]) -> Vec<u8> {
    let mut stream = bind(order).as_slice().to_vec();
    let mut number = 0;
    for step in bytes.chunks_exact(4) {
        let [what, flags, id, length] = step.try_into().expect("four bytes");
        let kinds = [
            Kind::Call,
            Kind::Items,
            Kind::Items,
            Kind::End,
            Kind::Credit,
            Kind::Cancel,
        ];
        let kind = kinds[usize::from(what) % kinds.len()];
        let (flags, length) = match kind {
            Kind::Call => (flags & (Flags::ARGUMENT_STREAM | Flags::RESULT_STREAM), 0),
            Kind::Items => (flags & Flags::MORE, u32::from(length) << 6),
            Kind::Credit => (0, 8),
            _ => (0, 0),
        };
        number += u32::from(kind == Kind::Call);
        let header = Header {
            kind,
            flags: Flags(flags),
            id: match kind {
                Kind::Call => number,
                _ => number.saturating_sub(u32::from(id % 4)),
            },
            service: 0,
            procedure: if kind == Kind::Call { 7 } else { 0 },
            length,
        };
        stream.extend(header.encode(order));
        stream.resize(stream.len() + length as usize, 0);
    }
    stream
}

/// Binds version 3 of program 1.
fn bind(order: ByteOrder) -> Buffer {
    let mut buffer = Buffer::default();
    let words = |words: &[u32]| {
        let bytes = words.iter().map(|word| match order {
            ByteOrder::Little => word.to_le_bytes(),
            ByteOrder::Big => word.to_be_bytes(),
        });
        bytes.flatten().collect::<Vec<u8>>()
    };
    buffer.extend(&words(&[0xd07e_0500, 0, 0, 16, 1, 3, 0, 0]));
    buffer
}

/// A bind, and a call that carries these bytes as its metadata.
fn call_with_metadata(order: ByteOrder, bytes: &[u8]) -> Vec<u8> {
    let mut buffer = bind(order);
    let extras = Extras {
        extensions: &[Extension {
            kind: Extension::METADATA,
            content: bytes,
        }],
        ..Extras::default()
    };
    let draft = MessageDraft::call(&mut buffer, order, 7, &extras);
    buffer.extend(b"body");
    draft.finish(&mut buffer, 1, 0);
    buffer.as_slice().to_vec()
}

/// Returns what a reply carries that reflects the metadata of its call, which keeps the rules.
fn reflected(metadata: MetadataView<'_>) -> Metadata {
    let mut pairs = Metadata::new();
    for (key, value) in metadata {
        pairs.append(key, value).expect("it was checked");
    }
    assert_eq!(pairs, metadata.to_owned());
    pairs
}

/// What became of a stream.
#[derive(Debug, PartialEq)]
struct Served {
    protocol: Option<WireProtocol>,
    /// All that was answered.
    answers: Vec<u8>,
    /// The calls that were begun, in their order.
    begun: Vec<u32>,
}

/// A call with streams that is not answered.
struct Streaming {
    id: DeferredId,
    caller: Caller,
    streams: CallStreams,
}

fn serve(mut stream: &[u8], piece: usize) -> Served {
    let services = services();
    let config = ConnectionConfig {
        receive_max: LIMIT,
        incoming_calls_max: 16,
        incoming_streams_max: 4,
        ..ConnectionConfig::server()
    };
    let (mut connection, mut receiver) = Connection::<()>::server(config);
    let (mut answers, mut begun) = (Vec::new(), Vec::new());
    let mut deferred: Vec<Streaming> = Vec::new();
    let mut received = 0;
    'stream: while !stream.is_empty() {
        let room = receiver.room();
        let taken = piece.min(stream.len()).min(room.len());
        assert!(taken > 0, "there is always room");
        room[..taken].copy_from_slice(&stream[..taken]);
        received += taken;
        if let Err(error) = receiver.handle_received(taken) {
            connection.handle_framing_error(error);
            break;
        }
        assert!(receiver.capacity() <= ROOM_FIRST.max(2 * received));
        stream = &stream[taken..];
        loop {
            let frame = match receiver.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    connection.handle_framing_error(error);
                    break 'stream;
                }
            };
            match connection.handle_frame(frame, &services) {
                Ok(Event::Called(call)) => {
                    assert!(call.service < 2 && (call.procedure != 0 || call.wants_stamps));
                    if call.streams.any() && call.procedure != 0 {
                        let (streams, caller) = (call.streams, call.caller);
                        match (connection.defer(&caller, None), caller) {
                            (Some(id), _) => deferred.push(Streaming {
                                id,
                                caller,
                                streams,
                            }),
                            (None, Caller::Lean(caller)) => {
                                let exception = Exception::new(Status::OVERLOADED, "");
                                connection.refuse_call(caller, &exception);
                            }
                            (None, Caller::Onc { .. }) => panic!("it has no streams"),
                        }
                        continue;
                    }
                    begun.push(call.caller.number());
                    let mut reply = Buffer::default();
                    let draft = ReplyDraft::begin(&mut reply, call.caller);
                    reply.extend(call.arguments);
                    let metadata = reflected(call.extensions.metadata());
                    let draft = match metadata.is_empty() {
                        true => draft,
                        false => draft.with_metadata(&mut reply, &metadata),
                    };
                    draft.seal(&mut reply);
                    connection.push_reply(&mut reply);
                }
                Ok(Event::Items(item)) => {
                    let (id, size) = (item.id, item.size);
                    let number = id.number;
                    let of = |call: &&Streaming| call.id.number() == number;
                    let call = deferred.iter().find(of).expect("it is not answered");
                    assert!(call.streams.argument && !id.is_own);
                    // There may be no room, and the call may be cancelled.
                    if call.streams.result {
                        let _ = push_item(&mut connection, id, item.content);
                    }
                    connection.give_back(id, size);
                }
                Ok(Event::StreamEnded(StreamId { number, .. })) => {
                    let of = |call: &Streaming| call.id.number() == number;
                    let index = deferred.iter().position(of).expect("it is not answered");
                    let Streaming { id, caller, .. } = deferred.swap_remove(index);
                    let mut reply = Buffer::default();
                    ReplyDraft::begin(&mut reply, caller).seal(&mut reply);
                    let state = connection.answer_deferred(id, &mut reply);
                    assert!(state.is_some());
                }
                Ok(_) => {}
                Err(_) => break 'stream,
            }
            answers.extend(transmit_all(&mut connection));
        }
    }
    answers.extend(transmit_all(&mut connection));
    Served {
        protocol: connection.protocol(),
        answers,
        begun,
    }
}

/// Hands all messages of a stream out, which has to be legal.
fn for_each_frame(mut receiver: Receiver, mut bytes: &[u8], mut take: impl FnMut(Frame<'_>)) {
    while !bytes.is_empty() {
        let room = receiver.room();
        let taken = room.len().min(bytes.len());
        room[..taken].copy_from_slice(&bytes[..taken]);
        receiver.handle_received(taken).expect("a legal stream");
        bytes = &bytes[taken..];
        while let Some(frame) = receiver.next_frame().expect("a legal stream") {
            take(frame);
        }
    }
    assert!(receiver.is_between_frames());
}

/// Every call that was begun has one answer, in its order, and all that was said is legal.
fn check_lean(answers: &[u8], begun: &[u32]) {
    let mut replies = Vec::new();
    for_each_frame(Receiver::lean(LIMIT), answers, |frame| {
        if let Frame::Message(message) = frame {
            let parts = message.parts().expect("a legal message");
            if !parts.extensions.is_empty() {
                assert!(!parts.extensions.answer_metadata().is_empty());
            }
            let header = message.header;
            if header.kind == Kind::Reply && (header.procedure != 0 || begun.contains(&header.id)) {
                replies.push(header.id);
            }
        }
    });
    // A ping may have the number of a call: then its answer is one more.
    let mut replies = replies.into_iter();
    assert!(begun.iter().all(|id| replies.any(|reply| reply == *id)));
}

fn check_onc(answers: &[u8], begun: &[u32]) {
    let mut replies = Vec::new();
    for_each_frame(Receiver::onc(2 * LIMIT), answers, |frame| {
        let Frame::Record(record) = frame else {
            panic!("ONC RPC has records only");
        };
        let header = ReplyHeader::decode(&mut Decoder::new(record)).expect("a legal reply");
        if let ReplyBody::Success(_) = header.body {
            replies.push(header.xid);
        }
    });
    // Pings are answered by the connection itself.
    let mut replies = replies.into_iter();
    assert!(begun.iter().all(|xid| replies.any(|reply| reply == *xid)));
}
