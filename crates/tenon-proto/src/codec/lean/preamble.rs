//! The preamble, which each end sends once when a connection opens.
//!
//! A preamble has the same form in every version of the protocol, so that ends that have no
//! version in common still understand why.

use super::fault::{Fault, Violation};
use super::order::ByteOrder;
use super::terms::{CALLS_MIN, MAGIC, MESSAGE_MIN};
use super::versions::Versions;

/// Bytes of a preamble.
pub const PREAMBLE: usize = 32;

/// Optional capabilities of an end. Those that both ends offer are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(pub u32);

impl Features {
    /// Time stamps travel with calls and replies, in an extension.
    pub const STAMPS: Self = Self(1);
    /// Messages over [`PIECE`](super::PIECE) bytes may be sent in pieces.
    pub const PIECES: Self = Self(2);

    /// All that this version of the library can do.
    #[must_use]
    pub fn all() -> Self {
        Self(Self::STAMPS.0 | Self::PIECES.0)
    }

    /// Returns the features that both have.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether all of `other` is there.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The capabilities and limits of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// Versions of the protocol that it speaks.
    pub versions: Versions,
    /// The order of the bytes of all that it sends behind the preamble.
    pub order: ByteOrder,
    /// The reason for refusing the connection, from a server only.
    pub refusal: Option<RefusalReason>,
    /// Optional capabilities.
    pub features: Features,
    /// Bytes of the largest message that it takes in, header and padding included.
    pub message_max: u32,
    /// Calls that it takes before the first of them is answered; 0 from a client, which takes none.
    pub calls_max: u32,
    /// Calls with streams that it takes before the first of them is answered, beside those; 0 if it takes none.
    pub streams_max: u16,
}

/// The reason for which a server refuses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalReason(pub u8);

impl RefusalReason {
    /// The versions have none in common.
    pub const VERSION: Self = Self(1);
    /// There are too many connections; later there may be fewer.
    pub const BUSY: Self = Self(2);
    /// The server stops.
    pub const STOPPING: Self = Self(3);
    /// The preamble broke the protocol.
    pub const PREAMBLE: Self = Self(4);
    /// The user that the client's process runs as may not connect.
    pub const FORBIDDEN: Self = Self(5);
    /// There are too many connections of the client's host; later there may be fewer.
    pub const HOST: Self = Self(6);
}

/// A server does not take a connection. It carried out no call of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", refused(self))]
pub struct Refused {
    /// The reason for the refusal.
    pub reason: RefusalReason,
    /// The versions that the server speaks.
    pub theirs: Versions,
    /// The versions that the client offered.
    pub ours: Versions,
}

fn refused(refused: &Refused) -> String {
    let (theirs, ours) = (refused.theirs, refused.ours);
    match refused.reason {
        RefusalReason::VERSION => {
            format!("the server speaks {theirs} of the lean protocol, this client {ours}")
        }
        RefusalReason::BUSY => "the server has too many connections".to_owned(),
        RefusalReason::STOPPING => "the server stops".to_owned(),
        RefusalReason::PREAMBLE => "the server found this client's preamble damaged".to_owned(),
        RefusalReason::FORBIDDEN => {
            "the server takes no connections of this process's user".to_owned()
        }
        RefusalReason::HOST => {
            "the server has too many connections of this client's host or user".to_owned()
        }
        RefusalReason(other) => format!("the server refuses for a reason unknown here, {other}"),
    }
}

impl Preamble {
    /// Makes the preamble of a client which takes in messages of `message_max` bytes, at least [`MESSAGE_MIN`].
    pub fn client(message_max: u32) -> Self {
        Self {
            versions: Versions::OURS,
            order: ByteOrder::NATIVE,
            refusal: None,
            features: Features::default(),
            message_max: message_max.max(MESSAGE_MIN),
            calls_max: 0,
            streams_max: 0,
        }
    }

    /// Makes the preamble of a server which takes in messages of `message_max` bytes, at least [`MESSAGE_MIN`], and
    /// `calls_max` calls in flight, at least [`CALLS_MIN`].
    pub fn server(message_max: u32, calls_max: u32) -> Self {
        Self {
            calls_max: calls_max.max(CALLS_MIN),
            ..Self::client(message_max)
        }
    }

    /// The preamble of a server that does not take the connection.
    #[must_use]
    pub fn refusing(self, reason: RefusalReason) -> Self {
        Self {
            refusal: Some(reason),
            ..self
        }
    }

    /// Its bytes; numbers have the most significant byte first, whatever the order of messages.
    pub fn encode(&self) -> [u8; PREAMBLE] {
        let mut bytes = [0; PREAMBLE];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.versions.low.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.versions.high.to_be_bytes());
        bytes[12] = match self.order {
            ByteOrder::Little => 1,
            ByteOrder::Big => 2,
        };
        bytes[13] = self.refusal.map_or(0, |reason| reason.0);
        bytes[14..16].copy_from_slice(&self.streams_max.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.features.0.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.message_max.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.calls_max.to_be_bytes());
        let check = check(&bytes);
        bytes[28..].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is none, or damaged.
    pub fn decode(bytes: &[u8; PREAMBLE]) -> Result<Self, Violation> {
        check_magic(bytes)?;
        let (expected, got) = (check(bytes), u32_at(bytes, 28));
        if expected != got {
            return Err(Fault::Check { expected, got }.at(28));
        }
        let versions = Versions {
            low: u16_at(bytes, 8),
            high: u16_at(bytes, 10),
        };
        if versions.low == 0 || versions.low > versions.high {
            return Err(Fault::NoVersion(versions).at(8));
        }
        let order = match bytes[12] {
            1 => ByteOrder::Little,
            2 => ByteOrder::Big,
            other => return Err(Fault::Order(other).at(12)),
        };
        let refusal = (bytes[13] != 0).then_some(RefusalReason(bytes[13]));
        let message_max = u32_at(bytes, 20);
        if message_max < MESSAGE_MIN {
            return Err(Fault::MessageLimit(message_max).at(20));
        }
        Ok(Self {
            versions,
            order,
            refusal,
            features: Features(u32_at(bytes, 16)),
            message_max,
            calls_max: u32_at(bytes, 24),
            streams_max: u16_at(bytes, 14),
        })
    }
}

/// Looks at what has come of a magic, so that a stranger is known without waiting for more.
pub(crate) fn check_magic(bytes: &[u8]) -> Result<(), Violation> {
    let length = bytes.len().min(MAGIC.len());
    if bytes[..length] == MAGIC[..length] {
        return Ok(());
    }
    let mut got = [0; MAGIC.len()];
    got[..length].copy_from_slice(&bytes[..length]);
    Err(Fault::NotLean { got, length }.at(0))
}

/// FNV-1a of 32 bits over all but the check itself. It differs for any two preambles that differ in
/// a single byte.
fn check(bytes: &[u8; PREAMBLE]) -> u32 {
    bytes[..28].iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

fn u16_at(bytes: &[u8; PREAMBLE], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; PREAMBLE], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
