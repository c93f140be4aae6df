//! What the tests share: two ends that are joined, and messages.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{Caller, ReplyDraft, ServiceTable};
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tenon_proto::endpoint::{ClientEndpoint, DATAGRAM_SIZE_MAX, ServerEndpoint};
use tenon_proto::exchange::Failure;
use tenon_proto::exchange::client::{
    CallId, ClientEngine, ClientEvent, ClientLimits, ClientSecrets, Outgoing,
};
use tenon_proto::exchange::server::{CallKey, ServerEngine, ServerLimits, ServerSecrets};
use tenon_proto::lean::{ByteOrder, Extras, Interface, MessageDraft, Part, Preamble};
use tenon_wire::Buffer;

pub const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

pub fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

pub fn server_address() -> SocketAddr {
    address(1, 111)
}

pub fn part(name: &str, fingerprint: u64, procedure: u32) -> Part {
    Part {
        name: name.into(),
        fingerprint,
        layout: 0,
        procedure,
    }
}

/// A version of program 300 whose parts are known.
pub fn known(version: u32) -> Arc<Interface> {
    Arc::new(Interface {
        program: 300,
        version,
        fingerprint: 0x1122_3344_5566_7788,
        parts: vec![
            part("procedure MOVE", 2, 7),
            part("procedure STOP", 2, 8),
            part("point", 1, 0),
        ],
    })
}

/// Program 300 in the versions 2 and 5.
pub fn services() -> ServiceTable {
    let mut services = ServiceTable::default();
    let unknown = Arc::new(Interface::unknown(300, 2));
    assert_eq!(services.add(300, 5, Some(known(5))), Some(0));
    assert_eq!(services.add(300, 2, Some(unknown)), Some(1));
    services
}

pub fn client_of<W>(order: ByteOrder, limits: ClientLimits, seed: u64) -> ClientEngine<W> {
    let preamble = Preamble {
        order,
        ..Preamble::client(64 << 20)
    };
    ClientEngine::new(preamble, limits, client_secrets(seed))
}

fn client_secrets(seed: u64) -> ClientSecrets {
    let mut key = [7; 16];
    key[..8].copy_from_slice(&seed.to_be_bytes());
    ClientSecrets { key, seed }
}

pub fn server_of(
    order: ByteOrder,
    limits: ServerLimits,
    incarnation: u32,
    now: Instant,
) -> ServerEngine<SocketAddr> {
    server_granting(64, order, limits, incarnation, now)
}

/// One that grants so many calls in flight.
pub fn server_granting(
    calls: u32,
    order: ByteOrder,
    limits: ServerLimits,
    incarnation: u32,
    now: Instant,
) -> ServerEngine<SocketAddr> {
    let preamble = Preamble {
        order,
        ..Preamble::server(64 << 20, calls)
    };
    ServerEngine::new(preamble, limits, server_secrets(incarnation), now)
}

pub fn server_secrets(incarnation: u32) -> ServerSecrets {
    let mut key = [9; 16];
    key[..4].copy_from_slice(&incarnation.to_be_bytes());
    ServerSecrets {
        key,
        incarnation,
        seed: incarnation.into(),
    }
}

/// The configuration of either end of the packet exchange.
pub fn config(order: ByteOrder, of: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig {
        receive_max: 64 << 20,
        incoming_calls_max: 64,
        byte_order: order,
        ..of
    }
}

/// A client's end of a socket.
pub fn client_endpoint<W>(order: ByteOrder, seed: u64) -> ClientEndpoint<W> {
    let config = config(order, ConnectionConfig::client());
    ClientEndpoint::exchange(&config, ClientLimits::default(), client_secrets(seed))
}

/// A server's end of a socket.
pub fn server_endpoint(
    order: ByteOrder,
    limits: ServerLimits,
    incarnation: u32,
    now: Instant,
) -> ServerEndpoint<SocketAddr> {
    let config = config(order, ConnectionConfig::server());
    let secrets = server_secrets(incarnation);
    ServerEndpoint::new(
        &config,
        limits,
        DuplicateLimits::default(),
        secrets,
        Some(DATAGRAM_SIZE_MAX),
        now,
    )
}

/// A message with these arguments, to be started.
pub fn message(order: ByteOrder, procedure: u16, arguments: &[u8]) -> Buffer {
    request(order, procedure, arguments).0
}

/// The same, and where in its buffer it is.
pub fn request(order: ByteOrder, procedure: u16, arguments: &[u8]) -> (Buffer, MessageDraft) {
    let mut message = Buffer::default();
    let draft = MessageDraft::call(&mut message, order, procedure, &Extras::default());
    message.extend(arguments);
    draft.seal(&mut message);
    (message, draft)
}

pub fn outgoing(service: u16, procedure: u16, now: Instant) -> Outgoing {
    Outgoing {
        service,
        procedure,
        deadline: now + Duration::from_secs(20),
    }
}

/// A client and a server without a network: the test carries the datagrams.
pub struct Pair {
    pub now: Instant,
    pub client: ClientEngine<u32>,
    pub server: ServerEngine<SocketAddr>,
    pub address: SocketAddr,
    pub results: Vec<Vec<u8>>,
    pub failures: Vec<Failure>,
    services: ServiceTable,
    order: ByteOrder,
    callers: HashMap<CallKey, Caller>,
}

impl Pair {
    pub fn new(client: ByteOrder, server: ByteOrder) -> Self {
        Self::with_limits(client, server, ServerLimits::default())
    }

