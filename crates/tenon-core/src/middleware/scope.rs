//! A call as a middleware sees it.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tenon_net::{Address, Protocol};
use tenon_proto::lean::{Metadata, MetadataView};
use tenon_proto::onc::auth::Credential;

use super::hold::CallHold;
use crate::make_calls::CallTarget;
use crate::options::{CallOptions, FOR_EVER};
use crate::procedure::ProcedureInfo;
use crate::service::{CallInfo, Peer};

/// A call as a middleware sees it: what it calls, who calls, and what a middleware changes of it.
///
/// At a server the metadata and the credential of the caller are there in
/// [`begin`](super::Middleware::begin) alone, as the handler takes the message over that they stand in.
pub struct CallScope<'a> {
    procedure: ProcedureInfo<'a>,
    program: u32,
    version: u32,
    protocol: Protocol,
    side: CallSide<'a>,
    started_at: Instant,
    deadline: Option<Instant>,
    /// True if the deadline is another than that which the caller has said.
    is_deadline_changed: bool,
    /// Metadata that goes on in place of that which came, if it was changed.
    metadata: Option<Metadata>,
    attempts: u32,
    pub(super) hold: CallHold,
    hedging: Option<Hedging>,
}

/// The end at which a call is seen.
#[derive(Debug, Clone, Copy)]
enum CallSide<'a> {
    Client {
        /// The address, until the caller has gone on.
        address: Option<&'a Address>,
        options: CallOptions<'a>,
    },
    Server {
        peer: Peer<'a>,
        /// The call while its message is there.
        info: Option<&'a CallInfo<'a>>,
    },
}

/// How a call is hedged: if there is no outcome after `delay`, the same call is made once more beside it, up to
/// `attempts` in all, and the first that has a result decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hedging {
    /// Time after which the next attempt is made.
    pub delay: Duration,
    /// Most attempts, the first included.
    pub attempts: u32,
}

impl<'a> CallScope<'a> {
    /// A call that a client is to make.
    #[doc(hidden)]
    #[inline]
    pub fn at_client(
        procedure: ProcedureInfo<'a>,
        target: CallTarget<'a>,
        options: CallOptions<'a>,
    ) -> Self {
        let started_at = Instant::now();
        let timeout = options.get_timeout().unwrap_or(target.timeout);
        Self {
            procedure,
            program: target.program,
            version: target.version,
            protocol: target.address.protocol(),
            side: CallSide::Client {
                address: Some(target.address),
                options,
            },
            started_at,
            deadline: Some(started_at + timeout.min(FOR_EVER)),
            is_deadline_changed: false,
            metadata: None,
            attempts: 0,
            hold: CallHold::None,
            hedging: None,
        }
    }

    /// A call with streams that a client is to make: it has no end in time unless its options or the client say so.
    #[doc(hidden)]
    pub fn at_client_with_streams(
        procedure: ProcedureInfo<'a>,
        target: CallTarget<'a>,
        options: CallOptions<'a>,
    ) -> Self {
        let timeout = options.get_timeout().or(target.stream_timeout);
        let scope = Self::at_client(procedure, target, options);
        Self {
            deadline: timeout.map(|timeout| scope.started_at + timeout.min(FOR_EVER)),
            ..scope
        }
    }

    /// A call of version `version` of `program` that a service is to carry out.
    #[doc(hidden)]
    #[inline]
    pub fn at_server(
        procedure: ProcedureInfo<'a>,
        (program, version): (u32, u32),
        protocol: Protocol,
        info: &'a CallInfo<'a>,
    ) -> Self {
        Self {
            procedure,
            program,
            version,
            protocol,
            side: CallSide::Server {
                peer: info.peer(),
                info: Some(info),
            },
            started_at: Instant::now(),
            deadline: info.deadline(),
            is_deadline_changed: false,
            metadata: None,
            attempts: 0,
            hold: CallHold::None,
            hedging: None,
        }
    }

