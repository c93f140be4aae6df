//! The client's side: the conversation with one server, and its calls.
//!
//! [`handle_datagram`](ClientEngine::handle_datagram) takes in each datagram,
//! [`poll_transmit`](ClientEngine::poll_transmit) is asked for what is to be sent until there is nothing, and
//! [`poll_event`](ClientEngine::poll_event) for calls that came to nothing.

mod call_id;
mod calls;
mod greeting;
mod incoming;
mod lane;
mod outgoing;
mod timers;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use crate::connection::framing::ReceiveBuffer;
use crate::connection::{BindError, ReplyError, StartError};
use crate::endpoint::exchange::congestion::CongestionController;
use crate::endpoint::exchange::datagram_max;
use crate::endpoint::exchange::failure::Failure;
use crate::endpoint::exchange::opening::{ConversationOpening, OPENING, TransportParameters};
use crate::endpoint::exchange::packet::{DropCounters, HeaderTemplate};
use crate::endpoint::exchange::reassembled::{ReassembledMessage, content_max};
use crate::endpoint::exchange::reassembly::Reassembly;
use crate::endpoint::exchange::spare::{KEPT_BY_CLIENT, SpareBuffers};
use crate::endpoint::exchange::time::{RetransmitTimeouts, RttEstimator, SplitMix64};
use crate::lean::{BindRefusal, ByteOrder, Extensions, Interface, Preamble};
use lane::ClientLane;

pub use call_id::CallId;

/// Limits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Bytes of the largest datagram that it sends and takes in.
    pub datagram_max: usize,
    /// Bytes of answers that are being received, of all calls together.
    pub bytes: usize,
    /// Times to wait before something is sent again.
    pub patience: RetransmitTimeouts,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            datagram_max: super::DATAGRAM_DEFAULT,
            bytes: 256 << 20,
            patience: RetransmitTimeouts::default(),
        }
    }
}

/// Values that must be unpredictable, from the system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct ClientSecrets {
    /// The key that the names of conversations are made from.
    pub key: [u8; 16],
    /// For what is done by chance.
    pub seed: u64,
}

/// A call that is to be started.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// The number that [`bind`](ClientEngine::bind) gave to its service.
    pub service: u16,
    /// Procedure number.
    pub procedure: u16,
    /// The time at which it is given up.
    pub deadline: Instant,
}

/// An answer to a call that was in flight until now.
#[derive(Debug)]
pub struct ExchangeAnswer<'m, W> {
    /// The call.
    pub id: CallId,
    /// The waiter that was handed in with the call.
    pub waiter: W,
    /// The order of the bytes of the results.
    pub order: ByteOrder,
    /// The extensions of the answer.
    pub extensions: Extensions<'m>,
    /// The index of the first byte of the results in the whole answer.
    pub start: usize,
    /// The encoded results, where they were received.
    pub outcome: Result<&'m [u8], ReplyError<'m>>,
}

/// An event other than an answer.
#[derive(Debug)]
pub enum ClientEvent<W> {
    /// A call came to nothing. It is no longer in flight.
    Failed {
        /// The call.
        id: CallId,
        /// The waiter that was handed in with the call.
        waiter: W,
        /// The reason.
        failure: Failure,
    },
}

/// Counters of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExchangeClientCounters {
    /// Calls started.
    pub calls: u64,
    /// Calls answered with results.
    pub successes: u64,
    /// Calls answered with exceptions.
    pub exceptions: u64,
    /// Calls that came to nothing.
    pub failures: u64,
    /// Calls that were given up before they were answered.
    pub cancellations: u64,
    /// Conversations begun.
    pub conversations: u64,
    /// Packets that were sent again.
    pub repeated: u64,
    /// Datagrams that were dropped.
    pub ignored: DropCounters,
}

#[derive(Debug)]
struct ServiceBinding {
    interface: Arc<Interface>,
    state: BindingState,
    /// Calls of procedures that agree although the version does not go by this number, once there is one.
    narrowed: Option<u16>,
}

#[derive(Debug)]
enum BindingState {
    Asked,
    Bound,
    Refused(Arc<BindRefusal>),
    /// The server has the version in another form, in which these procedures agree.
    Narrowed {
        refusal: Box<BindRefusal>,
        agreed: Vec<u16>,
    },
    /// The number is for procedures that agree, of which these are bound.
    Procedures(Vec<u16>),
}

impl BindingState {
    /// Forgets what the last conversation has told, for one that begins.
    fn reset(&mut self) {
        *self = match self {
            Self::Procedures(_) => Self::Procedures(Vec::new()),
            _ => Self::Asked,
        };
    }
}

