//! Record marking (RFC 5531 section 11): every way in which a stream may deliver records.

mod common;

use common::Random;
use tenon_proto::ROOM_FIRST;
use tenon_proto::onc::record::{MARK, RecordError, RecordReader, seal};
use tenon_wire::Buffer;

const LAST: u32 = 0x8000_0000;

fn fragment(mark: u32, body: &[u8]) -> Vec<u8> {
    [&mark.to_be_bytes(), body].concat()
}

fn record(body: &[u8]) -> Vec<u8> {
    fragment(LAST | body.len() as u32, body)
}

/// Puts bytes into the reader as one `read` would; says how many.
fn receive(reader: &mut RecordReader, bytes: &[u8]) -> usize {
    let mut wanted = 0;
    let room = reader.room_within(|bytes| {
        wanted = bytes;
        true
    });
    let room = room.expect("it may");
    let taken = room.len().min(bytes.len());
    room[..taken].copy_from_slice(&bytes[..taken]);
    reader.filled(taken);
    assert_eq!(reader.capacity(), wanted, "the reader takes what it said");
    taken
}

/// All records of a stream that arrives in pieces of at most `piece` bytes.
fn records(reader: &mut RecordReader, mut stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while !stream.is_empty() {
        let taken = receive(reader, &stream[..piece.min(stream.len())]);
        assert!(taken > 0, "there is always room for what is missing");
        stream = &stream[taken..];
        while let Some(record) = reader.next_record().expect("a legal stream") {
            found.push(record.to_vec());
        }
    }
    found
}

fn sealed(message: &[u8], fragment_max: usize) -> Vec<u8> {
    let mut buffer = Buffer::default();
    buffer.extend(b"reply before");
    let start = buffer.len();
    buffer.extend(&[0; MARK]);
    buffer.extend(message);
    seal(&mut buffer, start, fragment_max);
    assert!(buffer.as_slice().starts_with(b"reply before"));
    buffer.as_slice()[start..].to_vec()
}

#[test]
fn a_message_is_sealed_as_one_fragment_if_it_may() {
    assert_eq!(sealed(b"12345678", 8), record(b"12345678"));
    assert_eq!(sealed(b"", 8), record(b""));
}

#[test]
fn a_message_over_the_fragment_size_is_cut() {
    let expected = [
        fragment(3, b"123"),
        fragment(3, b"456"),
        fragment(LAST | 2, b"78"),
    ];
    assert_eq!(sealed(b"12345678", 3), expected.concat());
}

#[test]
fn whatever_size_it_is_cut_to_it_is_read_back() {
    let message = Random(4).bytes(1000);
    for fragment_max in [1, 2, 3, 7, 64, 333, 500, 999, 1000, 1001] {
        let mut reader = RecordReader::new(1000);
        let found = records(&mut reader, &sealed(&message, fragment_max), 4096);
        assert_eq!(found, [&message[..]], "{fragment_max}");
    }
}

#[test]
fn a_record_of_one_fragment_is_handed_out_where_it_was_received() {
    let mut reader = RecordReader::new(1 << 20);
    let place = reader.room().as_ptr().wrapping_add(MARK);
    for body in [b"first ", b"second"] {
        receive(&mut reader, &record(body));
        let found = reader.next_record().unwrap().unwrap();
        assert_eq!((found, found.as_ptr()), (&body[..], place));
        assert_eq!(
            reader.record(),
            body,
            "and is still there for a second look"
        );
        assert_eq!(reader.next_record(), Ok(None));
    }
}

/// A read that ends behind a mark leaves nothing in the storage, which then has to grow for the record.
#[test]
fn a_mark_may_come_alone_in_front_of_a_record_that_needs_more_room() {
    let body = Random(8).bytes(3 * ROOM_FIRST);
    let (first, second) = body.split_at(2 * ROOM_FIRST);
    let in_two = [
        fragment(first.len() as u32, first),
        fragment(LAST | second.len() as u32, second),
    ];
    for before in [&b""[..], &record(b"before")] {
        for (whole, marks) in [
            (record(&body), vec![MARK]),
            (in_two.concat(), vec![MARK, MARK + first.len() + MARK]),
        ] {
            let mut stream = [before, &whole].concat();
            let mut reader = RecordReader::new(body.len());
            let mut found = Vec::new();
            let mut gone = 0;
            for mark in marks {
                let rest = stream.split_off(before.len() + mark - gone);
                gone += stream.len();
                found.extend(records(&mut reader, &stream, usize::MAX));
                stream = rest;
            }
            found.extend(records(&mut reader, &stream, usize::MAX));
            assert_eq!(found.last(), Some(&body));
            assert_eq!(found.len(), if before.is_empty() { 1 } else { 2 });
            assert_eq!(records(&mut reader, &record(b"next"), 3), [b"next"]);
        }
    }
}

