//! The exception that a lean peer sends in place of a result, and the error of the interface in it.

use std::fmt;

use tenon_proto::lean::{ByteOrder, Exception, Metadata, Status};
use tenon_wire::{
    BString, DecodeError, DecodeMode, Decoder, Lean, Limits, Marshal, Order, Swapped,
};

use crate::lean_input::LeanInput;

/// Exception that a peer sends by the lean protocol where a result was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeanException {
    /// Why there is no result.
    pub status: Status,
    /// The same in words, perhaps with more; perhaps empty.
    pub message: BString,
    /// If the procedure raised an error of its interface, the position of the error and its value.
    pub details: Vec<u8>,
    /// The order of the bytes of the details.
    pub order: ByteOrder,
    /// The metadata that the server sent with it.
    pub metadata: Metadata,
    /// True if the call has streams.
    pub(crate) has_streams: bool,
}

impl LeanException {
    /// An exception without details and metadata.
    pub(crate) fn new(status: Status, message: impl Into<BString>) -> Self {
        Self {
            status,
            message: message.into(),
            details: Vec::new(),
            order: ByteOrder::NATIVE,
            metadata: Metadata::new(),
            has_streams: false,
        }
    }

    /// An exception that this end has made itself, as the peer would have sent it.
    #[doc(hidden)]
    pub fn local(status: Status, message: &str) -> Self {
        Self::new(status, message)
    }

    /// Returns whether the peer may have carried the call out, in part at least. A peer that stops has not begun a call,
    /// unless it has streams.
    pub fn may_have_executed(&self) -> bool {
        let was_ended = self.has_streams && self.status == Status::STOPPING;
        was_ended || self.status.may_have_executed()
    }

    /// Returns which of the errors that the interface declares for it the procedure raised: the position in the list
    /// behind `raises`, counted from 0. `None` if it raised none, or does not say which.
    pub fn raised(&self) -> Option<u32> {
        if self.status != Status::RAISED {
            return None;
        }
        match self.details() {
            LeanInput::Native(mut input) => input.get().ok(),
            LeanInput::Swapped(mut input) => input.get().ok(),
        }
    }

    /// Returns the error that the procedure [raised](crate::refusal::Refusal::raise), which is a `T`.
    ///
    /// ```
    /// # use tenon::{CallError, LeanException, wire::{Lean, Marshal, Swapped}};
    /// # fn show<Quota: Marshal<Lean> + Marshal<Lean<Swapped>> + std::fmt::Debug>(error: &CallError) {
    /// if let CallError::Exception(exception) = error
    ///     && exception.raised() == Some(0)
    ///     && let Ok(quota) = exception.raised_as::<Quota>()
    /// {
    ///     eprintln!("{exception}: {quota:?}");
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// It is no `T`; there is none.
    pub fn raised_as<T>(&self) -> Result<T, DecodeError>
    where
        T: Marshal<Lean> + Marshal<Lean<Swapped>>,
    {
        match self.details() {
            LeanInput::Native(input) => decode_raised(input),
            LeanInput::Swapped(input) => decode_raised(input),
        }
    }

    /// Returns the details to be read: of an error that the procedure raised the position, and behind it, aligned as it
    /// is to be, the value.
    pub fn details(&self) -> LeanInput<'_> {
        LeanInput::over(
            &self.details,
            self.order,
            DecodeMode::default(),
            Limits::default(),
        )
    }
}

/// Reads an error that stands behind its position.
fn decode_raised<O: Order, T: Marshal<Lean<O>>>(
    mut input: Decoder<'_, Lean<O>>,
) -> Result<T, DecodeError> {
    let _position: u32 = input.get()?;
    input.align(T::ALIGN, 0)?;
    let error = T::decode(&mut input)?;
    input.finish()?;
    Ok(error)
}

impl From<Exception<'_>> for LeanException {
    fn from(exception: Exception<'_>) -> Self {
        Self {
            status: exception.status,
            message: exception.message.to_owned(),
            details: exception.details.to_owned(),
            order: exception.order,
            metadata: Metadata::new(),
            has_streams: false,
        }
    }
}

impl fmt::Display for LeanException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exception = Exception {
            status: self.status,
            message: self.message.as_ref(),
            details: &self.details,
            order: self.order,
        };
        exception.fmt(f)
    }
}
