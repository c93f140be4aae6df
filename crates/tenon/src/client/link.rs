//! The connection that the calls of a channel go over: its socket, which all callers share, and the role of its
//! reader, which belongs to one of them at a time.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tenon_core::ClientSocket;
use tenon_core::error::ConnectionFailure;
use tenon_core::options::ChannelOptions;
use tenon_core::trains::Trains;
use tenon_core::wait::{Company, LOOKS, Looking, Spinners, Spun, WaitTally, Waiter};
use tenon_net::{Address, Came, Until};
use tenon_proto::connection::TransmitBatch;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::lean::{ByteOrder, Stamps};

use super::datagram_input::DatagramInput;
use super::wait_handle::WakeHandle;
use super::waiters::WaiterId;

/// A connection that was not used for so long is looked at before a call is entrusted to it: the peer may have closed
/// it meanwhile.
pub(super) const REST: Duration = Duration::from_millis(100);

/// A socket that leads to the peer.
#[derive(Debug)]
pub(super) struct LinkSocket {
    pub(super) socket: ClientSocket,
    looking: Looking,
    /// Whether it has been given up: a socket for datagrams does not say so to a thread that does not sleep in it.
    is_shut: AtomicBool,
    /// Whether the caller that sends [directly](Sending::Direct) has sent.
    direct_is_done: AtomicBool,
    waits: Arc<WaitTally>,
}

/// The connection of a channel.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: Arc<LinkSocket>,
    /// What its reader works with; `None` while a caller reads.
    pub(super) reader: Option<Box<ReadHalf>>,
    pub(super) sending: Sending,
    /// What its sender works with; `None` while a caller sends what waits.
    pub(super) outgoing: Option<Outgoing>,
    pub(super) used_at: Instant,
    /// Why it has failed, while a caller still sends over it.
    pub(super) failure: Option<ConnectionFailure>,
}

/// Whether a caller sends now; messages must not mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// No caller does.
    Idle,
    /// A caller sends what waits, until nothing does.
    Queue,
    /// A caller sends its own call alone, and then says so without the lock.
    Direct,
}

/// What is being sent. A sender whose time ran out leaves the rest to others.
#[derive(Debug)]
pub(super) enum Outgoing {
    Stream(Box<TransmitBatch>),
    Datagram(Box<Trains<()>>),
}

/// What the reader of a link works with.
#[derive(Debug)]
pub(super) struct ReadHalf {
    pub(super) socket: Arc<LinkSocket>,
    pub(super) input: Input,
    pub(super) waiter: Waiter,
    /// The reply to the reader's own call, once it has come.
    pub(super) own: OwnReply,
    /// That call, if the channel still has it in flight.
    pub(super) answered: Option<(u32, WaiterId)>,
    /// Callers that are to be woken once the lock is released.
    pub(super) wakes: Vec<WakeHandle>,
}

/// What has been received.
#[derive(Debug)]
pub(super) enum Input {
    Stream(Receiver),
    Datagram(Box<DatagramInput>),
}

/// A reply where it was received.
#[derive(Debug)]
pub(super) struct OwnReply {
    /// Where in the message the results are.
    pub(super) place: Range<usize>,
    /// The order of their bytes.
    pub(super) order: ByteOrder,
    /// What the server says of the call's way.
    pub(super) stamps: Option<Stamps>,
}

impl Default for OwnReply {
    fn default() -> Self {
        Self {
            place: 0..0,
            order: ByteOrder::NATIVE,
            stamps: None,
        }
    }
}

impl Outgoing {
    /// Returns the batch, if it is one.
    pub(super) fn into_batch(self) -> Option<Box<TransmitBatch>> {
        match self {
            Self::Stream(batch) => Some(batch),
            Self::Datagram(_) => None,
        }
    }
}

impl LinkSocket {
    /// Connects to `address`.
    pub(super) fn connect(
        address: &Address,
        waits: &Arc<WaitTally>,
        deadline: Instant,
    ) -> io::Result<Self> {
        let socket = ClientSocket::connect(address, deadline)?;
        Ok(Self {
            looking: Looking::at(socket.transport()),
            socket,
            is_shut: AtomicBool::new(false),
            direct_is_done: AtomicBool::new(false),
            waits: Arc::clone(waits),
        })
    }

    /// The connection is given up.
    pub(super) fn shutdown(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
        self.socket.shutdown();
    }

    /// A caller is going to send its call directly.
    #[inline]
    pub(super) fn begin_direct(&self) {
        self.direct_is_done.store(false, Ordering::Relaxed);
    }

    /// The caller that sends directly has sent.
    #[inline]
    pub(super) fn end_direct(&self) {
        self.direct_is_done.store(true, Ordering::Release);
    }

