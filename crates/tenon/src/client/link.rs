//! The connection that the calls of a channel go over: its socket, which all callers share, and the role of its
//! reader, which belongs to one of them at a time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenon_core::ClientSocket;
use tenon_core::callbacks::ReceivedCallback;
use tenon_core::client::{Input, Outgoing, ReplyPlace, STALE_AFTER};
use tenon_core::error::{ConnectionFailure, SendFailure};
use tenon_core::options::{ChannelOptions, FOR_EVER};
use tenon_core::wait::{
    LOOKS, Looking, Spinners, Spun, WaitContext, WaitTally, Waiter, YieldingLook,
};
use tenon_net::{ReceivedTrain, Until};
use tenon_proto::connection::framing::Receiver;
use tenon_sync::DoneFlag;

use super::wait_handle::WakeHandle;
use super::waiters::WaiterId;

/// A call of the server that is to be carried out, and the connection that it came over.
pub(super) type CallbackJob = (ReceivedCallback, Arc<ConnectionSocket>);

/// A socket that leads to the peer.
#[derive(Debug)]
pub(super) struct ConnectionSocket {
    pub(super) socket: ClientSocket,
    looking: Looking,
    /// Set once it has been given up: a socket for datagrams does not say so to a thread that does not sleep in it.
    is_shut: AtomicBool,
    /// Set once the caller that sends [directly](SenderState::Direct) has sent.
    direct: DoneFlag,
    waits: Arc<WaitTally>,
}

/// The connection of a channel.
#[derive(Debug)]
pub(super) struct ActiveConnection {
    pub(super) socket: Arc<ConnectionSocket>,
    /// The state of its reader; `None` while a caller reads.
    pub(super) reader: Option<Box<ReadHalf>>,
    pub(super) sending: SenderState,
    /// The messages for its sender; `None` while a caller sends what waits.
    pub(super) outgoing: Option<Outgoing>,
    /// The look of its sender for room.
    pub(super) room_look: YieldingLook,
    pub(super) used_at: Instant,
    /// The failure of the connection, while a caller still sends over it.
    pub(super) failure: Option<ConnectionFailure>,
    /// The reason why nothing can be sent over it any more, while what the peer sent before is received.
    pub(super) send_failure: Option<SendFailure>,
}

/// The state of sending: one caller at a time sends, as messages must not mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SenderState {
    /// No caller does.
    Idle,
    /// A caller sends what waits, until nothing does.
    Queue,
    /// A caller sends its own call alone, and then says so without the lock.
    Direct,
    /// None does any more, as sending has failed.
    Failed,
}

/// The socket of a connection and the state of its reader.
#[derive(Debug)]
pub(super) struct ReadHalf {
    pub(super) socket: Arc<ConnectionSocket>,
    pub(super) input: Input,
    pub(super) waiter: Waiter,
    /// True if something was received that the channel was not told of.
    pub(super) has_heard: bool,
    /// For how long a call waits that goes [directly](super::fast_path) before it is looked whether the peer is there.
    pub(super) first_wait: Duration,
    /// The reply to the reader's own call, once it has come.
    pub(super) own: ReplyPlace,
    /// That call, if the channel still has it in flight.
    pub(super) answered: Option<(u32, WaiterId)>,
    /// Callers that are to be woken once the lock is released.
    pub(super) wakes: Vec<WakeHandle>,
    /// Calls of the server that are to be carried out then.
    pub(super) jobs: Vec<CallbackJob>,
}

impl ConnectionSocket {
    /// Returns a connection over `socket`.
    pub(super) fn of(socket: ClientSocket, waits: &Arc<WaitTally>) -> Self {
        Self {
            looking: Looking::at(socket.transport()),
            socket,
            is_shut: AtomicBool::new(false),
            direct: DoneFlag::default(),
            waits: Arc::clone(waits),
        }
    }

