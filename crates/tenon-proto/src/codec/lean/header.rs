//! The header of every message.

use super::fault::Fault;
use super::kind::Kind;
use super::order::{ByteOrder, padding_of};

/// Bytes of a header.
pub const HEADER: usize = 16;

/// Bytes of a message from which on it may be sent in pieces, and of the body of a piece.
pub const PIECE: usize = 64 << 10;

/// The first word of every header: neither text nor a small number, in both orders.
pub const SYNC: u16 = 0xd07e;

impl Kind {
    fn of(number: u8) -> Result<Self, Fault> {
        let index = usize::from(number).wrapping_sub(1);
        let kind = Self::ALL.get(index).copied();
        kind.ok_or(Fault::UnknownKind(number))
    }

    fn allowed_flags(self) -> u8 {
        match self {
            Self::Call => {
                Flags::DEADLINE
                    | Flags::EXTENSIONS
                    | Flags::MORE
                    | Flags::REVERSE
                    | Flags::ARGUMENT_STREAM
                    | Flags::RESULT_STREAM
            }
            Self::Reply | Self::Exception => Flags::EXTENSIONS | Flags::MORE | Flags::REVERSE,
            Self::Piece | Self::Items => Flags::MORE | Flags::REVERSE,
            Self::Cancel | Self::Bind | Self::Bound | Self::Unbound | Self::End | Self::Credit => {
                Flags::EXTENSIONS | Flags::REVERSE
            }
            Self::Ping | Self::Pong | Self::Close | Self::GoAway => Flags::EXTENSIONS,
        }
    }

    /// Returns whether the header names a service, and whether it names a procedure of it.
    fn names(self) -> (bool, bool) {
        match self {
            Self::Call | Self::Reply | Self::Exception => (true, true),
            Self::Bind | Self::Bound | Self::Unbound => (true, false),
            Self::Cancel
            | Self::Ping
            | Self::Pong
            | Self::Close
            | Self::Piece
            | Self::GoAway
            | Self::Items
            | Self::End
            | Self::Credit => (false, false),
        }
    }
}

/// The fields that stand between a header and the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The time that the call still has, in 8 bytes.
    pub const DEADLINE: u8 = 1;
    /// Extensions.
    pub const EXTENSIONS: u8 = 2;
    /// The message goes on in a [`Kind::Piece`] of the same number, an item in another [`Kind::Items`].
    pub const MORE: u8 = 4;
    /// The message belongs to a call that the accepting end of the connection makes.
    pub const REVERSE: u8 = 8;
    /// The last argument of the call is a stream, of which the items follow.
    pub const ARGUMENT_STREAM: u8 = 16;
    /// The result of the call is a stream, of which the items come before the reply.
    pub const RESULT_STREAM: u8 = 32;
    /// All flags of fields between a header and its body.
    pub(crate) const IN_FRONT: u8 = Self::DEADLINE | Self::EXTENSIONS;

    /// Returns whether this flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The kind of the message.
    pub kind: Kind,
    /// The fields in front of its body.
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

/// Reads a first word that is not one of the commonest.
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
        let length = order.bytes_of_u32(self.length);
        let mut bytes = [0; HEADER];
        bytes[..HEADER / 2].copy_from_slice(&self.first_half(order));
        bytes[HEADER / 2..].copy_from_slice(&self.second_half(order, length));
        bytes
    }

    /// The bytes of what the message is and of the number of the call.
    #[inline]
    pub(super) fn first_half(self, order: ByteOrder) -> [u8; HEADER / 2] {
        let [a, b, c, d] = order.bytes_of_u32(first_word(self.kind, self.flags.0));
        let [e, f, g, h] = order.bytes_of_u32(self.id);
        [a, b, c, d, e, f, g, h]
    }

    /// The bytes of service and procedure, and those of a length.
    #[inline]
    pub(super) fn second_half(self, order: ByteOrder, length: [u8; 4]) -> [u8; HEADER / 2] {
        let [a, b] = order.bytes_of_u16(self.service);
        let [c, d] = order.bytes_of_u16(self.procedure);
        let [e, f, g, h] = length;
        [a, b, c, d, e, f, g, h]
    }

    /// Reads one.
    ///
    /// # Errors
    /// The fault, and its offset in the header.
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

    /// Returns the same header, of a call that the accepting end of the connection makes if it is `reverse`.
    #[inline]
    pub(crate) fn reversed(self, reverse: bool) -> Self {
        let flag = if reverse { Flags::REVERSE } else { 0 };
        Self {
            flags: Flags(self.flags.0 | flag),
            ..self
        }
    }

    /// Bytes of the message: header, what follows, padding.
    #[inline]
    pub fn message_length(&self) -> u64 {
        message_length(self.length)
    }
}

#[inline]
fn message_length(length: u32) -> u64 {
    HEADER as u64 + u64::from(length) + padding_of(length as usize) as u64
}

/// A header of the commonest form: of a call or a reply with nothing in front of its body, by a sender of this
/// machine's order. It stays the two words that were received, which are compared and moved as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommonHeader {
    /// The kind and the flags, and the number of the call.
    first: u64,
    /// Service, procedure and length.
    second: u64,
}

impl CommonHeader {
    /// The header that has these bytes, if it is of this form.
    #[inline]
    pub(crate) fn of(bytes: &[u8; HEADER], order: ByteOrder) -> Option<Self> {
        let [a, b, c, d, e, f, g, h, second @ ..] = *bytes;
        let header = Self {
            first: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            second: u64::from_ne_bytes(second),
        };
        let is_common = matches!(halves(header.first).0, CALL | REPLY);
        (is_common && order == ByteOrder::NATIVE).then_some(header)
    }

