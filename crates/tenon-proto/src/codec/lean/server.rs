//! The server's side of a connection: what the peer can do and asks for, which services it has
//! bound, and how answers are written.
//!
//! [`Catalog`] is made once and shared. A [`ServerEngine`] belongs to whoever receives on the
//! connection; whoever carries a call out needs no more than its [`Caller`] to write the answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use super::close::{Close as Goodbye, CloseReason as Reason};
use super::exception::{Exception, Status};
use super::extension::Extensions;
use super::fault::{Fault, Violation};
use super::header::{CommonHeader, Kind};
use super::interface::{Bind, Interface, Unbound, put_bound};
use super::message::{Message, Parts, plain, put_message};
use super::order::ByteOrder;
use super::preamble::{Features, Preamble, RefusalReason, Refused};
use super::stamps::Stamps;

pub use super::reply::{Caller, ReplyDraft as Reply};

/// The procedure that every program answers without arguments and results.
const NULL_PROCEDURE: u16 = 0;

/// Services that one connection may bind.
pub const SERVICES_MAX: usize = 1024;

/// What a server has seen of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Calls handed to a service.
    pub calls: u64,
    /// Calls of procedure 0, and pings.
    pub pings: u64,
    /// Calls refused before a service saw them.
    pub refusals: u64,
    /// Services bound.
    pub binds: u64,
    /// Services refused.
    pub bind_refusals: u64,
    /// Cancellations.
    pub cancellations: u64,
}

/// The versions of programs that a server has.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    interfaces: Vec<Arc<Interface>>,
}

impl Catalog {
    /// Adds a version of a program and gives its service the next number. `None` if it is there
    /// already.
    pub fn add(&mut self, interface: Arc<Interface>) -> Option<usize> {
        let is_same = |entry: &Arc<Interface>| {
            (entry.program, entry.version) == (interface.program, interface.version)
        };
        if self.interfaces.iter().any(is_same) {
            return None;
        }
        self.interfaces.push(interface);
        Some(self.interfaces.len() - 1)
    }

    pub(crate) fn find(&self, bind: &Bind) -> Result<(usize, &Interface), Unbound<'_>> {
        let wanted = (bind.program, bind.version);
        let mut entries = self.interfaces.iter().enumerate();
        match entries.find(|(_, entry)| (entry.program, entry.version) == wanted) {
            None => Err(self.why_not(bind.program)),
            Some((service, entry)) if entry.agrees_with(bind.fingerprint) => Ok((service, entry)),
            Some((_, entry)) => Err(Unbound::OtherInterface(entry)),
        }
    }

    fn why_not(&self, program: u32) -> Unbound<'_> {
        let versions = || {
            let of_program = self.interfaces.iter();
            let of_program = of_program.filter(|entry| entry.program == program);
            of_program.map(|entry| entry.version)
        };
        match (versions().min(), versions().max()) {
            (Some(low), Some(high)) => Unbound::NoVersion { low, high },
            _ => Unbound::NoProgram,
        }
    }
}

/// What to do with a message.
#[derive(Debug)]
pub enum Received<'m> {
    /// Hand the call to its service.
    Call(Call<'m>),
    /// Answer a call of procedure 0 whose client asks for the [stamps](Stamps) of its way: the engine,
    /// which answers the others, has no clock. The reply has no result.
    StampedNull(Caller),
    /// The client no longer waits for this call.
    Cancel(u32),
    /// The client calls nothing any more; what it called is still to be answered.
    Goodbye(Goodbye<'m>),
    /// The client is there: it answers the ping of this number.
    Pong(u32),
    /// Nothing; what there is to answer has been appended.
    Handled,
}

/// A call for a service.
#[derive(Debug, Clone, Copy)]
pub struct Call<'m> {
    /// The number of the service in the [`Catalog`].
    pub service: usize,
    /// Procedure number, not 0.
    pub procedure: u16,
    /// The time that the call has from when it was received, if it has an end.
    pub time_left: Option<Duration>,
    /// What it carries beside.
    pub extensions: Extensions<'m>,
    /// Whether the client asks for the [stamps](Stamps) of its way. Its reply is begun by
    /// [`Reply::begin_stamped`] then.
    pub wants_stamps: bool,
    /// When it was found among what was received, by the owner's clock. The engine has none, and
    /// leaves 0.
    pub found_at: u64,
    /// The order of the bytes of the arguments.
    pub order: ByteOrder,
    /// The encoded arguments.
    pub arguments: &'m [u8],
    /// Whom to answer.
    pub caller: Caller,
}

