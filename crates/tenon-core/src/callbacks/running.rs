//! The calls of a server that its client carries out.

use tenon_proto::connection::{Connection, DeferredId, ReceivedCall};
use tenon_proto::lean::Status;
use tenon_wire::Buffer;

use crate::serve::CallToServe;
use crate::service::CancelFlag;

/// A call of a server that its client is to carry out.
#[derive(Debug)]
pub struct ReceivedCallback {
    /// The call, beside its arguments.
    pub call: CallToServe,
    /// Its message.
    pub received: ReceivedCall,
    /// Its number, for the answer.
    pub id: DeferredId,
    /// The flag that is set when it is cancelled.
    pub cancelled: CancelFlag,
}

/// The calls of a server that are carried out at its client, to be told when they are cancelled.
#[derive(Debug, Default)]
pub struct RunningCallbacks {
    calls: Vec<(DeferredId, CancelFlag)>,
}

impl RunningCallbacks {
    /// Takes in a call that has come; returns it, unless it was refused, as there are too many.
    pub fn begin<W>(
        &mut self,
        connection: &mut Connection<W>,
        received: ReceivedCall,
    ) -> Option<ReceivedCallback> {
        let call = CallToServe::received(&received);
        let Some(id) = connection.defer(&call.caller, call.deadline) else {
            let mut reply = Buffer::default();
            let text = "the client has as many calls as it takes";
            call.refuse(Status::OVERLOADED, text, &mut reply);
            connection.push_reply(&mut reply);
            return None;
        };
        let cancelled = CancelFlag::default();
        self.calls.push((id, cancelled.clone()));
        Some(ReceivedCallback {
            call,
            received,
            id,
            cancelled,
        })
    }

    /// Notes that the server does not wait for a call any more.
    pub fn note_cancelled(&self, id: DeferredId) {
        let mut calls = self.calls.iter();
        if let Some((_, cancelled)) = calls.find(|(of, _)| *of == id) {
            cancelled.set();
        }
    }

    /// Answers a call, unless its connection has ended.
    pub fn answer<W>(
        &mut self,
        connection: &mut Connection<W>,
        id: DeferredId,
        reply: &mut Buffer,
    ) {
        self.calls.retain(|(of, _)| *of != id);
        connection.answer_deferred(id, reply);
    }

    /// Tells all calls that nobody waits for them any more, as the connection has ended.
    pub fn cancel_all(&mut self) {
        for (_, cancelled) in self.calls.drain(..) {
            cancelled.set();
        }
    }
}
