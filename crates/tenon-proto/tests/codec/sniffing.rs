//! Which protocol a peer speaks, by its first bytes.

use crate::common::Random;
use tenon_proto::connection::framing::{Frame, MessageReader, RecordReader};
use tenon_proto::lean::{ByteOrder, MAGIC, Preamble};
use tenon_proto::sniff::{RECORD_MAX, Sniffed, sniff};

const MIB: usize = 1 << 20;

#[test]
fn the_magic_is_neither_a_record_nor_text() {
    let mark = u32::from_be_bytes([MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3]]);
    assert_eq!(mark, 2_138_334_574);
    assert_eq!(mark >> 31, 0, "not the last fragment of its record");
    assert_eq!(RECORD_MAX, 2_138_334_573);
    let preamble = Preamble::client(0).encode();
    let message_type = u32::from_be_bytes([preamble[8], preamble[9], preamble[10], preamble[11]]);
    assert!(message_type > 1, "neither an ONC call nor a reply");
    assert!(!MAGIC[0].is_ascii_graphic());
}

#[test]
fn four_bytes_tell_the_protocols_apart() {
    let cases: [(&[u8], usize, Sniffed); 13] = [
        (b"", MIB, Sniffed::TooFew),
        (b"\x80\0\0", MIB, Sniffed::TooFew),
        (b"\x7ften"[..3].as_ref(), MIB, Sniffed::TooFew),
        (b"GET", MIB, Sniffed::TooFew),
        (b"\x80\0\0\x28", MIB, Sniffed::Onc),
        (b"\x80\0\0\x28\0\0\0\x01", MIB, Sniffed::Onc),
        (b"\0\0\0\0", MIB, Sniffed::Onc),
        (b"\0\x10\0\0", MIB, Sniffed::Onc),
        (b"\x80\x10\0\0", MIB, Sniffed::Onc),
        (b"\x7ften", MIB, Sniffed::Lean),
        (b"\x7ftenon\r\n", MIB, Sniffed::Lean),
        (b"\x7ften", usize::MAX, Sniffed::Lean),
        (b"\x7f\x74\x65\x6d", usize::MAX, Sniffed::Onc),
    ];
    for (bytes, record_max, sniffed) in cases {
        assert_eq!(sniff(bytes, record_max), Ok(sniffed), "{bytes:?}");
    }
}

#[test]
fn the_error_for_an_unknown_peer_names_what_it_looks_like() {
    let cases: [(&[u8], &str); 7] = [
        (b"GET / HTTP/1.1", "; it looks like HTTP"),
        (b"PRI * HTTP/2.0", "; it looks like HTTP"),
        (b"\x16\x03\x01\x02\0", "; it looks like TLS"),
        (b"SSH-2.0-OpenSSH", "; it looks like SSH"),
        (b"\0\x10\0\x01", ""),
        (b"\x7ftem", ""),
        (b"\xff\xff\xff\xff", ""),
    ];
    for (bytes, guess) in cases {
        let unknown = sniff(bytes, MIB).unwrap_err();
        let expected = format!(
            "the connection begins with \"{}\": neither an ONC record of at most 1048576 bytes nor \
             a lean preamble{guess}",
            bytes[..4].escape_ascii()
        );
        assert_eq!(unknown.to_string(), expected);
    }
}

/// Returns whether a reader of records accepts these bytes.
fn is_record(bytes: &[u8]) -> bool {
    let mut reader = RecordReader::new(MIB);
    let room = reader.room_within(|_| true).unwrap();
    room[..bytes.len()].copy_from_slice(bytes);
    reader.handle_received(bytes.len());
    reader.next_record().is_ok()
}

/// Returns whether a reader of lean messages finds a preamble in these bytes.
fn is_lean(bytes: &[u8]) -> bool {
    let mut reader = MessageReader::new(MIB);
    let mut at = 0;
    while at < bytes.len() {
        let room = reader.room_within(|_| true).unwrap();
        let step = room.len().min(bytes.len() - at);
        room[..step].copy_from_slice(&bytes[at..at + step]);
        reader.handle_received(step);
        at += step;
    }
    matches!(reader.next_frame(), Ok(Some(Frame::Preamble(_))))
}

#[test]
fn bytes_are_accepted_by_the_reader_of_the_protocol_they_are_taken_for_and_by_no_other() {
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let mut bytes = random.bytes(64);
        match random.below(3) {
            0 => {
                let preamble = Preamble {
                    order: ByteOrder::Big,
                    ..Preamble::client(random.word())
                };
                bytes[..32].copy_from_slice(&preamble.encode());
            }
            1 => bytes[..3].copy_from_slice(&[0x80, 0, 0]),
            _ => {}
        }
        match sniff(&bytes, MIB) {
            Ok(Sniffed::Onc) => assert!(!is_lean(&bytes), "seed {seed}"),
            Ok(Sniffed::Lean) => assert!(!is_record(&bytes), "seed {seed}"),
            Ok(Sniffed::TooFew) => panic!("seed {seed}: 64 bytes are enough"),
            Err(_) => assert!(!is_record(&bytes) && !is_lean(&bytes), "seed {seed}"),
        }
    }
}
