//! The protocol that a channel speaks: which calls are in flight on it, and what a message means.

use std::io;
use std::ops::Range;
use std::time::Instant;

use tenon_net::{Address, Protocol};
use tenon_proto::lean::client::{self as lean, Event, HandshakeError, NotStarted};
use tenon_proto::lean::{
    ByteOrder, Features, Goodbye, Incoming, Message, Preamble, Reason, Status, Violation,
};
use tenon_proto::onc::client::{self as onc, ClientCounters, Timeout};
use tenon_wire::Buffer;

use super::Timer;
use super::broken::Broken;
use super::exchange::ExchangeEngine;
use super::form::{Form, LeanForm, Started};
use super::inbox::Received;
use super::sending::Obstacle;
use super::slots::SlotId;
use crate::error::{CallError, Misbehavior};
use crate::options::ChannelOptions;

/// The bookkeeping of one protocol.
#[derive(Debug)]
pub enum Engine {
    /// That of ONC RPC.
    Onc(onc::ClientEngine<SlotId>),
    /// That of the lean protocol over a stream.
    Lean(LeanEngine),
    /// That of the packet exchange, which carries lean messages in datagrams.
    Exchange(Box<ExchangeEngine>),
}

/// The bookkeeping of the lean protocol.
#[derive(Debug)]
pub struct LeanEngine {
    calls: lean::ClientEngine<SlotId>,
    /// Connections on which the peer broke the protocol.
    violations: u64,
}

/// What a message meant.
#[derive(Debug)]
pub enum Meaning<'m> {
    /// A call is answered.
    Answer(Answer<'m>),
    /// These calls were not begun and are no longer in flight. No call is accepted any more.
    Goodbye {
        /// Why, for their owners.
        cause: io::Error,
        /// Who waits for them.
        unbegun: Vec<SlotId>,
    },
    /// Nothing for the owner of a call; a call may have become possible that was not.
    Handled,
}

/// An answer to a call that was in flight until now.
#[derive(Debug)]
pub struct Answer<'m> {
    /// Who waits for it.
    pub slot: SlotId,
    /// The order of the bytes of the results.
    pub order: ByteOrder,
    /// Whether the answer may say something of the call's way; see [`Inbox::note`](super::inbox::Inbox::note).
    pub is_noted: bool,
    /// Where the results are in what [`Inbox::message`](super::inbox::Inbox::message) returns.
    pub place: Range<usize>,
    /// The encoded results. The error is seldom there and large, and an answer is moved several
    /// times.
    pub outcome: Result<&'m [u8], Box<CallError>>,
}

/// Why a call is not started.
#[derive(Debug)]
pub enum Unstarted {
    /// Something is in the way that can be overcome.
    Obstacle(Obstacle),
    /// It never will be.
    Error(CallError),
}

impl From<CallError> for Unstarted {
    fn from(error: CallError) -> Self {
        Self::Error(error)
    }
}

/// What a lean client tells of itself.
pub fn preamble(options: &ChannelOptions) -> Preamble {
    Preamble {
        features: Features::STAMPS,
        ..Preamble::client(u32::try_from(options.receive_max).unwrap_or(u32::MAX))
    }
}

impl Engine {
    /// The bookkeeping of a channel to `address`. `seed` is the number of the first call.
    pub fn new(address: &Address, options: &ChannelOptions, seed: u32) -> Self {
        match address {
            Address::LeanTcp(_) | Address::LeanUnix(_) | Address::Shm(_) => {
                Self::Lean(LeanEngine {
                    calls: lean::ClientEngine::new(preamble(options), seed),
                    violations: 0,
                })
            }
            Address::LeanUdp(_) | Address::Xdp(_) => {
                Self::Exchange(Box::new(ExchangeEngine::new(options)))
            }
            Address::Udp(_) => Self::Onc(onc::ClientEngine::datagram(seed, options.retransmission)),
            Address::Tcp(_) | Address::Unix(_) => Self::Onc(onc::ClientEngine::stream(seed)),
        }
    }

