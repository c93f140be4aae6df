//! The bookkeeping of the packet exchange: the engine of the protocol, and whose its calls are.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tenon_proto::exchange::client::{
    CallId, ClientEngine, ClientEvent, ClientLimits, ClientSecrets, Outgoing,
};
use tenon_proto::exchange::{DATAGRAM_DEFAULT, DATAGRAM_HERE, Failure, Ignored, Reason};
use tenon_proto::lean::{ByteOrder, Features, Preamble, Stamps, Status};
use tenon_proto::onc::client::ClientCounters;
use tenon_wire::Buffer;

use super::engine::{Answer, Meaning, Unstarted, unstarted};
use super::form::LeanForm;
use super::inbox::Taken;
use super::slots::SlotId;
use super::timer::Timer;
use crate::error::{CallError, LeanException, Misbehavior};
use crate::options::ChannelOptions;

/// The bookkeeping of the packet exchange. A call has the number of its slot.
#[derive(Debug)]
pub struct ExchangeEngine {
    calls: ClientEngine<SlotId>,
    /// Calls in flight, by their slots.
    started: Vec<Option<(CallId, Timer)>>,
    /// Why something could not be sent since something was received.
    fault: Option<Arc<io::Error>>,
    timeouts: u64,
    violations: u64,
}

/// What a client tells of itself.
pub(super) fn exchange_preamble(options: &ChannelOptions) -> Preamble {
    super::engine::preamble(options)
}

/// What nobody may foresee. The standard library's hashers have keys from the system's randomness.
fn secrets() -> ClientSecrets {
    let word = || RandomState::new().build_hasher().finish();
    let mut key = [0; 16];
    key[..8].copy_from_slice(&word().to_ne_bytes());
    key[8..].copy_from_slice(&word().to_ne_bytes());
    ClientSecrets { key, seed: word() }
}

impl ExchangeEngine {
    pub(super) fn new(options: &ChannelOptions) -> Self {
        let limits = ClientLimits::default();
        Self {
            calls: ClientEngine::new(exchange_preamble(options), limits, secrets()),
            started: Vec::new(),
            fault: None,
            timeouts: 0,
            violations: 0,
        }
    }

    /// Goes on over another socket, whose address is in no conversation; `is_here` if it leads to another
    /// process of this machine.
    pub(super) fn renew(&mut self, is_here: bool) {
        self.cancel_all();
        self.calls.set_datagram_max(match is_here {
            true => DATAGRAM_HERE,
            false => DATAGRAM_DEFAULT,
        });
    }

    /// Asks for a conversation, if there is none.
    pub fn greet(&mut self) {
        self.calls.greet(Instant::now());
    }

    /// Whether the server has still to be heard; what is in the way, if it is not asked any more.
    ///
    /// # Errors
    /// Why nothing could be sent.
    pub fn is_greeting(&self) -> Result<bool, Arc<io::Error>> {
        match (self.calls.is_greeting(), &self.fault) {
            (true, _) => Ok(true),
            (false, None) => Ok(false),
            (false, Some(fault)) => Err(Arc::clone(fault)),
        }
    }

    /// Puts a call in flight, whose `message` is taken in exchange for an empty buffer.
    ///
    /// # Errors
    /// Something is in the way; the message stays where it is.
    #[inline]
    pub fn start(
        &mut self,
        form: &LeanForm<'_>,
        message: &mut Buffer,
        timer: &Timer,
        slot: SlotId,
    ) -> Result<(), Unstarted> {
        let service = self.calls.bind(form.interface).map_err(CallError::from)?;
        let call = Outgoing {
            service,
            procedure: form.procedure,
            deadline: timer.deadline,
        };
        let id = self.calls.start(timer.started, &call, message, slot);
        let id = id.map_err(unstarted)?;
        if self.started.len() <= slot.index() {
            self.started.resize(slot.index() + 1, None);
        }
        self.started[slot.index()] = Some((id, *timer));
        Ok(())
    }

    /// Takes in a packet if it is the answer to the call of `slot` and of the commonest form, and says where its
    /// results are. What it is otherwise is left to [`take_in`](Self::take_in).
    #[inline]
    pub(super) fn take_common(&mut self, packet: &[u8], slot: SlotId) -> Option<Range<usize>> {
        let started = self.started.get_mut(slot.index())?;
        let (id, _) = (*started)?;
        let place = self.calls.take_common(Instant::now(), packet, id)?;
        *started = None;
        self.fault = None;
        Some(place)
    }

    /// Takes in a packet.
    #[inline]
    pub(super) fn take_in<'m>(&mut self, packet: &'m [u8], taken: &'m mut Taken) -> Meaning<'m> {
        self.fault = None;
        let now = Instant::now();
        let Taken { whole, stamps } = taken;
        let Some(answer) = self.calls.handle_datagram_into(now, packet, whole) else {
            return Meaning::Handled;
        };
        let is_noted = !answer.extensions.is_empty();
        *stamps = match is_noted {
            true => Stamps::find(answer.extensions),
            false => None,
        };
        self.started[answer.waiter.index()] = None;
        let length = answer.outcome.as_ref().map_or(0, |results| results.len());
        Meaning::Answer(Answer {
            slot: answer.waiter,
            order: answer.order,
            is_noted,
            place: answer.start..answer.start + length,
            outcome: answer.outcome.map_err(|error| Box::new(error.into())),
        })
    }

