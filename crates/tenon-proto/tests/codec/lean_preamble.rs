//! Preambles of the lean protocol, byte by byte, and what is no preamble.

use tenon_proto::lean::{
    ByteOrder, CALLS_MIN, Fault, Features, MESSAGE_MIN, PREAMBLE, Preamble, RefusalReason,
    Versions, Violation,
};

const LIMIT: u32 = 1 << 20;

fn client(order: ByteOrder) -> Preamble {
    Preamble {
        order,
        ..Preamble::client(LIMIT)
    }
}

fn versions(low: u16, high: u16) -> Versions {
    Versions { low, high }
}

/// FNV-1a of 32 bits, as the specification has it.
fn check(fields: &[u8]) -> [u8; 4] {
    let check = fields.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    check.to_be_bytes()
}

/// The bytes of a preamble with another byte, and with a check that fits them if `is_mended`.
fn changed(at: usize, byte: u8, is_mended: bool) -> [u8; PREAMBLE] {
    let mut bytes = client(ByteOrder::Little).encode();
    bytes[at] = byte;
    if is_mended {
        let mended = check(&bytes[..28]);
        bytes[28..].copy_from_slice(&mended);
    }
    bytes
}

#[test]
fn preambles_have_the_bytes_of_the_specification() {
    let fields = b"\x7ftenon\r\n\
        \0\x01\0\x01\x01\0\0\0\
        \0\0\0\0\0\x10\0\0\
        \0\0\0\0";
    let expected = [&fields[..], &check(fields)].concat();
    assert_eq!(client(ByteOrder::Little).encode()[..], expected);

    let fields = b"\x7ftenon\r\n\
        \0\x01\0\x01\x02\x02\x01\x02\
        \0\0\0\x03\0\x10\0\0\
        \0\0\0\x40";
    let expected = [&fields[..], &check(fields)].concat();
    let server = Preamble {
        order: ByteOrder::Big,
        features: Features::all(),
        streams_max: 0x0102,
        ..Preamble::server(LIMIT, 64)
    };
    let refusing = server.refusing(RefusalReason::BUSY);
    assert_eq!(refusing.encode()[..], expected);
}

#[test]
fn every_preamble_is_read_back_as_written() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let preamble = Preamble {
            versions: versions(3, 700),
            order,
            refusal: Some(RefusalReason(77)),
            features: Features(0xdead_beef),
            message_max: u32::MAX,
            calls_max: 12345,
            streams_max: 321,
        };
        assert_eq!(Preamble::decode(&preamble.encode()), Ok(preamble));
    }
}

#[test]
fn the_change_of_any_byte_is_noticed() {
    for at in 0..PREAMBLE {
        for flip in 1..=255 {
            let original = client(ByteOrder::Little).encode();
            let bytes = changed(at, original[at] ^ flip, false);
            let fault = Preamble::decode(&bytes).unwrap_err().fault;
            match at {
                0..8 => assert!(matches!(fault, Fault::NotLean { .. }), "{fault}"),
                _ => assert!(matches!(fault, Fault::Check { .. }), "{fault}"),
            }
        }
    }
}

#[test]
fn a_preamble_that_contradicts_the_specification_is_refused_with_the_place() {
    let cases = [
        (9, 0, 8, Fault::NoVersion(versions(0, 1))),
        (9, 2, 8, Fault::NoVersion(versions(2, 1))),
        (12, 0, 12, Fault::Order(0)),
        (12, 3, 12, Fault::Order(3)),
        (21, 0, 20, Fault::MessageLimit(0)),
    ];
    for (at, byte, offset, fault) in cases {
        let violation = Violation { at: offset, fault };
        assert_eq!(Preamble::decode(&changed(at, byte, true)), Err(violation));
    }
}

#[test]
fn unknown_features_are_no_fault_and_hold_only_if_both_ends_offer_them() {
    let unknown = Preamble::decode(&changed(16, 0xff, true)).unwrap();
    assert_eq!(unknown.features, Features(0xff00_0000));
    assert_eq!(unknown.features.common(Features::all()), Features(0));
    assert!(Features::all().has(Features::STAMPS));
    assert!(Features::all().has(Features::PIECES));
    assert!(!Features::STAMPS.has(Features::PIECES));
    assert!(!Features::STAMPS.has(Features::all()), "not all of them");
}

#[test]
fn the_highest_common_version_holds() {
    let cases = [
        (versions(1, 1), versions(1, 1), Some(1)),
        (versions(1, 3), versions(2, 5), Some(3)),
        (versions(2, 9), versions(1, 2), Some(2)),
        (versions(1, 1), versions(2, 3), None),
        (versions(4, 5), versions(2, 3), None),
    ];
    for (one, other, common) in cases {
        assert_eq!(one.common(other), common);
        assert_eq!(other.common(one), common);
    }
}

#[test]
fn limits_below_the_least_are_raised_to_it() {
    let server = Preamble::server(1, 1);
    assert_eq!(
        (server.message_max, server.calls_max),
        (MESSAGE_MIN, CALLS_MIN)
    );
    assert_eq!(Preamble::client(1).message_max, MESSAGE_MIN);
    assert_eq!(Preamble::client(1).calls_max, 0);
}