    /// Returns what its waiters share.
    pub(super) fn wait_context(&self) -> WaitContext<'_> {
        WaitContext {
            spinners: Spinners::of_callers(),
            looking: self.looking,
            tally: &self.waits,
        }
    }

    /// The connection is given up.
    pub(super) fn shutdown(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
        self.socket.shutdown();
    }

    /// A caller is going to send its call directly.
    #[inline]
    pub(super) fn begin_direct(&self) {
        self.direct.begin();
    }

    /// The caller that sends directly has sent.
    #[inline]
    pub(super) fn end_direct(&self) {
        self.direct.end();
    }

    /// Returns whether the caller that sends directly has sent.
    #[inline]
    pub(super) fn is_direct_done(&self) -> bool {
        self.direct.is_done()
    }

    /// Receives, waiting in the way of this channel. A part of what is received `has_begun` to come.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; what the socket reports.
    #[inline]
    pub(super) fn receive(
        &self,
        waiter: &mut Waiter,
        room: &mut [u8],
        has_begun: bool,
        until: Until,
    ) -> io::Result<ReceivedTrain> {
        if waiter.always_sleeps() && !has_begun {
            self.waits.blocks();
            return self.socket.recv_until(room, until);
        }
        self.look(waiter, room, has_begun, until)
    }

    /// The same in whatever way there is.
    fn look(
        &self,
        waiter: &mut Waiter,
        room: &mut [u8],
        has_begun: bool,
        until: Until,
    ) -> io::Result<ReceivedTrain> {
        let context = self.wait_context();
        let may_go_on = || !self.is_shut.load(Ordering::Relaxed);
        let mut looks = 0;
        let mut look = || {
            self.socket.look(looks);
            looks = LOOKS;
            self.socket.try_recv(room)
        };
        if has_begun && let Some(came) = waiter.look_for_rest(&context, &mut look) {
            return came;
        }
        match waiter.look(&context, |_| until.deadline(), may_go_on, look) {
            Spun::Ready(received) => received,
            Spun::Late => Err(io::ErrorKind::TimedOut.into()),
            Spun::Sleep => waiter.sleep(&context, || self.socket.recv_until(room, until)),
        }
    }
}

/// Returns for how long a call may wait before its channel asks whether its peer is there.
fn first_wait(options: &ChannelOptions, receiver: Option<&mut Receiver>) -> Duration {
    let is_lean = receiver.is_some_and(|receiver| receiver.lean_reader().is_some());
    let interval = if is_lean {
        options.pings.lean_interval
    } else {
        options.pings.onc_interval
    };
    interval.unwrap_or(FOR_EVER)
}

impl ActiveConnection {
    /// A connection over which nothing was sent yet. A stream has its `receiver`.
    pub(super) fn new(
        socket: Arc<ConnectionSocket>,
        mut receiver: Option<Receiver>,
        options: &ChannelOptions,
    ) -> Self {
        let first_wait = first_wait(options, receiver.as_mut());
        let reader = ReadHalf {
            socket: Arc::clone(&socket),
            input: Input::new(receiver, &options.connection_config()),
            waiter: Waiter::new(options.waiting),
            has_heard: false,
            first_wait,
            own: ReplyPlace::default(),
            answered: None,
            wakes: Vec::new(),
            jobs: Vec::new(),
        };
        Self {
            outgoing: Some(Outgoing::new(&socket.socket)),
            socket,
            reader: Some(Box::new(reader)),
            sending: SenderState::Idle,
            room_look: YieldingLook::for_room(),
            used_at: Instant::now(),
            failure: None,
            send_failure: None,
        }
    }

    /// Returns whether the caller that sent directly is done, or none does.
    #[inline]
    pub(super) fn is_direct_over(&self) -> bool {
        self.sending != SenderState::Direct || self.socket.is_direct_done()
    }

    /// Returns whether no caller sends.
    #[inline]
    pub(super) fn is_send_free(&self) -> bool {
        self.sending == SenderState::Idle
            || self.sending == SenderState::Direct && self.socket.is_direct_done()
    }

    /// Returns when it ends at the latest, as nothing can be sent over it any more, and what the peer still sends is
    /// received until then.
    pub(super) fn drained_at(&self) -> Option<Instant> {
        self.send_failure.as_ref().map(SendFailure::until)
    }

    /// Returns whether a sender has left something unsent.
    pub(super) fn has_rest(&self) -> bool {
        self.outgoing.as_ref().is_some_and(Outgoing::has_rest)
    }

    /// Returns whether it was not used for so long that it is to be looked at.
    #[inline]
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        now > self.used_at + STALE_AFTER
    }
}

impl ReadHalf {
    /// Receives once, waiting `until` a deadline: `TimedOut` then. The end of a stream is an error.
    #[inline]
    pub(super) fn receive(&mut self, until: Until) -> io::Result<()> {
        let Self {
            socket,
            input,
            waiter,
            ..
        } = self;
        let has_begun = input.has_begun();
        let came = socket.receive(waiter, input.room(), has_begun, until);
        input.handle_received(came)?;
        self.has_heard = true;
        Ok(())
    }

    /// Returns the results of the reader's own call.
    #[inline]
    pub(super) fn results(&mut self) -> &[u8] {
        self.input.results(&self.own.place)
    }
}