/// The state of the conversation with the server.
#[derive(Debug)]
enum ConversationState {
    /// There is nothing to say.
    Idle,
    /// A conversation is asked for.
    Greeting(PendingHandshake),
    Open(OpenConversation),
}

#[derive(Debug)]
struct PendingHandshake {
    conversation: u64,
    /// Hellos sent.
    sent: u32,
    sent_at: Instant,
    began_at: Instant,
    /// The time at which the next one is to be sent, once one was.
    timer: Instant,
    /// One is to be sent now.
    owes_hello: bool,
    /// True if it was asked for without a call.
    is_awaited: bool,
}

#[derive(Debug)]
struct OpenConversation {
    conversation: u64,
    prototype: HeaderTemplate,
    /// The opening of packets, as long as the server may not know the conversation.
    opening: Option<ConversationOpening>,
    /// Bytes behind the header of a datagram.
    room: usize,
    incarnation: u32,
}

impl OpenConversation {
    /// Bytes of the fragments of a message that is begun now.
    fn fragment_bytes(&self) -> usize {
        match self.opening {
            Some(_) => self.room - OPENING,
            None => self.room,
        }
    }
}

/// The conversation with one server. `W` is what the owner needs to find the waiter of a call. When the server does not
/// know the conversation any more another is begun, and calls that cannot have been carried out are sent again.
#[derive(Debug)]
pub struct ClientEngine<W> {
    core: ClientCore<W>,
    /// The answer that was handed out last, if it came in several fragments.
    whole: ReceiveBuffer,
}

#[derive(Debug)]
struct ClientCore<W> {
    own: TransportParameters,
    limits: ClientLimits,
    key: [u8; 16],
    peer: Option<Preamble>,
    link: ConversationState,
    lanes: Vec<ClientLane<W>>,
    free: Vec<u16>,
    /// Lanes with a call that is waited for.
    calling: usize,
    ready: VecDeque<u16>,
    bindings: Vec<ServiceBinding>,
    events: VecDeque<ClientEvent<W>>,
    spare: SpareBuffers,
    congestion: CongestionController,
    round_trip: RttEstimator,
    /// A call waits for room in the window.
    has_waiting: bool,
    /// Bytes of answers that are being received.
    bytes: usize,
    /// Packets sent.
    order: u64,
    serial: u32,
    rng: SplitMix64,
    counters: ExchangeClientCounters,
}

/// An answer that is whole: where it is.
struct CompleteAnswer<'d> {
    lane: u16,
    /// None: in what was assembled.
    datagram: Option<&'d [u8]>,
}

impl<W> ClientEngine<W> {
    /// A client of a server that it has not talked to. `preamble` says what it is.
    pub fn new(preamble: Preamble, limits: ClientLimits, secrets: ClientSecrets) -> Self {
        let bytes_max = content_max(&preamble);
        Self {
            core: ClientCore {
                own: TransportParameters {
                    preamble,
                    datagram_max: datagram_max(limits.datagram_max, usize::MAX) as u32,
                },
                limits,
                key: secrets.key,
                peer: None,
                link: ConversationState::Idle,
                lanes: Vec::new(),
                free: Vec::new(),
                calling: 0,
                ready: VecDeque::new(),
                bindings: Vec::new(),
                events: VecDeque::new(),
                spare: SpareBuffers::new(Reassembly::receiver(bytes_max), KEPT_BY_CLIENT),
                congestion: CongestionController::new(super::DATAGRAM_DEFAULT),
                round_trip: RttEstimator::new(limits.patience),
                has_waiting: false,
                bytes: 0,
                order: 0,
                serial: 0,
                rng: SplitMix64(secrets.seed),
                counters: ExchangeClientCounters::default(),
            },
            whole: Reassembly::receiver(bytes_max),
        }
    }

    /// Returns the preamble of the server; `None` as long as it has said nothing, and when what it said may no longer
    /// hold, as its conversation is over.
    pub fn peer(&self) -> Option<&Preamble> {
        self.core.peer.as_ref()
    }

    /// The number of the service that is `interface` at the server. If it has none yet it gets one,
    /// and its calls ask for it.
    ///
    /// # Errors
    /// The server refused it already, or there are no numbers left.
    #[inline]
    pub fn bind(&mut self, interface: &Arc<Interface>, procedure: u16) -> Result<u16, BindError> {
        self.core.bind(interface, procedure)
    }

    /// Sets how large the datagrams may be from the next conversation on.
    pub fn set_datagram_max(&mut self, bytes: usize) {
        self.core.own.datagram_max = datagram_max(bytes, usize::MAX) as u32;
    }

    /// Ends the conversation, for a client that makes no calls any more: appends the datagram that tells the server,
    /// which needs no answer. False if there is no conversation. Calls in flight are to be given up before.
    pub fn send_close(&mut self, out: &mut Buffer) -> bool {
        self.core.send_close(out)
    }

