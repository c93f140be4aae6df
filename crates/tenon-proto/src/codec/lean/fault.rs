//! Breaches of the protocol by a peer, and their place in the stream.

use super::kind::Kind;
use super::terms::{CALLS_MIN, MAGIC, MESSAGE_MIN};
use super::versions::Versions;

/// The peer broke the protocol; the connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {at} of the stream: {fault}")]
pub struct Violation {
    /// The offset, in what the peer sent since the connection opened, of what is wrong.
    pub at: u64,
    /// The rule that was broken.
    pub fault: Fault,
}

/// A rule of the protocol that a message of the peer breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The connection does not begin with the magic of this protocol.
    #[error("{}", no_lean(*.got, *.length))]
    NotLean {
        /// The first bytes.
        got: [u8; 8],
        /// Bytes of them that have arrived.
        length: usize,
    },
    /// The check of the preamble does not fit the rest of it.
    #[error("the preamble is damaged: its check is {expected:#010x}, it says {got:#010x}")]
    Check {
        /// The check of the bytes that came.
        expected: u32,
        /// The check that came.
        got: u32,
    },
    /// The lowest version of a preamble is 0 or above the highest.
    #[error("a preamble offers the versions {} to {}", .0.low, .0.high)]
    NoVersion(Versions),
    /// The byte that says the order of bytes says neither.
    #[error(
        "a preamble says {0} for the order of bytes, where 1 is little-endian and 2 is big-endian"
    )]
    Order(u8),
    /// A field that must be zero is not.
    #[error("{0:#x} where there must be zero")]
    NotZero(u64),
    /// A preamble grants less than every end may take for granted.
    #[error("a preamble grants messages of {0} bytes, where {MESSAGE_MIN} are the least")]
    MessageLimit(u32),
    /// A server's preamble grants less than every client may take for granted.
    #[error("a server's preamble grants {0} calls in flight, where {CALLS_MIN} are the least")]
    CallLimit(u32),
    /// A client's preamble refuses something.
    #[error("a client's preamble refuses for reason {0}")]
    ClientRefuses(u8),
    /// A message does not begin with the sync word: reader and writer are out of step.
    #[error("out of step: expected the sync word {expected:#06x}, got {got:#06x}")]
    OutOfStep {
        /// The sync word.
        expected: u16,
        /// The number in its place.
        got: u16,
    },
    /// There is no such kind of message.
    #[error("unknown kind {0} of message")]
    UnknownKind(u8),
    /// This end does not send such messages.
    #[error("a message of the kind `{0}` from an end that does not send it")]
    WrongEnd(Kind),
    /// A kind of message has flags that it does not have.
    #[error("flags {flags:#04x} on a message of the kind `{kind}`")]
    Flags {
        /// The kind.
        kind: Kind,
        /// The flags.
        flags: u8,
    },
    /// A message is longer than was granted.
    #[error("a message of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// Bytes of the message with its header.
        length: u64,
        /// Most bytes that were granted.
        limit: u64,
    },
    /// A message ends too early.
    #[error("expected {expected} bytes, {got} are left of the message")]
    Short {
        /// Bytes that are to follow.
        expected: u64,
        /// Bytes that follow.
        got: u64,
    },
    /// A message goes on behind its end.
    #[error("{0} bytes too many in the message")]
    Long(u64),
    /// The receiver must understand an extension and does not.
    #[error("extension {0:#06x} must be understood and is not")]
    Extension(u16),
    /// The number of a call is not ahead of the one before it.
    #[error("call {got} is not ahead of call {last}, which came before it")]
    CallBehind {
        /// The call before.
        last: u32,
        /// This call.
        got: u32,
    },
    /// A service is bound to a number that is not the next.
    #[error("service {got} is bound where {expected} is the next")]
    ServiceNumber {
        /// The next number.
        expected: u32,
        /// The number that came.
        got: u16,
    },
    /// A service is answered that was not asked for, or was answered already.
    #[error("unsolicited bind reply for service {0}")]
    StrayService(u16),
    /// An answer names another service or procedure than its call.
    #[error(
        "the answer to call {id} is from procedure {} of service {}, which were {} and {}",
        .got.1, .got.0, .expected.1, .expected.0
    )]
    OtherProcedure {
        /// The call.
        id: u32,
        /// The service and procedure that were called.
        expected: (u16, u16),
        /// The service and procedure that answer.
        got: (u16, u16),
    },
    /// A message of an exchange has another number than its call.
    #[error("a message of call {expected} has the number {got}")]
    OtherNumber {
        /// The number of the call.
        expected: u32,
        /// The number of the message.
        got: u32,
    },
    /// More pings than can be answered.
    #[error("pings come faster than they can be answered")]
    Flood,
    /// A message follows the sender's own goodbye.
    #[error("a message of the kind `{0}` behind a close")]
    AfterClose(Kind),
    /// A piece continues no message.
    #[error("a piece of message {0}, of which no other piece came before it")]
    StrayPiece(u32),
    /// A message begins again while its next piece is awaited.
    #[error("message {0} begins again before its last piece")]
    PiecesMissing(u32),
    /// Too many messages are begun and not complete.
    #[error("more than 16 messages are begun and not complete")]
    TooManyPartial,
    /// A piece that others follow is empty or not a multiple of 8 bytes.
    #[error("a piece of {0} bytes, where a multiple of 8 over 0 must be")]
    PieceLength(u32),
    /// An item belongs to no stream of its sender.
    #[error("an item of call {0}, which has no such stream")]
    StrayItem(u32),
    /// A stream goes on behind its end.
    #[error("a message of the kind `{kind}` behind the end of the stream of call {id}")]
    BehindEnd {
        /// The call.
        id: u32,
        /// The kind.
        kind: Kind,
    },
    /// An item is longer than what its sender may still send.
    #[error("an item of {length} bytes of call {id}, where {credit} bytes may be sent")]
    NoCredit {
        /// The call.
        id: u32,
        /// Bytes of the item, its header included.
        length: u64,
        /// Bytes that the sender has been granted and has not used.
        credit: u64,
    },
    /// More bytes are granted at once than there may be.
    #[error("{0} bytes of items are granted, where 2147483647 are the most")]
    CreditOverflow(u64),
    /// A part of an item that others follow is empty or not a multiple of 8 bytes.
    #[error("a part of an item of {0} bytes, where a multiple of 8 over 0 must be")]
    ItemLength(u32),
    /// The sender grants no calls in this direction.
    #[error("a call in a direction in which none is granted")]
    NotGranted,
}

impl Fault {
    /// The fault at an offset of the stream.
    pub(crate) fn at(self, at: u64) -> Violation {
        Violation { at, fault: self }
    }
}

fn no_lean(got: [u8; 8], length: usize) -> String {
    let got = &got[..length.min(got.len())];
    format!(
        "expected the magic of the lean protocol ({}), got {}",
        MAGIC.escape_ascii(),
        got.escape_ascii()
    )
}