#[test]
fn one_read_may_bring_several_records_and_a_part_of_the_next() {
    let stream = [
        record(b"one"),
        record(b""),
        record(b"three"),
        record(b"four"),
    ]
    .concat();
    let mut reader = RecordReader::new(100);
    assert_eq!(
        receive(&mut reader, &stream[..stream.len() - 6]),
        stream.len() - 6
    );
    for expected in ["one", "", "three"] {
        assert_eq!(reader.next_record(), Ok(Some(expected.as_bytes())));
    }
    assert_eq!(reader.next_record(), Ok(None));
    assert!(!reader.is_between_records());
    receive(&mut reader, &stream[stream.len() - 6..]);
    assert_eq!(reader.next_record(), Ok(Some(&b"four"[..])));
    assert!(reader.is_between_records());
}

#[test]
fn a_mark_may_arrive_byte_by_byte() {
    let stream = [fragment(2, b"ab"), fragment(LAST | 1, b"c"), record(b"d")].concat();
    let found = records(&mut RecordReader::new(100), &stream, 1);
    assert_eq!(found, [&b"abc"[..], b"d"]);
}

#[test]
fn a_megabyte_in_fragments_as_libtirpc_cuts_it_is_read() {
    let message = Random(5).bytes(1 << 20);
    let mut reader = RecordReader::new(1 << 20);
    for piece in [1460, 65_536, 1 << 21] {
        let found = records(&mut reader, &sealed(&message, 65_532), piece);
        assert!(found == [&message[..]], "pieces of {piece}");
    }
}

#[test]
fn the_limit_holds_for_one_fragment() {
    let mut reader = RecordReader::new(8);
    assert_eq!(
        records(&mut reader, &record(b"12345678"), 99),
        [b"12345678"]
    );
    receive(&mut reader, &record(b"123456789"));
    let error = RecordError::TooLong {
        length: 9,
        limit: 8,
    };
    assert_eq!(reader.next_record(), Err(error));
    assert_eq!(
        reader.next_record(),
        Err(error),
        "and nothing is read after it"
    );
}

#[test]
fn the_limit_holds_for_the_sum_of_fragments() {
    let mut reader = RecordReader::new(8);
    let stream = [fragment(4, b"1234"), fragment(LAST | 5, b"56789")].concat();
    receive(&mut reader, &stream);
    let error = RecordError::TooLong {
        length: 9,
        limit: 8,
    };
    assert_eq!(reader.next_record(), Err(error));
}

#[test]
fn fragments_whose_sum_wraps_around_32_bits_are_over_the_limit() {
    let mut reader = RecordReader::new(1 << 20);
    receive(
        &mut reader,
        &[fragment(1, b"1"), fragment(LAST - 1, b"")].concat(),
    );
    let (length, limit) = (1 << 31, 1 << 20);
    assert_eq!(
        reader.next_record(),
        Err(RecordError::TooLong { length, limit })
    );
}

#[test]
fn a_promise_of_two_gigabytes_takes_no_memory() {
    for mark in [LAST - 1, LAST | (LAST - 1)] {
        let mut reader = RecordReader::new(usize::MAX);
        receive(&mut reader, &fragment(mark, b"a few bytes"));
        assert_eq!(reader.next_record(), Ok(None));
        assert_eq!(reader.capacity(), ROOM_FIRST);
    }
}

