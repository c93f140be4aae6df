//! How this end ends a connection: it says that it closes, or refuses its peer.

use super::{Connection, WireProtocol};
use crate::codec::lean::{Close, CloseReason, RefusalReason};

impl<W> Connection<W> {
    /// Tells a lean peer that this end begins no calls any more and accepts none behind those that it has accepted,
    /// which are still answered. A lean client is refused instead if its preamble comes later.
    pub fn close(&mut self, reason: CloseReason, text: &str) {
        if std::mem::replace(&mut self.closing.is_closed, true) {
            return;
        }
        if self.protocol != Some(WireProtocol::Lean) {
            self.closing.refusal = Some(refusal_for(reason));
            return;
        }
        if !self.has_greeted {
            return self.refuse(refusal_for(reason));
        }
        let close = Close {
            reason,
            last_call: self.incoming.last_call(),
            message: text.into(),
        };
        // Behind the calls that were started before.
        let mut message = std::mem::take(&mut self.scratch);
        close.encode(&mut message, self.own.order);
        self.send_queue.push(&mut message, None);
        self.scratch = message;
    }

    /// Refuses a lean client before anything has come, or because what has come is no preamble.
    pub fn refuse(&mut self, reason: RefusalReason) {
        self.closing.is_closed = true;
        self.closing.refusal = Some(reason);
        self.greet(Some(reason));
    }

    /// Returns whether the peer has said that it begins nothing any more.
    pub fn is_peer_closing(&self) -> bool {
        self.closing.peer.is_some()
    }
}

/// Returns the reason for refusing a connection that would have been closed for `reason`.
fn refusal_for(reason: CloseReason) -> RefusalReason {
    match reason {
        CloseReason::VIOLATION => RefusalReason::PREAMBLE,
        CloseReason::IDLE | CloseReason::LIMITS => RefusalReason::BUSY,
        _ => RefusalReason::STOPPING,
    }
}