/// A call that asks for nothing beside a result; what it is and whom to answer.
#[derive(Debug, Clone, Copy)]
pub struct Common {
    /// The number of the service in the [`Catalog`].
    pub service: usize,
    /// Whom to answer.
    pub caller: Caller,
}

impl Common {
    /// Whether it is of procedure 0.
    #[inline]
    pub fn is_null(self) -> bool {
        self.caller.procedure == NULL_PROCEDURE
    }

    /// Appends the answer to one of procedure 0: a result of no bytes, which every client takes in.
    #[inline]
    pub fn answer_null(self, out: &mut Buffer) {
        self.caller.put_empty(out);
    }

    /// The call, which has these arguments.
    #[inline]
    pub fn call(self, arguments: &[u8]) -> Call<'_> {
        Call {
            service: self.service,
            procedure: self.caller.procedure,
            time_left: None,
            extensions: Extensions::none(ByteOrder::NATIVE),
            wants_stamps: false,
            found_at: 0,
            order: ByteOrder::NATIVE,
            arguments,
            caller: self.caller,
        }
    }
}

impl Call<'_> {
    /// When the time of the call runs out, if it was received at `now`.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        now.checked_add(self.time_left?)
    }
}

/// A connection as its server sees it.
#[derive(Debug)]
pub struct ServerEngine {
    own: Preamble,
    /// The server has said its preamble.
    has_greeted: bool,
    /// Bytes of the largest message that the peer takes in.
    message_max: u32,
    /// What both ends can do beside.
    features: Features,
    /// By the numbers of the client; `None` where the binding was refused.
    bound: Vec<Option<usize>>,
    /// Services that the client asked for.
    asked: u32,
    last_call: Option<u32>,
    /// The client has said goodbye.
    is_left: bool,
    /// The server has said goodbye, and accepts no calls.
    is_closed: bool,
    counters: ServerCounters,
}

impl ServerEngine {
    /// A connection that was just accepted. `own` is the answer to the client's preamble.
    pub fn new(own: Preamble) -> Self {
        Self {
            own,
            has_greeted: false,
            message_max: 0,
            features: Features::default(),
            bound: Vec::new(),
            asked: 0,
            last_call: None,
            is_left: false,
            is_closed: false,
            counters: ServerCounters::default(),
        }
    }

    /// Answers the client's preamble.
    ///
    /// # Errors
    /// The connection is refused, which the answer says: send it and close.
    pub fn handle_preamble(&mut self, theirs: &Preamble, out: &mut Buffer) -> Result<(), Refused> {
        let (ours, offered) = (self.own.versions, theirs.versions);
        let reason = match (theirs.refusal, ours.common(offered)) {
            _ if self.is_closed => Some(RefusalReason::STOPPING),
            (Some(_), _) => Some(RefusalReason::PREAMBLE),
            (None, None) => Some(RefusalReason::VERSION),
            (None, Some(_)) => None,
        };
        self.message_max = theirs.message_max;
        self.features = self.own.features.common(theirs.features);
        self.greet(reason, out);
        match reason {
            None => Ok(()),
            Some(reason) => Err(Refused {
                reason,
                theirs: offered,
                ours,
            }),
        }
    }

    /// Refuses the connection before anything has come, or because what has come is no preamble.
    pub fn refuse(&mut self, reason: RefusalReason, out: &mut Buffer) {
        self.is_closed = true;
        self.greet(Some(reason), out);
    }

    /// Says the preamble, once.
    fn greet(&mut self, refusal: Option<RefusalReason>, out: &mut Buffer) {
        if !std::mem::replace(&mut self.has_greeted, true) {
            out.extend(
                &Preamble {
                    refusal,
                    ..self.own
                }
                .encode(),
            );
        }
    }

