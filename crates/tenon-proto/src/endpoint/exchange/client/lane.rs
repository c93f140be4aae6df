//! A lane of a client: one call at a time.

use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use super::call_id::CallId;
use crate::endpoint::exchange::ack::{CallStatus, put_bitmap};
use crate::endpoint::exchange::packet::{HeaderTemplate, PacketHeader};
use crate::endpoint::exchange::reassembly::Reassembly;
use crate::endpoint::exchange::sending::OutgoingMessage;

/// The fraction by which two clocks are taken to differ in pace: a hundredth; and the smallest time that a server says.
const PACE: u32 = 100;
const GRAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct ClientLane<W> {
    /// The number of the call that it carries, or carried last.
    pub(super) sequence: u32,
    pub(super) stage: ClientLaneState<W>,
    pub(super) sending: OutgoingMessage,
    pub(super) assembly: Reassembly,
    /// Fragments of the last answer.
    pub(super) answer_count: u32,
    /// All of the request was sent in this conversation, if not received.
    pub(super) is_sent: bool,
    first_sent_at: Option<Instant>,
    /// Since when the server has been asked and has not answered.
    asked_at: Option<Instant>,
    pub(super) timer: Option<Instant>,
    /// Times that something was asked or sent again since the server was heard.
    pub(super) in_vain: u32,
    /// Probes sent.
    pub(super) probes: u32,
    pub(super) owes_ack: bool,
    /// An earlier call, which is over, and its repeated answer: the call's number, and the fragments of the answer.
    pub(super) owes_late_ack: Option<(u32, u32)>,
    pub(super) owes_probe: bool,
    pub(super) owes_cancel: bool,
    /// A fragment is sent whatever the window says, to learn whether anything arrives.
    pub(super) is_retrying: bool,
    pub(super) is_ready: bool,
}

#[derive(Debug)]
pub(super) enum ClientLaneState<W> {
    Free,
    Calling(LaneCall<W>),
    /// The client no longer waits for the call; the server has not said that it is over.
    GivenUp,
}

#[derive(Debug)]
pub(super) struct LaneCall<W> {
    pub(super) waiter: W,
    /// The id with which it was begun: it may be carried on another lane by now.
    pub(super) id: CallId,
    pub(super) service: u16,
    pub(super) procedure: u16,
    pub(super) deadline: Instant,
}

impl<W> ClientLane<W> {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            sequence: 0,
            stage: ClientLaneState::Free,
            sending: OutgoingMessage::default(),
            assembly: Reassembly::new(bytes_max),
            answer_count: 0,
            is_sent: false,
            first_sent_at: None,
            asked_at: None,
            timer: None,
            in_vain: 0,
            probes: 0,
            owes_ack: false,
            owes_late_ack: None,
            owes_probe: false,
            owes_cancel: false,
            is_retrying: false,
            is_ready: false,
        }
    }

    pub(super) fn begin(&mut self, pending: LaneCall<W>) {
        self.rest();
        self.stage = ClientLaneState::Calling(pending);
        self.sequence = self.sequence.wrapping_add(1);
        self.answer_count = 0;
        self.is_sent = false;
        self.first_sent_at = None;
    }

    /// Begins the same call, which was not carried out, in another conversation.
    pub(super) fn begin_anew(&mut self) {
        self.rest();
        self.assembly.clear();
        self.sequence = self.sequence.wrapping_add(1);
        self.is_sent = false;
        self.first_sent_at = None;
        self.sending.restart(usize::MAX, |_| {});
    }

    /// Nothing is to be sent, and nothing is waited for.
    pub(super) fn rest(&mut self) {
        self.asked_at = None;
        self.timer = None;
        self.in_vain = 0;
        self.probes = 0;
        self.owes_ack = false;
        self.owes_late_ack = None;
        self.owes_probe = false;
        self.owes_cancel = false;
        self.is_retrying = false;
    }

    pub(super) fn is_calling(&self) -> bool {
        matches!(self.stage, ClientLaneState::Calling(_))
    }

    /// Something was sent that the server answers.
    pub(super) fn asked(&mut self, now: Instant) {
        self.asked_at.get_or_insert(now);
    }

    /// A fragment of the request was sent.
    pub(super) fn sent(&mut self, now: Instant) {
        self.asked(now);
        self.first_sent_at.get_or_insert(now);
        self.is_sent = self.is_sent || self.sending.is_sent();
    }

    /// The server was heard.
    pub(super) fn heard(&mut self) {
        self.asked_at = None;
        self.in_vain = 0;
    }

    pub(super) fn is_unheard_for(&self, now: Instant, silence: Duration) -> bool {
        let asked_at = self.asked_at;
        asked_at.is_some_and(|at| now.saturating_duration_since(at) >= silence)
    }

    /// Returns whether the call may have been carried out, in the conversation that the server does not know now. It
    /// would know it had it heard of it within `memory`.
    pub(super) fn may_have_run(&self, now: Instant, memory: Duration) -> bool {
        let Some(sent_at) = self.first_sent_at.filter(|_| self.is_sent) else {
            return false;
        };
        let age = now.saturating_duration_since(sent_at);
        age + age / PACE + GRAIN >= memory
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match &self.stage {
            ClientLaneState::Free => None,
            ClientLaneState::GivenUp => self.timer,
            ClientLaneState::Calling(pending) => {
                let deadline = pending.deadline;
                Some(self.timer.map_or(deadline, |timer| timer.min(deadline)))
            }
        }
    }

    pub(super) fn has_more(&mut self) -> bool {
        let owes_ack = self.owes_ack || self.owes_late_ack.is_some();
        let owes = owes_ack || self.owes_cancel || self.owes_probe;
        owes || self.is_calling() && self.sending.next_fragment().is_some()
    }

    /// Appends what has come of the answer.
    pub(super) fn put_ack(
        &mut self,
        prototype: &HeaderTemplate,
        plain: PacketHeader,
        out: &mut Buffer,
    ) {
        self.owes_ack = false;
        let (below, count) = match self.answer_count {
            0 => (self.assembly.below(), self.assembly.count()),
            count => (count, count),
        };
        let progress = match self.answer_count {
            0 => CallStatus::Receiving,
            _ => CallStatus::Over,
        };
        let header = PacketHeader {
            detail: progress as u16,
            fragment: below,
            fragments: count,
            ..plain
        };
        prototype.put(out, &header, |out| {
            put_bitmap(out, below.into(), self.assembly.held().map(u64::from));
        });
    }
}
