//! Calls that are carried out by another thread than the one that received them.

use std::net::SocketAddr;
use std::sync::Arc;

use tenon_core::serve::{CallMemory, CallToServe, DeferredCall};
use tenon_core::streams::ServedStreams;
use tenon_proto::connection::{DeferredId, ReceivedCall};
use tenon_proto::endpoint::DatagramCallKey;
use tenon_wire::Buffer;

use super::slot::{LateAnswer, SocketSlot};

/// A call with all that is needed to carry it out and to answer it.
#[derive(Debug)]
pub(super) struct CallJob {
    pub(super) call: CallToServe,
    pub(super) progress: DeferredCall<JobTarget>,
    pub(super) source: JobSource,
    /// The streams of the call, if it has some.
    pub(super) streams: Option<ServedStreams>,
    /// Goes with the job.
    _memory: CallMemory,
}

/// The destination of the answer to a call that was handed over.
#[derive(Debug)]
pub(super) struct JobTarget {
    pub(super) slot: Arc<SocketSlot>,
    pub(super) to: AnswerTo,
}

/// The call of a connection or port that an answer is to.
#[derive(Debug, Clone, Copy)]
pub(super) enum AnswerTo {
    Deferred(DeferredId),
    Datagram(DatagramCallKey<SocketAddr>),
}

impl AnswerTo {
    /// Makes a reply the answer.
    pub(super) fn with(self, reply: Buffer) -> LateAnswer {
        match self {
            Self::Deferred(id) => LateAnswer::Deferred(id, reply),
            Self::Datagram(key) => LateAnswer::Datagram(key, reply),
        }
    }
}

/// The message of a call that was handed over.
#[derive(Debug)]
pub(super) enum JobSource {
    Stream(ReceivedCall),
    Port {
        from: SocketAddr,
        /// The message that the call was found in, which ends with its arguments.
        message: Buffer,
        /// Bytes of the arguments.
        arguments: usize,
    },
}

impl CallJob {
    /// A call that came over a stream.
    pub(super) fn of_stream(
        (call, progress): (CallToServe, DeferredCall<JobTarget>),
        received: ReceivedCall,
        memory: CallMemory,
    ) -> Self {
        Self {
            call,
            progress,
            source: JobSource::Stream(received),
            streams: None,
            _memory: memory,
        }
    }

    /// The same call, which has these streams.
    pub(super) fn with_streams(self, streams: ServedStreams) -> Self {
        Self {
            streams: Some(streams),
            ..self
        }
    }

    /// A call that came in datagrams from a peer. `message` is what it was found in, which ends with so many bytes of
    /// arguments.
    pub(super) fn of_port(
        (call, progress): (CallToServe, DeferredCall<JobTarget>),
        from: SocketAddr,
        (message, arguments): (Buffer, usize),
        memory: CallMemory,
    ) -> Self {
        let source = JobSource::Port {
            from,
            message,
            arguments,
        };
        Self {
            call,
            progress,
            source,
            streams: None,
            _memory: memory,
        }
    }
}