    /// Finds out what a message asks for, and appends to `out` what the engine answers itself.
    ///
    /// # Errors
    /// The peer broke the protocol: say [goodbye](Self::goodbye) for that and close the connection.
    #[inline]
    pub fn handle_message<'m>(
        &mut self,
        catalog: &Catalog,
        message: &Message<'m>,
        out: &mut Buffer,
    ) -> Result<Received<'m>, Violation> {
        if message.header.kind == Kind::Call && !self.is_left {
            return self.handle_call(message, out);
        }
        self.handle_rare(catalog, message, out)
    }

    /// The call that a message with this header is, if it is one to a service that is bound. None if it is anything
    /// else; [`handle_message`](Self::handle_message) says what it means then. One of procedure 0 is for the
    /// owner to answer, with no result.
    #[inline]
    pub fn handle_common(&mut self, header: CommonHeader) -> Option<Common> {
        if !header.is_call() || self.is_left || self.is_closed {
            return None;
        }
        let is_ahead = match self.last_call {
            Some(last) => header.id().wrapping_sub(last).wrapping_sub(1) < i32::MAX as u32,
            None => true,
        };
        let bound = self.bound.get(usize::from(header.service()));
        let service = bound.copied().flatten()?;
        if !is_ahead {
            return None;
        }
        self.last_call = Some(header.id());
        match header.procedure() {
            NULL_PROCEDURE => self.counters.pings += 1,
            _ => self.counters.calls += 1,
        }
        let caller = Caller::common(header, self.own.order, self.message_max);
        Some(Common { service, caller })
    }

    #[cold]
    fn handle_rare<'m>(
        &mut self,
        catalog: &Catalog,
        message: &Message<'m>,
        out: &mut Buffer,
    ) -> Result<Received<'m>, Violation> {
        let kind = message.header.kind;
        if self.is_left && !matches!(kind, Kind::Cancel | Kind::Ping | Kind::Pong) {
            return Err(message.header_violation(Fault::AfterClose(kind), 0));
        }
        match kind {
            Kind::Call => self.handle_call(message, out),
            Kind::Bind => self.handle_bind(catalog, message, out),
            Kind::Cancel => {
                message.read(|_| Ok(()))?;
                self.counters.cancellations += 1;
                Ok(Received::Cancel(message.header.id))
            }
            Kind::Ping => {
                message.read(|_| Ok(()))?;
                self.counters.pings += 1;
                put_message(
                    out,
                    self.own.order,
                    plain(Kind::Pong, message.header.id, 0),
                    |_| {},
                );
                Ok(Received::Handled)
            }
            Kind::Pong => message.read(|_| Ok(Received::Pong(message.header.id))),
            Kind::Close => {
                let goodbye = Goodbye::decode(message)?;
                self.is_left = true;
                Ok(Received::Goodbye(goodbye))
            }
            Kind::Reply | Kind::Exception | Kind::Bound | Kind::Unbound | Kind::Piece => {
                Err(message.header_violation(Fault::WrongEnd(kind), 0))
            }
        }
    }

    #[inline]
    fn handle_call<'m>(
        &mut self,
        message: &Message<'m>,
        out: &mut Buffer,
    ) -> Result<Received<'m>, Violation> {
        let parts = message.parts()?;
        let header = message.header;
        if let Some(last) = self.last_call
            && header.id.wrapping_sub(last).wrapping_sub(1) >= i32::MAX as u32
        {
            let got = header.id;
            return Err(message.header_violation(Fault::CallBehind { last, got }, 4));
        }
        if self.is_closed {
            return Ok(Received::Handled);
        }
        self.last_call = Some(header.id);
        let caller = Caller::new(&header, self.own.order, self.message_max);
        let bound = self.bound.get(usize::from(header.service));
        match bound.copied().flatten() {
            Some(service) if header.flags.0 == 0 => match header.procedure {
                NULL_PROCEDURE => {
                    self.counters.pings += 1;
                    Reply::begin(out, caller).seal(out);
                    Ok(Received::Handled)
                }
                _ => {
                    self.counters.calls += 1;
                    Ok(Received::Call(call(service, message, &parts, caller)))
                }
            },
            service => Ok(self.judge(service, message, &parts, caller, out)),
        }
    }

    /// What is to be done with a call that is not of the commonest form.
    #[cold]
    fn judge<'m>(
        &mut self,
        service: Option<usize>,
        message: &Message<'m>,
        parts: &Parts<'m>,
        caller: Caller,
        out: &mut Buffer,
    ) -> Received<'m> {
        let refused = refusal(service, parts).map(Refusal::exception);
        let wants_stamps =
            self.features.has(Features::STAMPS) && Stamps::are_asked_for(parts.extensions);
        let reply = match (refused, service) {
            (Some(exception), _) => {
                self.counters.refusals += 1;
                Reply::begin(out, caller).refuse(out, &exception)
            }
            (None, Some(service)) if caller.procedure != NULL_PROCEDURE => {
                self.counters.calls += 1;
                return Received::Call(Call {
                    wants_stamps,
                    ..call(service, message, parts, caller)
                });
            }
            (None, _) => {
                self.counters.pings += 1;
                match wants_stamps {
                    true => return Received::StampedNull(caller),
                    false => Reply::begin(out, caller),
                }
            }
        };
        reply.seal(out);
        Received::Handled
    }

    fn handle_bind<'m>(
        &mut self,
        catalog: &Catalog,
        message: &Message<'_>,
        out: &mut Buffer,
    ) -> Result<Received<'m>, Violation> {
        let (got, expected) = (message.header.service, self.asked);
        if u32::from(got) != expected {
            return Err(message.header_violation(Fault::ServiceNumber { expected, got }, 8));
        }
        let bind = Bind::decode(message)?;
        self.asked += 1;
        let order = self.own.order;
        let found = match self.bound.len() {
            SERVICES_MAX.. => Err(Unbound::TooMany),
            _ => {
                let found = catalog.find(&bind);
                self.bound.push(found.ok().map(|(service, _)| service));
                found
            }
        };
        match found {
            Ok((_, interface)) => {
                self.counters.binds += 1;
                put_bound(out, order, got, interface.fingerprint, false);
            }
            Err(unbound) => {
                self.counters.bind_refusals += 1;
                unbound.encode(out, order, got, false);
            }
        }
        Ok(Received::Handled)
    }

    /// Asks whether the client is there; its [`Received::Pong`] has the same number.
    pub fn ping(&self, id: u32, out: &mut Buffer) {
        put_message(out, self.own.order, plain(Kind::Ping, id, 0), |_| {});
    }

    /// Says that no further call is accepted, and why. Those that were are still answered. If there
    /// was no preamble yet the connection is refused instead.
    pub fn goodbye(&mut self, reason: Reason, message: &str, out: &mut Buffer) {
        if !self.has_greeted {
            return self.refuse(refusal_for(reason), out);
        }
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        let goodbye = Goodbye {
            reason,
            last_call: self.last_call,
            message: message.into(),
        };
        goodbye.encode(out, self.own.order);
    }

    /// Whether the client has said goodbye.
    pub fn is_left(&self) -> bool {
        self.is_left
    }

    /// What has been seen so far.
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }
}

