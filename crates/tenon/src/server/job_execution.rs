//! Carries out calls that were handed over, and answers them.

use std::sync::Arc;
use std::time::Instant;

use tenon_core::serve::{CallContext, CallToServe};
use tenon_core::service::{Cancellation, Origin};
use tenon_proto::lean::Status;
use tenon_wire::Buffer;

use super::jobs::{CallJob, JobSource, JobTarget};
use super::slot_callbacks::SlotCallbacks;
use super::slot_port::SlotPort;
use super::state::ServerState;

impl CallJob {
    /// Carries the call out, unless its caller has stopped waiting, and answers it, unless it was given up.
    pub(super) fn run(self, server: &Arc<ServerState>) {
        if !self.progress.begin() {
            return;
        }
        let mut reply = Buffer::default();
        if self.call.is_late() {
            (self.call).refuse(Status::DEADLINE, "it was not begun", &mut reply);
        } else if self.progress.cancelled().is_set() {
            (self.call).refuse(Status::CANCELLED, "it was not begun", &mut reply);
        } else {
            self.execute(server, &mut reply);
        }
        if self.progress.claim_answer() {
            let JobTarget { slot, to } = self.progress.target();
            match self.streams {
                None => server.answer_late(slot, to.with(reply)),
                Some(_) => SlotPort::new(server, slot).leave(to.with(reply)),
            }
        } else {
            tracing::debug!("a handler has returned after its call was given up");
        }
    }

    fn execute(&self, server: &Arc<ServerState>, reply: &mut Buffer) {
        let shared = &server.shared;
        let slot = &self.progress.target().slot;
        let origin = slot.origin();
        let callbacks = SlotCallbacks::new(server, slot, &self.call);
        let cancellation = Cancellation::Flag(self.progress.cancelled());
        let (context, arguments) = match &self.source {
            JobSource::Stream(received) => {
                let context = CallContext {
                    attachments: received.attachments(),
                    origin,
                    cancellation,
                    streams: self.streams.as_ref(),
                    callbacks: Some(&callbacks),
                };
                (context, received.arguments())
            }
            JobSource::Port {
                from,
                message,
                arguments,
            } => {
                let message = message.as_slice();
                let context = CallContext {
                    attachments: self.call.attachments_in(message, *arguments),
                    origin: Origin {
                        peer: Some(*from),
                        ..origin
                    },
                    cancellation,
                    streams: self.streams.as_ref(),
                    callbacks: None,
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
