//! The memory of received messages: taken out with a message, given back, and lent to many connections.

use tenon_proto::connection::framing::{Detached, Frame, ROOM_FIRST, ReceiveMemory, Receiver};
use tenon_proto::lean::{ByteOrder, Preamble};

use super::{fill, receive};
use crate::common::{Random, record, seeds};
use crate::framing::messages::{call, preamble};

const ORDER: ByteOrder = ByteOrder::NATIVE;
const LIMIT: usize = 1 << 20;

/// What a message carries.
fn body<'m>(frame: Frame<'m>) -> &'m [u8] {
    match frame {
        Frame::Record(record) => record,
        Frame::Message(message) => message.parts().unwrap().body,
        Frame::Preamble(_) => &[],
    }
}

fn body_of(detached: &Detached) -> &[u8] {
    body(detached.frame().expect("a message"))
}

/// A receiver of either protocol behind whatever comes first, and how a body becomes a message.
struct Protocol {
    receiver: Receiver,
    message: fn(&[u8]) -> Vec<u8>,
}

fn protocols() -> [Protocol; 2] {
    let mut lean = Receiver::lean(LIMIT);
    receive(&mut lean, &preamble(ORDER), 99, |_| {}).unwrap();
    lean.shrink_to(0);
    let lean = Protocol {
        receiver: lean,
        message: |body| call(ORDER, 1, body),
    };
    let onc = Protocol {
        receiver: Receiver::onc(LIMIT),
        message: record,
    };
    [lean, onc]
}

impl Protocol {
    /// Receives these messages at once.
    fn fill(&mut self, bodies: &[&[u8]]) {
        let stream = bodies.iter().map(|body| (self.message)(body));
        let stream = stream.collect::<Vec<_>>().concat();
        assert_eq!(fill(&mut self.receiver, &stream), Ok(stream.len()));
    }

    /// Takes the next message out.
    fn detach(&mut self) -> Detached {
        assert!(self.receiver.next_frame().unwrap().is_some());
        self.receiver.detach().expect("a message was handed out")
    }
}

#[test]
fn a_detached_message_stays_as_it_is_while_others_are_received() {
    for mut protocol in protocols() {
        protocol.fill(&[b"first", b"second", b"third"]);
        let first = protocol.detach();
        let second = protocol.detach();
        let third = protocol.detach();
        protocol.fill(&[b"fourth"]);
        let fourth = protocol.detach();
        assert!(protocol.receiver.next_frame().unwrap().is_none());
        let detached = [&first, &second, &third, &fourth].map(body_of);
        assert_eq!(detached, [&b"first"[..], b"second", b"third", b"fourth"]);
        assert!(protocol.receiver.is_between_frames());
    }
}

#[test]
fn a_message_alone_leaves_with_the_memory_that_it_was_received_in() {
    for mut protocol in protocols() {
        protocol.fill(&[b"alone"]);
        let place = {
            let frame = protocol.receiver.next_frame().unwrap().unwrap();
            body(frame).as_ptr()
        };
        let detached = protocol.receiver.detach().unwrap();
        assert_eq!(body_of(&detached).as_ptr(), place, "nothing was copied");
        assert_eq!(protocol.receiver.capacity(), 0);
        protocol.receiver.reattach(detached);
        assert_eq!(protocol.receiver.capacity(), ROOM_FIRST);
        protocol.fill(&[b"again"]);
        let frame = protocol.receiver.next_frame().unwrap().unwrap();
        assert_eq!((body(frame), body(frame).as_ptr()), (&b"again"[..], place));
    }
}

/// The shorter of the message and of what follows it is copied.
#[test]
fn what_follows_a_detached_message_is_received_on() {
    let long = vec![7; 5000];
    for mut protocol in protocols() {
        for (first, second) in [(&b"short"[..], &long[..]), (&long, b"short")] {
            let stream = [(protocol.message)(first), (protocol.message)(second)].concat();
            for split in [1, 3, 17, 30, 4000, stream.len() - 1, stream.len()] {
                let receiver = &mut protocol.receiver;
                let mut at = fill(receiver, &stream[..split]).unwrap();
                while receiver.next_frame().unwrap().is_none() {
                    at += fill(receiver, &stream[at..]).unwrap();
                }
                let detached = receiver.detach().unwrap();
                while receiver.next_frame().unwrap().is_none() {
                    at += fill(receiver, &stream[at..]).unwrap();
                }
                let found = body(receiver.last_frame().unwrap());
                assert!(found == second, "split at {split}");
                assert!(body_of(&detached) == first, "split at {split}");
                assert!(receiver.is_between_frames());
                receiver.reattach(detached);
            }
        }
    }
}

