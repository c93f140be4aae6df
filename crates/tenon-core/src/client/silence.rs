//! Noticing that a peer does not answer datagrams any more, and may be somewhere else.

use tenon_net::Address;
use tenon_proto::connection::OutgoingCounters;
use tenon_proto::endpoint::CallFailure;
use tenon_proto::endpoint::exchange::Reason;

/// Calls in a row that end without any answer of the peer between them before it is looked for anew: a single one may
/// have had less time than its procedure takes.
const UNANSWERED_MAX: u32 = 2;

/// Detector of a peer that has fallen silent. One that cannot have moved is never lost.
#[derive(Debug)]
pub(super) struct SilenceDetector {
    may_move: bool,
    /// Calls that have ended without any answer since the last one.
    unanswered: u32,
    /// Answers when the last of them ended.
    answers: u64,
    is_lost: bool,
}

impl SilenceDetector {
    pub(super) fn new(address: &Address) -> Self {
        Self {
            may_move: address.may_move(),
            unanswered: 0,
            answers: 0,
            is_lost: false,
        }
    }

    /// Notes that a call has ended without an answer. `counters` tells what there was before.
    #[cold]
    pub(super) fn handle_failed(
        &mut self,
        failure: &CallFailure,
        counters: impl FnOnce() -> OutgoingCounters,
    ) {
        let is_silent = match failure {
            CallFailure::Expired => true,
            CallFailure::Exchange(failure) => {
                matches!(failure.reason, Reason::Expired | Reason::Unreachable)
            }
        };
        if !is_silent || !self.may_move {
            return;
        }
        let counters = counters();
        let answers = counters.successes + counters.refusals;
        if answers != self.answers {
            (self.answers, self.unanswered) = (answers, 0);
        }
        self.unanswered += 1;
        self.is_lost |= self.unanswered >= UNANSWERED_MAX;
    }

    /// Notes that the system says that nothing listens at the peer's port.
    pub(super) fn handle_refused(&mut self) {
        self.is_lost = self.may_move;
    }

    /// Notes that the peer was looked for.
    pub(super) fn handle_connected(&mut self) {
        (self.unanswered, self.is_lost) = (0, false);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }
}
