//! The bytes of Null calls of the section `rpc` by ONC RPC over a stream (RFC 5531 sections 9 and 11).

use crate::stubs::{BENCH_PROGRAM, BENCH_VERSION};

/// Bytes of a call, with its record mark.
pub const CALL_BYTES: usize = 44;

/// Bytes of a reply, with its record mark.
pub const REPLY_BYTES: usize = 28;

/// The bit of a record mark that says that the record ends with this fragment.
const LAST_FRAGMENT: u32 = 1 << 31;

const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;
const REPLY: u32 = 1;

/// Makes the call of procedure 0 with this number, without credentials.
pub fn null_call(xid: u32) -> [u8; CALL_BYTES] {
    let mark = LAST_FRAGMENT | (CALL_BYTES as u32 - 4);
    let words = [
        mark,
        xid,
        CALL,
        RPC_VERSION,
        BENCH_PROGRAM,
        BENCH_VERSION,
        0,
    ];
    from_words(&words)
}

/// Makes the reply to that call: accepted, successful, without a verifier.
pub fn null_reply(xid: u32) -> [u8; REPLY_BYTES] {
    let mark = LAST_FRAGMENT | (REPLY_BYTES as u32 - 4);
    from_words(&[mark, xid, REPLY])
}

/// Words in the order of the wire, and zeros.
fn from_words<const COUNT: usize>(words: &[u32]) -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}