#[test]
fn a_message_in_pieces_is_detached_whole() {
    let mut receiver = Receiver::lean(LIMIT);
    receive(&mut receiver, &preamble(ORDER), 99, |_| {}).unwrap();
    let header = |kind: u32, more: u32, length: u32| {
        let fields = crate::fields::head_with(kind, more, 5, (0, 0), length);
        crate::fields::bytes(ORDER, &fields)
    };
    let first = [header(1, 4, 8), b"in piece".to_vec()].concat();
    let last = [header(11, 0, 8), b"s, whole".to_vec()].concat();
    let between = call(ORDER, 6, b"between");
    let together = [&first[..], &last].concat();
    let apart = [&first[..], &between, &last].concat();
    for (stream, before) in [(together, 0), (apart, 1)] {
        fill(&mut receiver, &[&stream[..], &between].concat()).unwrap();
        for _ in 0..before {
            receiver.next_frame().unwrap();
        }
        assert!(receiver.next_frame().unwrap().is_some());
        let detached = receiver.detach().unwrap();
        assert_eq!(body(receiver.next_frame().unwrap().unwrap()), b"between");
        let Some(Frame::Message(message)) = detached.frame() else {
            panic!("a message");
        };
        assert!(message.in_pieces);
        assert_eq!(message.parts().unwrap().body, b"in pieces, whole");
        receiver.reattach(detached);
    }
}

#[test]
fn nothing_is_detached_unless_a_message_was_just_handed_out() {
    for mut protocol in protocols() {
        assert!(protocol.receiver.detach().is_none(), "nothing has come");
        protocol.fill(&[b"first"]);
        assert!(protocol.receiver.detach().is_none(), "nothing was taken");
        assert!(protocol.receiver.last_frame().is_none());
        protocol.detach();
        assert!(protocol.receiver.detach().is_none(), "it has left");
        assert!(protocol.receiver.last_frame().is_none());
        protocol.fill(&[b"second"]);
        protocol.receiver.next_frame().unwrap();
        protocol.receiver.room();
        assert!(
            protocol.receiver.detach().is_none(),
            "it may be overwritten"
        );
        assert!(protocol.receiver.last_frame().is_none());
    }
}

