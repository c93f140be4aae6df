//! The client's side of a connection: which calls are in flight, until when, which answer is whose,
//! what the server can do, and which services are bound.
//!
//! The engine is small enough to be used under a lock that is held for a moment only. What it has to
//! say itself (its preamble, bindings, cancellations, pongs) it keeps until
//! [`poll_transmit`](ClientEngine::poll_transmit) takes it, which is asked before every call is
//! sent; in the steady state there is nothing.

mod ending;
mod incoming;
mod starting;

use std::time::Instant;

use tenon_wire::Buffer;

use super::close::{Close as Goodbye, CloseReason as Reason};
use super::fault::{Fault, Violation};
use super::header::Kind;
use super::message::{plain, put_message};
use super::preamble::{CALLS_MIN, Features, Preamble, RefusalReason, Refused};
use crate::in_flight::InFlight;
use starting::Binding;

pub use ending::Timeout;
pub use incoming::{Answer, Event, ReplyError};
pub use starting::{BindError, NotStarted, Outgoing};

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

#[derive(Debug)]
struct Pending<W> {
    deadline: Instant,
    service: u16,
    procedure: u16,
    waiter: W,
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

    fn owe(&mut self, kind: Kind, id: u32) {
        put_message(&mut self.owed, self.own.order, plain(kind, id, 0), |_| {});
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
