//! The client's side of a connection: which calls are in flight, until when, which answer is whose,
//! what the server can do, and which services are bound.
//!
//! The engine is small enough to be used under a lock that is held for a moment only. What it has to
//! say itself (its preamble, bindings, cancellations, pongs) it keeps until
//! [`poll_transmit`](ClientEngine::poll_transmit) takes it, which is asked before every call is
//! sent; in the steady state there is nothing.

use std::sync::Arc;
use std::time::Instant;

use tenon_wire::Buffer;

use super::exception::Exception;
use super::extension::Extensions;
use super::fault::{Fault, Violation};
use super::goodbye::{Goodbye, Reason};
use super::header::Kind;
use super::interface::{Bind, BindRefusal, Interface};
use super::message::{Message, Parts, plain, put_message};
use super::order::ByteOrder;
use super::preamble::{CALLS_MIN, Features, MESSAGE_MIN, Preamble, RefusalReason, Refused};
use crate::in_flight::InFlight;

/// Bytes that the engine keeps to be sent before it takes a peer's pings for an attack.
const OWED_MAX: usize = 64 << 10;

/// What a client has seen of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounters {
    /// Calls started.
    pub calls: u64,
    /// Calls answered with results.
    pub successes: u64,
    /// Calls answered with exceptions.
    pub exceptions: u64,
    /// Calls whose time ran out.
    pub timeouts: u64,
    /// Calls that were given up before they were answered.
    pub cancellations: u64,
    /// Answers to no call in flight: late ones, and strangers.
    pub unmatched: u64,
}

/// A call that is to be started.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// The number that [`bind`](ClientEngine::bind) gave to its service.
    pub service: u16,
    /// Procedure number.
    pub procedure: u16,
    /// Bytes of the message, as [`seal`](super::Draft::seal) returned them.
    pub size: usize,
    /// When it is given up.
    pub deadline: Instant,
}

/// Why a call cannot be started now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStarted {
    /// It is larger than the server takes in; never will it do.
    #[error("a call of {size} bytes is over the server's limit of {limit}")]
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// Most bytes that the server takes in.
        limit: usize,
    },
    /// It is larger than every server takes in. What this one takes, its preamble will say.
    #[error("the server has not said yet whether it takes in a call of {size} bytes")]
    AwaitsPreamble {
        /// Bytes of the message.
        size: usize,
    },
    /// The server has as many calls as it takes. Wait for some to be answered.
    #[error("the server takes {limit} calls in flight and has them")]
    TooManyCalls {
        /// Most calls.
        limit: usize,
    },
    /// The connection takes no calls any more. Make another.
    #[error("the connection takes no calls any more")]
    Closed,
}

/// Why a service cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The server does not bind it.
    #[error(transparent)]
    Refused(Arc<BindRefusal>),
    /// The connection has no numbers left. Make another.
    #[error("65,536 services have been bound over this connection")]
    NoNumbers,
}

/// Why a call was answered without results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyError<'m> {
    /// The peer says why.
    Exception(Exception<'m>),
    /// The peer did not bind the service, and so did not carry the call out.
    Unbound(Arc<BindRefusal>),
}

/// An answer to a call that was in flight until now.
#[derive(Debug)]
pub struct Answer<'m, W> {
    /// The call.
    pub id: u32,
    /// What was handed in for whoever waits.
    pub waiter: W,
    /// The order of the bytes of the results.
    pub order: ByteOrder,
    /// What the answer carries beside.
    pub extensions: Extensions<'m>,
    /// The encoded results, where they were received.
    pub outcome: Result<&'m [u8], ReplyError<'m>>,
}

