//! Record marking as a sender writes it (RFC 5531 section 11).

use tenon_proto::onc::record::{MARK, message, seal};
use tenon_wire::Buffer;

const LAST: u32 = 0x8000_0000;

fn fragment(mark: u32, body: &[u8]) -> Vec<u8> {
    [&mark.to_be_bytes(), body].concat()
}

/// What a message becomes that stands behind another in the same buffer.
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
fn a_message_within_the_fragment_size_is_one_fragment() {
    assert_eq!(sealed(b"12345678", 8), fragment(LAST | 8, b"12345678"));
    assert_eq!(sealed(b"", 8), fragment(LAST, b""));
}

#[test]
fn a_message_over_the_fragment_size_is_cut() {
    let expected = [
        fragment(3, b"123"),
        fragment(3, b"456"),
        fragment(LAST | 2, b"78"),
    ];
    assert_eq!(sealed(b"12345678", 3), expected.concat());
    let expected = [fragment(4, b"1234"), fragment(LAST | 4, b"5678")];
    assert_eq!(sealed(b"12345678", 4), expected.concat());
}

#[test]
fn a_message_is_found_behind_the_room_for_its_mark() {
    let mut buffer = Buffer::default();
    buffer.room(MARK);
    buffer.extend(b"datagram");
    assert_eq!(message(&buffer), b"datagram");
    seal(&mut buffer, 0, 99);
    assert_eq!(buffer.as_slice(), fragment(LAST | 8, b"datagram"));
}
