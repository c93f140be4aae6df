//! The failures of C's encoding and decoding routines, in the words of the run time.

use std::borrow::Cow;

use tenon::wire::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// The failure that a routine reports, which need not be sensible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecFailure {
    /// A `tenon_failure_kind`.
    pub kind: u32,
    /// Offset in the received bytes.
    pub offset: usize,
    /// A value that the kind defines.
    pub first: u64,
    /// A value that the kind defines.
    pub second: u64,
    /// The innermost field that is known.
    pub field: Cow<'static, str>,
}

/// A failure that is no matter of the bytes or of the value itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodecFault {
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

/// The reason why a value was not encoded, or bytes were not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodecError<E> {
    /// The value, or the bytes.
    Value(E),
    /// A pointer that must lead to a value is NULL.
    Null(Cow<'static, str>),
    /// The machine, or the routine.
    Fault(CodecFault),
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

impl CodecFailure {
    /// Returns the reason why bytes were not decoded.
    pub fn of_bytes(self) -> CodecError<DecodeError> {
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
            NULL => return CodecError::Null(self.field),
            NO_MEMORY => return CodecError::Fault(CodecFault::NoMemory),
            HOLDS_NUL => return CodecError::Fault(CodecFault::HoldsNul),
            _ => return CodecError::Fault(CodecFault::Unsaid),
        };
        let mut error = DecodeError::new(kind, self.offset);
        error.field = self.field;
        CodecError::Value(error)
    }

    /// Returns the reason why a value was not encoded.
    pub fn of_value(self) -> CodecError<EncodeError> {
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
            NULL => return CodecError::Null(self.field),
            NO_MEMORY | TOO_MUCH_MEMORY => return CodecError::Fault(CodecFault::NoMemory),
            TOO_LARGE => return CodecError::Fault(CodecFault::TooLarge { limit: self.second }),
            _ => return CodecError::Fault(CodecFault::Unsaid),
        };
        let mut error = EncodeError::new(kind);
        error.field = self.field;
        CodecError::Value(error)
    }
}

impl From<EncodeError> for CodecError<EncodeError> {
    /// What the library itself did not encode.
    fn from(error: EncodeError) -> Self {
        match error.kind {
            EncodeErrorKind::Null => Self::Null(error.field.clone()),
            EncodeErrorKind::NoMemory => Self::Fault(CodecFault::NoMemory),
            EncodeErrorKind::TooLarge { limit } => Self::Fault(CodecFault::TooLarge {
                limit: limit as u64,
            }),
            _ => Self::Value(error),
        }
    }
}

impl From<DecodeError> for CodecError<DecodeError> {
    /// What the library itself did not decode.
    fn from(error: DecodeError) -> Self {
        match error.kind {
            DecodeErrorKind::HoldsNul => Self::Fault(CodecFault::HoldsNul),
            DecodeErrorKind::NoMemory => Self::Fault(CodecFault::NoMemory),
            _ => Self::Value(error),
        }
    }
}

fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl CodecError<DecodeError> {
    /// Returns the error that the run time ends the call with.
    pub fn decode_error(&self) -> DecodeError {
        match self {
            Self::Value(error) => error.clone(),
            Self::Null(_) | Self::Fault(_) => DecodeError::new(DecodeErrorKind::TooMuchMemory, 0),
        }
    }
}

impl CodecError<EncodeError> {
    /// Returns the error that the run time ends the call with.
    pub fn encode_error(&self) -> EncodeError {
        match self {
            Self::Value(error) => error.clone(),
            Self::Null(_) | Self::Fault(_) => EncodeError::new(EncodeErrorKind::Shape),
        }
    }
}
