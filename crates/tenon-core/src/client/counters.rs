//! The counters of a channel.

use tenon_proto::connection::OutgoingCounters;

use crate::wait::WaitCounters;

/// Counters of what a channel has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Calls, by what became of them.
    pub calls: OutgoingCounters,
    /// Calls that wait for their replies now.
    pub in_flight: usize,
    /// Connections made.
    pub connections: u64,
    /// Waits of the callers that read, and looks of tasks within their polls.
    pub waits: WaitCounters,
    /// Waits of the threads for which another caller reads. Their attempts are no system calls.
    pub waits_for_reader: WaitCounters,
}

impl ChannelCounters {
    /// Returns what both have counted: a channel whose calls with streams go over another connection than its other calls
    /// counts them together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.plus(other.calls),
            in_flight: self.in_flight + other.in_flight,
            connections: self.connections + other.connections,
            waits: self.waits.plus(other.waits),
            waits_for_reader: self.waits_for_reader.plus(other.waits_for_reader),
        }
    }
}
