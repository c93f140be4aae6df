//! A port for datagrams as its server has it: what it has received and not answered, and what is to be sent. It has no
//! socket; a driver receives and sends, and runs the handlers.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tenon_net::{Carrier, PacketTrain, ReceivedTrain};
use tenon_proto::config::{ConnectionConfig, Role};
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tenon_proto::endpoint::exchange::server::{CloseRecipients, ServerLimits as ExchangeLimits};
use tenon_proto::endpoint::exchange::{
    DATAGRAM_HERE, ReassembledMessage, is_of_byte_stream, is_one_of_many,
};
use tenon_proto::endpoint::{DatagramCallKey, EndpointCounters, ServerEndpoint};
use tenon_proto::lean::Status;
use tenon_wire::Buffer;

use super::limits::ServerLimits;
use super::random::server_secrets;
use super::registry::{CallToServe, ServiceRegistry};
use super::shared::ServerShared;
use crate::byte_relay::{PortRelay, RelayHost};
use crate::datagrams::{IfDatagrams, if_datagrams};
use crate::trains::PacketTrains;

/// Bytes of memory that the largest request of the exchange takes beside its message.
const BESIDE_MESSAGE: usize = 64 << 10;

/// A port as its server has it.
#[derive(Debug)]
pub struct ServedPort {
    endpoint: IfDatagrams<ServerEndpoint<SocketAddr>>,
    trains: PacketTrains<SocketAddr>,
    received: ReceivedDatagrams,
    relay: PortRelay,
}

/// Datagrams that were received together, and not all of them looked at.
#[derive(Debug)]
struct ReceivedDatagrams {
    memory: Vec<u8>,
    came: ReceivedTrain,
    from: Option<SocketAddr>,
    /// Offset of the next datagram.
    next: usize,
    /// Message that several datagrams have made whole.
    whole: ReassembledMessage,
    /// Memory for a call that is copied, as other datagrams came with it.
    spare: Buffer,
    config: ConnectionConfig,
}

/// A call that was found in a datagram, with what it was found in.
#[derive(Debug)]
pub struct FoundCall {
    /// Key by which the call is answered.
    pub key: DatagramCallKey<SocketAddr>,
    /// The call.
    pub call: CallToServe,
    /// Address of the caller.
    pub from: SocketAddr,
    /// Bytes of the arguments, which end the message.
    arguments: usize,
    /// Memory that the call was found in: the whole of several packets, or a datagram.
    message: MessageMemory,
}

/// Memory in which the message of a call lies.
#[derive(Debug)]
enum MessageMemory {
    /// All that was received, and where in it the arguments end.
    Memory(Vec<u8>, usize),
    /// The same of several packets.
    Reassembled(ReassembledMessage, usize),
    Copied(Buffer),
}

impl FoundCall {
    /// Returns the message of the call, as far as its arguments.
    pub fn message(&self) -> &[u8] {
        match &self.message {
            MessageMemory::Memory(memory, end) => &memory[..*end],
            MessageMemory::Reassembled(whole, end) => &whole.message()[..*end],
            MessageMemory::Copied(buffer) => buffer.as_slice(),
        }
    }

    /// Returns the encoded arguments.
    pub fn arguments(&self) -> &[u8] {
        let bytes = self.message();
        &bytes[bytes.len() - self.arguments..]
    }

    /// Bytes of the message of the call, which a [copy](Self::copy) takes.
    pub fn message_bytes(&self) -> usize {
        self.message().len()
    }

    /// Copies the message of the call; returns it with the number of bytes of the arguments, which are its end.
    pub fn copy(&self) -> (Buffer, usize) {
        let mut message = Buffer::default();
        message.extend(self.message());
        (message, self.arguments)
    }
}

impl ReceivedDatagrams {
    fn new(config: &ConnectionConfig) -> Self {
        Self {
            memory: Vec::new(),
            came: ReceivedTrain { length: 0, size: 0 },
            from: None,
            next: 0,
            whole: ReassembledMessage::of(config, Role::Server),
            spare: Buffer::default(),
            config: config.clone(),
        }
    }