/// A part of a record is not taken for a record, and not lost.
#[test]
fn a_message_that_has_come_in_part_is_not_detached() {
    for mut protocol in protocols() {
        let stream = (protocol.message)(&[7; 100]);
        for split in 1..stream.len() {
            fill(&mut protocol.receiver, &stream[..split]).unwrap();
            assert!(protocol.receiver.next_frame().unwrap().is_none());
            assert!(protocol.receiver.detach().is_none(), "split at {split}");
            fill(&mut protocol.receiver, &stream[split..]).unwrap();
            assert_eq!(body_of(&protocol.detach()), [7; 100]);
        }
    }
    let fragment = [0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut receiver = Receiver::onc(LIMIT);
    fill(&mut receiver, &fragment).unwrap();
    assert!(receiver.next_frame().unwrap().is_none());
    assert!(receiver.detach().is_none());
    fill(&mut receiver, &record(b"last")).unwrap();
    let frame = receiver.next_frame().unwrap().unwrap();
    assert_eq!(body(frame), b"\x01\x02\x03\x04\x05\x06\x07\x08last");
}

#[test]
fn random_messages_are_detached_and_reattached_without_a_change() {
    for seed in seeds(200) {
        for mut protocol in protocols() {
            let mut random = Random(seed);
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for _ in 0..40 {
                let length = random.of_bits(15);
                let body = random.bytes(length);
                stream.extend((protocol.message)(&body));
                expected.push(body);
            }
            let mut kept: Vec<(Detached, usize)> = Vec::new();
            let (mut at, mut next) = (0, 0);
            while at < stream.len() {
                let step = (random.of_bits(16) + 1).min(stream.len() - at);
                at += fill(&mut protocol.receiver, &stream[at..at + step]).unwrap();
                while let Some(frame) = protocol.receiver.next_frame().unwrap() {
                    assert!(body(frame) == expected[next], "seed {seed}");
                    if random.below(2) == 0 {
                        kept.push((protocol.receiver.detach().unwrap(), next));
                    }
                    next += 1;
                }
                if !kept.is_empty() && random.below(2) == 0 {
                    let (detached, number) = kept.swap_remove(random.below(kept.len()));
                    assert!(body_of(&detached) == expected[number], "seed {seed}");
                    protocol.receiver.reattach(detached);
                }
            }
            assert_eq!(next, expected.len());
            for (detached, number) in kept {
                assert!(body_of(&detached) == expected[number], "seed {seed}");
            }
        }
    }
}

// ---- Memory that is lent ----

#[test]
fn memory_is_lent_to_one_connection_after_the_other_and_none_keeps_it() {
    let mut memory = ReceiveMemory::default();
    let mut place = None;
    for _ in 0..3 {
        for mut protocol in protocols() {
            protocol.receiver.lend(&mut memory);
            let address = protocol.receiver.room().as_ptr();
            assert_eq!(*place.get_or_insert(address), address, "the same memory");
            protocol.fill(&[b"a turn"]);
            let frame = protocol.receiver.next_frame().unwrap().unwrap();
            assert_eq!(body(frame), b"a turn");
            protocol.receiver.reclaim(&mut memory);
            assert_eq!(protocol.receiver.capacity(), 0);
            assert!(protocol.receiver.last_frame().is_none());
            assert!(protocol.receiver.next_frame().unwrap().is_none());
        }
    }
}

#[test]
fn memory_in_which_something_is_left_is_not_taken_back() {
    let mut memory = ReceiveMemory::default();
    for mut protocol in protocols() {
        protocol.receiver.lend(&mut memory);
        let message = (protocol.message)(b"in two parts");
        let (first, second) = message.split_at(message.len() - 5);
        fill(&mut protocol.receiver, first).unwrap();
        assert!(protocol.receiver.next_frame().unwrap().is_none());
        protocol.receiver.reclaim(&mut memory);
        assert_eq!(protocol.receiver.capacity(), ROOM_FIRST);
        protocol.receiver.lend(&mut memory);
        fill(&mut protocol.receiver, second).unwrap();
        let frame = protocol.receiver.next_frame().unwrap().unwrap();
        assert_eq!(body(frame), b"in two parts");
        protocol.receiver.reclaim(&mut memory);
        assert_eq!(protocol.receiver.capacity(), 0);
    }
}

#[test]
fn memory_that_has_grown_is_the_connections_own() {
    let mut memory = ReceiveMemory::default();
    for mut protocol in protocols() {
        protocol.receiver.lend(&mut memory);
        let message = (protocol.message)(&vec![7; 3 * ROOM_FIRST]);
        let mut found = 0;
        receive(&mut protocol.receiver, &message, usize::MAX, |_| found += 1).unwrap();
        assert_eq!(found, 1);
        protocol.receiver.reclaim(&mut memory);
        assert!(protocol.receiver.capacity() > ROOM_FIRST);
        protocol.receiver.shrink_to(0);
        assert_eq!(protocol.receiver.capacity(), 0);
    }
}

#[test]
fn a_connection_with_memory_of_its_own_is_lent_none() {
    let mut memory = ReceiveMemory::default();
    let [mut first, mut second] = protocols();
    first.fill(&[b"own memory"]);
    first.detach();
    first.fill(&[b"own memory"]);
    second.receiver.lend(&mut memory);
    second.fill(&[b"thread's"]);
    second.detach();
    second.fill(&[b"thread's"]);
    second.receiver.next_frame().unwrap();
    second.receiver.reclaim(&mut memory);
    first.receiver.lend(&mut memory);
    let frame = first.receiver.next_frame().unwrap().unwrap();
    assert_eq!(body(frame), b"own memory");
    second.receiver.lend(&mut memory);
    assert_eq!(second.receiver.capacity(), ROOM_FIRST, "it was still there");
}

/// The first bytes of a connection are received before its protocol is known.
#[test]
fn memory_is_lent_to_a_connection_whose_protocol_is_not_known() {
    let mut memory = ReceiveMemory::default();
    for stream in [Preamble::client(0).encode().to_vec(), record(b"a record")] {
        let mut receiver = Receiver::sniffing(LIMIT);
        receiver.lend(&mut memory);
        let (first, rest) = stream.split_at(3);
        fill(&mut receiver, first).unwrap();
        receiver.reclaim(&mut memory);
        receiver.lend(&mut memory);
        let mut found = 0;
        receive(&mut receiver, rest, usize::MAX, |_| found += 1).unwrap();
        assert_eq!(found, 1);
        receiver.reclaim(&mut memory);
        assert_eq!(receiver.capacity(), 0);
    }
}
