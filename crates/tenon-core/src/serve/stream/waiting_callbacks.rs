//! The calls back of a connection, from when they are handed over until they have ended.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tenon_proto::connection::{
    AbandonedCall, Answer, Connection, PeerClosing, StartError, UnsentCall,
};
use tenon_wire::Buffer;

use crate::callbacks::PendingCallback;
use crate::client::{Outcome, ResultBytes, Results, closing_error, result_of};
use crate::error::CallError;

/// The connection of a client, whose calls back are waited for elsewhere.
pub(super) type ServedConnection = Connection<Arc<PendingCallback>>;

/// The calls back that are not in flight, as the client has as many as it takes.
#[derive(Debug, Default)]
pub(super) struct WaitingCallbacks(VecDeque<(UnsentCall, Arc<PendingCallback>)>);

impl WaitingCallbacks {
    /// Returns whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a call, which is sent as soon as the client takes it.
    pub(super) fn push(&mut self, call: UnsentCall, pending: Arc<PendingCallback>) {
        self.0.push_back((call, pending));
    }

    /// Gives a call up that is not waited for any more.
    pub(super) fn cancel(&mut self, connection: &mut ServedConnection, of: &Arc<PendingCallback>) {
        self.0.retain(|(_, pending)| !Arc::ptr_eq(pending, of));
        if let Some(number) = of.number() {
            connection.cancel_call(number);
        }
    }

    /// Puts calls in flight, as far as the client takes them.
    pub(super) fn start(&mut self, connection: &mut ServedConnection) {
        while let Some((mut call, pending)) = self.0.pop_front() {
            match connection.restart_call(&mut call, Arc::clone(&pending)) {
                Ok(started) => pending.set_number(started.number),
                Err(error) if is_for_now(&error) => {
                    return self.0.push_front((call, pending));
                }
                Err(error) => {
                    let error = Box::new(start_error(error));
                    pending.finish(Outcome::Answered(Err(error)));
                }
            }
        }
    }

    /// Takes in what a client has said of calls.
    pub(super) fn handle(&mut self, event: CallbackEvent) {
        match event {
            CallbackEvent::Ended(pending, outcome) => pending.finish(outcome),
            CallbackEvent::Unbegun(call) => {
                let AbandonedCall { waiter, unsent, .. } = *call;
                if let Some(unsent) = unsent {
                    self.0.push_front((unsent, waiter));
                }
            }
            CallbackEvent::Closing(error, unbegun) => {
                for pending in unbegun {
                    let error = Box::new(error.clone());
                    pending.finish(Outcome::Answered(Err(error)));
                }
            }
        }
    }

    /// Ends all calls, as the connection has ended.
    pub(super) fn end(&mut self, connection: &mut ServedConnection) {
        for call in connection.abandon_all() {
            call.waiter.finish(lost_callback(call.was_sent));
        }
        for (_, pending) in self.0.drain(..) {
            pending.finish(lost_callback(false));
        }
    }
}

/// What a client has said of calls back.
pub(super) enum CallbackEvent {
    /// One has ended.
    Ended(Arc<PendingCallback>, Outcome),
    /// One was not begun, and can be started again.
    Unbegun(Box<AbandonedCall<Arc<PendingCallback>>>),
    /// The client begins no further ones, and has not begun these.
    Closing(CallError, Vec<Arc<PendingCallback>>),
}

impl CallbackEvent {
    /// The answer to a call back; its results are copied.
    pub(super) fn answered(answer: Answer<'_, Arc<PendingCallback>>) -> Self {
        let mut copy = Buffer::default();
        if let Ok(results) = &answer.outcome {
            copy.extend(results);
        }
        let order = answer.order;
        let (waiter, outcome) = result_of(answer);
        let outcome = Outcome::Answered(outcome.map(|extensions| Results {
            bytes: ResultBytes::Copied(copy),
            order,
            note: None,
            extensions,
        }));
        Self::Ended(waiter, outcome)
    }

    /// The client has closed its side.
    pub(super) fn closing(closing: PeerClosing<'_, Arc<PendingCallback>>) -> Self {
        let error = closing_error(&closing.close);
        let unbegun = closing.unbegun.into_iter().map(|call| call.waiter);
        Self::Closing(error, unbegun.collect())
    }
}

/// Returns the outcome of a call back whose connection has ended. [`CallError::Disconnected`] is made of it.
pub fn lost_callback(was_sent: bool) -> Outcome {
    let error = io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the connection that the client had opened has ended",
    );
    Outcome::Lost(error.into(), was_sent)
}

/// Returns whether the call may be started later.
fn is_for_now(error: &StartError) -> bool {
    match error {
        StartError::AwaitsPreamble { .. } | StartError::AwaitsBinding { .. } => true,
        StartError::TooManyCalls { limit } => *limit > 0,
        _ => false,
    }
}

fn start_error(error: StartError) -> CallError {
    match error {
        StartError::TooManyCalls { .. } => CallError::NoCallbacks {
            reason: "the client takes no calls of its server",
        },
        StartError::TooLarge { size, limit } => CallError::TooLargeForPeer {
            size,
            limit,
            own_limit: None,
        },
        StartError::Bind(error) => CallError::Unbound(error),
        _ => {
            let cause = io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection takes no further calls",
            );
            CallError::Disconnected {
                cause: Arc::new(cause),
                may_have_executed: false,
            }
        }
    }
}
