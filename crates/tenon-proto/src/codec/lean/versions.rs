//! Versions of the protocol.

use std::fmt;

use super::terms::VERSION;

/// A range of versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The lowest.
    pub low: u16,
    /// The highest.
    pub high: u16,
}

impl Versions {
    /// The versions that this crate speaks.
    pub const OURS: Self = Self {
        low: VERSION,
        high: VERSION,
    };

    /// The highest version that both have.
    pub fn common(self, other: Self) -> Option<u16> {
        let high = self.high.min(other.high);
        (high >= self.low.max(other.low)).then_some(high)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low == self.high {
            true => write!(f, "version {}", self.low),
            false => write!(f, "versions {} to {}", self.low, self.high),
        }
    }
}
