//! The header of every message.

use std::fmt;

use super::fault::Fault;
use super::order::{ByteOrder, padding_of};

/// Bytes of a header.
pub const HEADER: usize = 16;

/// How the first word of every header begins: neither text nor a small number, in both orders.
pub const SYNC: u16 = 0xd07e;

/// The kinds of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A client calls a procedure.
    Call = 1,
    /// The result of a call.
    Reply = 2,
    /// A call has no result, and why.
    Exception = 3,
    /// A client no longer waits for a call.
    Cancel = 4,
    /// A client gives a number to a version of a program.
    Bind = 5,
    /// The server has it.
    Bound = 6,
    /// The server does not have it, and why.
    Unbound = 7,
    /// Is the other end there?
    Ping = 8,
    /// It is.
    Pong = 9,
    /// The sender begins nothing any more.
    Goodbye = 10,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Call,
        Self::Reply,
        Self::Exception,
        Self::Cancel,
        Self::Bind,
        Self::Bound,
        Self::Unbound,
        Self::Ping,
        Self::Pong,
        Self::Goodbye,
    ];

    fn of(number: u8) -> Result<Self, Fault> {
        let index = usize::from(number).wrapping_sub(1);
        let kind = Self::ALL.get(index).copied();
        kind.ok_or(Fault::UnknownKind(number))
    }

    fn allowed_flags(self) -> u8 {
        match self {
            Self::Call => Flags::DEADLINE | Flags::EXTENSIONS,
            _ => Flags::EXTENSIONS,
        }
    }

    /// Whether the header names a service, and whether it names a procedure of it.
    fn names(self) -> (bool, bool) {
        match self {
            Self::Call | Self::Reply | Self::Exception => (true, true),
            Self::Bind | Self::Bound | Self::Unbound => (true, false),
            Self::Cancel | Self::Ping | Self::Pong | Self::Goodbye => (false, false),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "call",
            Self::Reply => "reply",
            Self::Exception => "exception",
            Self::Cancel => "cancel",
            Self::Bind => "bind",
            Self::Bound => "bound",
            Self::Unbound => "unbound",
            Self::Ping => "ping",
            Self::Pong => "pong",
            Self::Goodbye => "goodbye",
        })
    }
}

/// What stands between a header and the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The time that the call still has, in 8 bytes.
    pub const DEADLINE: u8 = 1;
    /// Extensions.
    pub const EXTENSIONS: u8 = 2;

    /// Whether this one is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the message is.
    pub kind: Kind,
    /// What stands in front of its body.
    pub flags: Flags,
    /// The number of the call, or what the kind makes of it.
    pub id: u32,
    /// The number that a client has given to a version of a program.
    pub service: u16,
    /// The procedure's number.
    pub procedure: u16,
    /// Bytes that follow, without the padding behind them.
    pub length: u32,
}

/// The first words of the commonest messages.
const CALL: u32 = first_word(Kind::Call, 0);
const REPLY: u32 = first_word(Kind::Reply, 0);

const fn first_word(kind: Kind, flags: u8) -> u32 {
    (SYNC as u32) << 16 | (kind as u32) << 8 | flags as u32
}

/// What a first word says that is not one of the commonest.
#[cold]
fn kind_and_flags(word: u32) -> Result<(Kind, u8), Fault> {
    let (expected, got) = (SYNC, (word >> 16) as u16);
    if got != expected {
        return Err(Fault::OutOfStep { expected, got });
    }
    let kind = Kind::of((word >> 8) as u8)?;
    let flags = word as u8;
    match flags & !kind.allowed_flags() {
        0 => Ok((kind, flags)),
        _ => Err(Fault::Flags { kind, flags }),
    }
}

impl Header {
    /// Its bytes.
    #[inline]
    pub fn encode(self, order: ByteOrder) -> [u8; HEADER] {
        let word = first_word(self.kind, self.flags.0);
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&order.bytes_of_u32(word));
        bytes[4..8].copy_from_slice(&order.bytes_of_u32(self.id));
        bytes[8..10].copy_from_slice(&order.bytes_of_u16(self.service));
        bytes[10..12].copy_from_slice(&order.bytes_of_u16(self.procedure));
        bytes[12..].copy_from_slice(&order.bytes_of_u32(self.length));
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong, and how many bytes into the header.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER], order: ByteOrder) -> Result<Self, (Fault, usize)> {
        let [a, b, c, d, id @ .., e, f, g, h, i, j, k, l] = *bytes;
        let word = order.u32_of([a, b, c, d]);
        let (kind, flags) = match word {
            CALL => (Kind::Call, 0),
            REPLY => (Kind::Reply, 0),
            _ => kind_and_flags(word).map_err(|fault| (fault, 0))?,
        };
        let header = Self {
            kind,
            flags: Flags(flags),
            id: order.u32_of(id),
            service: order.u16_of([e, f]),
            procedure: order.u16_of([g, h]),
            length: order.u32_of([i, j, k, l]),
        };
        match kind {
            Kind::Call | Kind::Reply => Ok(header),
            _ => header.names_what_it_may(),
        }
    }

    /// Reads one of the commonest: a call or a reply with nothing in front of its body. None if it is another,
    /// or none.
    #[inline]
    pub(super) fn decode_common(bytes: &[u8; HEADER], order: ByteOrder) -> Option<Self> {
        let [a, b, c, d, id @ .., e, f, g, h, i, j, k, l] = *bytes;
        let kind = match order.u32_of([a, b, c, d]) {
            CALL => Kind::Call,
            REPLY => Kind::Reply,
            _ => return None,
        };
        Some(Self {
            kind,
            flags: Flags(0),
            id: order.u32_of(id),
            service: order.u16_of([e, f]),
            procedure: order.u16_of([g, h]),
            length: order.u32_of([i, j, k, l]),
        })
    }

    #[cold]
    fn names_what_it_may(self) -> Result<Self, (Fault, usize)> {
        let (service, procedure) = self.kind.names();
        let not_zero = |number: u16, at| Err((Fault::NotZero(number.into()), at));
        match self {
            Self { service: n, .. } if !service && n != 0 => not_zero(n, 8),
            Self { procedure: n, .. } if !procedure && n != 0 => not_zero(n, 10),
            _ => Ok(self),
        }
    }

    /// Bytes of the message: header, what follows, padding.
    #[inline]
    pub fn message_length(&self) -> u64 {
        let length = u64::from(self.length);
        HEADER as u64 + length + padding_of(self.length as usize) as u64
    }
}
