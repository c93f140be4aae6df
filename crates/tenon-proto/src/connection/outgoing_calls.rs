//! The calls that this end has made: their numbers, their deadlines, and which reply belongs to which.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tenon_wire::{Buffer, Decoder};

use super::ConnectionError;
use super::binding::{BindError, RequestedServices};
use super::counters::OutgoingCounters;
use super::started_call::StartedCall;
use crate::codec::lean::{
    BindRefusal, ByteOrder, Exception, Extensions, Fault, Interface, Kind, Message, MessageDraft,
};
use crate::codec::onc::message::{Refused, ReplyBody, ReplyHeader, Violation, set_xid};
use crate::in_flight::InFlight;
use crate::sorted::sort_numbers_from;

/// A call that is written but for what is known only when it is sent: its number, and its service's.
#[derive(Debug, Clone, Copy)]
pub enum CallDraft<'c> {
    /// A call of ONC RPC, which [`CallTemplate::begin`](crate::onc::message::CallTemplate::begin) began.
    Onc,
    /// A call of the lean protocol.
    Lean(LeanCall<'c>),
}

/// A call of the lean protocol, and what it is a call of.
#[derive(Debug, Clone, Copy)]
pub struct LeanCall<'c> {
    /// The place of its message in the buffer.
    pub draft: MessageDraft,
    /// The version of a program that the service must have been built from.
    pub interface: &'c Arc<Interface>,
    /// Procedure number.
    pub procedure: u16,
}

/// The reason for which a call cannot be started now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It is larger than the peer accepts.
    #[error("a call of {size} bytes is over the peer's limit of {limit}")]
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// Most bytes that the peer accepts.
        limit: usize,
    },
    /// It was to travel in one datagram of ONC RPC, and is larger.
    #[error("a call of {size} bytes is over the {limit} bytes of a datagram")]
    TooLargeForDatagram {
        /// Bytes of the message.
        size: usize,
        /// Most bytes that a datagram takes here.
        limit: usize,
    },
    /// It is larger than every peer accepts, or the connection was made again. What this peer accepts, its preamble
    /// will say.
    #[error("the peer has not said yet whether it accepts a call of {size} bytes")]
    AwaitsPreamble {
        /// Bytes of the message.
        size: usize,
    },
    /// It waits until the peer has said whether it binds the service, as so many bytes of calls wait for that already.
    #[error(
        "the peer has not said yet whether it takes calls of the interface, this one of {size} bytes"
    )]
    AwaitsBinding {
        /// Bytes of the message.
        size: usize,
    },
    /// As many calls with streams are in flight as the peer grants. Wait for some to be answered.
    #[error("limit {limit} of the peer for calls with streams reached")]
    TooManyStreams {
        /// Most calls.
        limit: usize,
    },
    /// The peer takes no calls with streams.
    #[error("the peer takes no calls with streams")]
    NoStreams,
    /// As many calls are in flight as the peer grants. Wait for some to be answered.
    #[error("in-flight limit {limit} of the peer reached")]
    TooManyCalls {
        /// Most calls.
        limit: usize,
    },
    /// The connection takes no further calls. Make another.
    #[error("the connection takes no further calls")]
    Closing,
    /// The connection speaks the other protocol.
    #[error("the connection speaks the other protocol")]
    OtherProtocol,
    /// The service cannot be called.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// The reason for which a call was answered without results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyError<'m> {
    /// A peer of ONC RPC did not carry the call out.
    Refused(Refused),
    /// A peer of ONC RPC answered what is no reply.
    Violation(Violation),
    /// A lean peer says why.
    Exception(Exception<'m>),
    /// A lean peer did not bind the service, and so did not carry the call out.
    Unbound(Arc<BindRefusal>),
}

/// The answer to a call that was in flight until now.
#[derive(Debug)]
pub struct Answer<'m, W> {
    /// The number of the call.
    pub number: u32,
    /// The waiter that was handed in with the call.
    pub waiter: W,
    /// The order of the bytes of the results.
    pub order: ByteOrder,
    /// The extensions of the answer.
    pub extensions: Extensions<'m>,
    /// The encoded results, where they were received.
    pub outcome: Result<&'m [u8], ReplyError<'m>>,
}

