//! Exceptions: the reasons for which a call has no result.

use std::fmt;

use tenon_wire::{BStr, Buffer};

use super::fault::Fault;
use super::order::{ByteOrder, FieldReader};
use super::text::{EscapedText, get_text, put_text};

/// The reason for which a call has no result. Numbers that have no name here are legal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

impl Status {
    /// No service is bound to the number that the call names.
    pub const UNBOUND: Self = Self(1);
    /// The service does not have the procedure.
    pub const NO_PROCEDURE: Self = Self(2);
    /// The arguments cannot be decoded.
    pub const ARGUMENTS: Self = Self(3);
    /// The service failed.
    pub const FAILED: Self = Self(4);
    /// The call was cancelled.
    pub const CANCELLED: Self = Self(5);
    /// The time of the call ran out.
    pub const DEADLINE: Self = Self(6);
    /// There are too many calls; it was not begun.
    pub const OVERLOADED: Self = Self(7);
    /// The server stops; it was not begun, unless it has streams, which end so.
    pub const STOPPING: Self = Self(8);
    /// The server must understand something that stands in front of the arguments and does not; it
    /// was not begun.
    pub const EXTENSION: Self = Self(9);
    /// The caller may not.
    pub const FORBIDDEN: Self = Self(10);
    /// The result is larger than the client takes in.
    pub const TOO_LARGE: Self = Self(11);
    /// The procedure raised an error of its interface, which the details hold.
    pub const RAISED: Self = Self(12);
    /// The arguments can be decoded, and are none that the procedure takes.
    pub const INVALID_ARGUMENTS: Self = Self(13);
    /// The metadata of the call breaks the rules, or is larger than the callee accepts; it was not begun.
    pub const METADATA: Self = Self(14);
    /// The caller has not shown who it is, or not credibly; it was not begun.
    pub const UNAUTHENTICATED: Self = Self(15);

    /// Returns whether a call without streams that ended so may have been carried out, in part at least.
    pub fn may_have_executed(self) -> bool {
        !matches!(
            self,
            Self::UNBOUND
                | Self::NO_PROCEDURE
                | Self::ARGUMENTS
                | Self::OVERLOADED
                | Self::STOPPING
                | Self::EXTENSION
                | Self::FORBIDDEN
                | Self::INVALID_ARGUMENTS
                | Self::METADATA
                | Self::UNAUTHENTICATED
        )
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::UNBOUND => "the service is not bound",
            Self::NO_PROCEDURE => "the service does not have the procedure",
            Self::ARGUMENTS => "the peer cannot decode the arguments",
            Self::FAILED => "the service failed",
            Self::CANCELLED => "the call was cancelled",
            Self::DEADLINE => "the time of the call ran out",
            Self::OVERLOADED => "the peer has too many calls",
            Self::STOPPING => "the peer stops",
            Self::EXTENSION => "the peer does not understand what the call demands",
            Self::FORBIDDEN => "the caller may not",
            Self::TOO_LARGE => "the result is larger than this end takes in",
            Self::RAISED => "the procedure raised an error",
            Self::INVALID_ARGUMENTS => "invalid arguments",
            Self::METADATA => "the peer does not accept the metadata of the call",
            Self::UNAUTHENTICATED => "the caller has not shown who it is",
            Self(other) => return write!(f, "status {other}"),
        })
    }
}

/// The answer to a call that has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exception<'m> {
    /// The reason, as a number.
    pub status: Status,
    /// The reason in words, perhaps with more; perhaps empty.
    pub message: &'m BStr,
    /// An encoded value of the interface.
    pub details: &'m [u8],
    /// The order of the bytes of the details.
    pub order: ByteOrder,
}

impl<'m> Exception<'m> {
    /// One without details.
    pub fn new(status: Status, message: &'m str) -> Self {
        Self {
            status,
            message: message.into(),
            details: &[],
            order: ByteOrder::NATIVE,
        }
    }

    pub(super) fn encode(&self, buffer: &mut Buffer, order: ByteOrder) {
        buffer.extend(&order.bytes_of_u32(self.status.0));
        put_text(buffer, order, self.message);
        buffer.extend(self.details);
    }

    pub(crate) fn decode(input: &mut FieldReader<'m>) -> Result<Self, Fault> {
        let status = Status(input.u32()?);
        let message = get_text(input)?;
        let details = std::mem::take(&mut input.rest);
        Ok(Self {
            status,
            message,
            details,
            order: input.order,
        })
    }
}

impl fmt::Display for Exception<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.is_empty() {
            true => write!(f, "{}", self.status),
            false => write!(f, "{}: {}", self.status, EscapedText(self.message)),
        }
    }
}
