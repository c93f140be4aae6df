//! The record reader, fed in pieces, against one that is too simple to be wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenon_proto::connection::framing::RecordReader;
use tenon_proto::onc::record::MARK;

fuzz_target!(|data: &[u8]| {
    let [limit, piece, stream @ ..] = data else {
        return;
    };
    // Up to more than a reader has at first, so that marks ask for more than there is.
    let limit = usize::from(*limit) * 256;
    let (records, is_legal) = read_in_pieces(stream, limit, usize::from(*piece) + 1);
    let (expected, is_expected_legal) = read_at_once(stream, limit);
    assert_eq!(records, expected);
    assert_eq!(is_legal, is_expected_legal);
});

fn read_in_pieces(mut stream: &[u8], limit: usize, piece: usize) -> (Vec<Vec<u8>>, bool) {
    let mut reader = RecordReader::new(limit);
    let mut records = Vec::new();
    while !stream.is_empty() {
        let room = reader.room_within(|_| true).expect("memory may be taken");
        let taken = piece.min(stream.len()).min(room.len());
        assert!(taken > 0, "there is always room");
        room[..taken].copy_from_slice(&stream[..taken]);
        reader.handle_received(taken);
        stream = &stream[taken..];
        loop {
            match reader.next_record() {
                Ok(Some(record)) => records.push(record.to_vec()),
                Ok(None) => break,
                Err(_) => return (records, false),
            }
        }
    }
    (records, true)
}

/// The records of a stream that is there as a whole, and whether nothing is wrong with it.
fn read_at_once(mut stream: &[u8], limit: usize) -> (Vec<Vec<u8>>, bool) {
    let mut records = Vec::new();
    let (mut record, mut empty_fragments) = (Vec::new(), 0);
    while let Some((mark, rest)) = stream.split_first_chunk::<MARK>() {
        let mark = u32::from_be_bytes(*mark);
        let (is_last, length) = (mark >> 31 == 1, (mark & 0x7fff_ffff) as usize);
        empty_fragments += u32::from(length == 0 && !is_last);
        if record.len() + length > limit || empty_fragments > 16 {
            return (records, false);
        }
        let Some((fragment, rest)) = rest.split_at_checked(length) else {
            break;
        };
        record.extend(fragment);
        stream = rest;
        if is_last {
            records.push(std::mem::take(&mut record));
            empty_fragments = 0;
        }
    }
    (records, true)
}
