//! The calls of a channel, whatever carries them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use tenon_net::{Address, Protocol};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{
    CallDraft, Connection, OutgoingCounters, StartError, StartedCall, WireProtocol,
};
use tenon_proto::endpoint::exchange::client::{ClientLimits, ClientSecrets};

use tenon_proto::endpoint::{ClientEndpoint, DatagramCallId, FailedCall};
use tenon_proto::lean::Features;
use tenon_wire::Buffer;

use super::outcome::Outcome;
use super::silence::SilenceDetector;
use crate::client_socket::{ClientSocket, exchange_datagram_max};
use crate::datagrams::{IfDatagrams, if_datagrams};
use crate::error::ConnectionFailure;
use crate::options::ChannelOptions;
use crate::timer::CallTimer;

/// The calls of a channel. `W` names the caller that waits for one.
#[derive(Debug)]
pub enum Calls<W> {
    /// They go over a stream.
    Stream(Box<Connection<W>>),
    /// They go in datagrams.
    Datagram(IfDatagrams<Box<DatagramCalls<W>>>),
}

/// The calls of a channel that go in datagrams.
#[derive(Debug)]
pub struct DatagramCalls<W> {
    /// Puts calls in datagrams and finds their answers.
    pub endpoint: ClientEndpoint<W>,
    /// Error of the last send that failed since something was received.
    pub fault: Option<Arc<io::Error>>,
    /// Bytes of the largest call that is sent.
    send_max: usize,
    /// True if calls of which nothing else is said wait for a peer that is not there.
    waits_for_ready: bool,
    /// Calls that wait for one, by ONC RPC; some may be over.
    waiting: Vec<DatagramCallId>,
    silence: SilenceDetector,
}

/// Returns the number of a channel's first call: a client that was started again does not repeat those of its former
/// life.
fn seed() -> u32 {
    RandomState::new().hash_one(Instant::now()) as u32
}

/// Returns secrets that no attacker may foresee. The standard library's hashers have keys from the system's randomness.
fn secrets() -> ClientSecrets {
    let word = || RandomState::new().build_hasher().finish();
    let mut key = [0; 16];
    key[..8].copy_from_slice(&word().to_ne_bytes());
    key[8..].copy_from_slice(&word().to_ne_bytes());
    ClientSecrets { key, seed: word() }
}

/// Identifier of a call in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallId {
    /// One that goes over a stream.
    Stream(StartedCall),
    /// One that goes in datagrams.
    Datagram(DatagramCallId),
}

/// Returns the client's end of a socket for datagrams by which `protocol` is spoken.
pub(crate) fn datagram_endpoint<W>(
    protocol: Protocol,
    options: &ChannelOptions,
) -> ClientEndpoint<W> {
    match protocol {
        Protocol::Onc => ClientEndpoint::onc(seed(), options.retransmission),
        Protocol::Lean => {
            let limits = ClientLimits::default();
            ClientEndpoint::exchange(&options.connection_config(), limits, secrets())
        }
    }
}

impl<W: Copy + PartialEq> Calls<W> {
    /// The calls of a channel to `address`, which carries out so many calls of its server at the same time. They are in
    /// single datagrams if it `is_datagram`.
    pub fn new(
        address: &Address,
        is_datagram: bool,
        options: &ChannelOptions,
        callbacks_max: usize,
    ) -> Self {
        let config = ConnectionConfig {
            incoming_calls_max: callbacks_max,
            ..options.connection_config()
        };
        match (address.protocol(), is_datagram) {
            (protocol, false) => {
                let protocol = match protocol {
                    Protocol::Onc => WireProtocol::Onc,
                    Protocol::Lean => WireProtocol::Lean,
                };
                let (connection, _) = Connection::client(config, protocol, seed());
                Self::Stream(Box::new(connection))
            }
            (protocol, true) => Self::Datagram(if_datagrams(Box::new(DatagramCalls {
                endpoint: datagram_endpoint(protocol, options),
                fault: None,
                send_max: options.send_max,
                waits_for_ready: options.wait_for_ready,
                waiting: Vec::new(),
                silence: SilenceDetector::new(address),
            }))),
        }
    }

