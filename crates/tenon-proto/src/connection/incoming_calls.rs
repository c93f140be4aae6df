//! The calls that the peer has made: what they ask for, and how they are answered.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use super::counters::IncomingCounters;
use crate::codec::lean::{self, ByteOrder, CallStreams, Extensions, Metadata, MetadataView};
use crate::codec::onc;
use crate::codec::onc::auth::Credential;
use crate::codec::onc::message::CallHeader;

/// The procedure that every program answers without arguments and results.
pub const NULL_PROCEDURE: u32 = 0;

/// A call for a service.
#[derive(Debug)]
pub struct IncomingCall<'m> {
    /// The index of the service in the [`ServiceTable`](super::ServiceTable).
    pub service: usize,
    /// Procedure number. Not 0, unless the call [wants stamps](Self::wants_stamps).
    pub procedure: u32,
    /// The caller's identity, by what the call says.
    pub credential: Credential<'m>,
    /// The time that the call has from when it was received, if it has an end.
    pub time_left: Option<Duration>,
    /// The extensions of the call. Those that are known here are in order.
    pub extensions: Extensions<'m>,
    /// True if the client asks for the [time stamps](lean::Stamps) of its way. The connection has no clock, and leaves
    /// calls of procedure 0 that ask for them to its owner.
    pub wants_stamps: bool,
    /// The streams that the caller says the call has.
    pub streams: CallStreams,
    /// The order of the bytes of the arguments.
    pub order: ByteOrder,
    /// The encoded arguments.
    pub arguments: &'m [u8],
    /// The facts that the answer needs.
    pub caller: Caller,
}

impl IncomingCall<'_> {
    /// Returns when the time of the call runs out, if it was received at `now`.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        now.checked_add(self.time_left?)
    }
}

/// What a call carries beside its arguments for its service.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallAttachments<'m> {
    /// The caller's identity, by what the call says.
    pub credential: Credential<'m>,
    /// The metadata of the call.
    pub metadata: MetadataView<'m>,
}

impl<'m> CallAttachments<'m> {
    /// Those of a call by ONC RPC, which was understood before.
    pub fn of_onc(message: &'m [u8]) -> Self {
        Self {
            credential: CallHeader::credential_of(message),
            metadata: MetadataView::NONE,
        }
    }

    /// Those of a lean call, of which the extensions were checked before.
    pub fn of_lean(extensions: Extensions<'m>) -> Self {
        Self {
            credential: extensions.credential(),
            metadata: extensions.metadata(),
        }
    }
}

/// The facts about a call that its answer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A client of ONC RPC, and the number of its call.
    Onc {
        /// Matches the reply to the call.
        xid: u32,
        /// Bytes of the longest fragment that the reply is cut into.
        fragment_max: usize,
    },
    /// A lean client, and its call.
    Lean(lean::Caller),
}

impl Caller {
    /// The number of the call.
    pub fn number(&self) -> u32 {
        match self {
            Self::Onc { xid, .. } => *xid,
            Self::Lean(caller) => caller.id,
        }
    }

    /// Puts the times of packets into a sealed reply, as [`lean::Caller::put_packet_times`] does. A reply by ONC RPC has
    /// no room for them.
    pub fn put_packet_times(self, reply: &mut Buffer, times: &lean::PacketTimes) -> Option<u64> {
        match self {
            Self::Lean(caller) => caller.put_packet_times(reply, times),
            Self::Onc { .. } => None,
        }
    }
}

/// A reply that is being written at the end of a buffer, which may hold whole messages before it. In the end it is
/// [sealed](Self::seal).
#[derive(Debug, Clone, Copy)]
pub enum ReplyDraft {
    /// By ONC RPC.
    Onc {
        /// The reply.
        reply: onc::reply::OncReplyDraft,
        /// Bytes of the longest fragment that it is cut into.
        fragment_max: usize,
    },
    /// By the lean protocol.
    Lean(lean::ReplyDraft),
}

impl ReplyDraft {
    /// Appends the header of a result, which is encoded right behind.
    #[inline]
    pub fn begin(buffer: &mut Buffer, caller: Caller) -> Self {
        match caller {
            Caller::Onc { xid, fragment_max } => Self::Onc {
                reply: onc::reply::OncReplyDraft::begin(buffer, xid),
                fragment_max,
            },
            Caller::Lean(caller) => Self::Lean(lean::ReplyDraft::begin(buffer, caller)),
        }
    }

    /// Appends the same, with room for the time stamps that its client asks for. A client of ONC RPC asks for none.
    pub fn begin_stamped(buffer: &mut Buffer, caller: Caller) -> Self {
        match caller {
            Caller::Lean(caller) => Self::Lean(lean::ReplyDraft::begin_stamped(buffer, caller)),
            Caller::Onc { .. } => Self::begin(buffer, caller),
        }
    }

    /// Puts metadata in front of the result, or of the exception that the reply has become; once for a reply. Replies
    /// by ONC RPC have no place for it.
    #[cold]
    #[must_use]
    pub fn with_metadata(self, buffer: &mut Buffer, metadata: &Metadata) -> Self {
        match self {
            Self::Lean(reply) => Self::Lean(reply.with_metadata(buffer, metadata)),
            Self::Onc { .. } => self,
        }
    }

    /// Ends the reply. One that is larger than a lean client accepts becomes an exception.
    #[inline]
    pub fn seal(self, buffer: &mut Buffer) {
        match self {
            Self::Onc {
                reply,
                fragment_max,
            } => reply.seal(buffer, fragment_max),
            Self::Lean(reply) => reply.seal(buffer),
        }
    }