    /// Returns the memory to receive into.
    fn room(&mut self) -> &mut [u8] {
        if self.memory.is_empty() {
            self.memory = vec![0; Carrier::RECEIVE_MAX];
        }
        &mut self.memory
    }

    fn set(&mut self, came: ReceivedTrain, from: SocketAddr) {
        (self.came, self.from, self.next) = (came, Some(from), 0);
    }

    /// Returns the place of the next datagram, and whether it is the last. A datagram without bytes is one, too.
    fn next(&mut self) -> Option<(Range<usize>, SocketAddr, bool)> {
        let from = self.from?;
        let start = self.next;
        let end = self
            .came
            .length
            .min(start + self.came.size)
            .min(self.memory.len());
        self.next = end;
        let is_last = end >= self.came.length || self.came.size == 0;
        if is_last {
            self.from = None;
        }
        Some((start..end, from, is_last))
    }
}

impl ServedPort {
    /// The port of `carrier`.
    pub fn new(
        shared: &ServerShared,
        carrier: &Carrier,
        duplicates: DuplicateLimits,
        now: Instant,
    ) -> Self {
        let (limits, secrets) = (exchange_limits(&shared.limits), server_secrets());
        let endpoint = ServerEndpoint::new(
            &shared.config,
            limits,
            duplicates,
            secrets,
            carrier.onc_message_max(),
            now,
        );
        Self {
            endpoint: if_datagrams(endpoint),
            trains: PacketTrains::default(),
            received: ReceivedDatagrams::new(&shared.config),
            relay: PortRelay::new(carrier.transport(), limits, secrets, now),
        }
    }

    // ---- Receiving ----

    /// Returns whether something was received that was not looked at.
    #[inline]
    pub fn has_received(&self) -> bool {
        self.received.from.is_some()
    }