    pub fn with_limits(client: ByteOrder, server: ByteOrder, limits: ServerLimits) -> Self {
        let now = Instant::now();
        Self {
            now,
            client: client_of(client, ClientLimits::default(), 0),
            server: server_of(server, limits, 3, now),
            address: address(2, 1000),
            results: Vec::new(),
            failures: Vec::new(),
            services: services(),
            order: client,
            callers: HashMap::new(),
        }
    }

    pub fn start(&mut self, message: &Buffer) -> CallId {
        let service = self.client.bind(&known(5), 7).unwrap();
        let call = outgoing(service, 7, self.now);
        let mut message = message.clone();
        let started = self.client.start(self.now, &call, &mut message, 0);
        started.unwrap()
    }

    pub fn poll_client(&mut self) -> Option<Vec<u8>> {
        let mut out = Buffer::default();
        let is_there = self.client.poll_transmit(self.now, &mut out);
        is_there.then(|| out.as_slice().to_vec())
    }

    pub fn poll_server(&mut self) -> Option<Vec<u8>> {
        let mut out = Buffer::default();
        let to = self.server.poll_transmit(self.now, &mut out)?;
        assert_eq!(to, self.address);
        Some(out.as_slice().to_vec())
    }

    /// The only datagram that the client has to send.
    pub fn take_from_client(&mut self) -> Vec<u8> {
        let datagram = self.poll_client().expect("a datagram");
        assert_eq!(self.poll_client(), None, "no more than one");
        datagram
    }

    /// The only datagram that the server has to send.
    pub fn take_from_server(&mut self) -> Vec<u8> {
        let datagram = self.poll_server().expect("a datagram");
        assert_eq!(self.poll_server(), None, "no more than one");
        datagram
    }

    pub fn bring_to_server(&mut self, datagram: &[u8]) -> Option<CallKey> {
        let request =
            self.server
                .handle_datagram(self.now, self.address, datagram, &self.services)?;
        self.callers.insert(request.key, request.call.caller);
        Some(request.key)
    }

    pub fn bring_to_client(&mut self, datagram: &[u8]) {
        if let Some(answer) = self.client.handle_datagram(self.now, datagram) {
            let result = answer.outcome.expect("a result");
            self.results.push(result.to_vec());
        }
        self.take_failures();
    }

    fn take_failures(&mut self) {
        while let Some(ClientEvent::Failed { failure, .. }) = self.client.poll_event() {
            self.failures.push(failure);
        }
    }

    pub fn answer(&mut self, key: CallKey, result: &[u8]) {
        self.answer_with(key, result, &mut Buffer::default());
    }

    /// The same, with a buffer that is there, and empty.
    pub fn answer_with(&mut self, key: CallKey, result: &[u8], message: &mut Buffer) {
        let reply = ReplyDraft::begin(message, self.callers[&key]);
        message.extend(result);
        reply.seal(message);
        self.server.reply(key, message);
    }

    /// Goes to the next moment at which the client does something by itself.
    pub fn pass_time(&mut self) {
        self.now = self.client.poll_timeout().expect("a timeout");
        self.client.handle_timeout(self.now);
        self.take_failures();
    }

    /// A call of procedure 7 that returns its arguments; how many datagrams that took.
    pub fn call(&mut self, arguments: &[u8]) -> usize {
        self.start(&message(self.order, 7, arguments));
        self.settle(|_| true)
    }

    /// Carries datagrams until there are none, as far as `passes` says; how many there were.
    pub fn settle(&mut self, mut passes: impl FnMut(&[u8]) -> bool) -> usize {
        let mut count = 0;
        loop {
            let before = count;
            while let Some(datagram) = self.poll_client() {
                count += 1;
                if passes(&datagram)
                    && let Some(key) = self.bring_to_server(&datagram)
                {
                    self.echo(key, &datagram);
                }
            }
            while let Some(datagram) = self.poll_server() {
                count += 1;
                if passes(&datagram) {
                    self.bring_to_client(&datagram);
                }
            }
            if count == before {
                return count;
            }
        }
    }

    /// Answers with the arguments of a call that came in one packet.
    fn echo(&mut self, key: CallKey, datagram: &[u8]) {
        let header = [0x7e_u8, 0xd0];
        let swapped = [0xd0_u8, 0x7e];
        let mut at = datagram.len();
        let is_sync = |bytes: &[u8]| {
            bytes[2..4] == header && bytes[1] == 1 || bytes[..2] == swapped && bytes[2] == 1
        };
        while at >= 8 && !is_sync(&datagram[at - 8..]) {
            at -= 8;
        }
        let message = &datagram[at - 8..];
        let [a, b, c, d] = [message[12], message[13], message[14], message[15]];
        let length = match self.order {
            ByteOrder::Little => u32::from_le_bytes([a, b, c, d]),
            ByteOrder::Big => u32::from_be_bytes([a, b, c, d]),
        };
        let arguments = message[16..16 + length as usize].to_vec();
        self.answer(key, &arguments);
    }
}

/// CRC-32C, bit by bit.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| {
            (crc >> 1) ^ (0x82f6_3b78 * (crc & 1))
        })
    })
}

/// Kind, flags, conversation, lane, detail, sequence, and the two last numbers.
pub type Fields = (u8, u8, u64, u16, u16, u32, u32, u32);

/// The bytes of a packet.
pub fn packet(fields: Fields, body: &[&[u8]]) -> Vec<u8> {
    let (kind, flags, conversation, lane, detail, sequence, first, second) = fields;
    let mut bytes = vec![0x7f, 0x78, kind, flags];
    bytes.extend(conversation.to_be_bytes());
    bytes.extend(lane.to_be_bytes());
    bytes.extend(detail.to_be_bytes());
    for number in [sequence, first, second] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(body.concat());
    [&crc32c(&bytes).to_be_bytes()[..], &bytes].concat()
}
