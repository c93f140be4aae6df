//! Calls that are not carried out where they were received: each gets a task or a thread.

use std::sync::Arc;

use tenon::runtime::{Offer, Origin, execute_known};
use tenon::wire::Buffer;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{AbortHandle, spawn_blocking};

use super::line::{Completion, Line, To};
use super::service::{Asked, Call};
use super::shared::Handler;

/// A call that is to be carried out elsewhere.
pub(super) struct Errand<'m> {
    pub(super) origin: Origin,
    pub(super) asked: Asked,
    /// The message of an ONC call, the arguments of a lean one.
    pub(super) received: &'m [u8],
    /// Where the answer goes.
    pub(super) to: To,
    /// Room among the calls of the server.
    pub(super) room: OwnedSemaphorePermit,
}

impl Errand<'_> {
    /// Gives the call a task or a thread.
    pub(super) fn begin(self, handler: &Handler, line: &Arc<Line>) -> AbortHandle {
        let (asked, origin) = (self.asked, self.origin);
        let (call, completion) = self.prepare(line);
        match handler {
            Handler::Task(service, _) => Arc::clone(service).spawn(call, completion),
            Handler::Inline | Handler::Thread => {
                let offer = Arc::clone(&line.offer);
                let (received, reply) = call.into_buffers();
                let execute = move || execute(&offer, origin, asked, received, reply, completion);
                spawn_blocking(execute).abort_handle()
            }
        }
    }

    /// What a task needs.
    pub(super) fn prepare(self, line: &Arc<Line>) -> (Call, Completion) {
        let (received, reply) = line.copy(self.received);
        let completion = line.begin(self.asked, self.to, self.room);
        let call = Call::new(&line.offer, self.origin, self.asked, received, reply);
        (call, completion)
    }
}

/// Executes a call on a thread that may wait.
fn execute(
    offer: &Offer,
    origin: Origin,
    asked: Asked,
    received: Buffer,
    mut reply: Buffer,
    mut completion: Completion,
) {
    let message = received.as_slice();
    match asked {
        Asked::Onc(..) => {
            if let Some(call) = offer.services.call_again(message) {
                let services = &offer.services;
                let sealing = services.execute(&call, origin, &mut reply, &offer.tally);
                sealing.seal(&mut reply, offer.fragment_max_over(origin.transport));
            }
        }
        Asked::Lean(job) => {
            let state = completion.state();
            execute_known(offer, state, origin, &job, message, &mut reply);
        }
    }
    completion.deliver(reply, received);
}