/// A lean peer's answer to a call that was in flight until now.
#[derive(Debug)]
pub(super) enum LeanAnswer<'m, W> {
    Answered(Answer<'m, W>),
    /// It was not begun, as its service was not bound, and can be called now.
    Unbegun(AbandonedCall<W>),
}

/// The answer to a call that was in flight until now, in its commonest form: results and nothing beside.
#[derive(Debug)]
pub struct PlainAnswer<W> {
    /// The waiter that was handed in with the call.
    pub waiter: W,
    /// The order of the bytes of the results.
    pub order: ByteOrder,
    /// The place of the encoded results in [what was handed out last](super::framing::Receiver::last_content).
    pub place: Range<usize>,
}

/// A call that ended without an answer.
#[derive(Debug)]
pub struct AbandonedCall<W> {
    /// Its number.
    pub number: u32,
    /// The waiter that was handed in with it.
    pub waiter: W,
    /// True if it was sent whole, so that the peer may have carried it out.
    pub was_sent: bool,
    /// The call itself, if the connection was lost before it was sent whole.
    pub unsent: Option<UnsentCall>,
    /// Bytes of its message, if it is a long one of ONC RPC that was sent whole over a connection that was lost: what the
    /// peer takes is not known there.
    pub long_size: Option<usize>,
}

/// A call that was not sent whole before its connection was lost, for [`Connection::restart_call`].
///
/// [`Connection::restart_call`]: super::Connection::restart_call
#[derive(Debug)]
pub struct UnsentCall {
    /// Its whole message.
    pub(super) message: Buffer,
    /// The interface and the procedure that it calls, by the lean protocol.
    pub(super) lean: Option<(Arc<Interface>, u16)>,
    /// The time at which it is given up.
    pub deadline: Instant,
    /// Connections that were lost while the call was being sent.
    cut_off: u8,
}

impl UnsentCall {
    /// Connections that may be lost while a call is being sent. One that ends two may be the reason: it is larger than
    /// the peer takes, for example.
    const CUT_OFF_MAX: u8 = 2;

    /// Returns whether it may be sent over another connection.
    pub fn may_be_sent_again(&self) -> bool {
        self.cut_off < Self::CUT_OFF_MAX
    }

    /// Bytes of its message, with its header and, by ONC RPC, its record mark.
    pub fn size(&self) -> usize {
        self.message.len()
    }

    /// A call that cannot be [started](super::Connection::start_call) yet: it is to be restarted when it can. An empty
    /// buffer is left in place of its whole message.
    pub fn new(draft: &CallDraft<'_>, message: &mut Buffer, deadline: Instant) -> Self {
        let lean = match draft {
            CallDraft::Onc => None,
            CallDraft::Lean(call) => Some((Arc::clone(call.interface), call.procedure)),
        };
        Self {
            message: std::mem::take(message),
            lean,
            deadline,
            cut_off: 0,
        }
    }

    /// Returns how often a connection was lost while the call was being sent.
    pub(super) fn cut_off(&self) -> u8 {
        self.cut_off
    }
}

/// Calls of procedure 0 that are known when their replies come late.
const NULL_CALLS_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct OutgoingCalls<W> {
    calls: InFlight<PendingReply<W>>,
    /// Calls that were given up and not answered yet: a lean peer may still be at them.
    given_up: usize,
    /// The numbers of the last calls of procedure 0 that no caller waits for, until they are answered.
    null_calls: Vec<u32>,
    /// Numbers and bytes of long calls of ONC RPC that were sent. Some may be answered already.
    long: Vec<(u32, usize)>,
    counters: OutgoingCounters,
}

#[derive(Debug)]
struct PendingReply<W> {
    deadline: Instant,
    service: u16,
    procedure: u16,
    was_sent: bool,
    /// Connections that were lost while the call was being sent.
    cut_off: u8,
    waiter: W,
}

impl CallDraft<'_> {
    /// Gives a call its number and its service's.
    #[inline]
    pub(super) fn stamp(&self, message: &mut Buffer, call: &StartedCall) {
        match self {
            Self::Onc => set_xid(message, call.number),
            Self::Lean(lean) => lean.draft.stamp(message, call.number, call.service),
        }
    }
}