    /// Ends the reply and writes into it when the call passed which place, if it was
    /// [begun](Self::begin_stamped) with room for that.
    pub fn seal_stamped(self, buffer: &mut Buffer, stamps: &lean::Stamps) {
        match self {
            Self::Lean(reply) => reply.seal_stamped(buffer, stamps),
            Self::Onc { .. } => self.seal(buffer),
        }
    }
}

/// The state of a call that is carried out elsewhere than where it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferredCallState {
    /// Its result is waited for.
    Awaited,
    /// The client no longer waits for it.
    Cancelled,
    /// Its time has run out.
    Expired,
}

/// Names a call that is carried out elsewhere, on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeferredId(u64);

impl DeferredId {
    /// The number of the call, by the lean protocol.
    pub fn number(self) -> u32 {
        self.0 as u32
    }
}

/// The calls that the peer has made.
#[derive(Debug)]
pub(super) struct IncomingCalls {
    /// Calls that are carried out elsewhere than where they were received, by their [ids](Self::id_of).
    deferred: HashMap<u64, UnansweredCall>,
    limit: usize,
    /// Calls of ONC RPC that were deferred: their own numbers are not told apart.
    unnumbered: u32,
    /// Connections that this one has replaced.
    renewals: u32,
    /// The last lean call that was accepted.
    last_call: Option<u32>,
    pub(super) counters: IncomingCounters,
}

#[derive(Debug)]
struct UnansweredCall {
    deadline: Option<Instant>,
    state: DeferredCallState,
}

impl IncomingCalls {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            deferred: HashMap::new(),
            limit,
            unnumbered: 0,
            renewals: 0,
            last_call: None,
            counters: IncomingCounters::default(),
        }
    }

    /// Forgets the calls of a connection that is lost.
    pub(super) fn renew(&mut self) {
        self.renewals = self.renewals.wrapping_add(1);
        self.deferred.clear();
        self.last_call = None;
    }

    /// Accepts a lean call of this number, if it is ahead of those before; returns the last one if it is not.
    #[inline]
    pub(super) fn accept(&mut self, number: u32) -> Result<(), u32> {
        if let Some(last) = self.last_call
            && !is_ahead(number, last)
        {
            return Err(last);
        }
        self.last_call = Some(number);
        Ok(())
    }

    /// Returns whether a lean call of this number was accepted, or one behind it.
    pub(super) fn is_accepted(&self, number: u32) -> bool {
        self.last_call.is_some_and(|last| !is_ahead(number, last))
    }

    pub(super) fn last_call(&self) -> Option<u32> {
        self.last_call
    }

    /// Names the call of a number, on this connection and on none before.
    fn id_of(&self, number: u32) -> u64 {
        u64::from(self.renewals) << 32 | u64::from(number)
    }

    /// Notes that a call is carried out elsewhere. `None` if there are too many of those, where so many are granted
    /// `beside` the limit, or one of the same number.
    pub(super) fn defer(
        &mut self,
        caller: &Caller,
        deadline: Option<Instant>,
        beside: usize,
    ) -> Option<DeferredId> {
        if self.deferred.len() >= self.limit.saturating_add(beside) {
            return None;
        }
        let number = match caller {
            Caller::Onc { .. } => {
                self.unnumbered = self.unnumbered.wrapping_add(1);
                self.unnumbered
            }
            Caller::Lean(caller) => caller.id,
        };
        let id = self.id_of(number);
        match self.deferred.entry(id) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                let state = DeferredCallState::Awaited;
                place.insert(UnansweredCall { deadline, state });
                Some(DeferredId(id))
            }
        }
    }

    /// Returns whether a call can be deferred now.
    pub(super) fn may_defer(&self, caller: &Caller, beside: usize) -> bool {
        let is_free = match caller {
            Caller::Onc { .. } => true,
            Caller::Lean(caller) => !self.deferred.contains_key(&self.id_of(caller.id)),
        };
        is_free && self.deferred.len() < self.limit.saturating_add(beside)
    }

    pub(super) fn finish(&mut self, id: DeferredId) -> Option<DeferredCallState> {
        self.deferred.remove(&id.0).map(|call| call.state)
    }

    pub(super) fn state(&self, id: DeferredId) -> Option<DeferredCallState> {
        self.deferred.get(&id.0).map(|call| call.state)
    }

    /// Notes that the client no longer waits for a lean call.
    pub(super) fn cancel(&mut self, number: u32) -> Option<DeferredId> {
        let id = self.id_of(number);
        self.deferred.get_mut(&id)?.state = DeferredCallState::Cancelled;
        Some(DeferredId(id))
    }

    /// Gives memory back that only many calls at once have needed.
    pub(super) fn trim(&mut self) {
        self.deferred.shrink_to(0);
    }

    pub(super) fn len(&self) -> usize {
        self.deferred.len()
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let awaited = self.deferred.values().filter(|call| call.is_awaited());
        awaited.filter_map(|call| call.deadline).min()
    }

    /// Returns a call that has run out of time by `now` and that was not returned before.
    pub(super) fn poll_expired(&mut self, now: Instant) -> Option<DeferredId> {
        let is_late = |call: &UnansweredCall| call.deadline.is_some_and(|deadline| deadline <= now);
        let mut calls = self.deferred.iter_mut();
        let (id, call) = calls.find(|(_, call)| call.is_awaited() && is_late(call))?;
        call.state = DeferredCallState::Expired;
        Some(DeferredId(*id))
    }
}

impl UnansweredCall {
    fn is_awaited(&self) -> bool {
        self.state == DeferredCallState::Awaited
    }
}

/// Returns whether `number` is ahead of `last`, where numbers wrap around.
fn is_ahead(number: u32, last: u32) -> bool {
    number.wrapping_sub(last).wrapping_sub(1) < i32::MAX as u32
}
