//! Acknowledgements: which fragments of a message have arrived, and what becomes of the call.

use tenon_wire::Buffer;

use super::WINDOW;
use super::packet::DropReason;

/// Bytes of the longest bitmap behind the header of an acknowledgement.
const BITMAP_MAX: usize = WINDOW as usize / 8;

/// The state of a call at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum CallStatus {
    /// It takes the request in; from a client, that it takes the answer in.
    Receiving = 0,
    /// It carries the call out.
    Running = 1,
    /// The call is over, and nothing more is said of it.
    Over = 2,
    /// There was no room for the request; the call was not carried out.
    Overloaded = 3,
    /// The request breaks the protocol; the call was not carried out.
    Malformed = 4,
}

impl CallStatus {
    pub(super) fn of(number: u16) -> Result<Self, DropReason> {
        match number {
            0 => Ok(Self::Receiving),
            1 => Ok(Self::Running),
            2 => Ok(Self::Over),
            3 => Ok(Self::Overloaded),
            4 => Ok(Self::Malformed),
            _ => Err(DropReason::Malformed),
        }
    }
}

/// The fragments of a message that have arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReceivedFragments<'a> {
    /// All before this one.
    pub(super) below: u64,
    /// The fragments behind it, a bit each, the first in the highest bit of the first byte.
    bitmap: &'a [u8],
}

impl<'a> ReceivedFragments<'a> {
    pub(super) fn get(below: u64, bitmap: &'a [u8]) -> Result<Self, DropReason> {
        match bitmap.len() <= BITMAP_MAX {
            true => Ok(Self { below, bitmap }),
            false => Err(DropReason::Malformed),
        }
    }

    /// Returns the fragments behind the first that is missing.
    pub(super) fn beyond(&self) -> impl Iterator<Item = u64> + use<'a> {
        let first = self.below.saturating_add(1);
        let bytes = self
            .bitmap
            .iter()
            .enumerate()
            .filter(|(_, bits)| **bits != 0);
        bytes.flat_map(move |(index, bits)| {
            let set = (0..8_u64).filter(move |bit| bits & (0x80 >> bit) != 0);
            set.map(move |bit| first.saturating_add(index as u64 * 8 + bit))
        })
    }
}

/// Appends the bitmap of the fragments behind `below`, the first that is missing. They ascend.
pub(super) fn put_bitmap(out: &mut Buffer, below: u64, held: impl Iterator<Item = u64>) {
    let mut bitmap = [0_u8; BITMAP_MAX];
    let mut length = 0;
    for fragment in held {
        let Some(bit) = fragment
            .checked_sub(below)
            .and_then(|bit| bit.checked_sub(1))
        else {
            continue;
        };
        let byte = bit as usize / 8;
        if let Some(bits) = bitmap.get_mut(byte) {
            *bits |= 0x80 >> (bit % 8);
            length = byte + 1;
        }
    }
    out.extend(&bitmap[..length]);
}
