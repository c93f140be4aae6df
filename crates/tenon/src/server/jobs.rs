//! Calls that are carried out by another thread than the one that received them.

use std::net::SocketAddr;
use std::sync::Arc;

use tenon_core::serve::{CallMemory, CallToServe};
use tenon_core::service::CancelFlag;
use tenon_proto::connection::{DeferredId, ReceivedCall};
use tenon_proto::endpoint::DatagramCallKey;
use tenon_wire::Buffer;

use super::slot::Slot;

/// A call with all that is needed to carry it out and to answer it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) slot: Arc<Slot>,
    pub(super) call: CallToServe,
    pub(super) source: JobSource,
    /// Goes with the job.
    _memory: CallMemory,
}

/// What a call that was handed over came in.
#[derive(Debug)]
pub(super) enum JobSource {
    Stream {
        id: DeferredId,
        cancelled: CancelFlag,
        received: ReceivedCall,
    },
    Port {
        key: DatagramCallKey<SocketAddr>,
        from: SocketAddr,
        cancelled: CancelFlag,
        /// What the call was found in, which ends with its arguments.
        message: Buffer,
        /// Bytes of the arguments.
        arguments: usize,
    },
}

impl Job {
    /// A call that came over a stream.
    pub(super) fn of_stream(
        slot: &Arc<Slot>,
        call: CallToServe,
        (id, cancelled): (DeferredId, CancelFlag),
        received: ReceivedCall,
        memory: CallMemory,
    ) -> Self {
        let source = JobSource::Stream {
            id,
            cancelled,
            received,
        };
        Self {
            slot: Arc::clone(slot),
            call,
            source,
            _memory: memory,
        }
    }

    /// A call that came in datagrams from a peer. `message` is what it was found in, which ends with so many bytes of
    /// arguments.
    pub(super) fn of_port(
        slot: &Arc<Slot>,
        call: CallToServe,
        (key, from, cancelled): (DatagramCallKey<SocketAddr>, SocketAddr, CancelFlag),
        (message, arguments): (Buffer, usize),
        memory: CallMemory,
    ) -> Self {
        let source = JobSource::Port {
            key,
            from,
            cancelled,
            message,
            arguments,
        };
        Self {
            slot: Arc::clone(slot),
            call,
            source,
            _memory: memory,
        }
    }
}