    /// Goes on with a new connection, which leads to another process of this machine if `is_here`. No call is
    /// in flight.
    pub fn renew(&mut self, is_here: bool) {
        match self {
            Self::Onc(_) => {}
            Self::Lean(engine) => engine.calls.renew(),
            Self::Exchange(engine) => engine.renew(is_here),
        }
    }

    /// Puts a call in flight and gives it its number. One of the packet exchange
    /// [enters](ExchangeEngine::start) with its message instead.
    ///
    /// # Errors
    /// Something is in the way.
    #[inline]
    pub fn start(
        &mut self,
        form: &Form<'_>,
        size: usize,
        timer: &Timer,
        slot: SlotId,
    ) -> Result<Started, Unstarted> {
        match (self, form) {
            (Self::Onc(engine), Form::Onc) => Ok(Started {
                id: engine.start(timer.started, timer.deadline, slot),
                service: 0,
                procedure: 0,
            }),
            (Self::Lean(engine), Form::Lean(form)) => {
                let calls = &mut engine.calls;
                let service = calls.bind(form.interface).map_err(CallError::from)?;
                let outgoing = lean::Outgoing {
                    service,
                    procedure: form.procedure,
                    size,
                    deadline: timer.deadline,
                };
                let id = calls.start(&outgoing, slot).map_err(unstarted)?;
                let procedure = form.procedure;
                Ok(Started {
                    id,
                    service,
                    procedure,
                })
            }
            (
                engine @ (Self::Onc(_) | Self::Lean(_) | Self::Exchange(_)),
                Form::Onc | Form::Lean(_),
            ) => {
                let spoken = engine.protocol();
                Err(CallError::OtherProtocol { spoken }.into())
            }
        }
    }

    fn protocol(&self) -> Protocol {
        match self {
            Self::Onc(_) => Protocol::Onc,
            Self::Lean(_) | Self::Exchange(_) => Protocol::Lean,
        }
    }

