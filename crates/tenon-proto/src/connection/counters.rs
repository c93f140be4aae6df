//! Counters of a connection.

/// Outcomes of the calls that this end has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutgoingCounters {
    /// Calls started.
    pub calls: u64,
    /// Calls answered with results.
    pub successes: u64,
    /// Calls that the peer refused, or answered with an exception.
    pub refusals: u64,
    /// Calls that ran out of time.
    pub timeouts: u64,
    /// Calls that were given up before they were answered.
    pub cancellations: u64,
    /// Calls or packets sent again.
    pub retransmissions: u64,
    /// Replies to no call in flight: duplicates, late ones, unsolicited ones.
    pub unmatched: u64,
    /// Messages that broke the protocol.
    pub violations: u64,
}

impl OutgoingCounters {
    /// Returns the outcomes of the calls of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            successes: self.successes + other.successes,
            refusals: self.refusals + other.refusals,
            timeouts: self.timeouts + other.timeouts,
            cancellations: self.cancellations + other.cancellations,
            retransmissions: self.retransmissions + other.retransmissions,
            unmatched: self.unmatched + other.unmatched,
            violations: self.violations + other.violations,
        }
    }
}

/// Outcomes of the calls that the peer has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IncomingCounters {
    /// Calls handed to a service.
    pub calls: u64,
    /// Calls of procedure 0, and pings.
    pub pings: u64,
    /// Calls and services that were refused before a service saw them.
    pub refusals: u64,
    /// Cancellations.
    pub cancellations: u64,
    /// Messages that could not be answered.
    pub violations: u64,
}
