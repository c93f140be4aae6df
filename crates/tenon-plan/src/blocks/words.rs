//! Puts blocks, and what breaks them, into words.

use std::fmt;

use super::{BlockBreak, NoBlockReason, RecordSegment, SwapWidth, UniformRun};
use crate::blittable::ARRAY_MAX;

impl fmt::Display for RecordSegment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}: ", self.first)?,
            false => write!(f, "{} to {}: ", self.first, self.last)?,
        }
        match &self.what {
            Ok(run) => write!(f, "a block of {run}")?,
            Err(alone) => write!(f, "no block, {alone}")?,
        }
        match &self.broken {
            Some(BlockBreak::Hole(bytes)) => {
                let bytes = self::bytes(*bytes);
                write!(f, "; broken off by a hole of {bytes} in memory before it")
            }
            Some(BlockBreak::Order(unit)) => write!(f, "; broken off by an order, for {unit}"),
            Some(BlockBreak::OtherOrder(unit)) => write!(
                f,
                "; broken off for a peer of the other order only, for which {unit}"
            ),
            None => Ok(()),
        }
    }
}

impl fmt::Display for UniformRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            SwapWidth::One => write!(f, "{} bytes", self.units),
            unit => write!(f, "{} x {} bytes", self.units, unit.bytes()),
        }
    }
}

impl fmt::Display for SwapWidth {
    /// Says what is done to the block that this one is broken off from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One => write!(f, "what precedes is not swapped"),
            unit => write!(f, "what precedes is swapped by {} bytes", unit.bytes()),
        }
    }
}

impl fmt::Display for NoBlockReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Padded(bytes) => write!(f, "a hole: the wire pads it by {bytes}"),
            Self::Widened(1) => write!(f, "a hole: 1 byte of memory is 4 on the wire"),
            Self::Widened(bytes) => write!(f, "a hole: {bytes} bytes of memory are 4 on the wire"),
            Self::LookedAt => write!(f, "its values are looked at one by one"),
            Self::Inside(Some(name)) => write!(f, "one is broken inside of {name}"),
            Self::Inside(None) => write!(f, "one is broken inside of an element"),
            Self::Large(unit) => {
                let bytes = unit.bytes();
                write!(
                    f,
                    "an array of more than {ARRAY_MAX} bytes, as a block of its own of {bytes}-byte items"
                )
            }
            Self::External => write!(f, "its own routine moves it"),
            Self::Varies(what, None) => write!(f, "a variable part: {what}"),
            Self::Varies(what, Some(SwapWidth::One)) => {
                write!(f, "a variable part: {what}, as a block of its own")
            }
            Self::Varies(what, Some(unit)) => {
                let bytes = unit.bytes();
                write!(
                    f,
                    "a variable part: {what}, as a block of its own of {bytes}-byte items"
                )
            }
        }
    }
}

/// So many bytes.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    }
}