/// Why a call is not handed to a service.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    Unbound,
    Extension,
    Deadline,
    Stopping,
}

impl Refusal {
    pub(crate) fn exception(self) -> Exception<'static> {
        match self {
            Self::Unbound => Exception::new(Status::UNBOUND, ""),
            Self::Extension => Exception::new(Status::EXTENSION, ""),
            Self::Deadline => Exception::new(Status::DEADLINE, "it had run out when the call came"),
            Self::Stopping => Exception::new(Status::STOPPING, ""),
        }
    }
}

/// Whether the call of a service, if it is bound, is to be refused.
#[inline]
pub(crate) fn refusal(service: Option<usize>, parts: &Parts<'_>) -> Option<Refusal> {
    match (service, parts.unknown_extension, parts.time_left) {
        (None, _, _) => Some(Refusal::Unbound),
        (Some(_), Some(_), _) => Some(Refusal::Extension),
        (Some(_), None, Some(Duration::ZERO)) => Some(Refusal::Deadline),
        (Some(_), None, _) => None,
    }
}

/// Why a connection is refused that would have been ended for `reason`.
fn refusal_for(reason: Reason) -> RefusalReason {
    match reason {
        Reason::VIOLATION => RefusalReason::PREAMBLE,
        Reason::IDLE | Reason::LIMITS => RefusalReason::BUSY,
        _ => RefusalReason::STOPPING,
    }
}

fn call<'m>(service: usize, message: &Message<'m>, parts: &Parts<'m>, caller: Caller) -> Call<'m> {
    Call {
        service,
        procedure: message.header.procedure,
        time_left: parts.time_left,
        extensions: parts.extensions,
        wants_stamps: false,
        found_at: 0,
        order: message.order,
        arguments: parts.body,
        caller,
    }
}
