//! Record marking (RFC 5531 section 11).

use tenon_proto::connection::framing::{Frame, FramingError, ROOM_FIRST, Receiver, RecordReader};
use tenon_proto::onc::record::{MARK, RecordError, seal};
use tenon_wire::Buffer;

use super::{fill, receive};
use crate::common::{Random, record, seeds};

const LAST: u32 = 0x8000_0000;

fn fragment(mark: u32, body: &[u8]) -> Vec<u8> {
    [&mark.to_be_bytes(), body].concat()
}

/// A message cut into fragments of at most so many bytes.
fn cut(message: &[u8], fragment_max: usize) -> Vec<u8> {
    let mut buffer = Buffer::default();
    buffer.room(MARK);
    buffer.extend(message);
    seal(&mut buffer, 0, fragment_max);
    buffer.as_slice().to_vec()
}

/// All records of a stream that arrives in steps of at most `step` bytes.
fn records(receiver: &mut Receiver, stream: &[u8], step: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let read = receive(receiver, stream, step, |frame| match frame {
        Frame::Record(record) => found.push(record.to_vec()),
        other => panic!("{other:?}"),
    });
    read.expect("a legal stream");
    found
}

/// Why a stream cannot be read on that arrives in steps of at most `step` bytes.
fn error(receiver: &mut Receiver, stream: &[u8], step: usize) -> RecordError {
    match receive(receiver, stream, step, |_| {}) {
        Err(FramingError::Record(error)) => {
            let again = receiver.next_frame().map(|_| ());
            assert_eq!(again, Err(FramingError::Record(error)), "the same again");
            error
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_is_read_back_however_it_is_cut() {
    let message = Random(4).bytes(1000);
    for fragment_max in [1, 2, 3, 7, 64, 333, 500, 999, 1000, 1001] {
        let mut receiver = Receiver::onc(1000);
        let found = records(&mut receiver, &cut(&message, fragment_max), 4096);
        assert_eq!(found, [&message[..]], "{fragment_max}");
    }
}

#[test]
fn a_record_of_one_fragment_is_handed_out_where_it_was_received() {
    let mut receiver = Receiver::onc(1 << 20);
    let place = receiver.room().as_ptr().wrapping_add(MARK);
    for body in [b"first ", b"second"] {
        fill(&mut receiver, &record(body)).unwrap();
        let Some(Frame::Record(found)) = receiver.next_frame().unwrap() else {
            panic!("a record");
        };
        assert_eq!((found, found.as_ptr()), (&body[..], place));
        let Some(Frame::Record(again)) = receiver.last_frame() else {
            panic!("it is still there for a second look");
        };
        assert_eq!(again, body);
        assert!(receiver.next_frame().unwrap().is_none());
    }
}

/// A read that ends behind a mark leaves nothing in the storage, which then has to grow for the record.
#[test]
fn a_mark_may_come_alone_in_front_of_a_record_that_needs_more_room() {
    let body = Random(8).bytes(3 * ROOM_FIRST);
    let (first, second) = body.split_at(2 * ROOM_FIRST);
    let whole = record(&body);
    let in_two = [
        fragment(first.len() as u32, first),
        fragment(LAST | second.len() as u32, second),
    ]
    .concat();
    for before in [&b""[..], &record(b"before")] {
        // What is received ends behind these marks.
        let ends_of_whole = vec![MARK];
        let ends_of_two = vec![MARK, MARK + first.len() + MARK];
        for (stream, ends) in [(&whole, ends_of_whole), (&in_two, ends_of_two)] {
            let mut stream = [before, stream].concat();
            let mut receiver = Receiver::onc(body.len());
            let mut found = Vec::new();
            let mut gone = 0;
            for end in ends {
                let rest = stream.split_off(before.len() + end - gone);
                gone += stream.len();
                found.extend(records(&mut receiver, &stream, usize::MAX));
                stream = rest;
            }
            found.extend(records(&mut receiver, &stream, usize::MAX));
            assert_eq!(found.last(), Some(&body));
            assert_eq!(found.len(), if before.is_empty() { 1 } else { 2 });
            assert_eq!(records(&mut receiver, &record(b"next"), 3), [b"next"]);
        }
    }
}

#[test]
fn one_read_may_bring_several_records_and_a_part_of_the_next() {
    let records = [
        record(b"one"),
        record(b""),
        record(b"three"),
        record(b"four"),
    ];
    let stream = records.concat();
    let (now, later) = stream.split_at(stream.len() - 6);
    let mut receiver = Receiver::onc(100);
    assert_eq!(fill(&mut receiver, now), Ok(now.len()));
    for expected in ["one", "", "three"] {
        let Some(Frame::Record(record)) = receiver.next_frame().unwrap() else {
            panic!("{expected}");
        };
        assert_eq!(record, expected.as_bytes());
    }
    assert!(receiver.next_frame().unwrap().is_none());
    assert!(!receiver.is_between_frames());
    fill(&mut receiver, later).unwrap();
    assert!(matches!(
        receiver.next_frame(),
        Ok(Some(Frame::Record(b"four")))
    ));
    assert!(receiver.is_between_frames());
}

#[test]
fn a_mark_may_arrive_byte_by_byte() {
    let stream = [fragment(2, b"ab"), fragment(LAST | 1, b"c"), record(b"d")].concat();
    let found = records(&mut Receiver::onc(100), &stream, 1);
    assert_eq!(found, [&b"abc"[..], b"d"]);
}

#[test]
fn a_megabyte_in_fragments_as_libtirpc_cuts_it_is_read() {
    let message = Random(5).bytes(1 << 20);
    let mut receiver = Receiver::onc(1 << 20);
    for step in [1460, 65_536, 1 << 21] {
        let found = records(&mut receiver, &cut(&message, 65_532), step);
        assert!(found == [&message[..]], "steps of {step}");
    }
}

#[test]
fn the_limit_holds_for_one_fragment() {
    let mut receiver = Receiver::onc(8);
    let found = records(&mut receiver, &record(b"12345678"), 99);
    assert_eq!(found, [b"12345678"]);
    let (length, limit) = (9, 8);
    let error = error(&mut receiver, &record(b"123456789"), 99);
    assert_eq!(error, RecordError::TooLong { length, limit });
}

#[test]
fn the_limit_holds_for_the_sum_of_fragments() {
    let stream = [fragment(4, b"1234"), fragment(LAST | 5, b"56789")].concat();
    let (length, limit) = (9, 8);
    let error = error(&mut Receiver::onc(8), &stream, 99);
    assert_eq!(error, RecordError::TooLong { length, limit });
}

#[test]
fn fragments_whose_sum_wraps_around_32_bits_are_over_the_limit() {
    let stream = [fragment(1, b"1"), fragment(LAST - 1, b"")].concat();
    let (length, limit) = (1 << 31, 1 << 20);
    let error = error(&mut Receiver::onc(1 << 20), &stream, 99);
    assert_eq!(error, RecordError::TooLong { length, limit });
}

#[test]
fn a_mark_that_promises_two_gigabytes_takes_no_memory() {
    for mark in [LAST - 1, LAST | (LAST - 1)] {
        let mut receiver = Receiver::onc(usize::MAX);
        let stream = fragment(mark, b"a few bytes");
        assert!(records(&mut receiver, &stream, 99).is_empty());
        assert_eq!(receiver.capacity(), ROOM_FIRST);
    }
}

#[test]
fn memory_is_at_most_double_what_arrived_and_never_over_the_limit() {
    let limit = 100_000;
    let mut receiver = Receiver::onc(limit);
    let stream = record(&vec![7; limit]);
    let mut arrived = 0;
    while arrived < stream.len() - 1 {
        arrived += fill(&mut receiver, &stream[arrived..stream.len() - 1]).unwrap();
        assert!(receiver.next_frame().unwrap().is_none());
        let most = (2 * arrived).clamp(ROOM_FIRST, limit + 2 * MARK);
        let capacity = receiver.capacity();
        assert!(capacity <= most, "{capacity} after {arrived}");
    }
}

#[test]
fn memory_that_may_not_be_had_is_not_taken() {
    let mut receiver = Receiver::onc(1 << 20);
    assert!(receiver.room_within(|_| false).is_none());
    assert_eq!(receiver.capacity(), 0);
    let stream = record(&[7; 20_000]);
    assert_eq!(fill(&mut receiver, &stream), Ok(ROOM_FIRST));
    assert!(receiver.next_frame().unwrap().is_none());
    let within = |bytes| bytes <= ROOM_FIRST;
    assert!(receiver.room_within(within).is_none(), "it has to grow");
    let found = records(&mut receiver, &stream[ROOM_FIRST..], usize::MAX);
    assert_eq!(found, [[7; 20_000]], "nothing was lost");
}

#[test]
fn an_endless_row_of_empty_fragments_is_an_error() {
    let flood = fragment(0, b"").repeat(1000);
    for step in [1, 4, 7, 4000] {
        let error = error(&mut Receiver::onc(100), &flood, step);
        assert_eq!(error, RecordError::EmptyFragments);
    }
}

#[test]
fn a_few_empty_fragments_are_legal_in_every_record() {
    let one = [
        fragment(0, b""),
        fragment(1, b"a"),
        fragment(0, b"").repeat(10),
        fragment(1, b"b"),
        fragment(LAST, b""),
    ];
    let stream = one.concat().repeat(20);
    let found = records(&mut Receiver::onc(2), &stream, 13);
    assert_eq!(found, vec![b"ab".to_vec(); 20]);
}

#[test]
fn a_record_in_fragments_of_one_byte_stays_within_its_memory() {
    let limit = 20_000;
    let message = Random(6).bytes(limit);
    for step in [3, 1000, 1 << 20] {
        let mut receiver = Receiver::onc(limit);
        let found = records(&mut receiver, &cut(&message, 1), step);
        assert!(found == [&message[..]], "steps of {step}");
        assert!(receiver.capacity() <= limit + 2 * MARK);
    }
}

#[test]
fn an_idle_receiver_gives_its_memory_back_and_keeps_what_has_arrived() {
    let large = record(&[1; 50_000]);
    let (begin, end) = large.split_at(40_000);
    let mut receiver = Receiver::onc(1 << 20);
    assert_eq!(receiver.capacity(), 0);
    assert!(records(&mut receiver, begin, 40_000).is_empty());
    receiver.shrink_to(ROOM_FIRST);
    assert_eq!(records(&mut receiver, end, 40_000).len(), 1);
    assert!(receiver.capacity() > ROOM_FIRST);
    receiver.shrink_to(ROOM_FIRST);
    assert_eq!(receiver.capacity(), 0);
    assert_eq!(records(&mut receiver, &large, 40_000).len(), 1);
}

#[test]
fn random_records_in_random_fragments_and_steps_arrive_as_they_were_sent() {
    for seed in seeds(500) {
        let mut random = Random(seed);
        let sizes = [40, 2_000, 40_000][random.below(3)];
        let messages: Vec<Vec<u8>> = (0..random.below(20) + 1)
            .map(|_| {
                let size = random.below(sizes);
                random.bytes(size)
            })
            .collect();
        let sent = messages
            .iter()
            .map(|message| cut(message, random.below(sizes) + 1));
        let stream = sent.collect::<Vec<_>>().concat();
        let mut receiver = Receiver::onc(40_000);
        let mut found = Vec::new();
        let mut left = &stream[..];
        while !left.is_empty() {
            let (part, rest) = left.split_at((random.below(sizes) + 1).min(left.len()));
            found.extend(records(&mut receiver, part, random.below(sizes) + 1));
            left = rest;
        }
        assert!(found == messages, "seed {seed}");
        assert!(receiver.is_between_frames());
    }
}

#[test]
fn the_reader_shows_what_has_arrived_and_was_not_taken() {
    let mut reader = RecordReader::new(100);
    assert_eq!(reader.unread(), b"");
    let (one, two) = (record(b"one"), record(b"two"));
    let both = [&one[..], &two].concat();
    reader.room_within(|_| true).unwrap()[..both.len()].copy_from_slice(&both);
    reader.handle_received(both.len());
    assert_eq!(reader.unread(), both);
    assert_eq!(reader.next_record(), Ok(Some(&b"one"[..])));
    assert_eq!(reader.unread(), two);
    assert_eq!(reader.find_whole(), Some(&b"two"[..]));
    assert_eq!(reader.unread(), two, "it is still the next");
    assert_eq!(reader.take_whole(3), b"two");
    assert_eq!((reader.unread(), reader.find_whole()), (&b""[..], None));
}

#[test]
fn only_a_complete_record_of_one_fragment_is_found_at_once() {
    let streams = [
        fragment(2, b"ab"),
        record(b"abc")[..6].to_vec(),
        record(&[0; 9]),
    ];
    for stream in streams {
        let mut reader = RecordReader::new(8);
        reader.room_within(|_| true).unwrap()[..stream.len()].copy_from_slice(&stream);
        reader.handle_received(stream.len());
        assert_eq!(reader.find_whole(), None);
    }
}
