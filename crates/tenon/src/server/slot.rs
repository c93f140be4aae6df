//! A connection or port as everything in the server sees it, and the owner of its state: one thread at a time, or none.
//!
//! The state moves between the slot and the thread that serves it. A thread that runs a handler puts the state into
//! the slot meanwhile, so that another thread can go on with the connection if the handler takes long. What others have
//! for the connection while a thread has its state, answers of calls that were carried out elsewhere above all, they
//! leave in the slot, and the thread looks for it before it lets the connection go.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tenon_core::callbacks::PendingCallback;
use tenon_core::serve::{AwaitedWriters, CallTally};
use tenon_core::service::Origin;
use tenon_net::{Carrier, Stream, impl_as_fd};
use tenon_proto::connection::{DeferredId, UnsentCall};
use tenon_proto::endpoint::DatagramCallKey;
use tenon_sync::Baton;
use tenon_wire::Buffer;

use super::lock;
use super::port_state::PortState;
use super::stream_state::StreamState;

/// Something may have come, or there may be room to send.
pub(super) const READY: u8 = 1;
/// Answers were left in the slot.
pub(super) const ANSWERS: u8 = 2;
/// The peer has ended its sending side, or all of the connection.
pub(super) const ENDED: u8 = 4;

/// There may be room for a call that could not be handed over.
pub(super) const ROOM: u8 = 8;
/// The age of the connection is to be looked at.
pub(super) const TIME: u8 = 16;
/// The calls with streams are to be ended.
pub(super) const END_STREAMS: u8 = 32;

/// A connection or port.
pub(super) struct SocketSlot {
    /// The number under which its socket is registered, which is never given again.
    pub(super) id: usize,
    pub(super) socket: SlotSocket,
    /// The state, which one thread at a time may have, and the signals since it has looked.
    baton: Baton<SlotState>,
    answers: Mutex<Vec<LateAnswer>>,
    /// True once a call with streams has come.
    has_streams: AtomicBool,
    /// True once the connection has ended: what is left for it is not taken any more.
    is_over: AtomicBool,
    pub(super) tally: CallTally,
}

/// The socket that a slot receives and sends by.
#[derive(Debug)]
pub(super) enum SlotSocket {
    Stream(Stream),
    Port(Carrier),
}

/// The state of a connection or port, which one thread at a time has.
#[derive(Debug)]
pub(super) enum SlotState {
    Stream(StreamState),
    Port(PortState),
}

/// A connection or port that has something to say, with its state.
pub(super) type ReadySlot = (Arc<SocketSlot>, Box<SlotState>);

/// The answer to a call that was not answered by the thread that has the state.
#[derive(Debug)]
pub(super) enum LateAnswer {
    /// Of a stream, to a call that was handed over.
    Deferred(DeferredId, Buffer),
    /// Of a stream, to a call that was carried out where it was received and took long.
    Inline(Buffer),
    /// Of a stream, nothing but that so many bytes of memory of such a call are free.
    Memory(usize),
    /// Of a stream: items of the result of a call.
    Items(u32, Buffer),
    /// Of a stream: items of the arguments of a call were taken, of so many bytes of credit.
    ItemsTaken(u32, u64),
    /// Of a stream: no further items of the arguments of a call are wanted.
    ItemsUnwanted(u32),
    /// Of a stream: a call back, and who waits for its outcome.
    Callback(UnsentCall, Arc<PendingCallback>),
    /// Of a stream: a call back is not waited for any more.
    CallbackCancelled(Arc<PendingCallback>),
    /// Of a port.
    Datagram(DatagramCallKey<SocketAddr>, Buffer),
}

impl SlotState {
    fn note_signal(&mut self, signal: u8) {
        match self {
            Self::Stream(stream) => stream.signals |= signal,
            Self::Port(port) => port.signals |= signal,
        }
    }

    /// Wakes handlers that wait until the connection takes further items, though it is not free yet: other connections
    /// have their turns before it.
    pub(super) fn wake_writers(&mut self) {
        if let Self::Stream(state) = self {
            state.served.take_writers().wake();
        }
    }
}

impl SocketSlot {
    /// Makes a slot without its state, which is to be [put back](Self::put_back).
    pub(super) fn new(id: usize, socket: SlotSocket) -> Self {
        Self {
            id,
            socket,
            baton: Baton::new(),
            answers: Mutex::default(),
            has_streams: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            tally: CallTally::default(),
        }
    }

    /// Takes the state, unless a thread has it.
    #[inline]
    pub(super) fn claim(&self) -> Option<Box<SlotState>> {
        self.baton.claim()
    }

    /// Lets another thread claim the state while this one runs a handler.
    #[inline]
    pub(super) fn lend(&self, state: Box<SlotState>) {
        self.baton.lend(state);
    }