impl<W> OutgoingCalls<W> {
    /// No calls yet, the first of which will have the number `seed`.
    pub(super) fn new(seed: u32) -> Self {
        Self {
            calls: InFlight::new(seed),
            given_up: 0,
            null_calls: Vec::new(),
            long: Vec::new(),
            counters: OutgoingCounters::default(),
        }
    }

    /// Puts a call in flight and returns its number.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        (service, procedure): (u16, u16),
        deadline: Instant,
        waiter: W,
    ) -> u32 {
        self.counters.calls += 1;
        self.calls.insert(PendingReply {
            deadline,
            service,
            procedure,
            was_sent: false,
            cut_off: 0,
            waiter,
        })
    }

    /// Returns the number of a call of procedure 0 that no caller waits for.
    pub(super) fn begin_null_call(&mut self) -> u32 {
        let number = self.calls.skip_number();
        if self.null_calls.len() == NULL_CALLS_MAX {
            self.null_calls.remove(0);
        }
        self.null_calls.push(number);
        number
    }

    /// Returns a number that is behind those of all calls so far.
    pub(super) fn next_number(&self) -> u32 {
        self.calls.next_number()
    }

    /// Returns whether a call is in flight that was sent whole.
    pub(super) fn was_sent(&self, number: u32) -> bool {
        self.calls.get(number).is_some_and(|call| call.was_sent)
    }

    /// Returns whether a call of this number has been in flight, and is not any more.
    pub(super) fn is_over(&self, number: u32) -> bool {
        let is_behind = (self.calls.next_number().wrapping_sub(number) as i32) > 0;
        is_behind && self.calls.get(number).is_none()
    }

    /// Returns whether a call is in flight that was started before the one with this number.
    pub(super) fn has_older_than(&self, number: u32) -> bool {
        let mut numbers = self.calls.numbers();
        numbers.any(|of| (of.wrapping_sub(number) as i32) < 0)
    }

    /// Calls that a lean peer has to be taken to be at.
    #[inline]
    pub(super) fn at_peer(&self) -> usize {
        self.calls.len() + self.given_up
    }

    /// Returns whether this end has made a call.
    #[inline]
    pub(super) fn has_called(&self) -> bool {
        self.counters.calls > 0
    }

    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.calls.len()
    }

    #[inline]
    pub(super) fn mark_sent(&mut self, number: u32) {
        if let Some(call) = self.calls.get_mut(number) {
            call.was_sent = true;
        }
    }

    /// Notes how long a call is that is sent.
    #[cold]
    pub(super) fn note_long_call(&mut self, number: u32, size: usize) {
        let calls = &self.calls;
        self.long.retain(|(number, _)| calls.get(*number).is_some());
        self.long.push((number, size));
    }

    pub(super) fn mark_unsent(&mut self, number: u32) {
        if let Some(call) = self.calls.get_mut(number) {
            call.was_sent = false;
        }
    }

    /// Notes that the connection was lost while a call was being sent.
    pub(super) fn mark_cut_off(&mut self, number: u32) {
        if let Some(call) = self.calls.get_mut(number) {
            call.was_sent = false;
            call.cut_off = call.cut_off.saturating_add(1);
        }
    }

    /// Notes that a call was cut off so often before.
    pub(super) fn set_cut_off(&mut self, number: u32, times: u8) {
        if let Some(call) = self.calls.get_mut(number) {
            call.cut_off = times;
        }
    }

    /// Ends a call to which its owner has found the reply; returns whether it was in flight.
    #[inline]
    pub(super) fn finish(&mut self, number: u32, is_meant: impl FnOnce(&W) -> bool) -> bool {
        let is_meant = |call: &PendingReply<W>| is_meant(&call.waiter);
        if self.calls.take_if(number, is_meant).is_none() {
            return false;
        }
        self.counters.successes += 1;
        true
    }

    /// Ends the call to a procedure that is answered successfully, if it is in flight, and returns its waiter.
    #[inline]
    pub(super) fn take_successful(&mut self, number: u32, names: (u16, u16)) -> Option<W> {
        let is_meant = |call: &PendingReply<W>| names == (call.service, call.procedure);
        let call = self.calls.take_if(number, is_meant)?;
        self.counters.successes += 1;
        Some(call.waiter)
    }

    /// Takes in a lean reply.
    #[inline]
    pub(super) fn handle_reply<'m>(
        &mut self,
        message: &Message<'m>,
        requested: &mut RequestedServices,
    ) -> Result<Option<LeanAnswer<'m, W>>, ConnectionError> {
        let header = message.header;
        let mut kept = None;
        let (extensions, outcome) = if header.kind == Kind::Reply {
            let parts = message.understood()?;
            (parts.extensions, Ok(parts.body))
        } else {
            let exception = message.read(Exception::decode)?;
            kept = requested.take_kept(header.service, header.id, header.procedure);
            let error = match requested.refusal(header.service, header.procedure) {
                Some(refusal) => ReplyError::Unbound(refusal),
                None => ReplyError::Exception(exception),
            };
            (message.parts()?.extensions, Err(error))
        };
        let got = (header.service, header.procedure);
        let is_meant = |call: &PendingReply<W>| got == (call.service, call.procedure);
        let Some(call) = self.calls.take_if(header.id, is_meant) else {
            self.handle_unmatched(message)?;
            return Ok(None);
        };
        if let Some(message) = kept {
            self.counters.calls -= 1;
            let interface = requested.interface(header.service);
            return Ok(Some(LeanAnswer::Unbegun(AbandonedCall {
                unsent: Some(UnsentCall {
                    message,
                    lean: interface.map(|interface| (interface, header.procedure)),
                    deadline: call.deadline,
                    cut_off: call.cut_off,
                }),
                was_sent: false,
                ..abandoned(header.id, call)
            })));
        }
        self.count(&outcome);
        Ok(Some(LeanAnswer::Answered(Answer {
            number: header.id,
            waiter: call.waiter,
            order: message.order,
            extensions,
            outcome,
        })))
    }

    #[inline]
    fn count(&mut self, outcome: &Result<&[u8], ReplyError<'_>>) {
        match outcome {
            Ok(_) => self.counters.successes += 1,
            Err(ReplyError::Violation(_)) => self.counters.violations += 1,
            Err(_) => self.counters.refusals += 1,
        }
    }

    /// Takes in a lean reply to no call in flight.
    #[cold]
    fn handle_unmatched(&mut self, message: &Message<'_>) -> Result<(), ConnectionError> {
        let header = message.header;
        if let Some(call) = self.calls.get(header.id) {
            let fault = Fault::OtherProcedure {
                id: header.id,
                expected: (call.service, call.procedure),
                got: (header.service, header.procedure),
            };
            return Err(message.header_violation(fault, 8).into());
        }
        self.counters.unmatched += 1;
        self.given_up = self.given_up.saturating_sub(1);
        Ok(())
    }

    /// Takes in a reply of ONC RPC. `Ok(None)` if it answers no call in flight. A reply that names a call but is
    /// malformed behind ends that call.
    pub(super) fn handle_onc_reply<'m>(
        &mut self,
        message: &'m [u8],
    ) -> Result<Option<Answer<'m, W>>, ConnectionError> {
        let mut input = Decoder::new(message);
        let (number, outcome) = match ReplyHeader::decode(&mut input) {
            Ok(header) => match header.body {
                ReplyBody::Success(_) => (header.xid, Ok(input.rest())),
                ReplyBody::Refused(refused) => (header.xid, Err(ReplyError::Refused(refused))),
            },
            Err(violation) => {
                let xid = message.first_chunk().map(|xid| u32::from_be_bytes(*xid));
                let named = xid.filter(|xid| self.calls.get(*xid).is_some());
                match named.filter(|_| !matches!(violation, Violation::NotAReply(_))) {
                    Some(xid) => (xid, Err(ReplyError::Violation(violation))),
                    None => {
                        self.counters.violations += 1;
                        return Err(violation.into());
                    }
                }
            }
        };
        let Some(call) = self.calls.take(number) else {
            match self.null_calls.iter().position(|null| *null == number) {
                Some(index) => drop(self.null_calls.remove(index)),
                None => self.counters.unmatched += 1,
            }
            return Ok(None);
        };
        self.count(&outcome);
        Ok(Some(Answer {
            number,
            waiter: call.waiter,
            order: ByteOrder::Big,
            extensions: Extensions::none(ByteOrder::Big),
            outcome,
        }))
    }

    /// Returns when a call is given up; `None` if it is not in flight.
    #[inline]
    pub(super) fn deadline(&self, number: u32) -> Option<Instant> {
        self.calls.get(number).map(|call| call.deadline)
    }

    pub(super) fn set_deadline(&mut self, number: u32, deadline: Instant) {
        if let Some(call) = self.calls.get_mut(number) {
            call.deadline = deadline;
        }
    }

    /// Returns when the first of all calls is given up.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.calls.entries().map(|(_, call)| call.deadline).min()
    }

    /// Returns a call that has run out of time by `now`.
    pub(super) fn expired(&self, now: Instant) -> Option<u32> {
        let mut calls = self.calls.entries();
        let (number, _) = calls.find(|(_, call)| call.deadline <= now)?;
        Some(number)
    }

    /// Takes out a call that ran out of time or that is not wanted any more.
    pub(super) fn abandon(&mut self, number: u32, is_late: bool) -> Option<AbandonedCall<W>> {
        let call = self.calls.take(number)?;
        if is_late {
            self.counters.timeouts += 1;
        } else {
            self.counters.cancellations += 1;
        }
        Some(abandoned(number, call))
    }

    /// Counts a call that a lean peer still has to answer though it was given up.
    pub(super) fn note_given_up(&mut self) {
        self.given_up += 1;
    }

    /// Forgets the calls that the peer of a lost connection will not answer any more.
    pub(super) fn renew(&mut self) {
        self.given_up = 0;
    }

    /// Takes all calls out, for when the connection is lost. `unsent` are the messages of those that were not sent
    /// whole.
    pub(super) fn abandon_all(
        &mut self,
        mut unsent: Vec<(u32, Buffer)>,
        requested: &RequestedServices,
    ) -> Vec<AbandonedCall<W>> {
        self.given_up = 0;
        let long = std::mem::take(&mut self.long);
        let calls = self.calls.take_all();
        let abandoned = calls.map(|(number, call)| {
            let of_call = long.iter().find(|(of, _)| *of == number);
            let long_size = of_call.map(|(_, size)| *size).filter(|_| call.was_sent);
            let index = unsent.iter().position(|(unsent, _)| *unsent == number);
            let unsent = index.map(|index| UnsentCall {
                message: unsent.swap_remove(index).1,
                lean: requested
                    .interface(call.service)
                    .map(|interface| (interface, call.procedure)),
                deadline: call.deadline,
                cut_off: call.cut_off,
            });
            AbandonedCall {
                unsent,
                long_size,
                ..abandoned(number, call)
            }
        });
        let abandoned: Vec<_> = abandoned.collect();
        let begun_again = abandoned
            .iter()
            .filter(|call| call.unsent.is_some())
            .count() as u64;
        self.counters.cancellations += abandoned.len() as u64 - begun_again;
        self.counters.calls -= begun_again;
        abandoned
    }

    /// Takes the calls out that were sent behind the call `last`, in the order in which they were sent.
    pub(super) fn abandon_behind(&mut self, last: Option<u32>) -> Vec<AbandonedCall<W>> {
        let behind = |number: u32| match last {
            Some(last) => number.wrapping_sub(last).wrapping_sub(1) < i32::MAX as u32,
            None => true,
        };
        let mut numbers: Vec<u32> = self
            .calls
            .numbers()
            .filter(|number| behind(*number))
            .collect();
        let first = last.or(numbers.first().copied()).unwrap_or(0);
        sort_numbers_from(first, &mut numbers);
        let calls = numbers.into_iter();
        calls
            .filter_map(|number| Some(abandoned(number, self.calls.take(number)?)))
            .collect()
    }

    pub(super) fn counters(&self) -> OutgoingCounters {
        self.counters
    }

    pub(super) fn count_violation(&mut self) {
        self.counters.violations += 1;
    }
}

fn abandoned<W>(number: u32, call: PendingReply<W>) -> AbandonedCall<W> {
    AbandonedCall {
        number,
        waiter: call.waiter,
        was_sent: call.was_sent,
        unsent: None,
        long_size: None,
    }
}