    /// Returns the memory to receive into.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        self.received.room()
    }

    /// Takes in that something was received into the [room](Self::room).
    #[inline]
    pub fn handle_received(&mut self, came: ReceivedTrain, from: SocketAddr) {
        self.received.set(came, from);
    }

    /// Takes in the next datagram; returns the call that it has made whole, if it has, and whether it was the last.
    /// `expect_train` is told of datagrams of which several are likely to come together, and `host` takes in the
    /// connections in packets.
    pub fn next_call(
        &mut self,
        shared: &ServerShared,
        expect_train: impl FnOnce(usize),
        host: impl FnOnce() -> Arc<dyn RelayHost>,
    ) -> Option<(Option<FoundCall>, bool)> {
        let (place, from, is_last) = self.received.next()?;
        let ServedPort {
            endpoint, received, ..
        } = self;
        let packet = &received.memory[place.clone()];
        if is_one_of_many(packet) {
            expect_train(packet.len());
        }
        if is_of_byte_stream(packet) {
            self.relay.handle_datagram(from, packet, host);
            return Some((None, is_last));
        }
        let table = shared.registry.table();
        let whole = &mut received.whole;
        whole.clear();
        let now = Instant::now();
        let Some(found) = endpoint.handle_datagram(now, from, packet, table, whole) else {
            return Some((None, is_last));
        };
        let (key, call) = (found.key, CallToServe::incoming(&found.call));
        let arguments = found.call.arguments.len();
        let begin = found.call.arguments.as_ptr();
        let end_in = |bytes: &[u8]| {
            let is_inside = bytes.as_ptr_range().contains(&begin);
            is_inside.then(|| begin as usize - bytes.as_ptr() as usize + arguments)
        };
        let end = end_in(packet);
        let message = match (end, whole.message().is_empty()) {
            (_, false) => {
                // Behind the arguments is what pads the last packet.
                let end = end_in(whole.message()).unwrap_or(whole.message().len());
                let spare = ReassembledMessage::of(&received.config, Role::Server);
                MessageMemory::Reassembled(std::mem::replace(whole, spare), end)
            }
            (Some(end), true) if is_last && place.start == 0 => {
                MessageMemory::Memory(std::mem::take(&mut received.memory), end)
            }
            (end, true) => {
                let mut copy = std::mem::take(&mut received.spare);
                copy.extend(&packet[..end.unwrap_or(packet.len())]);
                MessageMemory::Copied(copy)
            }
        };
        let found = FoundCall {
            key,
            call,
            from,
            arguments,
            message,
        };
        Some((Some(found), is_last))
    }

    /// Gives the memory back that a call was found in.
    pub fn give_back(&mut self, call: FoundCall) {
        match call.message {
            MessageMemory::Memory(memory, _) if self.received.memory.is_empty() => {
                self.received.memory = memory;
            }
            MessageMemory::Reassembled(mut whole, _)
                if self.received.whole.message().is_empty() =>
            {
                whole.clear();
                self.received.whole = whole;
            }
            MessageMemory::Copied(mut copy) => {
                copy.clear();
                self.received.spare = copy;
            }
            MessageMemory::Memory(..) | MessageMemory::Reassembled(..) => {}
        }
    }

    // ---- Answering ----

    /// Answers a call of one of the services of `registry` with a sealed reply. That a reply does not fit into a
    /// datagram is logged: its client is told no more than that the system failed.
    pub fn answer(
        &mut self,
        registry: &ServiceRegistry,
        key: DatagramCallKey<SocketAddr>,
        reply: &mut Buffer,
    ) {
        if let Err(too_large) = self.endpoint.answer(Instant::now(), key, reply) {
            registry.log_too_large(&too_large);
        }
    }

    /// Drops a call that there is no room to carry out: a peer of the exchange is told so, one of ONC RPC repeats it.
    #[cold]
    pub fn drop_call(&mut self, found: &FoundCall) {
        if let DatagramCallKey::Exchange(_) = found.key {
            let mut reply = Buffer::default();
            found.call.refuse(Status::OVERLOADED, "", &mut reply);
            // A refusal fits.
            let _ = self.endpoint.answer(Instant::now(), found.key, &mut reply);
        }
        self.endpoint.drop_call(found.key);
    }

    /// Returns a call that is not waited for any more.
    pub fn poll_cancelled(&mut self) -> Option<DatagramCallKey<SocketAddr>> {
        self.endpoint.poll_cancelled()
    }

    /// Returns whether an answer is still to be sent, one of several datagrams has not arrived, or there are connections in
    /// packets.
    pub fn has_unarrived(&self) -> bool {
        self.endpoint.has_unarrived() || self.relay.has_connections()
    }

    /// Tells clients that the server stops.
    pub fn close(&mut self, to: CloseRecipients) {
        self.endpoint.close(to);
        self.relay.close(to);
    }

    // ---- Sending ----

    /// Returns whether something is to be sent.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        self.endpoint.has_transmit() || self.trains.has_next()
    }

    /// Returns the packets that are to be sent next, and the address of their receiver.
    pub fn next_train(&mut self) -> Option<(PacketTrain<'_>, SocketAddr)> {
        let Self {
            endpoint, trains, ..
        } = self;
        trains.next(|datagram| {
            // The clock is not read for nothing.
            let has_transmit = endpoint.has_transmit();
            has_transmit.then(|| endpoint.poll_transmit(Instant::now(), datagram))?
        })
    }

    /// Keeps what was handed out last, of which only so many bytes were sent.
    pub fn keep_train(&mut self, to: SocketAddr, sent: usize) {
        self.trains.keep(to, sent);
    }

    // ---- Time ----

    /// Returns when something is to be done even if nothing comes.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    /// Returns when an answer is sent again.
    pub fn next_repeat(&self) -> Option<Instant> {
        self.endpoint.next_repeat()
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    /// Returns the counters of the calls.
    pub fn counters(&self) -> EndpointCounters {
        self.endpoint.counters()
    }
}

/// Returns the limits of the packet exchange of a port. One host leaves others half of the memory, unless a single
/// message needs more.
fn exchange_limits(limits: &ServerLimits) -> ExchangeLimits {
    let of_host = (limits.receive_bytes / 2).max(limits.message_bytes + BESIDE_MESSAGE);
    ExchangeLimits {
        datagram_max_here: DATAGRAM_HERE,
        bytes_of_conversation: of_host,
        bytes_of_host: of_host,
        bytes: limits.receive_bytes,
        metadata_max: limits.metadata_max(),
        conversations: limits.conversations,
        conversations_of_host: limits.conversations_of_host,
        ..ExchangeLimits::default()
    }
}
