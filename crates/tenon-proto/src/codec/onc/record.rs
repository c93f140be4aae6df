//! Record marking: messages on a byte stream (RFC 5531 section 11).
//!
//! A record is one or more fragments, each behind a four-byte mark: the highest bit says that it is
//! the record's last, the others how long it is.

use tenon_wire::Buffer;

/// Bytes of a mark, and of the room that is left for it in front of every message.
pub const MARK: usize = 4;

/// Longest fragment that a mark can express, in bytes.
pub const FRAGMENT_MAX: usize = 0x7fff_ffff;

pub(crate) const LAST_FRAGMENT: u32 = 0x8000_0000;

/// Fragments without a byte that one record may have. They are legal, and an endless row of them is
/// an attack.
pub(crate) const EMPTY_FRAGMENTS_MAX: u32 = 16;

/// The message behind the room for its mark, as a datagram carries it.
///
/// # Panics
/// The buffer was not begun with room for a mark.
#[inline]
pub fn message(buffer: &Buffer) -> &[u8] {
    &buffer.as_slice()[MARK..]
}

/// Makes what stands in `buffer` from `start` on, room for a mark and a message, one record
/// in fragments of at most `fragment_max` bytes.
///
/// # Panics
/// There is no room for a mark at `start`, or `fragment_max` is 0 or over [`FRAGMENT_MAX`].
#[inline]
pub fn seal(buffer: &mut Buffer, start: usize, fragment_max: usize) {
    assert!((1..=FRAGMENT_MAX).contains(&fragment_max));
    let length = buffer.len() - start - MARK;
    if length > fragment_max {
        cut(buffer, start, length, fragment_max);
    } else {
        put_mark(buffer, start, length as u32 | LAST_FRAGMENT);
    }
}

fn put_mark(buffer: &mut Buffer, at: usize, mark: u32) {
    buffer.as_mut_slice()[at..at + MARK].copy_from_slice(&mark.to_be_bytes());
}

/// Moves every fragment but the first to make room for its mark, the last one first.
#[cold]
fn cut(buffer: &mut Buffer, start: usize, length: usize, fragment_max: usize) {
    let fragments = length.div_ceil(fragment_max);
    buffer.room((fragments - 1) * MARK);
    let mut last = LAST_FRAGMENT;
    for fragment in (0..fragments).rev() {
        let offset = fragment * fragment_max;
        let size = fragment_max.min(length - offset);
        let from = start + MARK + offset;
        let to = from + fragment * MARK;
        buffer.as_mut_slice().copy_within(from..from + size, to);
        put_mark(buffer, to - MARK, size as u32 | last);
        last = 0;
    }
}

/// The reason for which a stream cannot be read on: the peer's fault, and the end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A record is longer than the limit.
    #[error("a record of at least {length} bytes is over the limit of {limit}")]
    TooLong {
        /// Bytes of the record that its marks have announced so far.
        length: u64,
        /// Most bytes that are accepted.
        limit: usize,
    },
    /// A record has too many fragments without a byte.
    #[error("a record has more than {EMPTY_FRAGMENTS_MAX} empty fragments")]
    EmptyFragments,
}
