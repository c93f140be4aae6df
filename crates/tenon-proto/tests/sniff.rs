//! What a peer speaks, by its first bytes.

mod common;

use common::Random;
use tenon_proto::lean::{ByteOrder, Incoming, MAGIC, MessageReader, Preamble};
use tenon_proto::onc::record::RecordReader;
use tenon_proto::sniff::{RECORD_MAX, Sniffed, sniff};

const MIB: usize = 1 << 20;

#[test]
fn the_magic_is_longer_than_every_record_and_nothing_else_that_is_common() {
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
fn the_first_bytes_tell() {
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
fn a_stranger_is_named_by_what_it_looks_like() {
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
        let stranger = sniff(bytes, MIB).unwrap_err();
        let expected = format!(
            "the connection begins with \"{}\": neither an ONC record of at most 1048576 bytes nor \
             a lean preamble{guess}",
            bytes[..4].escape_ascii()
        );
        assert_eq!(stranger.to_string(), expected);
    }
}

#[test]
fn who_is_taken_for_one_is_understood_by_its_reader_and_by_no_other() {
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
        let mut records = RecordReader::new(MIB);
        records.room()[..64].copy_from_slice(&bytes);
        records.filled(64);
        let is_record = records.next_record().is_ok();
        let mut messages = MessageReader::new(MIB);
        messages.room()[..64].copy_from_slice(&bytes);
        messages.filled(64);
        let is_lean = matches!(messages.next_message(), Ok(Some(Incoming::Preamble(_))));
        match sniff(&bytes, MIB) {
            Ok(Sniffed::Onc) => assert!(!is_lean),
            Ok(Sniffed::Lean) => assert!(!is_record),
            Ok(Sniffed::TooFew) => panic!("64 bytes are enough"),
            Err(_) => assert!(!is_record && !is_lean),
        }
    }
}