    /// Goes on over a new socket. Returns the receiver of a stream.
    pub fn renew(&mut self, socket: &ClientSocket) -> Option<Receiver> {
        match self {
            Self::Stream(connection) => Some(connection.renew(Instant::now())),
            Self::Datagram(calls) => {
                calls.set_datagram_max(socket);
                calls.silence.handle_connected();
                None
            }
        }
    }

    /// Has the peer of a stream by ONC RPC be asked whether it is there by calls of procedure 0 of this version of a
    /// program, unless another was named before.
    pub fn ping_by(&mut self, program: u32, version: u32) {
        if let Self::Stream(connection) = self {
            connection.ping_by(program, version);
        }
    }

    /// Notes that something was received.
    #[inline]
    pub fn note_heard(&mut self) {
        if let Self::Stream(connection) = self {
            connection.note_heard();
        }
    }

    /// Asks the peer of a stream whether it is there, if that is due at `now`.
    ///
    /// # Errors
    /// The peer is to be given up.
    #[cold]
    pub fn handle_silence(&mut self, now: Instant) -> Result<(), ConnectionFailure> {
        match self {
            Self::Stream(connection) => Ok(connection.handle_silence(now)?),
            // Datagrams that are not answered are sent again.
            Self::Datagram(_) => Ok(()),
        }
    }

    /// Returns the number of calls in flight.
    #[inline]
    pub fn in_flight(&self) -> usize {
        match self {
            Self::Stream(connection) => connection.in_flight(),
            Self::Datagram(calls) => calls.endpoint.in_flight(),
        }
    }

    /// Returns how many calls the peer takes, if it has so many of them that further ones wait.
    pub fn full_at(&self) -> Option<usize> {
        match self {
            Self::Stream(connection) => connection.full_at(),
            Self::Datagram(calls) => calls.endpoint.full_at(),
        }
    }

    /// Returns the counters of the calls.
    pub fn counters(&self) -> OutgoingCounters {
        match self {
            Self::Stream(connection) => connection.outgoing_counters(),
            Self::Datagram(calls) => calls.endpoint.counters(),
        }
    }

    /// Returns whether the peer says when a call passed it, if it is asked for that.
    pub fn gives_stamps(&self) -> bool {
        let features = match self {
            Self::Stream(connection) => connection.features(),
            Self::Datagram(calls) => calls.endpoint.features(),
        };
        features.has(Features::STAMPS)
    }