    /// Puts the state back; returns it if something has happened meanwhile that is to be looked at. Handlers that wait
    /// until the connection takes further items are woken once it is free.
    #[inline]
    pub(super) fn put_back(&self, mut state: Box<SlotState>) -> Option<Box<SlotState>> {
        let writers = match &mut *state {
            SlotState::Stream(state) => state.served.take_writers(),
            SlotState::Port(_) => AwaitedWriters::default(),
        };
        let state = self.baton.put_back(state);
        match writers.is_empty() {
            true => state,
            false => wake_once_free(writers, state),
        }
    }

    /// Says that something has happened, and takes the state, unless a thread has it, which will see the signal.
    #[inline]
    pub(super) fn signal(&self, signal: u8) -> Option<Box<SlotState>> {
        self.baton.signal(signal, |state| state.note_signal(signal))
    }

    /// Returns whether something has happened since a thread has looked.
    #[inline]
    pub(super) fn has_signals(&self) -> bool {
        self.baton.has_signals()
    }

    /// Returns what has happened since this was asked last, beside what the state was [told](Self::signal).
    #[inline]
    pub(super) fn take_signals(&self) -> u8 {
        self.baton.take_signals()
    }

    /// Leaves an answer; returns the state if no thread has it, so that the answer is to be sent.
    pub(super) fn leave_answer(&self, answer: LateAnswer) -> Option<Box<SlotState>> {
        lock(&self.answers).push(answer);
        self.signal(ANSWERS)
    }

    /// Takes the answers that were left.
    pub(super) fn take_answers(&self) -> Vec<LateAnswer> {
        std::mem::take(&mut lock(&self.answers))
    }

    /// Returns the origin of its calls; those of a port say more themselves.
    #[inline]
    pub(super) fn origin(&self) -> Origin {
        match &self.socket {
            SlotSocket::Stream(stream) => Origin {
                transport: stream.transport(),
                peer: stream.peer(),
                user: stream.user().map(|user| user.user),
            },
            SlotSocket::Port(carrier) => Origin {
                transport: carrier.transport(),
                peer: None,
                user: None,
            },
        }
    }

    /// The stream, if it is a connection.
    #[inline]
    pub(super) fn stream(&self) -> Option<&Stream> {
        match &self.socket {
            SlotSocket::Stream(stream) => Some(stream),
            SlotSocket::Port(_) => None,
        }
    }

    /// Notes that a call with streams has come, or that a handler calls back: no thread waits for the connection alone
    /// while one is carried out, and what comes is needed until it has ended. Returns whether it is the first.
    pub(super) fn note_streams(&self) -> bool {
        !self.has_streams.swap(true, Ordering::Relaxed)
    }

    /// Returns whether a call with streams has come.
    pub(super) fn has_had_streams(&self) -> bool {
        self.has_streams.load(Ordering::Relaxed)
    }

    /// Notes that the connection has ended.
    pub(super) fn set_over(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Makes a thread that waits for requests wake up with the end of the stream. Over TCP it wakes up by itself soon
    /// enough: a socket that receives nothing more would answer what comes with a reset, once it is half-closed.
    pub(super) fn stop_receiving(&self) {
        // A connection that has ended need not be.
        let _ = match &self.socket {
            SlotSocket::Stream(stream)
                if !stream.transport().resets() && !self.has_had_streams() =>
            {
                stream.shutdown_recv()
            }
            SlotSocket::Stream(_) | SlotSocket::Port(_) => Ok(()),
        };
    }

    /// Ends the direction of the replies; returns whether that is needed, as only TCP loses what was sent when a socket
    /// is closed.
    pub(super) fn half_close(&self) -> bool {
        self.stream()
            .is_some_and(|stream| stream.transport().resets() && stream.shutdown_send().is_ok())
    }

    /// Ends both directions.
    pub(super) fn hang_up(&self) {
        let _ = match &self.socket {
            SlotSocket::Stream(stream) => stream.shutdown(),
            SlotSocket::Port(_) => Ok(()),
        };
    }
}

impl_as_fd!(SocketSlot, self => match &self.socket {
    SlotSocket::Stream(stream) => stream.as_fd(),
    SlotSocket::Port(carrier) => carrier.as_fd(),
});

impl fmt::Debug for SocketSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("id", &self.id)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// Wakes handlers that wait for their connection, or puts that off if the connection is not free.
#[cold]
fn wake_once_free(
    mut writers: AwaitedWriters,
    mut state: Option<Box<SlotState>>,
) -> Option<Box<SlotState>> {
    match state.as_deref_mut() {
        Some(SlotState::Stream(state)) if writers.put_off() => state.served.keep_writers(writers),
        _ => writers.wake(),
    }
    state
}

/// The state of a connection, if the thread has it.
#[inline]
pub(super) fn stream_of(place: &mut Option<Box<SlotState>>) -> Option<&mut StreamState> {
    match place.as_deref_mut() {
        Some(SlotState::Stream(state)) => Some(state),
        Some(SlotState::Port(_)) | None => None,
    }
}

/// The state of a port, if the thread has it.
pub(super) fn port_of(place: &mut Option<Box<SlotState>>) -> Option<&mut PortState> {
    match place.as_deref_mut() {
        Some(SlotState::Port(port)) => Some(port),
        Some(SlotState::Stream(_)) | None => None,
    }
}
