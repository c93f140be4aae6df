//! The way from the program that uses the streams of a call to the connection that carries them.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tenon_proto::lean::CallStreams;
use tenon_wire::Buffer;

use super::pipe::StreamPipe;
use crate::error::CallError;
use crate::refusal::Refusal;

/// The side of a connection that the user of streams reaches: whichever thread or task has the connection takes what
/// is handed over.
pub trait StreamPort: Send + Sync {
    /// Has whole messages of items of the call `number` sent.
    fn send(&self, number: u32, messages: Buffer);

    /// Notes that items of the call `number` were taken, of so many bytes of credit.
    fn give_back(&self, number: u32, bytes: u64);

    /// Notes that the reader of the call `number` is gone.
    fn stop_receiving(&self, number: u32);
}

/// The streams of a call that a server carries out, for its handler.
#[derive(Clone)]
pub struct ServedStreams {
    pipe: Arc<StreamPipe>,
    port: Arc<dyn StreamPort>,
    /// The streams that the caller says the call has.
    streams: CallStreams,
    begun_at: Instant,
    /// The number of the call.
    pub number: u32,
    /// Bytes of the longest item that is taken.
    pub item_max: usize,
    /// The time at which the caller stops waiting.
    pub deadline: Option<Instant>,
}

impl ServedStreams {
    /// These `streams` of the call `number`, which reach their connection through `port`.
    pub fn new(
        pipe: Arc<StreamPipe>,
        port: Arc<dyn StreamPort>,
        (number, streams): (u32, CallStreams),
        item_max: usize,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            pipe,
            port,
            streams,
            begun_at: Instant::now(),
            number,
            item_max,
            deadline,
        }
    }

    /// Checks that the call has the streams that its procedure declares.
    ///
    /// # Errors
    /// It has others.
    pub fn expect(&self, declared: CallStreams) -> Result<(), Refusal> {
        if self.streams == declared {
            Ok(())
        } else {
            Err(Refusal::InvalidArguments(
                "the procedure has other streams".to_owned(),
            ))
        }
    }

    /// Returns what lies between the connection and the handler.
    pub fn pipe(&self) -> &StreamPipe {
        &self.pipe
    }

    /// Returns the error of a handler that has waited until its call was over.
    pub fn timed_out(&self) -> CallError {
        CallError::TimedOut {
            limit: self.begun_at.elapsed(),
            may_have_executed: true,
            calls_max: None,
        }
    }

    /// Has whole messages of items sent. An empty buffer is left in their place.
    pub fn send(&self, messages: &mut Buffer) {
        let next = self.pipe.note_queued(messages.len());
        self.port
            .send(self.number, std::mem::replace(messages, next));
    }

    /// Notes that items of so many bytes of credit were taken.
    pub fn give_back(&self, bytes: u64) {
        self.port.give_back(self.number, bytes);
    }

    /// Notes that the handler reads no further.
    pub fn stop_receiving(&self) {
        self.port.stop_receiving(self.number);
    }
}

impl fmt::Debug for ServedStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedStreams")
            .field("number", &self.number)
            .field("pipe", &self.pipe)
            .finish_non_exhaustive()
    }
}