    /// Asks for a conversation before there is a call, unless there is one or it is asked for already.
    pub fn greet(&mut self, now: Instant) {
        self.core.greet_without_call(now);
    }

    /// Returns whether a conversation is asked for.
    pub fn is_greeting(&self) -> bool {
        matches!(self.core.link, ConversationState::Greeting(_))
    }

    /// Puts a call in flight. `message` is what [`MessageDraft`](crate::lean::MessageDraft) has written, from its
    /// beginning; number and service are filled in. An empty buffer is given back for it.
    ///
    /// # Errors
    /// It cannot be started now, and why; the message stays where it is.
    ///
    /// # Panics
    /// The message is shorter than a header.
    pub fn start(
        &mut self,
        now: Instant,
        call: &Outgoing,
        message: &mut Buffer,
        waiter: W,
    ) -> Result<CallId, StartError> {
        self.core.start(now, call, message, waiter)
    }

    /// Takes in a datagram of the server; the answer, if that makes one whole. It stays where it is
    /// until the next datagram. The result is at a multiple of 8 in memory if the datagram is.
    #[inline]
    pub fn handle_datagram<'d>(
        &'d mut self,
        now: Instant,
        datagram: &'d [u8],
    ) -> Option<ExchangeAnswer<'d, W>> {
        let Self { core, whole } = self;
        core.take_in(now, datagram, whole)
    }

    /// Does the same for an owner that keeps the answer while the engine goes on: one of several packets is left in
    /// `taken`, one of a single packet stands behind its [header](super::PACKET_HEADER).
    #[inline]
    pub fn handle_datagram_into<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        taken: &'d mut ReassembledMessage,
    ) -> Option<ExchangeAnswer<'d, W>> {
        self.core.take_in(now, datagram, &mut taken.0)
    }

    /// Ends the call `id` if `datagram` is its answer and of the commonest form: a single packet, and in it
    /// nothing but the results. Where they stand behind the packet's [header](super::PACKET_HEADER). None says
    /// nothing: what else it may be is found out by the methods above.
    #[inline]
    pub fn take_common(
        &mut self,
        now: Instant,
        datagram: &[u8],
        id: CallId,
    ) -> Option<Range<usize>> {
        self.core.take_common(now, datagram, id)
    }

    /// Appends the next datagram that is to be sent; false if there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> bool {
        self.core.poll_transmit(now, out)
    }

    /// Returns whether there may be something to send.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        match &self.core.link {
            ConversationState::Greeting(greeting) => greeting.owes_hello,
            ConversationState::Idle | ConversationState::Open(_) => !self.core.ready.is_empty(),
        }
    }

    /// Returns the next event other than an answer.
    #[inline]
    pub fn poll_event(&mut self) -> Option<ClientEvent<W>> {
        self.core.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.core.poll_timeout()
    }

    /// Returns when there is something to do for a call; `None` if it is not in flight.
    pub fn next_timeout(&self, id: CallId) -> Option<Instant> {
        let number = self.core.lane_with(id)?;
        self.core.lanes[usize::from(number)].next_timeout()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.core.handle_timeout(now);
    }

    /// Fails the calls in flight, as the system has found out that no socket listens at the server's address. Those
    /// that are started later ask for another conversation.
    pub fn handle_refusal(&mut self, now: Instant) {
        self.core.handle_refusal(now);
    }

    /// Ends the conversation and gives all calls up, of which the server is not told; returns their waiters.
    pub fn break_off(&mut self) -> Vec<W> {
        self.core.break_off()
    }

    /// Gives a call up; the server is told so, and its answer will be ignored. `None` if it is no
    /// longer in flight.
    pub fn cancel(&mut self, id: CallId) -> Option<W> {
        self.core.cancel(id)
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        self.core.calling
    }

    /// Calls in flight, and those that were given up and of which the server has not said yet that
    /// they are over.
    pub fn lanes_in_use(&self) -> usize {
        self.core.lanes.len() - self.core.free.len()
    }

    /// Returns how many calls the server takes in one conversation, if it has so many of them that further ones wait.
    pub fn full_at(&self) -> Option<usize> {
        let limit = self.core.lanes_max();
        (self.lanes_in_use() >= limit).then_some(limit)
    }

    /// Bytes of answers that are being received.
    pub fn bytes(&self) -> usize {
        self.core.bytes
    }

    /// Packets that are taken to be under way.
    pub fn under_way(&self) -> u32 {
        self.core.congestion.under_way()
    }

    /// The smoothed round trip, once one has been measured.
    pub fn round_trip(&self) -> Option<Duration> {
        self.core.round_trip.smoothed()
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> ExchangeClientCounters {
        self.core.counters
    }
}