    /// Whether it has.
    #[inline]
    pub(super) fn is_direct_done(&self) -> bool {
        self.direct_is_done.load(Ordering::Acquire)
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
    ) -> io::Result<Came> {
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
    ) -> io::Result<Came> {
        let company = Company {
            spinners: Spinners::of_callers(),
            looking: self.looking,
            tally: &self.waits,
        };
        let may_go_on = || !self.is_shut.load(Ordering::Relaxed);
        let mut looks = 0;
        let mut look = || {
            self.socket.look(looks);
            looks = LOOKS;
            self.socket.try_recv(room)
        };
        if has_begun && let Some(came) = waiter.look_for_rest(&company, &mut look) {
            return came;
        }
        match waiter.look(&company, |_| until.deadline, may_go_on, look) {
            Spun::Came(received) => received,
            Spun::Late => Err(io::ErrorKind::TimedOut.into()),
            Spun::Sleep => waiter.sleep(&company, || self.socket.recv_until(room, until)),
        }
    }
}

impl Link {
    /// A connection over which nothing was sent yet. A stream has its `receiver`.
    pub(super) fn new(
        socket: Arc<LinkSocket>,
        receiver: Option<Receiver>,
        options: &ChannelOptions,
    ) -> Self {
        let (input, outgoing) = match receiver {
            Some(receiver) => (Input::Stream(receiver), Outgoing::Stream(Box::default())),
            None => {
                let input = DatagramInput::new(&options.connection_config());
                (
                    Input::Datagram(Box::new(input)),
                    Outgoing::Datagram(Box::default()),
                )
            }
        };
        let reader = ReadHalf {
            socket: Arc::clone(&socket),
            input,
            waiter: Waiter::new(options.waiting),
            own: OwnReply::default(),
            answered: None,
            wakes: Vec::new(),
        };
        Self {
            socket,
            reader: Some(Box::new(reader)),
            sending: Sending::Idle,
            outgoing: Some(outgoing),
            used_at: Instant::now(),
            failure: None,
        }
    }

    /// Whether the caller that sent directly is done, or none does.
    #[inline]
    pub(super) fn is_direct_over(&self) -> bool {
        self.sending != Sending::Direct || self.socket.is_direct_done()
    }

    /// Whether no caller sends.
    #[inline]
    pub(super) fn is_send_free(&self) -> bool {
        self.sending == Sending::Idle
            || self.sending == Sending::Direct && self.socket.is_direct_done()
    }

    /// Whether a sender has left something unsent.
    pub(super) fn has_rest(&self) -> bool {
        match &self.outgoing {
            Some(Outgoing::Stream(batch)) => !batch.is_sent(),
            Some(Outgoing::Datagram(trains)) => trains.has_next(),
            None => false,
        }
    }

    /// Whether it was not used for so long that it is to be looked at.
    #[inline]
    pub(super) fn has_rested(&self, now: Instant) -> bool {
        now > self.used_at + REST
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
        match input {
            Input::Stream(receiver) => {
                let has_begun = !receiver.is_between_frames();
                let came = socket.receive(waiter, receiver.room(), has_begun, until);
                handle_received(receiver, came)
            }
            Input::Datagram(input) => {
                let came = socket.receive(waiter, input.room(), false, until);
                input.handle_received(came)
            }
        }
    }

    /// Whether nothing has come that was not handed out.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        match &self.input {
            Input::Stream(receiver) => receiver.is_between_frames(),
            Input::Datagram(input) => !input.has_next(),
        }
    }

    /// Returns the results of the reader's own call.
    #[inline]
    pub(super) fn results(&mut self) -> &[u8] {
        let place = self.own.place.clone();
        let message = match &mut self.input {
            Input::Stream(receiver) => receiver.last_content(),
            Input::Datagram(input) => input.message(),
        };
        message.get(place).unwrap_or_default()
    }
}

/// Takes in what was received from a stream.
///
/// # Errors
/// Nothing was; the end of the stream; the peer speaks another protocol.
#[inline]
pub(super) fn handle_received(receiver: &mut Receiver, came: io::Result<Came>) -> io::Result<()> {
    match came {
        Ok(came) if came.length > 0 => receiver
            .handle_received(came.length)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        Ok(_) => Err(end_of_stream(receiver)),
        Err(error) if is_for_now(&error) => Err(error),
        Err(error) => Err(may_not_be_lean(receiver, error)),
    }
}

#[cold]
fn end_of_stream(receiver: &mut Receiver) -> io::Error {
    let message = if receiver.is_between_frames() {
        "the peer closed it"
    } else {
        "the peer closed it in the middle of a reply"
    };
    may_not_be_lean(
        receiver,
        io::Error::new(io::ErrorKind::UnexpectedEof, message),
    )
}

/// A peer that breaks a connection off without a word may never have heard of the lean protocol.
#[cold]
fn may_not_be_lean(receiver: &mut Receiver, error: io::Error) -> io::Error {
    const HINT: &str = "the peer has not said that it speaks the lean protocol; \
                        if it speaks ONC RPC, connect to tcp:// or unix://";
    match receiver.lean_reader() {
        Some(reader) if reader.received() == 0 => {
            io::Error::new(error.kind(), format!("{error}; {HINT}"))
        }
        _ => error,
    }
}

/// Whether nothing has come, which says nothing of the connection.
fn is_for_now(error: &io::Error) -> bool {
    tenon_net::is_deadline(error) || error.kind() == io::ErrorKind::WouldBlock
}
