//! Carries out calls that were handed over, and answers them.

use std::sync::Arc;
use std::time::Instant;

use tenon_core::serve::{CallContext, CallToServe};
use tenon_core::service::{Cancellation, Origin};
use tenon_proto::lean::Status;
use tenon_wire::Buffer;

use super::jobs::{Job, JobSource};
use super::slot::LateAnswer;
use super::state::ServerState;

impl Job {
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
            JobSource::Stream { cancelled, .. } | JobSource::Port { cancelled, .. } => {
                cancelled.is_set()
            }
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
                    cancellation: Cancellation::Flag(cancelled),
                };
                (context, received.arguments())
            }
            JobSource::Port {
                from,
                cancelled,
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
                    cancellation: Cancellation::Flag(cancelled),
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
