//! Calls of ONC RPC in datagrams, at their client: each is sent again until its reply comes or its time runs out.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tenon_wire::{Buffer, Decoder};

use super::call_failure::{CallFailure, FailedCall};
use super::server::DATAGRAM_SIZE_MAX;
use crate::codec::lean::{ByteOrder, Extensions};
use crate::codec::onc::message::{ReplyBody, ReplyHeader, set_xid};
use crate::codec::onc::record;
use crate::connection::{Answer, OutgoingCounters, ReplyError, StartError};
use crate::in_flight::InFlight;

/// Buffers that are kept for further calls.
const SPARE_MAX: usize = 64;

/// Times at which a call is sent again: after `first`, then after twice as long each time, but never after longer than
/// `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    /// Time until the first retransmission.
    pub first: Duration,
    /// Longest time between two retransmissions.
    pub longest: Duration,
}

impl Default for Retransmission {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
        }
    }
}

/// The calls of one socket.
#[derive(Debug)]
pub(super) struct OncDatagramCalls<W> {
    calls: InFlight<PendingOncCall<W>>,
    /// Calls that are to be sent, or sent again.
    ready: VecDeque<u32>,
    failed: VecDeque<FailedCall<W>>,
    /// Bytes of the largest call, which is one datagram.
    datagram_max: usize,
    retransmission: Retransmission,
    /// No call has anything to do before; it may be that none has then.
    next_due: Option<Instant>,
    spare: Vec<Buffer>,
    counters: OutgoingCounters,
}

#[derive(Debug)]
struct PendingOncCall<W> {
    deadline: Instant,
    send_again_at: Instant,
    pause: Duration,
    message: Buffer,
    waiter: W,
}

impl<W> PendingOncCall<W> {
    fn due(&self) -> Instant {
        self.send_again_at.min(self.deadline)
    }
}

impl<W> OncDatagramCalls<W> {
    /// No calls yet, the first of which will have the number `seed`.
    pub(super) fn new(seed: u32, retransmission: Retransmission) -> Self {
        Self {
            calls: InFlight::new(seed),
            ready: VecDeque::new(),
            failed: VecDeque::new(),
            datagram_max: DATAGRAM_SIZE_MAX,
            retransmission,
            next_due: None,
            spare: Vec::new(),
            counters: OutgoingCounters::default(),
        }
    }

    /// Sets how large the datagrams of calls may be that are started from now on.
    pub(super) fn set_datagram_max(&mut self, bytes: usize) {
        self.datagram_max = bytes.min(DATAGRAM_SIZE_MAX);
    }

    /// Puts a call in flight; its message is taken in exchange for an empty buffer. Returns its number.
    ///
    /// # Errors
    /// It does not fit into a datagram; the message stays where it is.
    pub(super) fn start(
        &mut self,
        now: Instant,
        deadline: Instant,
        message: &mut Buffer,
        waiter: W,
    ) -> Result<u32, StartError> {
        let (size, limit) = (record::message(message).len(), self.datagram_max);
        if size > limit {
            return Err(StartError::TooLargeForDatagram { size, limit });
        }
        let pause = self.retransmission.first;
        let spare = self.spare.pop().unwrap_or_default();
        let pending = PendingOncCall {
            deadline,
            send_again_at: now + pause,
            pause,
            message: std::mem::replace(message, spare),
            waiter,
        };
        let due = pending.due();
        let number = self.calls.insert(pending);
        if let Some(call) = self.calls.get_mut(number) {
            set_xid(&mut call.message, number);
        }
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
        self.ready.push_back(number);
        self.counters.calls += 1;
        Ok(number)
    }

    /// Takes in a datagram; the answer, if it is the reply to a call in flight. A datagram that is malformed may come
    /// from anyone, and is dropped.
    pub(super) fn handle_datagram<'m>(&mut self, datagram: &'m [u8]) -> Option<Answer<'m, W>> {
        let mut input = Decoder::new(datagram);
        let Ok(header) = ReplyHeader::decode(&mut input) else {
            self.counters.violations += 1;
            return None;
        };
        let Some(waiter) = self.take(header.xid) else {
            self.counters.unmatched += 1;
            return None;
        };
        let outcome = match header.body {
            ReplyBody::Success(_) => {
                self.counters.successes += 1;
                Ok(input.rest())
            }
            ReplyBody::Refused(refused) => {
                self.counters.refusals += 1;
                Err(ReplyError::Refused(refused))
            }
        };
        Some(Answer {
            number: header.xid,
            waiter,
            order: ByteOrder::Big,
            extensions: Extensions::none(ByteOrder::Big),
            outcome,
        })
    }

    fn take(&mut self, number: u32) -> Option<W> {
        let PendingOncCall {
            mut message,
            waiter,
            ..
        } = self.calls.take(number)?;
        if self.spare.len() < SPARE_MAX {
            message.clear();
            self.spare.push(message);
        }
        Some(waiter)
    }

    pub(super) fn has_transmit(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Appends the next datagram that is to be sent; false if there is none.
    pub(super) fn poll_transmit(&mut self, out: &mut Buffer) -> bool {
        while let Some(number) = self.ready.pop_front() {
            if let Some(call) = self.calls.get(number) {
                out.extend(record::message(&call.message));
                return true;
            }
        }
        false
    }

    pub(super) fn poll_failure(&mut self) -> Option<FailedCall<W>> {
        self.failed.pop_front()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next_due
    }

    /// Returns when the call has something to do; `None` if it is not in flight.
    pub(super) fn call_timeout(&self, number: u32) -> Option<Instant> {
        self.calls.get(number).map(PendingOncCall::due)
    }

    /// Sends calls again and gives calls up, as far as they are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.next_due.is_none_or(|due| now < due) {
            return;
        }
        let due = |(number, call): (u32, &PendingOncCall<W>)| (call.due() <= now).then_some(number);
        let numbers: Vec<u32> = self.calls.entries().filter_map(due).collect();
        for number in numbers {
            self.handle_due(number, now);
        }
        self.next_due = self.calls.entries().map(|(_, call)| call.due()).min();
    }

    fn handle_due(&mut self, number: u32, now: Instant) {
        let Some(call) = self.calls.get_mut(number) else {
            return;
        };
        if now < call.deadline {
            call.pause = (call.pause * 2).min(self.retransmission.longest);
            call.send_again_at = now + call.pause;
            self.ready.push_back(number);
            self.counters.retransmissions += 1;
            return;
        }
        if let Some(waiter) = self.take(number) {
            self.counters.timeouts += 1;
            let failure = CallFailure::Expired;
            self.failed.push_back(FailedCall { waiter, failure });
        }
    }

    pub(super) fn cancel(&mut self, number: u32) -> Option<W> {
        let waiter = self.take(number)?;
        self.counters.cancellations += 1;
        Some(waiter)
    }

    pub(super) fn cancel_all(&mut self) -> Vec<W> {
        self.counters.cancellations += self.calls.len() as u64;
        self.ready.clear();
        self.next_due = None;
        self.calls.take_all().map(|(_, call)| call.waiter).collect()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn counters(&self) -> OutgoingCounters {
        self.counters
    }
}
