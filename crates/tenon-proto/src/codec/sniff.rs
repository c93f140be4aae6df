//! Detection of the protocol that a peer speaks, by the first bytes that it sends.

use crate::lean::MAGIC;
use crate::onc::record::MARK;

/// The protocol that the first bytes of a connection speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniffed {
    /// The mark of an ONC record.
    Onc,
    /// The preamble of the lean protocol.
    Lean,
    /// Too few to tell: wait for more.
    TooFew,
}

/// The first bytes of a connection belong to another protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the connection begins with \"{}\": neither an ONC record of at most {record_max} bytes nor a \
     lean preamble{}",
    .first.escape_ascii(),
    guess(*.first)
)]
pub struct UnknownPeer {
    /// The first bytes that it sent.
    pub first: [u8; MARK],
    /// Bytes of the longest record that is accepted.
    pub record_max: usize,
}

/// The longest ONC record that a port for both protocols can accept: the magic of the lean protocol
/// reads as the mark of a longer one.
pub const RECORD_MAX: usize =
    u32::from_be_bytes([MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3]]) as usize - 1;

/// Tells by the first `bytes` of a connection which protocol its peer speaks. `record_max` is the
/// longest ONC record that is accepted.
///
/// # Errors
/// It speaks neither.
pub fn sniff(bytes: &[u8], record_max: usize) -> Result<Sniffed, UnknownPeer> {
    let Some(first) = bytes.first_chunk::<MARK>() else {
        return Ok(Sniffed::TooFew);
    };
    if MAGIC.starts_with(first) {
        return Ok(Sniffed::Lean);
    }
    let record_max = record_max.min(RECORD_MAX);
    let length = u32::from_be_bytes(*first) & 0x7fff_ffff;
    match length as usize <= record_max {
        true => Ok(Sniffed::Onc),
        false => Err(UnknownPeer {
            first: *first,
            record_max,
        }),
    }
}

fn guess(first: [u8; MARK]) -> &'static str {
    match &first {
        [0x16, 3, ..] => "; it looks like TLS",
        b"GET " | b"POST" | b"HEAD" | b"PUT " | b"DELE" | b"OPTI" | b"CONN" | b"TRAC" | b"PATC"
        | b"PRI " => "; it looks like HTTP",
        b"SSH-" => "; it looks like SSH",
        _ => "",
    }
}
