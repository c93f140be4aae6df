//! The state of a connection, which one thread at a time has.

use std::time::Instant;

use tenon_core::serve::{AgeStep, EndReason, HostShare, ServedStream, ServerLimits, ServerShared};
use tenon_core::wait::{Looking, Waiter, Waiting};
use tenon_net::fd::OwnedFd;
use tenon_net::{Transport, Watch};

/// The state of a connection, which one thread at a time has.
#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) served: ServedStream,
    pub(super) waiter: Waiter,
    pub(super) looking: Looking,
    /// The events that its socket is watched for.
    pub(super) watch: Watch,
    /// The signals that came while no thread had the connection.
    pub(super) signals: u8,
    /// True if there may be something in the socket.
    pub(super) is_readable: bool,
    /// True if the peer is known to have ended its sending side.
    pub(super) has_ended: bool,
    /// The reason for which the connection ends when all calls of it are answered.
    pub(super) ends: Option<EndReason>,
    /// True if only its peer is waited for, which is to close the connection.
    pub(super) lingers: bool,
    /// The reason for which the connection ends at once: its peer has taken too long.
    pub(super) overdue: Option<EndReason>,
    /// True if the scheduler says when a call may be handed over.
    pub(super) awaits_room: bool,
    /// True if it has said so in this turn: the call comes before those of connections that wait.
    pub(super) is_next: bool,
    /// A descriptor that becomes readable when there is room in shared memory, once that was waited for.
    pub(super) room_notifier: Option<OwnedFd>,
    /// Goes with the connection.
    _host: HostShare,
}

impl StreamState {
    /// The state of a connection that was just accepted.
    pub(super) fn new(
        shared: &ServerShared,
        id: usize,
        waiting: Waiting,
        transport: Transport,
        host: HostShare,
    ) -> Self {
        Self {
            served: ServedStream::new(shared, id, Instant::now()),
            waiter: Waiter::new(waiting),
            looking: Looking::at(transport),
            watch: Watch::Receive,
            has_ended: false,
            ends: None,
            lingers: false,
            overdue: None,
            signals: 0,
            is_readable: true,
            awaits_room: false,
            is_next: false,
            room_notifier: None,
            _host: host,
        }
    }

    /// Notes what the socket is to be watched for; returns what it is watched for now, if that is something else.
    pub(super) fn change_watch(&mut self, watch: Watch) -> Option<Watch> {
        Some(std::mem::replace(&mut self.watch, watch)).filter(|before| *before != watch)
    }

    /// Has the connection end at its next turn.
    pub(super) fn end(&mut self, reason: EndReason) {
        self.overdue = Some(reason);
    }

    /// Looks at the age of the connection by `now`; returns whether something is to be sent because of it.
    pub(super) fn check_age(&mut self, limits: &ServerLimits, now: Instant) -> bool {
        if self.ends.is_some() {
            return self.served.end_aged_streams(now);
        }
        let step = self.served.look_at_age(limits, now);
        if step == AgeStep::Ends {
            self.ends = Some(EndReason::Aged);
        }
        step != AgeStep::Nothing
    }

    /// Returns whether the connection goes on for its streams alone, though it is to end: because of its age, or as the
    /// server stops.
    pub(super) fn ends_behind_streams(&self) -> bool {
        let ends_by_itself = self.ends.as_ref().is_some_and(EndReason::is_orderly);
        ends_by_itself && !self.has_ended && self.served.has_streams()
    }

    /// Returns whether calls are carried out that are not answered.
    pub(super) fn has_running_calls(&self) -> bool {
        self.served.running() > 0
    }

    /// Returns whether the descriptor that becomes readable when there is room in shared memory is known.
    pub(super) fn has_room_notifier(&self) -> bool {
        self.room_notifier.is_some()
    }

    /// Keeps what becomes readable when there is room in shared memory.
    pub(super) fn set_room_notifier(&mut self, notifier: OwnedFd) {
        self.room_notifier = Some(notifier);
    }

    /// Returns whether nothing is left to be done but to end the connection.
    pub(super) fn is_over(&self) -> bool {
        self.ends.is_some()
            && !self.has_running_calls()
            && !self.is_blocked()
            && !self.lingers
            && !self.ends_behind_streams()
    }

    /// Returns whether what comes next is to be received: not while a call or a reply waits, or when the connection
    /// ends. Streams need what comes: items to be taken, and credit for what waits to be sent.
    pub(super) fn may_receive(&self) -> bool {
        let is_free = !self.is_blocked() || self.served.has_streams();
        let goes_on = self.ends.is_none() || self.ends_behind_streams();
        is_free && goes_on && !self.served.is_held()
    }

    /// Returns whether replies wait for room in the socket.
    pub(super) fn is_blocked(&self) -> bool {
        self.served.has_transmit()
    }
}
