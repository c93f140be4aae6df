//! Finding the address of a host that answers datagrams.
//!
//! No call of the program goes to an address before one has answered: a call that was sent to one and is not answered
//! may have been executed there, so sending it to another could execute it twice. What is sent is a *probe*, which may
//! be repeated anywhere: over ONC RPC a call of procedure 0, which by convention does nothing (RFC 5531 section 12.1);
//! in the packet exchange the greeting. Probes go to one address after the other as connections over TCP do (RFC 8305).

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tenon_net::{Address, AttemptSchedule, Carrier, FailedAttempts, PacketTrain, Protocol};
use tenon_proto::config::Role;
use tenon_proto::connection::CallDraft;
use tenon_proto::endpoint::ClientEndpoint;
use tenon_proto::endpoint::exchange::ReassembledMessage;
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::Buffer;

use crate::client::datagram_endpoint;
use crate::options::ChannelOptions;

/// The program that a probe calls if it is not known which one there is: rpcbind (RFC 1833). A server that does not
/// have it says so, and has answered.
const ANY_PROGRAM: (u32, u32) = (100_000, 2);

/// Probe that is sent to find out whether a server is there.
struct AddressProbe<'p> {
    address: &'p Address,
    program: (u32, u32),
    options: &'p ChannelOptions,
    deadline: Instant,
}

/// An address that a probe was sent to.
struct AddressCandidate {
    peer: SocketAddr,
    carrier: Carrier,
    endpoint: ClientEndpoint<()>,
}

/// Outcome of the probe of one candidate.
enum ProbeOutcome {
    Silence,
    Answer,
    Failure(io::Error),
}

/// Connects to the first of `peers`, the addresses of the host of `address`, that answers a probe.
///
/// # Errors
/// [`FailedAttempts`]; `TimedOut` at the deadline.
pub(crate) fn connect_answering(
    address: &Address,
    peers: &[SocketAddr],
    program: Option<(u32, u32)>,
    deadline: Instant,
    options: &ChannelOptions,
) -> io::Result<(Carrier, SocketAddr)> {
    let probe = AddressProbe {
        address,
        program: program.unwrap_or(ANY_PROGRAM),
        options,
        deadline,
    };
    let mut schedule = AttemptSchedule::new(Instant::now(), deadline, peers.len());
    let mut left = peers.iter().copied();
    let mut next = left.next();
    let mut race = ProbeRace::new(options);
    loop {
        let now = Instant::now();
        if let Some(peer) = next.take_if(|_| schedule.next_at() <= now) {
            next = left.next();
            schedule.handle_begun(now);
            if !race.begin(&probe, peer, now) {
                schedule.handle_failed(now);
            }
            continue;
        }
        if race.candidates.is_empty() && next.is_none() || now >= deadline {
            return Err(race.end());
        }
        let next_attempt = next.map_or(deadline, |_| deadline.min(schedule.next_at()));
        wait_for_any(&race.candidates, race.next_timeout(next_attempt))?;
        let before = race.candidates.len();
        if let Some(answered) = race.look() {
            return Ok(answered);
        }
        if race.candidates.len() < before {
            schedule.handle_failed(Instant::now());
        }
    }
}

/// The addresses that probes were sent to.
struct ProbeRace {
    candidates: Vec<AddressCandidate>,
    failures: FailedAttempts,
    room: Vec<u8>,
    whole: ReassembledMessage,
}

impl ProbeRace {
    fn new(options: &ChannelOptions) -> Self {
        Self {
            candidates: Vec::new(),
            failures: FailedAttempts::default(),
            room: vec![0; Carrier::RECEIVE_MAX],
            whole: ReassembledMessage::of(&options.connection_config(), Role::Client),
        }
    }

    /// Sends a probe to one more address; returns whether that could be done.
    fn begin(&mut self, probe: &AddressProbe<'_>, peer: SocketAddr, now: Instant) -> bool {
        match probe.begin(peer, now) {
            Ok(candidate) => {
                self.candidates.push(candidate);
                true
            }
            Err(error) => {
                self.failures.push(peer, error);
                false
            }
        }
    }

    /// Returns when a probe is to be sent again, or `limit` if that is earlier.
    fn next_timeout(&self, limit: Instant) -> Instant {
        let candidates = self.candidates.iter();
        let timeouts = candidates.filter_map(|candidate| candidate.endpoint.poll_timeout());
        timeouts.fold(limit, Instant::min)
    }

