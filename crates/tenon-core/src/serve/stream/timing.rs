//! How long a connection may take: what its peer has time for, when it gives memory back, and its age.

use std::time::{Duration, Instant};

use super::ServedStream;
use crate::serve::age::AgeStep;
use crate::serve::end_reason::EndReason;
use crate::serve::limits::ServerLimits;

/// Silence of a connection after which it gives memory back that it does not need.
const TRIM_AFTER: Duration = Duration::from_secs(1);

impl ServedStream {
    /// Notes that nothing is done for the connection from `now` on until something comes, or there is room to send.
    /// Memory that only a large request needed is given back.
    #[inline]
    pub fn park(&mut self, limits: &ServerLimits, now: Instant) {
        if std::mem::take(&mut self.has_answered) {
            self.used_at = now;
        }
        if std::mem::take(&mut self.was_active) {
            (self.active_at, self.used_at) = (now, now);
            self.slow_sender.clear();
        }
        // The preamble of the lean protocol counts as the first request.
        if self.slow_sender.awaits_first() && self.connection.peer().is_some() {
            self.slow_sender.clear();
        }
        if self.has_begun() != self.half_received.is_counted() {
            self.half_received.set(self.has_begun() && !self.has_unread);
        }
        if self.connection.has_grown() {
            self.trim_at.get_or_insert(now + TRIM_AFTER);
        }
        self.receiver.shrink_to(0);
        if !self.share.is_empty() {
            self.park_share(limits, now);
        }
        if self.batch.is_sent() {
            self.slow_reader.clear();
        } else {
            // A peer with streams may be busy with what it has received, and read nothing meanwhile.
            let timeout = if self.piped.is_empty() {
                limits.send_timeout
            } else {
                limits.idle_timeout
            };
            self.slow_reader.note_blocked(timeout, now);
        }
    }

    #[cold]
    fn park_share(&mut self, limits: &ServerLimits, now: Instant) {
        // What is kept was received with counted memory, and its peer cannot do anything about it.
        let held = self.held_bytes();
        self.share.fit(self.receiver.capacity() + held);
        if self.share.is_empty() || held > 0 {
            self.slow_sender.clear();
        } else {
            let kept = self.receiver.kept();
            self.slow_sender
                .note_waiting(kept, limits.receive_timeout, now);
        }
    }

    /// Returns when something is to be done for the connection unless something happens, but for the end of one that is
    /// idle.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        let ends = [
            self.slow_sender.end(),
            self.slow_reader.end(),
            self.trim_at,
            self.age.due(),
        ];
        ends.into_iter().flatten().min()
    }

    /// Gives memory back that only large replies, or many at once, have needed, if the connection is silent by `now` and
    /// has been for a while; returns whether it has.
    pub fn trim(&mut self, now: Instant) -> bool {
        if self.trim_at.take_if(|at| *at <= now).is_none() {
            return false;
        }
        let silent_at = self.active_at + TRIM_AFTER;
        if silent_at > now || !self.connection.trim(&mut self.batch) {
            self.trim_at = Some(silent_at.max(now + TRIM_AFTER / 2));
            return false;
        }
        self.deferred.shrink_to(0);
        true
    }

    /// Looks at the age of the connection by `now`: its peer is asked to go away, if it can be asked, and the connection
    /// is closed later, if it has to be. Its calls are still answered then.
    pub fn look_at_age(&mut self, limits: &ServerLimits, now: Instant) -> AgeStep {
        if self.age.due().is_none_or(|at| at > now) {
            return AgeStep::Nothing;
        }
        let is_silent = self.running() == 0
            && !self.has_begun()
            && !self.is_held()
            && !self.was_called_lately(now);
        let connection = &mut self.connection;
        let step = self
            .age
            .step(limits, now, is_silent, || connection.go_away());
        if step == AgeStep::Ends {
            self.close(EndReason::Aged.close_reason());
        }
        step
    }

    /// Has a connection that [ends by its age](Self::look_at_age), and of which every call is answered, wait a moment for its
    /// peer to close it.
    pub fn linger(&mut self, now: Instant) {
        self.age.linger(now);
    }

    /// Returns why the connection is to end by `now`, which is parked.
    pub fn overdue(&self, limits: &ServerLimits, now: Instant) -> Option<EndReason> {
        if !self.was_active && self.slow_sender.end().is_some_and(|end| now >= end) {
            return Some(self.slow_sender.end_reason());
        }
        if self.slow_reader.end().is_some_and(|end| now >= end) {
            return Some(EndReason::SlowReader);
        }
        if self.age.is_over(now, !self.piped.is_empty()) {
            return Some(EndReason::Aged);
        }
        let silence = now.saturating_duration_since(self.active_at);
        let is_idle = limits.idle_timeout.is_some_and(|limit| silence >= limit);
        (is_idle && self.running() == 0).then_some(EndReason::Idle)
    }
}