    /// Returns the call without what stands in its message, which its handler takes over, or with its caller.
    pub(super) fn detached<'d>(&self, procedure: ProcedureInfo<'d>) -> CallScope<'d> {
        let side = match self.side {
            CallSide::Client { .. } => CallSide::Client {
                address: None,
                options: CallOptions::new(),
            },
            CallSide::Server { peer, .. } => CallSide::Server {
                peer: Peer {
                    address: peer.address,
                    user: peer.user,
                    credential: Credential::None,
                },
                info: None,
            },
        };
        CallScope {
            procedure,
            program: self.program,
            version: self.version,
            protocol: self.protocol,
            side,
            started_at: self.started_at,
            deadline: self.deadline,
            is_deadline_changed: self.is_deadline_changed,
            metadata: None,
            attempts: self.attempts,
            hold: CallHold::None,
            hedging: None,
        }
    }

    /// Returns what is called: the names and the number of the procedure, and what its interface declares. The names are
    /// empty if neither the caller nor the service knows them.
    #[inline]
    pub fn procedure(&self) -> &ProcedureInfo<'a> {
        &self.procedure
    }

    /// Returns the program's number.
    #[inline]
    pub fn program(&self) -> u32 {
        self.program
    }

    /// Returns the version's number.
    #[inline]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the protocol of the call.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns whether this is a call that a server carries out.
    #[inline]
    pub fn is_at_server(&self) -> bool {
        matches!(self.side, CallSide::Server { .. })
    }

    /// Returns the address that a client calls; `None` at a server, and of a call that was started, when it is over.
    pub fn address(&self) -> Option<&'a Address> {
        match self.side {
            CallSide::Client { address, .. } => address,
            CallSide::Server { .. } => None,
        }
    }

    /// Returns who calls; `None` at a client.
    pub fn peer(&self) -> Option<Peer<'a>> {
        match self.side {
            CallSide::Client { .. } => None,
            CallSide::Server { peer, .. } => Some(peer),
        }
    }

    /// Returns the call as its handler will see it; `None` at a client, and when the handler has taken it over.
    pub fn info(&self) -> Option<&'a CallInfo<'a>> {
        match self.side {
            CallSide::Client { .. } => None,
            CallSide::Server { info, .. } => info,
        }
    }

    /// Returns when the call was begun: at a client before anything was done for it.
    #[inline]
    pub fn started_at(&self) -> Instant {
        self.started_at
    }

    /// Returns when the time of the call is over; `None` at a server whose caller has not said.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Gives the call no more time than until `deadline`, repetitions included.
    pub fn limit_deadline(&mut self, deadline: Instant) {
        if self.deadline.is_none_or(|own| deadline < own) {
            self.deadline = Some(deadline);
            self.is_deadline_changed = true;
        }
    }

    /// Returns the metadata that goes on with the call. At a client it is that of this call alone, without that which
    /// the client puts on all of them.
    pub fn metadata(&self) -> MetadataView<'_> {
        match &self.metadata {
            Some(metadata) => metadata.view(),
            None => self.given_metadata(),
        }
    }

    fn given_metadata(&self) -> MetadataView<'a> {
        match self.side {
            CallSide::Client { options, .. } => options
                .get_metadata()
                .map_or(MetadataView::NONE, Metadata::view),
            CallSide::Server { info, .. } => {
                info.map_or(MetadataView::NONE, |info| info.metadata())
            }
        }
    }

    /// Returns the metadata that goes on with the call, to be changed: at a client what is sent, at a server what the
    /// handler sees and its calls carry on.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        let given = self.given_metadata();
        self.metadata.get_or_insert_with(|| given.to_owned())
    }

    /// Returns how often the call was made or carried out so far, the present attempt included.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Holds the call back until then, or until its time is over.
    pub fn hold_until(&mut self, at: Instant) {
        self.hold = CallHold::Until(at);
    }

    /// Holds the call back until `released` is ready, or until its time is over.
    pub fn hold_for(&mut self, released: impl Future<Output = ()> + Send + 'static) {
        self.hold = CallHold::For(Box::pin(released) as Pin<Box<_>>);
    }

    /// Returns whether the call is held back.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        !matches!(self.hold, CallHold::None)
    }

    /// Holds the call back before it is made again.
    pub(super) fn repeat_after(&mut self, pause: Duration) {
        self.hold_until(Instant::now() + pause.min(FOR_EVER));
    }

    /// Has the call hedged. At a server, and of a call that was started, this has no effect.
    pub fn hedge(&mut self, hedging: Hedging) {
        self.hedging = Some(hedging);
    }

    /// Returns how the call is hedged, if it is.
    #[doc(hidden)]
    #[inline]
    pub fn hedging(&self) -> Option<Hedging> {
        self.hedging
    }

    /// Counts attempts.
    #[doc(hidden)]
    #[inline]
    pub fn add_attempts(&mut self, attempts: u32) {
        self.attempts += attempts;
    }

    /// Returns the options of the next attempt of a client's call.
    #[doc(hidden)]
    #[inline]
    pub fn options(&self) -> CallOptions<'_> {
        let CallSide::Client { options, .. } = self.side else {
            return CallOptions::new();
        };
        if !self.is_deadline_changed && self.metadata.is_none() && self.attempts <= 1 {
            return options;
        }
        self.changed_options(options)
    }

    #[cold]
    fn changed_options<'s>(&'s self, options: CallOptions<'s>) -> CallOptions<'s> {
        let mut options = options;
        if let Some(deadline) = self.deadline {
            options = options.timeout(deadline.saturating_duration_since(Instant::now()));
        }
        if let Some(metadata) = &self.metadata {
            options = options.metadata(metadata);
        }
        options
    }

    /// Takes what was changed of a call at a server: its deadline and its metadata.
    #[doc(hidden)]
    #[inline]
    pub fn take_changes(&mut self) -> (Option<Instant>, Option<Metadata>) {
        let deadline = self.deadline.filter(|_| self.is_deadline_changed);
        (deadline, self.metadata.take())
    }
}

impl fmt::Debug for CallScope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallScope")
            .field("procedure", &self.procedure)
            .field("program", &self.program)
            .field("version", &self.version)
            .field("protocol", &self.protocol)
            .field("deadline", &self.deadline)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