    /// The system says that nobody listens where the server should be.
    #[cold]
    pub fn refused(&mut self, error: io::Error) {
        self.note_fault(error);
        self.calls.handle_refusal(Instant::now());
    }

    /// Something could not be sent, and counts as lost.
    #[cold]
    pub fn note_fault(&mut self, error: io::Error) {
        tracing::debug!(%error, "a packet could not be sent");
        self.fault = Some(Arc::new(error));
    }

    fn id_of(&self, number: u32) -> Option<CallId> {
        let started = self.started.get(number as usize)?;
        started.map(|(id, _)| id)
    }

    #[inline]
    pub(super) fn next_timeout(&self, number: u32) -> Option<Instant> {
        self.calls.next_timeout(self.id_of(number)?)
    }

    /// When there is something to do for any call.
    #[inline]
    pub fn next_timeout_of_all(&self) -> Option<Instant> {
        self.calls.poll_timeout()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.calls.handle_timeout(now);
    }

    pub(super) fn cancel(&mut self, number: u32) -> Option<SlotId> {
        let id = self.id_of(number)?;
        self.started[number as usize] = None;
        self.calls.cancel(id)
    }

    pub(super) fn cancel_all(&mut self) -> Vec<SlotId> {
        self.started.clear();
        self.calls.break_off()
    }

    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.calls.in_flight()
    }

    #[inline]
    pub(super) fn has_transmit(&self) -> bool {
        self.calls.has_transmit()
    }

    /// Appends the next packet that is to be sent; false if there is none. The clock was looked at when it was
    /// `seen`, if that was just now.
    #[inline]
    pub fn poll_packet(&mut self, seen: Option<Instant>, out: &mut Buffer) -> bool {
        if !self.calls.has_transmit() {
            return false;
        }
        let now = seen.unwrap_or_else(Instant::now);
        self.calls.poll_transmit(now, out)
    }

    #[inline]
    pub(super) fn poll_failure(&mut self) -> Option<(SlotId, CallError)> {
        let ClientEvent::Failed {
            waiter, failure, ..
        } = self.calls.poll_event()?;
        let started = self.started.get_mut(waiter.index());
        let (_, timer) = started.and_then(Option::take)?;
        Some((waiter, self.error(failure, &timer)))
    }

    /// What the owner of a call is told that came to nothing.
    #[cold]
    fn error(&mut self, failure: Failure, timer: &Timer) -> CallError {
        let may_have_executed = failure.may_have_run;
        let disconnected = |cause| CallError::Disconnected {
            cause,
            may_have_executed,
        };
        let told = |kind| Arc::new(io::Error::new(kind, failure.reason.to_string()));
        match failure.reason {
            Reason::Expired => {
                self.timeouts += 1;
                match &self.fault {
                    // What keeps packets from being sent says more than that time ran out.
                    Some(fault) => disconnected(Arc::clone(fault)),
                    None => timer.error(may_have_executed),
                }
            }
            Reason::Unreachable => match &self.fault {
                Some(fault) => disconnected(Arc::clone(fault)),
                None => disconnected(told(io::ErrorKind::TimedOut)),
            },
            Reason::Stopped => disconnected(told(io::ErrorKind::ConnectionAborted)),
            Reason::Forgotten { .. } => disconnected(told(io::ErrorKind::ConnectionReset)),
            Reason::Refused(refused) => CallError::ConnectionRefused(refused),
            Reason::TooLarge { size, limit } => CallError::TooLargeForPeer { size, limit },
            Reason::Overloaded => exception(Status::OVERLOADED, &failure),
            Reason::AnswerTooLarge => exception(Status::TOO_LARGE, &failure),
            Reason::Violation(violation) => {
                self.violations += 1;
                CallError::Misbehaved(Misbehavior::Exchange { violation })
            }
            // Of the reasons there may be one day nothing else is known.
            _ => disconnected(told(io::ErrorKind::InvalidData)),
        }
    }

    /// Whether the server says when a call passed it, if it is asked for that.
    pub(super) fn gives_stamps(&self) -> bool {
        let peer = self.calls.peer();
        peer.is_some_and(|peer| peer.features.has(Features::STAMPS))
    }

    pub(super) fn counters(&self) -> ClientCounters {
        let counters = self.calls.counters();
        ClientCounters {
            calls: counters.calls,
            successes: counters.successes,
            refusals: counters.exceptions,
            timeouts: self.timeouts,
            cancellations: counters.cancellations,
            retransmissions: counters.repeated,
            unmatched: counters.ignored.of(Ignored::Stale),
            violations: self.violations,
        }
    }
}

/// What the server says, or this end in its place, without having sent an exception.
fn exception(status: Status, failure: &Failure) -> CallError {
    CallError::Exception(LeanException {
        status,
        message: failure.reason.to_string().into(),
        details: Vec::new(),
        order: ByteOrder::NATIVE,
    })
}