    /// Returns whether something waits to be sent.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        match self {
            Self::Stream(connection) => connection.has_transmit(),
            Self::Datagram(calls) => calls.endpoint.has_transmit(),
        }
    }

    /// Gives a call up; the peer is told if it has a part of it.
    pub fn cancel(&mut self, call: CallId) {
        match (self, call) {
            (Self::Stream(connection), CallId::Stream(call)) => {
                drop(connection.cancel_call(call.number));
            }
            (Self::Datagram(calls), CallId::Datagram(id)) => {
                calls.endpoint.cancel(id);
            }
            _ => {}
        }
    }

    /// Puts a call in flight and behind what waits to be sent. The call takes `message`, and is not waited for after
    /// the end of `timer`.
    ///
    /// # Errors
    /// The peer does not take it, or not now.
    #[inline]
    pub fn start(
        &mut self,
        draft: &CallDraft<'_>,
        message: &mut Buffer,
        timer: &CallTimer,
        waiter: W,
    ) -> Result<CallId, StartError> {
        let deadline = timer.deadline();
        match self {
            Self::Stream(connection) => {
                let call = connection.start_call(draft, message, deadline, waiter)?;
                connection.push_call(&call, message);
                Ok(CallId::Stream(call))
            }
            Self::Datagram(calls) => {
                let now = timer.started();
                let endpoint = &mut calls.endpoint;
                let started = endpoint.start_call(now, draft, message, deadline, waiter)?;
                if timer.waits_for_ready_or(calls.waits_for_ready) {
                    calls.note_waiting(started);
                }
                Ok(CallId::Datagram(started))
            }
        }
    }

    /// Returns a call over datagrams that ended without an answer, and how.
    #[inline]
    pub fn poll_failure(&mut self) -> Option<(W, Outcome)> {
        let Self::Datagram(calls) = self else {
            return None;
        };
        let calls: &mut DatagramCalls<W> = calls;
        let FailedCall { waiter, failure } = calls.endpoint.poll_failure()?;
        calls
            .silence
            .handle_failed(&failure, || calls.endpoint.counters());
        let own_limit = calls.send_max;
        Some((waiter, Outcome::Failed { failure, own_limit }))
    }

    /// Checks whether the link may go on after calls in datagrams have ended without an answer.
    ///
    /// # Errors
    /// The peer may have moved, and none of the calls is left: the link is to end, so that the next call looks for the
    /// peer anew.
    #[cold]
    pub fn check_peer(&self) -> Result<(), ConnectionFailure> {
        match self {
            Self::Datagram(calls) if calls.silence.is_lost() && calls.endpoint.in_flight() == 0 => {
                Err(io::Error::from(io::ErrorKind::TimedOut).into())
            }
            _ => Ok(()),
        }
    }

    /// Returns why nothing could be sent lately, of calls in datagrams.
    pub fn fault(&self) -> Option<Arc<io::Error>> {
        match self {
            Self::Stream(_) => None,
            Self::Datagram(calls) => calls.fault.clone(),
        }
    }

    /// Notes why something could not be sent, which counts as lost.
    #[cold]
    pub fn note_fault(&mut self, error: io::Error) {
        tracing::debug!(%error, "a datagram could not be sent");
        if let Self::Datagram(calls) = self {
            calls.fault = Some(Arc::new(error));
        }
    }

    /// Takes in that nothing listens at the peer's port. The packet exchange outlives its server: there calls
    /// [fail](Self::poll_failure), not the link. By ONC RPC calls that wait for their peer go on being sent, if no others
    /// are in flight.
    ///
    /// # Errors
    /// The link has failed.
    #[cold]
    pub fn handle_refusal(
        &mut self,
        error: io::Error,
        now: Instant,
    ) -> Result<(), ConnectionFailure> {
        let Self::Datagram(calls) = self else {
            return Err(error.into());
        };
        if calls.endpoint.is_exchange() {
            calls.fault = Some(Arc::new(error));
            calls.silence.handle_refused();
            calls.endpoint.handle_refusal(now);
        } else if calls.all_wait() {
            calls.fault = Some(Arc::new(error));
        } else {
            return Err(error.into());
        }
        Ok(())
    }
}

impl<W: Copy + PartialEq> DatagramCalls<W> {
    /// Has datagrams be as large as the way through `socket` takes them: a call of ONC RPC is one, and has to fit; packets
    /// of the exchange are cut to a size that is sent with least effort.
    fn set_datagram_max(&mut self, socket: &ClientSocket) {
        let most = match socket {
            ClientSocket::Datagram(carrier) if !self.endpoint.is_exchange() => {
                // Where no ONC RPC goes, none of its messages has room.
                carrier.onc_message_max().unwrap_or(0)
            }
            _ => exchange_datagram_max(socket.is_here()),
        };
        self.endpoint.set_datagram_max(most);
    }

    /// Notes that a call was started that waits for a peer that is not there.
    #[cold]
    fn note_waiting(&mut self, call: DatagramCallId) {
        if self.endpoint.is_exchange() {
            return;
        }
        if self.waiting.len() > 2 * self.endpoint.in_flight() {
            self.forget_ended();
        }
        self.waiting.push(call);
    }

    fn forget_ended(&mut self) {
        let endpoint = &self.endpoint;
        self.waiting
            .retain(|call| endpoint.call_timeout(*call).is_some());
    }

    /// Returns whether there are calls in flight, and all of them wait for a peer that is not there.
    fn all_wait(&mut self) -> bool {
        self.forget_ended();
        !self.waiting.is_empty() && self.waiting.len() == self.endpoint.in_flight()
    }
}
