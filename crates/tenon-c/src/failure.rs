//! Why a routine of C's did not move a value, in the words of the run time.

use std::borrow::Cow;

use tenon::wire::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// What a routine says, or that it says nothing sensible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A `tenon_failure_kind`.
    pub kind: u32,
    /// Where in what was received.
    pub offset: usize,
    /// What the kind makes of it.
    pub first: u64,
    /// What the kind makes of it.
    pub second: u64,
    /// The innermost field that is known.
    pub field: Cow<'static, str>,
}

/// What is not a matter of the bytes or of the value's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// malloc gave nothing.
    NoMemory,
    /// The routine set no kind, or one that there is not.
    Unsaid,
    /// It went on behind the end, or in front of the beginning.
    OutOfBounds,
    /// The message has become larger than may be sent.
    TooLarge {
        /// Bytes that may be sent.
        limit: u64,
    },
    /// A string that was received holds a NUL.
    HoldsNul,
}

/// Why a value was not encoded, or bytes were not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason<E> {
    /// The value, or the bytes.
    Value(E),
    /// A pointer that must lead to a value is NULL.
    Null(Cow<'static, str>),
    /// The machine, or the routine.
    Trouble(Trouble),
}

const TRUNCATED: u32 = 1;
const TOO_LONG: u32 = 2;
const UNKNOWN_VALUE: u32 = 3;
const NOT_A_BOOLEAN: u32 = 4;
const OUT_OF_RANGE: u32 = 5;
const TOO_DEEP: u32 = 6;
const TOO_MUCH_MEMORY: u32 = 7;
const BAD_LIST: u32 = 8;
const NULL: u32 = 9;
/// `TENON_NO_MEMORY`.
pub const NO_MEMORY: u32 = 10;
/// `TENON_TOO_LARGE`.
pub const TOO_LARGE: u32 = 11;
const HOLDS_NUL: u32 = 12;

impl Failure {
    /// Why bytes were not decoded.
    pub fn of_bytes(self) -> Reason<DecodeError> {
        let kind = match self.kind {
            TRUNCATED => DecodeErrorKind::Truncated {
                needed: self.first,
                left: self.second,
            },
            TOO_LONG => DecodeErrorKind::TooLong {
                length: clamped(self.first),
                bound: clamped(self.second),
            },
            UNKNOWN_VALUE => DecodeErrorKind::UnknownValue(self.first as i32),
            NOT_A_BOOLEAN => DecodeErrorKind::NotABoolean(self.first as u32),
            OUT_OF_RANGE => DecodeErrorKind::OutOfRange(self.first as u32),
            TOO_DEEP => DecodeErrorKind::TooDeep,
            TOO_MUCH_MEMORY => DecodeErrorKind::TooMuchMemory,
            BAD_LIST => DecodeErrorKind::BadList,
            NULL => return Reason::Null(self.field),
            NO_MEMORY => return Reason::Trouble(Trouble::NoMemory),
            HOLDS_NUL => return Reason::Trouble(Trouble::HoldsNul),
            _ => return Reason::Trouble(Trouble::Unsaid),
        };
        let mut error = DecodeError::new(kind, self.offset);
        error.field = self.field;
        Reason::Value(error)
    }

    /// Why a value was not encoded.
    pub fn of_value(self) -> Reason<EncodeError> {
        let kind = match self.kind {
            TOO_LONG => EncodeErrorKind::TooLong {
                length: usize::try_from(self.first).unwrap_or(usize::MAX),
                bound: clamped(self.second),
            },
            UNKNOWN_VALUE | NOT_A_BOOLEAN | OUT_OF_RANGE => {
                EncodeErrorKind::UnknownValue(self.first as i32)
            }
            TOO_DEEP => EncodeErrorKind::TooDeep,
            BAD_LIST => EncodeErrorKind::EmptyList,
            NULL => return Reason::Null(self.field),
            NO_MEMORY | TOO_MUCH_MEMORY => return Reason::Trouble(Trouble::NoMemory),
            TOO_LARGE => return Reason::Trouble(Trouble::TooLarge { limit: self.second }),
            _ => return Reason::Trouble(Trouble::Unsaid),
        };
        let mut error = EncodeError::new(kind);
        error.field = self.field;
        Reason::Value(error)
    }
}

fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Reason<DecodeError> {
    /// What the run time is told, to end the call with.
    pub fn decode_error(&self) -> DecodeError {
        match self {
            Self::Value(error) => error.clone(),
            Self::Null(_) | Self::Trouble(_) => DecodeError::new(DecodeErrorKind::TooMuchMemory, 0),
        }
    }
}

impl Reason<EncodeError> {
    /// What the run time is told, to end the call with.
    pub fn encode_error(&self) -> EncodeError {
        match self {
            Self::Value(error) => error.clone(),
            Self::Null(_) | Self::Trouble(_) => EncodeError::new(EncodeErrorKind::Shape),
        }
    }
}