    /// Receives what is there and sends what is due; returns the socket and the address of the first candidate
    /// that has answered.
    fn look(&mut self) -> Option<(Carrier, SocketAddr)> {
        let mut index = 0;
        while let Some(candidate) = self.candidates.get_mut(index) {
            match candidate.look(&mut self.room, &mut self.whole) {
                ProbeOutcome::Silence => index += 1,
                ProbeOutcome::Answer => return Some(self.candidates.swap_remove(index).end()),
                ProbeOutcome::Failure(error) => {
                    let peer = self.candidates.remove(index).peer;
                    self.failures.push(peer, error);
                }
            }
        }
        None
    }

    /// Returns why none has answered in time.
    fn end(mut self) -> io::Error {
        let silent = self.candidates.iter().map(|candidate| candidate.peer);
        self.failures.expire(silent);
        self.failures.into_error()
    }
}

impl AddressProbe<'_> {
    fn begin(&self, peer: SocketAddr, now: Instant) -> io::Result<AddressCandidate> {
        let carrier = Carrier::connect_to(self.address, peer, self.deadline)?;
        let mut endpoint = datagram_endpoint(self.address.protocol(), self.options);
        match self.address.protocol() {
            Protocol::Lean => endpoint.greet(now),
            Protocol::Onc => self.call_null(&mut endpoint, now)?,
        }
        let mut candidate = AddressCandidate {
            peer,
            carrier,
            endpoint,
        };
        candidate.transmit(now)?;
        Ok(candidate)
    }

    fn call_null(&self, endpoint: &mut ClientEndpoint<()>, now: Instant) -> io::Result<()> {
        let (program, version) = self.program;
        let mut message = Buffer::default();
        CallTemplate::new(program, version, &Credential::None).begin(&mut message, 0);
        let started = endpoint.start_call(now, &CallDraft::Onc, &mut message, self.deadline, ());
        started.map(drop).map_err(io::Error::other)
    }
}

impl AddressCandidate {
    /// Sends what is due.
    fn transmit(&mut self, now: Instant) -> io::Result<()> {
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        let mut datagram = Buffer::default();
        while self.endpoint.poll_transmit(now, &mut datagram) {
            match self.carrier.try_send(PacketTrain::one(datagram.as_slice())) {
                // What finds no room is sent again later, as if it were lost.
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => datagram.clear(),
            }
        }
        Ok(())
    }

    /// Receives what is there, and sends what is due.
    fn look(&mut self, room: &mut [u8], whole: &mut ReassembledMessage) -> ProbeOutcome {
        loop {
            let came = match self.carrier.try_recv_ready(room) {
                Ok(came) => came,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return ProbeOutcome::Failure(error),
            };
            let datagram = &room[..came.length.min(room.len())];
            let now = Instant::now();
            let is_answered = self
                .endpoint
                .handle_datagram(now, datagram, whole)
                .is_some();
            whole.clear();
            if is_answered || self.endpoint.is_exchange() && !self.endpoint.is_greeting() {
                return ProbeOutcome::Answer;
            }
        }
        match self.transmit(Instant::now()) {
            Ok(()) => ProbeOutcome::Silence,
            Err(error) => ProbeOutcome::Failure(error),
        }
    }

    /// Ends the conversation that the probe has begun, and returns the socket.
    fn end(mut self) -> (Carrier, SocketAddr) {
        let mut goodbye = Buffer::default();
        if self.endpoint.send_close(&mut goodbye) {
            // A server that does not hear of it forgets the conversation in time.
            let _ = self.carrier.try_send(PacketTrain::one(goodbye.as_slice()));
        }
        (self.carrier, self.peer)
    }
}

/// Waits until something may have come from one of the candidates, or `until` then.
fn wait_for_any(candidates: &[AddressCandidate], until: Instant) -> io::Result<()> {
    let polled = candidates.iter();
    let mut polled: Vec<_> = polled
        .map(|candidate| PollFd::new(&candidate.carrier, PollFlags::IN))
        .collect();
    let left = until.saturating_duration_since(Instant::now());
    let limit = Timespec::try_from(left).ok();
    match poll(&mut polled, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