    /// Takes in what has come.
    ///
    /// # Errors
    /// The peer broke the protocol, or refuses the connection.
    ///
    /// # Panics
    /// It has come by the other protocol.
    #[inline]
    pub fn take_in<'m>(&mut self, received: Received<'m>) -> Result<Meaning<'m>, Broken> {
        match (self, received) {
            (Self::Onc(engine), Received::Record(message)) => Ok(take_in_onc(engine, message)?),
            (Self::Lean(engine), Received::Lean(Incoming::Message(message))) => {
                engine.take_in(&message)
            }
            (Self::Lean(engine), Received::Lean(Incoming::Preamble(theirs))) => {
                let greeted = engine.calls.handle_preamble(&theirs);
                greeted.map(|()| Meaning::Handled).map_err(Broken::from)
            }
            (Self::Exchange(engine), Received::Packet(packet, taken)) => {
                Ok(engine.take_in(packet, taken))
            }
            (
                Self::Onc(_) | Self::Lean(_) | Self::Exchange(_),
                Received::Record(_) | Received::Lean(_) | Received::Packet(..),
            ) => unreachable!("an inbox is made for its protocol"),
        }
    }

    /// Ends a call whose owner has [taken](super::inbox::Inbox::take_reply) the reply itself, if it is the one of
    /// `own`; says whether.
    #[inline]
    pub fn handle_success(&mut self, id: u32, own: SlotId) -> bool {
        let is_own = |slot: &SlotId| *slot == own;
        match self {
            Self::Onc(engine) => engine.handle_success(id, is_own),
            Self::Lean(engine) => engine.calls.handle_success(id, is_own),
            Self::Exchange(_) => false,
        }
    }

    /// Counts a connection that broke.
    pub fn broke(&mut self, broken: &Broken) {
        if let (Self::Lean(engine), Broken::Misbehaved(_)) = (self, broken) {
            engine.violations += 1;
        }
    }

    /// When the call has something to do. None if it is no longer in flight.
    #[inline]
    pub fn next_timeout(&self, id: u32) -> Option<Instant> {
        match self {
            Self::Onc(engine) => engine.next_timeout(id),
            Self::Lean(engine) => engine.calls.next_timeout(id),
            Self::Exchange(engine) => engine.next_timeout(id),
        }
    }

    /// When whoever reads has something to do, who waits for this call.
    #[inline]
    pub fn next_timeout_of_reader(&self, id: u32) -> Option<Instant> {
        match self {
            Self::Onc(_) | Self::Lean(_) => self.next_timeout(id),
            Self::Exchange(engine) => engine.next_timeout_of_all(),
        }
    }

    /// What the call is to do at `now`. None if it is no longer in flight.
    pub fn handle_timeout(&mut self, id: u32, now: Instant) -> Option<Timeout<SlotId>> {
        match self {
            Self::Onc(engine) => engine.handle_timeout(id, now),
            Self::Lean(engine) => {
                let timeout = engine.calls.handle_timeout(id, now)?;
                Some(match timeout {
                    lean::Timeout::Wait(until) => Timeout::Wait(until),
                    lean::Timeout::Expired(slot) => Timeout::Expired(slot),
                })
            }
            // Whose time has run out is among those who failed.
            Self::Exchange(engine) => {
                engine.handle_timeout(now);
                engine.next_timeout(id).map(Timeout::Wait)
            }
        }
    }

    /// Gives a call up, if it is in flight.
    #[inline]
    pub fn cancel(&mut self, id: u32) {
        match self {
            Self::Onc(engine) => engine.cancel(id),
            Self::Lean(engine) => engine.calls.cancel(id),
            Self::Exchange(engine) => engine.cancel(id),
        };
    }

    /// Takes a call back of which nothing was sent.
    pub fn withdraw(&mut self, id: u32) {
        match self {
            Self::Onc(engine) => engine.cancel(id),
            Self::Lean(engine) => engine.calls.withdraw(id),
            Self::Exchange(engine) => engine.cancel(id),
        };
    }

    /// Gives all calls up and says who waits for them.
    pub fn cancel_all(&mut self) -> Vec<SlotId> {
        match self {
            Self::Onc(engine) => engine.cancel_all().map(|(_, slot)| slot).collect(),
            Self::Lean(engine) => engine.calls.cancel_all().map(|(_, slot)| slot).collect(),
            Self::Exchange(engine) => engine.cancel_all(),
        }
    }

    /// Number of calls in flight.
    #[inline]
    pub fn in_flight(&self) -> usize {
        match self {
            Self::Onc(engine) => engine.in_flight(),
            Self::Lean(engine) => engine.calls.in_flight(),
            Self::Exchange(engine) => engine.in_flight(),
        }
    }

    /// Whether the engine itself has something to say.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        match self {
            Self::Onc(_) => false,
            Self::Lean(engine) => engine.calls.has_transmit(),
            Self::Exchange(engine) => engine.has_transmit(),
        }
    }

    /// Appends what the engine itself has to say: of the packet exchange one packet.
    pub fn poll_transmit(&mut self, out: &mut Buffer) {
        match self {
            Self::Onc(_) => false,
            Self::Lean(engine) => engine.calls.poll_transmit(out),
            Self::Exchange(engine) => engine.poll_packet(None, out),
        };
    }

    /// The next call that came to nothing without an answer, and why.
    #[inline]
    pub fn poll_failure(&mut self) -> Option<(SlotId, CallError)> {
        match self {
            Self::Onc(_) | Self::Lean(_) => None,
            Self::Exchange(engine) => engine.poll_failure(),
        }
    }

    /// Has the peer told that no further call will come, if it can be told.
    pub fn goodbye(&mut self) {
        match self {
            Self::Onc(_) | Self::Exchange(_) => {}
            Self::Lean(engine) => engine.calls.goodbye(Reason::DONE, ""),
        }
    }

    /// Whether the peer is known to say when a call passed it, if it is asked for that.
    pub fn gives_stamps(&self) -> bool {
        match self {
            Self::Onc(_) => false,
            Self::Lean(engine) => engine.calls.features().has(Features::STAMPS),
            Self::Exchange(engine) => engine.gives_stamps(),
        }
    }

    /// What has been seen so far.
    pub fn counters(&self) -> ClientCounters {
        match self {
            Self::Onc(engine) => engine.counters(),
            Self::Exchange(engine) => engine.counters(),
            Self::Lean(engine) => {
                let counters = engine.calls.counters();
                ClientCounters {
                    calls: counters.calls,
                    successes: counters.successes,
                    refusals: counters.exceptions,
                    timeouts: counters.timeouts,
                    cancellations: counters.cancellations,
                    retransmissions: 0,
                    unmatched: counters.unmatched,
                    violations: engine.violations,
                }
            }
        }
    }
}