/// What a message meant.
#[derive(Debug)]
pub enum Event<'m, W> {
    /// A call is answered.
    Answer(Answer<'m, W>),
    /// A service is bound.
    Bound(u16),
    /// A service is not bound. [`bind`](ClientEngine::bind) says so from now on, and calls that
    /// were sent behind are answered so.
    Unbound(u16, Arc<BindRefusal>),
    /// The peer is there.
    Pong(u32),
    /// The server accepts no calls any more. Ask for those that it did not begin:
    /// [`take_unbegun`](ClientEngine::take_unbegun).
    Goodbye(Goodbye<'m>),
    /// Nothing for the owner: an answer that nobody waits for any more, a ping.
    Handled,
}

/// What a call is to do at a given time.
#[derive(Debug, PartialEq, Eq)]
pub enum Timeout<W> {
    /// Nothing before this time.
    Wait(Instant),
    /// Give up: the time of the call ran out, and it is no longer in flight.
    Expired(W),
}

#[derive(Debug)]
struct Pending<W> {
    deadline: Instant,
    service: u16,
    procedure: u16,
    waiter: W,
}

#[derive(Debug)]
struct Binding {
    interface: Arc<Interface>,
    state: BindingState,
}

#[derive(Debug)]
enum BindingState {
    Asked,
    Bound,
    Refused(Arc<BindRefusal>),
}

/// A connection as its client sees it. `W` is what the owner needs to find whoever waits. When the
/// connection is lost the engine goes on with another one: [`renew`](Self::renew).
#[derive(Debug)]
pub struct ClientEngine<W> {
    own: Preamble,
    peer: Option<Preamble>,
    calls: InFlight<Pending<W>>,
    /// Calls that were given up and not answered yet: the server may still be at them.
    given_up: usize,
    bindings: Vec<Binding>,
    owed: Buffer,
    pings: u32,
    is_closed: bool,
    /// The last call that the server has accepted, once it has said goodbye.
    last_accepted: Option<Option<u32>>,
    counters: ClientCounters,
}

impl<W> ClientEngine<W> {
    /// A connection that was just made. Its preamble is the first that
    /// [`poll_transmit`](Self::poll_transmit) gives. `seed` is the number of the first call.
    pub fn new(own: Preamble, seed: u32) -> Self {
        let mut owed = Buffer::with_capacity(256);
        owed.extend(&own.encode());
        Self {
            own,
            peer: None,
            calls: InFlight::new(seed),
            given_up: 0,
            bindings: Vec::new(),
            owed,
            pings: 0,
            is_closed: false,
            last_accepted: None,
            counters: ClientCounters::default(),
        }
    }

    /// Goes on with a connection that was just made in place of the one before. Nothing is bound
    /// over it; whoever calls [binds](Self::bind) anew. Calls that were given up before keep their
    /// numbers to themselves: later ones are ahead of them.
    ///
    /// # Panics
    /// Calls are in flight; [give them up](Self::cancel_all) when the connection is lost.
    pub fn renew(&mut self) {
        assert_eq!(
            self.calls.len(),
            0,
            "calls in flight over a connection that is gone"
        );
        self.peer = None;
        self.given_up = 0;
        self.bindings.clear();
        self.owed.clear();
        self.owed.extend(&self.own.encode());
        self.is_closed = false;
        self.last_accepted = None;
    }

    /// Takes in the server's preamble.
    ///
    /// # Errors
    /// The server refuses the connection; close it. The server carried out nothing.
    pub fn handle_preamble(&mut self, theirs: &Preamble) -> Result<(), HandshakeError> {
        let ours = self.own.versions;
        let refused = |reason| Refused {
            reason,
            theirs: theirs.versions,
            ours,
        };
        if let Some(reason) = theirs.refusal {
            return Err(refused(reason).into());
        }
        if ours.common(theirs.versions).is_none() {
            return Err(refused(RefusalReason::VERSION).into());
        }
        if theirs.calls_max < CALLS_MIN {
            return Err(Fault::CallLimit(theirs.calls_max).at(24).into());
        }
        self.peer = Some(*theirs);
        Ok(())
    }

    /// What the server has said of itself; `None` as long as it has said nothing.
    pub fn peer(&self) -> Option<&Preamble> {
        self.peer.as_ref()
    }

    /// What both ends can do beside; nothing before the server has said what it can.
    pub fn features(&self) -> Features {
        let peer = self.peer.map_or(Features::default(), |peer| peer.features);
        self.own.features.common(peer)
    }

    /// The number of the service that is `interface` at the server. If it has none yet it gets one,
    /// and the binding is owed to the server: calls may follow right behind.
    ///
    /// # Errors
    /// The server refused it already, or there are no numbers left.
    #[inline(always)]
    pub fn bind(&mut self, interface: &Arc<Interface>) -> Result<u16, BindError> {
        let mut bindings = self.bindings.iter();
        let known = bindings.position(|binding| binding.is_of(interface));
        match known {
            Some(number) => match &self.bindings[number].state {
                BindingState::Refused(refusal) => Err(BindError::Refused(Arc::clone(refusal))),
                BindingState::Asked | BindingState::Bound => Ok(number as u16),
            },
            None => self.bind_anew(interface),
        }
    }

    #[cold]
    fn bind_anew(&mut self, interface: &Arc<Interface>) -> Result<u16, BindError> {
        let number = u16::try_from(self.bindings.len()).map_err(|_| BindError::NoNumbers)?;
        Bind::of(interface).encode(&mut self.owed, self.own.order, number);
        self.bindings.push(Binding {
            interface: Arc::clone(interface),
            state: BindingState::Asked,
        });
        Ok(number)
    }

    /// Puts a call in flight and gives it its number, which is [stamped](super::Draft::stamp) on it.
    /// Calls are sent in the order in which they were started.
    ///
    /// # Errors
    /// It cannot be started now, and why.
    #[inline(always)]
    pub fn start(&mut self, call: &Outgoing, waiter: W) -> Result<u32, NotStarted> {
        self.check(call)?;
        let id = self.calls.insert(Pending {
            deadline: call.deadline,
            service: call.service,
            procedure: call.procedure,
            waiter,
        });
        self.counters.calls += 1;
        Ok(id)
    }

    /// The number that a call of `size` bytes gets if it is [started](Self::start_alone) next and is the only one in
    /// flight then. None if it would not be, or may not be started.
    #[inline(always)]
    pub fn next_alone(&self, size: usize) -> Option<u32> {
        let message_max = match &self.peer {
            Some(peer) => peer.message_max,
            None => MESSAGE_MIN,
        };
        // Every server takes one call.
        let is_alone = self.calls.len() + self.given_up == 0;
        let is_open = !self.is_closed && self.last_accepted.is_none();
        let may = is_alone && is_open && size as u64 <= u64::from(message_max);
        may.then(|| self.calls.next_of_none())
    }

    /// Puts the call in flight that [`next_alone`](Self::next_alone) gave its number.
    #[inline(always)]
    pub fn start_alone(&mut self, service: u16, procedure: u16, deadline: Instant, waiter: W) {
        self.calls.insert(Pending {
            deadline,
            service,
            procedure,
            waiter,
        });
        self.counters.calls += 1;
    }

    #[inline(always)]
    fn check(&self, call: &Outgoing) -> Result<(), NotStarted> {
        let (message_max, calls_max) = match &self.peer {
            Some(peer) => (peer.message_max, peer.calls_max),
            None => (MESSAGE_MIN, CALLS_MIN),
        };
        let size = call.size;
        if size as u64 > u64::from(message_max) {
            return Err(match self.peer {
                None => NotStarted::AwaitsPreamble { size },
                Some(_) => NotStarted::TooLarge {
                    size,
                    limit: message_max as usize,
                },
            });
        }
        if self.is_closed || self.last_accepted.is_some() {
            return Err(NotStarted::Closed);
        }
        let limit = calls_max as usize;
        match self.calls.len() + self.given_up >= limit {
            true => Err(NotStarted::TooManyCalls { limit }),
            false => Ok(()),
        }
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) has something.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Appends what the engine itself has to say; says whether there was something. Ask before each
    /// call is sent, and send it in front; and when something was cancelled or has come.
    #[inline]
    pub fn poll_transmit(&mut self, out: &mut Buffer) -> bool {
        if self.owed.is_empty() {
            return false;
        }
        out.extend(self.owed.as_slice());
        self.owed.clear();
        true
    }

    /// Takes in a message.
    ///
    /// # Errors
    /// The peer broke the protocol: close the connection.
    #[inline]
    pub fn handle_message<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, Violation> {
        match message.header.kind {
            Kind::Reply => {
                let parts = message.understood()?;
                self.answer(message, parts, |parts| Ok(parts.body))
            }
            _ => self.handle_rare(message),
        }
    }

    /// Ends a call whose owner has found a [common](super::CommonHeader) reply
    /// [to it](super::CommonHeader::is_reply_to) itself, if it is the one of `is_own`; says whether.
    #[inline]
    pub fn handle_success(&mut self, id: u32, is_own: impl FnOnce(&W) -> bool) -> bool {
        let is_meant = |call: &Pending<W>| is_own(&call.waiter);
        let is_answered = self.calls.take_if(id, is_meant).is_some();
        self.counters.successes += u64::from(is_answered);
        is_answered
    }

    #[cold]
    fn handle_rare<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, Violation> {
        let header = message.header;
        match header.kind {
            Kind::Reply | Kind::Exception => self.handle_exception(message),
            Kind::Bound => {
                message.read(|input| input.u64())?;
                self.asked(message)?.state = BindingState::Bound;
                Ok(Event::Bound(header.service))
            }
            Kind::Unbound => {
                let binding = self.asked(message)?;
                let refusal = Arc::new(BindRefusal::decode(message, &binding.interface)?);
                binding.state = BindingState::Refused(Arc::clone(&refusal));
                Ok(Event::Unbound(header.service, refusal))
            }
            Kind::Ping => {
                message.read(|_| Ok(()))?;
                if self.owed.len() > OWED_MAX {
                    return Err(message.header_violation(Fault::Flood, 0));
                }
                self.owe(Kind::Pong, header.id);
                Ok(Event::Handled)
            }
            Kind::Pong => message.read(|_| Ok(Event::Pong(header.id))),
            Kind::Goodbye => {
                let goodbye = Goodbye::decode(message)?;
                self.last_accepted = Some(goodbye.last_call);
                Ok(Event::Goodbye(goodbye))
            }
            kind @ (Kind::Call | Kind::Cancel | Kind::Bind) => {
                Err(message.header_violation(Fault::WrongEnd(kind), 0))
            }
        }
    }

    fn handle_exception<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, Violation> {
        let exception = message.read(Exception::decode)?;
        let binding = self.bindings.get(usize::from(message.header.service));
        let error = match binding.map(|binding| &binding.state) {
            Some(BindingState::Refused(refusal)) => ReplyError::Unbound(Arc::clone(refusal)),
            _ => ReplyError::Exception(exception),
        };
        let parts = message.parts()?;
        self.answer(message, parts, |_| Err(error))
    }

    /// Ends the call that a message answers.
    #[inline]
    fn answer<'m>(
        &mut self,
        message: &Message<'m>,
        parts: Parts<'m>,
        outcome: impl FnOnce(&Parts<'m>) -> Result<&'m [u8], ReplyError<'m>>,
    ) -> Result<Event<'m, W>, Violation> {
        let header = message.header;
        let id = header.id;
        let got = (header.service, header.procedure);
        let is_meant = |call: &Pending<W>| got == (call.service, call.procedure);
        let Some(call) = self.calls.take_if(id, is_meant) else {
            return self.unmatched(message);
        };
        let outcome = outcome(&parts);
        match outcome {
            Ok(_) => self.counters.successes += 1,
            Err(_) => self.counters.exceptions += 1,
        }
        Ok(Event::Answer(Answer {
            id,
            waiter: call.waiter,
            order: message.order,
            extensions: parts.extensions,
            outcome,
        }))
    }

    /// What an answer means that is to no call in flight.
    #[cold]
    fn unmatched<'m>(&mut self, message: &Message<'m>) -> Result<Event<'m, W>, Violation> {
        let header = message.header;
        if let Some(call) = self.calls.get(header.id) {
            let fault = Fault::OtherProcedure {
                id: header.id,
                expected: (call.service, call.procedure),
                got: (header.service, header.procedure),
            };
            return Err(message.header_violation(fault, 8));
        }
        self.counters.unmatched += 1;
        self.given_up = self.given_up.saturating_sub(1);
        Ok(Event::Handled)
    }

    /// The binding that a message answers.
    fn asked(&mut self, message: &Message<'_>) -> Result<&mut Binding, Violation> {
        let number = message.header.service;
        match self.bindings.get_mut(usize::from(number)) {
            Some(binding) if matches!(binding.state, BindingState::Asked) => Ok(binding),
            _ => Err(message.header_violation(Fault::StrayService(number), 8)),
        }
    }

    fn owe(&mut self, kind: Kind, id: u32) {
        put_message(&mut self.owed, self.own.order, plain(kind, id, 0), |_| {});
    }

    /// When the call is to be given up. `None` if it is no longer in flight.
    #[inline]
    pub fn next_timeout(&self, id: u32) -> Option<Instant> {
        self.calls.get(id).map(|call| call.deadline)
    }

    /// What the call is to do at `now`. `None` if it is no longer in flight. One whose time ran out is
    /// cancelled at the server.
    pub fn handle_timeout(&mut self, id: u32, now: Instant) -> Option<Timeout<W>> {
        let deadline = self.next_timeout(id)?;
        if now < deadline {
            return Some(Timeout::Wait(deadline));
        }
        self.counters.timeouts += 1;
        self.give_up(id).map(Timeout::Expired)
    }

    /// Gives a call up; the server is told so, and its answer will be ignored. `None` if it is no
    /// longer in flight.
    pub fn cancel(&mut self, id: u32) -> Option<W> {
        let waiter = self.give_up(id)?;
        self.counters.cancellations += 1;
        Some(waiter)
    }

    fn give_up(&mut self, id: u32) -> Option<W> {
        let call = self.calls.take(id)?;
        self.given_up += 1;
        self.owe(Kind::Cancel, id);
        Some(call.waiter)
    }

    /// Takes a call back that was started and not sent at all, not even in part.
    pub fn withdraw(&mut self, id: u32) -> Option<W> {
        let call = self.calls.take(id)?;
        self.counters.cancellations += 1;
        Some(call.waiter)
    }

    /// Gives all calls up, for when the connection is lost. None is in flight any more, even before
    /// the iterator has come to it.
    pub fn cancel_all(&mut self) -> impl Iterator<Item = (u32, W)> + use<W> {
        self.counters.cancellations += self.calls.len() as u64;
        self.is_closed = true;
        let calls = self.calls.take_all();
        calls.map(|(id, call)| (id, call.waiter))
    }

    /// Once the server has said goodbye: the calls that it did not begin, in the order in which they
    /// were sent. They are no longer in flight, and may be sent over another connection.
    pub fn take_unbegun(&mut self) -> Vec<(u32, W)> {
        let Some(last) = self.last_accepted else {
            return Vec::new();
        };
        let behind = |id: u32| match last {
            Some(last) => id.wrapping_sub(last).wrapping_sub(1) < i32::MAX as u32,
            None => true,
        };
        let mut ids: Vec<u32> = self.calls.numbers().filter(|id| behind(*id)).collect();
        let first = last.map_or(ids.first().copied().unwrap_or(0), |last| last);
        ids.sort_unstable_by_key(|id| id.wrapping_sub(first) as i32);
        let calls = ids.into_iter();
        calls
            .filter_map(|id| self.calls.take(id).map(|call| (id, call.waiter)))
            .collect()
    }

    /// Asks whether the server is there; returns the number that its [`Event::Pong`] will have.
    pub fn ping(&mut self) -> u32 {
        self.pings = self.pings.wrapping_add(1);
        self.owe(Kind::Ping, self.pings);
        self.pings
    }

    /// Says that no further call will come. Those in flight are still answered.
    pub fn goodbye(&mut self, reason: Reason, message: &str) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        let goodbye = Goodbye {
            reason,
            last_call: None,
            message: message.into(),
        };
        goodbye.encode(&mut self.owed, self.own.order);
    }

    /// Number of calls in flight.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// What has been seen so far.
    pub fn counters(&self) -> ClientCounters {
        self.counters
    }
}

impl Binding {
    #[inline]
    fn is_of(&self, interface: &Arc<Interface>) -> bool {
        Arc::ptr_eq(&self.interface, interface) || *self.interface == **interface
    }
}

/// Why a connection does not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The server refuses.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The server broke the protocol.
    #[error(transparent)]
    Violation(#[from] Violation),
}