    /// Returns whether it is the header of a call.
    #[inline]
    pub fn is_call(self) -> bool {
        halves(self.first).0 == CALL
    }

    /// Returns whether it is the header of a reply.
    #[inline]
    pub fn is_reply(self) -> bool {
        halves(self.first).0 == REPLY
    }

    /// Returns whether it is the header of a reply to this call.
    #[inline]
    pub fn is_reply_to(self, id: u32, service: u16, procedure: u16) -> bool {
        let ([a, b], [c, d]) = (service.to_ne_bytes(), procedure.to_ne_bytes());
        let names = u32::from_ne_bytes([a, b, c, d]);
        halves(self.first) == (REPLY, id) && halves(self.second).0 == names
    }

    /// Returns the bytes of the header of a reply without results to the call that has this one.
    #[inline]
    pub(crate) fn empty_reply(self) -> [u8; HEADER] {
        let [a, b, c, d] = REPLY.to_ne_bytes();
        let [_, _, _, _, e, f, g, h] = self.first.to_ne_bytes();
        let [i, j, k, l, ..] = self.second.to_ne_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, 0, 0, 0, 0]
    }

    /// The number of the call.
    #[inline]
    pub fn id(self) -> u32 {
        halves(self.first).1
    }

    /// The number that the client has given to the service.
    #[inline]
    pub fn service(self) -> u16 {
        let [a, b, ..] = self.second.to_ne_bytes();
        u16::from_ne_bytes([a, b])
    }

    /// The procedure's number.
    #[inline]
    pub fn procedure(self) -> u16 {
        let [_, _, a, b, ..] = self.second.to_ne_bytes();
        u16::from_ne_bytes([a, b])
    }

    /// Bytes of the body.
    #[inline]
    pub fn length(self) -> u32 {
        halves(self.second).1
    }

    /// As [`Header::message_length`].
    #[inline]
    pub fn message_length(self) -> u64 {
        message_length(self.length())
    }
}

/// The two numbers that a word is, in the order of their bytes.
#[inline]
fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, rest @ ..] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes(rest))
}

/// The streams of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CallStreams {
    /// The last argument is a stream of items, from the caller to the callee.
    pub argument: bool,
    /// The result is a stream of items, from the callee to the caller.
    pub result: bool,
}

impl CallStreams {
    /// A call without streams.
    pub const NONE: Self = Self {
        argument: false,
        result: false,
    };

    /// Returns whether there is one.
    #[inline]
    pub fn any(self) -> bool {
        self.argument || self.result
    }

    #[inline]
    pub(crate) fn of(flags: Flags) -> Self {
        Self {
            argument: flags.has(Flags::ARGUMENT_STREAM),
            result: flags.has(Flags::RESULT_STREAM),
        }
    }

    #[inline]
    pub(super) fn flags(self) -> u8 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.argument, Flags::ARGUMENT_STREAM) | flag(self.result, Flags::RESULT_STREAM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind, flags: u8) -> Header {
        Header {
            kind,
            flags: Flags(flags),
            id: 0x0102_0304,
            service: 0x0506,
            procedure: 0x0708,
            length: 0x090a_0b0d,
        }
    }

    #[test]
    fn what_is_common_reads_as_any_header_does() {
        for kind in [Kind::Call, Kind::Reply] {
            let header = header(kind, 0);
            let bytes = header.encode(ByteOrder::NATIVE);
            let common = CommonHeader::of(&bytes, ByteOrder::NATIVE).unwrap();
            let Header {
                id,
                service,
                procedure,
                length,
                ..
            } = header;
            assert_eq!((common.id(), common.length()), (id, length));
            assert_eq!((common.service(), common.procedure()), (service, procedure));
            assert_eq!(common.message_length(), header.message_length());
            assert_eq!(common.is_call(), kind == Kind::Call);
            let empty_reply = Header {
                kind: Kind::Reply,
                length: 0,
                ..header
            };
            assert_eq!(common.empty_reply(), empty_reply.encode(ByteOrder::NATIVE));
            let is_reply = kind == Kind::Reply;
            assert_eq!(common.is_reply_to(id, service, procedure), is_reply);
            assert!(!common.is_reply_to(id + 1, service, procedure));
            assert!(!common.is_reply_to(id, service + 1, procedure));
            assert!(!common.is_reply_to(id, service, procedure + 1));
        }
    }

    #[test]
    fn nothing_else_is_common() {
        for kind in Kind::ALL {
            let is_common = matches!(kind, Kind::Call | Kind::Reply);
            let bytes = header(kind, 0).encode(ByteOrder::NATIVE);
            let found = CommonHeader::of(&bytes, ByteOrder::NATIVE);
            assert_eq!(found.is_some(), is_common, "{kind}");
            let bytes = header(kind, Flags::EXTENSIONS).encode(ByteOrder::NATIVE);
            assert_eq!(CommonHeader::of(&bytes, ByteOrder::NATIVE), None, "{kind}");
        }
        let foreign = match ByteOrder::NATIVE {
            ByteOrder::Little => ByteOrder::Big,
            ByteOrder::Big => ByteOrder::Little,
        };
        let bytes = header(Kind::Reply, 0).encode(foreign);
        for order in [ByteOrder::NATIVE, foreign] {
            assert_eq!(CommonHeader::of(&bytes, order), None);
        }
        assert_eq!(CommonHeader::of(&[0xff; HEADER], ByteOrder::NATIVE), None);
    }
}