/// What keeps a lean call from being started.
pub(super) fn unstarted(reason: NotStarted) -> Unstarted {
    match reason {
        NotStarted::TooLarge { size, limit } => CallError::TooLargeForPeer { size, limit }.into(),
        NotStarted::AwaitsPreamble { .. } | NotStarted::TooManyCalls { .. } => {
            Unstarted::Obstacle(Obstacle::PeerIsBusy)
        }
        // Of the reasons there may be one day all are of this connection.
        _ => Unstarted::Obstacle(Obstacle::Closing),
    }
}

#[inline]
fn take_in_onc<'m>(
    engine: &mut onc::ClientEngine<SlotId>,
    message: &'m [u8],
) -> Result<Meaning<'m>, Broken> {
    let Some(answer) = engine.handle_reply(message)? else {
        return Ok(Meaning::Handled);
    };
    Ok(Meaning::Answer(Answer {
        slot: answer.waiter,
        order: ByteOrder::Big,
        is_noted: false,
        place: message.len() - answer.outcome.map_or(0, <[u8]>::len)..message.len(),
        outcome: answer.outcome.map_err(|error| Box::new(error.into())),
    }))
}

impl LeanEngine {
    /// What a call has to carry that is the only one in flight if it is [started](Self::start_alone) next. None if
    /// it may not be started, or there is something to be said in front of it.
    #[inline(always)]
    pub(super) fn may_start_alone(&mut self, form: &LeanForm<'_>, size: usize) -> Option<Started> {
        let calls = &mut self.calls;
        let service = calls.bind(form.interface).ok()?;
        if calls.has_transmit() {
            return None;
        }
        Some(Started {
            id: calls.next_alone(size)?,
            service,
            procedure: form.procedure,
        })
    }

    /// Puts that call in flight.
    #[inline(always)]
    pub(super) fn start_alone(&mut self, started: &Started, timer: &Timer, slot: SlotId) {
        self.calls
            .start_alone(started.service, started.procedure, timer.deadline, slot);
    }

    #[inline]
    fn take_in<'m>(&mut self, message: &Message<'m>) -> Result<Meaning<'m>, Broken> {
        Ok(match self.calls.handle_message(message)? {
            Event::Answer(answer) => Meaning::Answer(Answer {
                slot: answer.waiter,
                order: answer.order,
                is_noted: !answer.extensions.is_empty(),
                place: 0..answer.outcome.as_ref().map_or(0, |results| results.len()),
                outcome: answer.outcome.map_err(|error| Box::new(error.into())),
            }),
            Event::Goodbye(goodbye) => self.part(&goodbye)?,
            Event::Bound(_) | Event::Unbound(..) | Event::Pong(_) | Event::Handled => {
                Meaning::Handled
            }
        })
    }

    /// The server accepts no calls any more, and perhaps does not answer those that it accepted.
    fn part<'m>(&mut self, goodbye: &Goodbye<'_>) -> Result<Meaning<'m>, Broken> {
        let cause = io::Error::new(
            io::ErrorKind::ConnectionAborted,
            format!("the peer said goodbye: {goodbye}"),
        );
        if goodbye.reason == Reason::VIOLATION {
            return Err(cause.into());
        }
        let unbegun = self.calls.take_unbegun();
        Ok(Meaning::Goodbye {
            cause,
            unbegun: unbegun.into_iter().map(|(_, slot)| slot).collect(),
        })
    }
}

impl From<Violation> for Broken {
    fn from(violation: Violation) -> Self {
        Self::Misbehaved(Misbehavior::Lean { violation })
    }
}

impl From<HandshakeError> for Broken {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Refused(refused) => Self::Refused(refused),
            HandshakeError::Violation(violation) => violation.into(),
        }
    }
}

/// Whether the peer found that the time of the call ran out before its owner did.
pub fn is_late(error: &CallError) -> bool {
    matches!(error, CallError::Exception(exception) if exception.status == Status::DEADLINE)
}