#[test]
fn memory_is_at_most_double_what_arrived_and_never_over_the_limit() {
    let limit = 100_000;
    let mut reader = RecordReader::new(limit);
    let stream = record(&vec![7; limit]);
    let mut arrived = 0;
    while arrived < stream.len() - 1 {
        arrived += receive(&mut reader, &stream[arrived..stream.len() - 1]);
        assert_eq!(reader.next_record(), Ok(None));
        let most = (2 * arrived).clamp(ROOM_FIRST, limit + 2 * MARK);
        assert!(
            reader.capacity() <= most,
            "{} after {arrived}",
            reader.capacity()
        );
    }
}

#[test]
fn marks_without_bytes_end_in_an_error_and_not_in_a_loop() {
    let flood = fragment(0, b"").repeat(1000);
    for piece in [1, 4, 7, 4000] {
        let mut reader = RecordReader::new(100);
        let mut stream = &flood[..];
        let outcome = loop {
            let taken = receive(&mut reader, &stream[..piece.min(stream.len())]);
            stream = &stream[taken..];
            match reader.next_record() {
                Ok(None) => assert!(!stream.is_empty(), "the flood was swallowed"),
                outcome => break outcome.map(|_| ()),
            }
        };
        assert_eq!(outcome, Err(RecordError::EmptyFragments));
    }
}

#[test]
fn a_few_marks_without_bytes_are_legal_in_every_record() {
    let one = [
        fragment(0, b""),
        fragment(1, b"a"),
        fragment(0, b"").repeat(10),
        fragment(1, b"b"),
        fragment(LAST, b""),
    ];
    let stream = one.concat().repeat(20);
    let found = records(&mut RecordReader::new(2), &stream, 13);
    assert_eq!(found, vec![b"ab".to_vec(); 20]);
}

#[test]
fn a_record_in_fragments_of_one_byte_stays_within_its_memory() {
    let limit = 20_000;
    let message = Random(6).bytes(limit);
    for piece in [3, 1000, 1 << 20] {
        let mut reader = RecordReader::new(limit);
        let found = records(&mut reader, &sealed(&message, 1), piece);
        assert!(found == [&message[..]], "pieces of {piece}");
        assert!(reader.capacity() <= limit + 2 * MARK);
    }
}

#[test]
fn an_idle_reader_gives_its_memory_back_but_not_what_it_holds() {
    let large = record(&[1; 50_000]);
    let mut reader = RecordReader::new(1 << 20);
    assert_eq!(reader.capacity(), 0);
    assert_eq!(records(&mut reader, &large[..40_000], 40_000).len(), 0);
    reader.shrink_to(ROOM_FIRST);
    assert_eq!(records(&mut reader, &large[40_000..], 40_000).len(), 1);
    assert!(reader.capacity() > ROOM_FIRST);
    reader.shrink_to(ROOM_FIRST);
    assert_eq!(reader.capacity(), 0);
    assert_eq!(records(&mut reader, &large, 40_000).len(), 1);
}

#[test]
fn any_records_in_any_fragments_in_any_pieces_arrive_as_they_were_sent() {
    for seed in 0..500 {
        let mut random = Random(seed);
        let sizes = [40, 2_000, 40_000][random.below(3)];
        let messages: Vec<Vec<u8>> = (0..random.below(20) + 1)
            .map(|_| {
                let size = random.below(sizes);
                random.bytes(size)
            })
            .collect();
        let cut = |message: &Vec<u8>| sealed(message, random.below(sizes) + 1);
        let stream = messages.iter().map(cut).collect::<Vec<_>>().concat();
        let mut reader = RecordReader::new(40_000);
        let mut found = Vec::new();
        let mut left = &stream[..];
        while !left.is_empty() {
            let (piece, rest) = left.split_at((random.below(sizes) + 1).min(left.len()));
            found.extend(records(&mut reader, piece, random.below(sizes) + 1));
            left = rest;
        }
        assert!(found == messages, "seed {seed}");
        assert!(reader.is_between_records());
    }
}

#[test]
fn what_was_not_looked_at_can_be_looked_at_from_outside() {
    let mut reader = RecordReader::new(100);
    assert_eq!(reader.unread(), b"");
    let (one, two) = (record(b"one"), record(b"two"));
    receive(&mut reader, &[&one[..], &two].concat());
    assert_eq!(reader.unread(), [&one[..], &two].concat());
    assert_eq!(reader.next_record(), Ok(Some(&b"one"[..])));
    assert_eq!(reader.unread(), two);
}
