//! What a channel counts.

use tenon_proto::connection::OutgoingCounters;

use crate::wait::WaitCounters;

/// What a channel has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Calls, by what became of them.
    pub calls: OutgoingCounters,
    /// Calls that wait for their replies now.
    pub in_flight: usize,
    /// Connections made.
    pub connections: u64,
    /// How the callers that read have waited, and how tasks have looked within their polls.
    pub waits: WaitCounters,
    /// How those threads have waited that another caller reads for. Their attempts are no system calls.
    pub waits_for_reader: WaitCounters,
}
