//! The message by which an end says that it begins nothing any more.

use std::fmt;

use tenon_wire::{BStr, Buffer};

use super::fault::Fault;
use super::fault::Violation;
use super::kind::Kind;
use super::message::{Message, plain, put_message};
use super::order::{ByteOrder, FieldReader};
use super::text::{EscapedText, get_text, put_text};

/// The reason for which an end begins nothing any more. Numbers without a name are legal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseReason(pub u32);

impl CloseReason {
    /// It needs the connection no longer.
    pub const DONE: Self = Self(0);
    /// It stops.
    pub const STOPPING: Self = Self(1);
    /// Nothing was asked for too long.
    pub const IDLE: Self = Self(2);
    /// The other end broke the protocol; the text says how.
    pub const VIOLATION: Self = Self(3);
    /// The other end takes too much: memory, or time to read its replies.
    pub const LIMITS: Self = Self(4);
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::DONE => "it needs the connection no longer",
            Self::STOPPING => "it stops",
            Self::IDLE => "nothing was asked for too long",
            Self::VIOLATION => "this end broke the protocol",
            Self::LIMITS => "this end takes too much",
            Self(other) => return write!(f, "reason {other}"),
        })
    }
}

/// The sender begins no calls any more and accepts none behind the last. Answers to those that it has accepted still
/// come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close<'m> {
    /// The reason for closing.
    pub reason: CloseReason,
    /// The last call that the sender has accepted, if it has accepted any. Those sent behind it were not begun.
    pub last_call: Option<u32>,
    /// The reason in words; perhaps empty.
    pub message: &'m BStr,
}

impl<'m> Close<'m> {
    pub(crate) fn encode(&self, buffer: &mut Buffer, order: ByteOrder) {
        let header = plain(Kind::Close, self.last_call.unwrap_or(0), 0);
        put_message(buffer, order, header, |buffer| {
            buffer.extend(&order.bytes_of_u32(self.reason.0));
            buffer.extend(&order.bytes_of_u32(self.last_call.is_some().into()));
            buffer.extend(&order.bytes_of_u32(0));
            put_text(buffer, order, self.message);
        });
    }

    pub(crate) fn decode(message: &Message<'m>) -> Result<Self, Violation> {
        message.read(|input: &mut FieldReader<'m>| {
            let reason = CloseReason(input.u32()?);
            let last_call = match (input.u32()?, message.header.id) {
                (0, 0) => None,
                (0, id) => return Err(Fault::NotZero(id.into())),
                (1, id) => Some(id),
                (other, _) => return Err(Fault::NotZero((other & !1).into())),
            };
            match input.u32()? {
                0 => {}
                other => return Err(Fault::NotZero(other.into())),
            }
            let message = get_text(input)?;
            Ok(Self {
                reason,
                last_call,
                message,
            })
        })
    }
}

impl fmt::Display for Close<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.is_empty() {
            true => write!(f, "{}", self.reason),
            false => write!(f, "{}: {}", self.reason, EscapedText(self.message)),
        }
    }
}
