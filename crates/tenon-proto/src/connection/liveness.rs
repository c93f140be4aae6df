//! Liveness of the peer: when it is asked whether it is there, and when a silent connection is given up.
//!
//! The owner of a connection reports that something was received, and looks from time to time what is to be done. No
//! clock is read when something comes: a look finds out whether that was so since the look before, and so silence is
//! noticed after one interval to two.

use std::time::{Duration, Instant};

use super::outgoing_calls::OutgoingCalls;
use crate::config::PingConfig;

/// The reason for which the peer is taken to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeerSilence {
    /// It has sent nothing since it was asked whether it is there.
    #[error("no reply to a ping for {0:?}")]
    NoPong(Duration),
    /// It has sent nothing while the time of several calls ran out, one behind the other.
    #[error("the time of {calls} calls ran out, and nothing was received for {silence:?}")]
    LateCalls {
        /// The number of these calls.
        calls: u32,
        /// The least time for which nothing was received.
        silence: Duration,
    },
}

/// The record of a peer's silence.
#[derive(Debug)]
pub(super) struct PeerLiveness {
    /// Silence after which the peer is asked.
    interval: Option<Duration>,
    timeout: Duration,
    when_idle: bool,
    /// The time of the last look that found that something was received, or that no call waited; `None` while there is
    /// no connection.
    looked_at: Option<Instant>,
    /// The number of times that something was received, and the part of it that the last look has seen, with the calls
    /// that were answered.
    heard: u64,
    seen: u64,
    /// The number behind those of the calls that were in flight at the last look.
    next_number: u32,
    /// The time at which the peer was asked, if it has sent nothing since.
    pinged_at: Option<Instant>,
    late: Option<LateCalls>,
}

/// Calls that ran out of time since something was received.
#[derive(Debug, Clone, Copy)]
struct LateCalls {
    first: u32,
    first_at: Instant,
    count: u32,
}

impl PeerLiveness {
    /// Calls that run out of time in a row before a silent peer is given up.
    const LATE_CALLS: u32 = 3;

    /// The peer is asked after `interval`, if that is set.
    pub(super) fn new(interval: Option<Duration>, pings: &PingConfig) -> Self {
        Self {
            interval,
            timeout: pings.timeout,
            when_idle: pings.when_idle,
            looked_at: None,
            heard: 0,
            seen: 0,
            next_number: 0,
            pinged_at: None,
            late: None,
        }
    }

    /// The peer is asked after `interval`, if that is set, from now on.
    pub(super) fn set_interval(&mut self, interval: Option<Duration>) {
        self.interval = interval;
    }

    /// Something was received.
    #[inline]
    pub(super) fn note_heard(&mut self) {
        self.heard = self.heard.wrapping_add(1);
    }

    /// A connection begins at `now`.
    pub(super) fn begin<W>(&mut self, now: Instant, calls: &OutgoingCalls<W>) {
        self.end();
        self.rest(now, calls);
    }

    /// The connection is lost.
    pub(super) fn end(&mut self) {
        (self.looked_at, self.pinged_at, self.late) = (None, None, None);
    }

    fn progress<W>(&self, calls: &OutgoingCalls<W>) -> u64 {
        self.heard.wrapping_add(calls.counters().successes)
    }

    /// Returns when the peer is to be asked or given up, of which something `is_awaited` or not.
    pub(super) fn next_timeout<W>(
        &self,
        calls: &OutgoingCalls<W>,
        is_awaited: bool,
    ) -> Option<Instant> {
        let looked_at = match self.pinged_at {
            Some(at) if self.seen == self.progress(calls) => return Some(at + self.timeout),
            Some(at) => at,
            None => self.looked_at?,
        };
        let interval = self.interval.filter(|_| is_awaited || self.when_idle)?;
        Some(looked_at + interval)
    }

    /// Notes that something was received since the last look, if that is so; returns whether.
    fn look<W>(&mut self, now: Instant, calls: &OutgoingCalls<W>) -> bool {
        let progress = self.progress(calls);
        if self.seen == progress {
            return false;
        }
        (self.pinged_at, self.late) = (None, None);
        self.seen = progress;
        self.rest(now, calls);
        true
    }

    /// Silence counts from `now` on.
    fn rest<W>(&mut self, now: Instant, calls: &OutgoingCalls<W>) {
        self.looked_at = Some(now);
        self.next_number = calls.next_number();
    }

    /// The time of a call that was sent ran out at `now`.
    pub(super) fn note_late_call<W>(
        &mut self,
        number: u32,
        now: Instant,
        calls: &OutgoingCalls<W>,
    ) {
        self.look(now, calls);
        let late = self.late.get_or_insert(LateCalls {
            first: number,
            first_at: now,
            count: 0,
        });
        late.count = late.count.saturating_add(1);
    }

    /// Nothing was received since `since`, when the last call was started, without which none was in flight.
    pub(super) fn note_silence<W>(&mut self, since: Instant, calls: &OutgoingCalls<W>) {
        self.look(since, calls);
        if self.pinged_at.is_none() && self.looked_at.is_some() {
            self.rest(since, calls);
        }
    }

    /// Returns whether the peer is to be asked now, which was not asked yet.
    pub(super) fn handle_timeout<W>(
        &mut self,
        now: Instant,
        calls: &OutgoingCalls<W>,
        awaits_preamble: bool,
    ) -> Result<bool, PeerSilence> {
        let Some(looked_at) = self.looked_at else {
            return Ok(false);
        };
        if self.look(now, calls) {
            return Ok(false);
        }
        if let Some(late) = self.late
            && late.count >= Self::LATE_CALLS
            && now >= late.first_at + self.timeout
            && !calls.has_older_than(late.first)
        {
            return Err(PeerSilence::LateCalls {
                calls: late.count,
                silence: self.timeout,
            });
        }
        if let Some(at) = self.pinged_at {
            let is_late = now >= at + self.timeout;
            return (!is_late)
                .then_some(false)
                .ok_or(PeerSilence::NoPong(self.timeout));
        }
        if self
            .interval
            .is_none_or(|interval| now < looked_at + interval)
        {
            return Ok(false);
        }
        if !(self.when_idle || awaits_preamble || calls.has_older_than(self.next_number)) {
            self.rest(now, calls);
            return Ok(false);
        }
        self.pinged_at = Some(now);
        Ok(true)
    }
}
