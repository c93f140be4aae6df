//! The end of a server: which calls of a conversation may have been carried out, for its client.

use tenon_wire::Buffer;

use super::packet::DropReason;

/// Calls that are named at most: they find room in every datagram.
pub(super) const NAMED_MAX: usize = 128;

/// Bytes of each.
const ENTRY: usize = 8;

/// Calls that were begun, with answers that may not have arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnfinishedCalls<'d> {
    /// The number of calls; those beyond [`NAMED_MAX`] are not named.
    count: u32,
    named: &'d [[u8; ENTRY]],
}

impl<'d> UnfinishedCalls<'d> {
    pub(super) fn get(count: u32, body: &'d [u8]) -> Result<Self, DropReason> {
        let (named, rest) = body.as_chunks::<ENTRY>();
        let expected = (count as usize).min(NAMED_MAX);
        match rest.is_empty() && named.len() == expected {
            true => Ok(Self { count, named }),
            false => Err(DropReason::Malformed),
        }
    }

    /// Returns whether a call was begun, or may have been.
    pub(super) fn may_have(&self, lane: u16, sequence: u32) -> bool {
        let is_cut = self.count as usize > self.named.len();
        is_cut || self.named.contains(&entry(lane, sequence))
    }
}

/// Appends the call that was begun on a lane.
pub(super) fn put_begun(out: &mut Buffer, lane: u16, sequence: u32) {
    out.extend(&entry(lane, sequence));
}

fn entry(lane: u16, sequence: u32) -> [u8; ENTRY] {
    let ([a, b], [c, d, e, f]) = (lane.to_be_bytes(), sequence.to_be_bytes());
    [a, b, 0, 0, c, d, e, f]
}
