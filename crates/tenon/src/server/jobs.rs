//! Calls that are carried out by another thread than the one that received them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tenon_core::serve::{CallContext, CallToServe};
use tenon_core::service::{CancelFlag, Origin};
use tenon_proto::connection::{DeferredId, ReceivedCall};
use tenon_proto::endpoint::DatagramCallKey;
use tenon_proto::lean::Status;
use tenon_wire::Buffer;

use super::slot::{LateAnswer, Slot};
use super::state::ServerState;

/// A call with all that is needed to carry it out and to answer it.
#[derive(Debug)]
pub(super) struct Job {
    slot: Arc<Slot>,
    call: CallToServe,
    source: JobSource,
}

#[derive(Debug)]
enum JobSource {
    Stream {
        id: DeferredId,
        cancelled: CancelFlag,
        received: ReceivedCall,
    },
    Port {
        key: DatagramCallKey<SocketAddr>,
        from: SocketAddr,
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
        }
    }

    /// A call that came in datagrams from a peer. `message` is what it was found in, which ends with so many bytes of
    /// arguments.
    pub(super) fn of_port(
        slot: &Arc<Slot>,
        call: CallToServe,
        (key, from): (DatagramCallKey<SocketAddr>, SocketAddr),
        (message, arguments): (Buffer, usize),
    ) -> Self {
        let source = JobSource::Port {
            key,
            from,
            message,
            arguments,
        };
        Self {
            slot: Arc::clone(slot),
            call,
            source,
        }
    }

    /// Carries the call out, unless its caller has stopped waiting, and answers it.
    pub(super) fn run(self, server: &Arc<ServerState>) {
        let mut reply = Buffer::default();
        if self.call.is_late() {
            (self.call).refuse(Status::DEADLINE, "it was not begun", &mut reply);
        } else if self.is_cancelled() {
            (self.call).refuse(Status::CANCELLED, "it was not begun", &mut reply);
        } else {
            self.execute(server, &mut reply);
        }
        let answer = match self.source {
            JobSource::Stream { id, .. } => LateAnswer::Deferred(id, reply),
            JobSource::Port { key, .. } => LateAnswer::Datagram(key, reply),
        };
        server.answer_late(&self.slot, answer);
    }

    fn is_cancelled(&self) -> bool {
        match &self.source {
            JobSource::Stream { cancelled, .. } => cancelled.is_set(),
            JobSource::Port { .. } => false,
        }
    }

    fn execute(&self, server: &ServerState, reply: &mut Buffer) {
        let shared = &server.shared;
        let origin = self.slot.origin();
        let (context, arguments) = match &self.source {
            JobSource::Stream {
                cancelled,
                received,
                ..
            } => {
                let context = CallContext {
                    credential: received.credential(),
                    origin,
                    cancelled: Some(cancelled),
                };
                (context, received.arguments())
            }
            JobSource::Port {
                from,
                message,
                arguments,
                ..
            } => {
                let message = message.as_slice();
                let context = CallContext {
                    credential: self.call.credential_in(message),
                    origin: Origin {
                        peer: Some(*from),
                        ..origin
                    },
                    cancelled: None,
                };
                (context, &message[message.len() - arguments..])
            }
        };
        let begin = Instant::now();
        let (registry, tally) = (&shared.registry, &shared.tally);
        registry.execute(&self.call, context, arguments, tally, reply);
        let CallToServe {
            service, procedure, ..
        } = self.call;
        let took = begin.elapsed();
        shared.times.note_elsewhere(service, procedure, took);
    }
}
