//! The outcome of a call.

use std::io;
use std::sync::Arc;

use tenon_proto::connection::framing::Detached;
use tenon_proto::endpoint::CallFailure;
use tenon_proto::lean::{ByteOrder, Status};
use tenon_wire::Buffer;

use super::input::{Input, ReplyExtensions, ReplyPlace};
use crate::datagram_error;
use crate::error::{CallError, ConnectionFailure};
use crate::profile::Note;
use crate::timer::CallTimer;

/// Bytes of the longest results that are copied for their caller. Of longer ones the whole message is taken out of what
/// was received.
const COPIED_MAX: usize = 16 << 10;

/// Outcome of a call that another caller has read about.
#[derive(Debug)]
pub enum Outcome {
    /// It is answered.
    Answered(Result<Results, Box<CallError>>),
    /// Its connection was lost, after it was sent whole or not.
    Lost(ConnectionFailure, bool),
    /// It went in datagrams, and ended without an answer.
    Failed {
        /// Reason why it ended.
        failure: CallFailure,
        /// Bytes of the largest call that its channel sends.
        own_limit: usize,
    },
}

/// The encoded results of a call, away from where they were received.
#[derive(Debug)]
pub struct Results {
    /// Memory in which they are.
    pub bytes: ResultBytes,
    /// The order of their bytes.
    pub order: ByteOrder,
    /// Note of the caller that received them, if the server says something of the call's way.
    pub note: Option<Box<Note>>,
    /// What the server says beside the results.
    pub extensions: Option<Box<ReplyExtensions>>,
}

/// Memory in which results are.
#[derive(Debug)]
pub enum ResultBytes {
    /// Copied to here, as the shortest are.
    Inline(InlineResults),
    /// Copied, as short ones are.
    Copied(Buffer),
    /// At the end of a message that was taken out of what was received, and how many bytes they have.
    Detached(Box<Detached>, usize),
}

/// Results that need no memory of their own.
#[derive(Debug, Clone, Copy)]
#[repr(align(8))]
pub struct InlineResults {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl InlineResults {
    /// Most bytes of them. With more the outcome of a call would become larger.
    const MAX: usize = 31;

    /// Copies results; `None` if they are too long.
    #[inline]
    fn of(results: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        bytes.get_mut(..results.len())?.copy_from_slice(results);
        Some(Self {
            bytes,
            length: results.len() as u8,
        })
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl ResultBytes {
    /// Returns the results.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline(results) => results.as_slice(),
            Self::Copied(buffer) => buffer.as_slice(),
            Self::Detached(message, length) => {
                let content = message.content();
                &content[content.len() - length..]
            }
        }
    }
}

impl Results {
    /// Results that are `length` bytes at the end of the last message of `input`, away from there: short ones are
    /// copied into `buffer`, of longer ones the message is taken out. `None` if there is no memory for that.
    #[inline]
    fn take(
        input: &mut Input,
        reply: &ReplyPlace,
        buffer: impl FnOnce() -> Buffer,
    ) -> Option<Self> {
        let length = reply.place.len();
        let bytes = if let Some(short) = InlineResults::of(input.results(&reply.place)) {
            ResultBytes::Inline(short)
        } else if length <= COPIED_MAX || !input.is_stream() {
            let mut copy = buffer();
            copy.extend(input.results(&reply.place));
            ResultBytes::Copied(copy)
        } else {
            ResultBytes::Detached(Box::new(input.detach()?), length)
        };
        Some(Self {
            bytes,
            order: reply.order,
            note: (reply.extensions.as_ref())
                .and_then(|extensions| extensions.stamps)
                .map(Note::now),
            extensions: reply.extensions.clone(),
        })
    }
}

impl Outcome {
    /// Takes the results of a reply away from where they were received, into `buffer` if they are short.
    #[inline]
    pub fn of_reply(
        input: &mut Input,
        reply: &ReplyPlace,
        buffer: impl FnOnce() -> Buffer,
    ) -> Self {
        match Results::take(input, reply, buffer) {
            Some(results) => Self::Answered(Ok(results)),
            None => Self::Lost(io::Error::from(io::ErrorKind::OutOfMemory).into(), true),
        }
    }

    /// Returns the results. `fault` is why nothing could be sent lately.
    ///
    /// # Errors
    /// Why the call has none.
    #[inline]
    pub fn into_results(
        self,
        timer: &CallTimer,
        fault: impl FnOnce() -> Option<Arc<io::Error>>,
    ) -> Result<Results, CallError> {
        match self {
            Self::Answered(Ok(results)) => Ok(results),
            Self::Answered(Err(error)) => Err(answered_error(*error, timer)),
            Self::Lost(failure, was_sent) => Err(failure.into_error(was_sent)),
            Self::Failed { failure, own_limit } => {
                Err(datagram_error(failure, timer, fault(), own_limit))
            }
        }
    }
}

/// Returns the error of an answer. If the time that the peer was told ran out there first, it would have run out here.
#[cold]
fn answered_error(error: CallError, timer: &CallTimer) -> CallError {
    match error {
        CallError::Exception(exception) if exception.status == Status::DEADLINE => {
            timer.error(true)
        }
        error => error,
    }
}
