//! Congestion control: NewReno in packets, as RFC 9002, section 7, has it.

use std::time::Instant;

use super::sent_fragments::{AckOutcome, PacketCount};
use super::{DATAGRAM_DEFAULT, WINDOW};

/// Packets at first (RFC 6928, RFC 9002, 7.2).
const FIRST: u32 = 10;

/// Packets that may always be under way (RFC 9002, 7.2).
const LEAST: u32 = 2;

/// Bytes that may be under way between processes of one machine, where no network drops what is too much,
/// but the receiver's socket does: as many as Linux lets it keep if it asks for as many as it may.
const BYTES_HERE: usize = 256 << 10;

/// Controls how much may be under way to the other end of a conversation, for all of its calls together.
#[derive(Debug)]
pub(super) struct CongestionController {
    window: u32,
    window_max: u32,
    /// Packets acknowledged since the window grew last, once it is above the threshold.
    acknowledged: u32,
    threshold: u32,
    under_way: u32,
    /// Packets that were sent before this time tell nothing new about congestion (RFC 9002, 7.3.2).
    recovering_since: Option<Instant>,
}

impl CongestionController {
    /// For fragments of so many bytes.
    pub(super) fn new(fragment_bytes: usize) -> Self {
        let window_max = match fragment_bytes > DATAGRAM_DEFAULT {
            true => (BYTES_HERE / DATAGRAM_DEFAULT) as u32,
            false => WINDOW,
        };
        let window_max = window_max.clamp(LEAST, WINDOW);
        Self {
            window: FIRST.min(window_max),
            window_max,
            acknowledged: 0,
            threshold: WINDOW,
            under_way: 0,
            recovering_since: None,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.under_way < self.window
    }

    /// Returns whether there is no room for anything behind so many packets more.
    pub(super) fn is_last(&self, packets: u32) -> bool {
        self.under_way + packets >= self.window
    }

    /// Returns whether so many packets more reach half of a window that does not grow: a sender that hears then that
    /// they have arrived need not stop.
    pub(super) fn is_half(&self, packets: u32) -> bool {
        let half = self.window / 2;
        let is_bounded = self.window_max < WINDOW;
        is_bounded && self.under_way < half && self.under_way + packets >= half
    }

    pub(super) fn sent(&mut self, packets: u32) {
        self.under_way += packets;
    }

    /// Packets have arrived; the last of them was sent at `sent_at`.
    pub(super) fn arrived(&mut self, packets: u32, sent_at: Instant) {
        let was_used = self.under_way * 2 >= self.window;
        self.forget(packets);
        let is_old = self.recovering_since.is_some_and(|since| sent_at <= since);
        // A window that is not used is not proven (RFC 9002, 7.8).
        if is_old || !was_used {
            return;
        }
        if self.window < self.threshold {
            self.window = (self.window + packets).min(self.window_max);
            return;
        }
        self.acknowledged += packets;
        if self.acknowledged >= self.window {
            self.acknowledged -= self.window;
            self.window = (self.window + 1).min(self.window_max);
        }
    }

    /// Packets are lost, the last of which was sent at `sent_at` (RFC 9002, 7.3.2).
    pub(super) fn lost(&mut self, packets: u32, sent_at: Instant, now: Instant) {
        self.forget(packets);
        if self.recovering_since.is_some_and(|since| sent_at <= since) {
            return;
        }
        self.recovering_since = Some(now);
        self.window = (self.window / 2).max(LEAST);
        self.threshold = self.window;
        self.acknowledged = 0;
    }

    /// Nothing is heard any more: from the beginning (RFC 5681, 3.1; RFC 9002, 7.6).
    pub(super) fn starved(&mut self, packets: u32, sent_at: Instant, now: Instant) {
        self.lost(packets, sent_at, now);
        self.window = LEAST;
    }

    /// Takes in what an acknowledgement says.
    pub(super) fn handle_ack(&mut self, outcome: &AckOutcome, now: Instant) {
        if let Some(sent_at) = outcome.arrived.sent_at {
            self.arrived(outcome.arrived.count, sent_at);
        }
        if let Some(sent_at) = outcome.lost.sent_at {
            self.lost(outcome.lost.count, sent_at, now);
        }
    }

    /// Nothing was heard for a timeout, the first one or `again`: these packets are no longer under way.
    pub(super) fn handle_timeout(&mut self, lost: PacketCount, again: bool, now: Instant) {
        match (again, lost.sent_at) {
            (true, Some(sent_at)) => self.starved(lost.count, sent_at, now),
            (false, _) | (true, None) => self.forget(lost.count),
        }
    }

    /// Packets are no longer under way, and nothing is learnt from that.
    pub(super) fn forget(&mut self, packets: u32) {
        self.under_way = self.under_way.saturating_sub(packets);
    }

    pub(super) fn under_way(&self) -> u32 {
        self.under_way
    }
}
