//! A client and a server that speak with each other as a test tells them, and what each of them is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{
    AbandonedCall, Caller, ConnectionError, Event, PeerClosing, ReplyDraft, ReplyError,
    ServiceTable, StartedCall, TransmitBatch, WireProtocol,
};
use tenon_proto::lean::{ByteOrder, Exception, Extras, Interface, Part};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::Buffer;

use crate::ends::{End, pair};

/// Bytes of the largest message that each end accepts.
pub const LIMIT: usize = 1 << 20;

/// Calls in flight that the server grants.
pub const CALLS_MAX: usize = 64;

pub const SECOND: Duration = Duration::from_secs(1);

/// A version of program 300 whose parts are known.
pub fn known(version: u32) -> Arc<Interface> {
    Arc::new(Interface {
        program: 300,
        version,
        fingerprint: 0x1122_3344_5566_7788,
        parts: vec![part("point", 1), part("procedure MOVE", 2)],
    })
}

/// A type, or `procedure MOVE`, which has the number 7.
pub fn part(name: &str, fingerprint: u64) -> Part {
    let is_procedure = name.starts_with("procedure ");
    Part {
        name: name.into(),
        fingerprint,
        layout: 0,
        procedure: if is_procedure { 7 } else { 0 },
    }
}

/// Program 300 in the versions 2 and 5, of which the latter is known, and program 400.
pub fn services() -> ServiceTable {
    let mut services = ServiceTable::default();
    let unknown = |program, version| Arc::new(Interface::unknown(program, version));
    assert_eq!(services.add(300, 5, Some(known(5))), Some(0));
    assert_eq!(services.add(300, 2, Some(unknown(300, 2))), Some(1));
    assert_eq!(services.add(400, 1, Some(unknown(400, 1))), Some(2));
    services
}

/// What a client grants whose messages have this order of bytes.
pub fn client_config(order: ByteOrder) -> ConnectionConfig {
    ConnectionConfig {
        receive_max: LIMIT,
        byte_order: order,
        ..ConnectionConfig::client()
    }
}

/// The same of a server.
pub fn server_config(order: ByteOrder) -> ConnectionConfig {
    ConnectionConfig {
        receive_max: LIMIT,
        incoming_calls_max: CALLS_MAX,
        byte_order: order,
        ..ConnectionConfig::server()
    }
}

/// A call that has reached a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    pub service: usize,
    pub procedure: u32,
    pub time_left: Option<Duration>,
    pub order: ByteOrder,
    pub wants_stamps: bool,
    /// Kind and content of each extension.
    pub extensions: Vec<(u16, Vec<u8>)>,
    pub arguments: Vec<u8>,
    pub caller: Caller,
}

/// What an end was told by what it has received.
#[derive(Debug, Default)]
pub struct Received {
    /// Calls for its services.
    pub calls: Vec<Served>,
    /// Calls that the peer did not begin, to be started again.
    pub unbegun: Vec<AbandonedCall<&'static str>>,
    /// Everything else, in words.
    pub told: Vec<String>,
}

/// Both ends of a connection, whose waiters are words.
pub struct Pair {
    pub client: End<&'static str>,
    pub server: End<&'static str>,
    pub now: Instant,
}

impl Pair {
    /// Two lean ends that have read each other's preambles.
    pub fn lean(client: ByteOrder, server: ByteOrder) -> Self {
        Self::greeted(client_config(client), server_config(server))
    }

    /// The same with these configurations.
    pub fn greeted(client: ConnectionConfig, server: ConnectionConfig) -> Self {
        let mut pair = Self::new(WireProtocol::Lean, client, server);
        assert!(pair.serve().is_empty());
        assert!(pair.take_answers().is_empty());
        pair
    }

    /// Two ends of ONC RPC.
    pub fn onc() -> Self {
        let order = ByteOrder::NATIVE;
        Self::new(
            WireProtocol::Onc,
            client_config(order),
            server_config(order),
        )
    }

    /// Two ends that have said nothing yet.
    pub fn new(protocol: WireProtocol, client: ConnectionConfig, server: ConnectionConfig) -> Self {
        let (mut client, mut server) = pair(protocol, client, server);
        for end in [&mut client, &mut server] {
            end.services = services();
            end.interface = known(5);
        }
        Self {
            client,
            server,
            now: Instant::now(),
        }
    }

    // ---- The client's side ----

    /// Starts a lean call that has a second.
    pub fn call(
        &mut self,
        interface: &Arc<Interface>,
        procedure: u16,
        arguments: &[u8],
        waiter: &'static str,
    ) -> StartedCall {
        let extras = Extras::default();
        self.call_with(interface, procedure, arguments, &extras, waiter)
    }

    /// The same, with something in front of the arguments.
    pub fn call_with(
        &mut self,
        interface: &Arc<Interface>,
        procedure: u16,
        arguments: &[u8],
        extras: &Extras<'_>,
        waiter: &'static str,
    ) -> StartedCall {
        let deadline = self.now + SECOND;
        let of = (interface, procedure);
        let client = &mut self.client;
        let started = client.call_lean(of, arguments, extras, deadline, waiter);
        started.unwrap()
    }

    /// Starts a call of ONC RPC that has a second, of procedure 1 of program 300, version 5.
    pub fn call_onc(&mut self, arguments: &[u8], waiter: &'static str) -> StartedCall {
        let template = CallTemplate::new(300, 5, &Credential::None);
        let deadline = self.now + SECOND;
        let client = &mut self.client;
        let started = client.call_onc(&template, 1, arguments, deadline, waiter);
        started.unwrap()
    }

    /// Brings to the server what the client has to say; returns the calls that have reached its services.
    pub fn serve(&mut self) -> Vec<Served> {
        let received = carry(&mut self.client, &mut self.server);
        assert_eq!(received.told, [""; 0]);
        received.calls
    }

    /// Brings to the client what the server has to say; returns what it was told.
    pub fn take_answers(&mut self) -> Vec<String> {
        let received = carry(&mut self.server, &mut self.client);
        assert_eq!(received.calls, []);
        received.told
    }

    /// Takes the next batch of the client.
    pub fn poll_batch(&mut self) -> TransmitBatch {
        let mut batch = TransmitBatch::default();
        assert!(self.client.connection.poll_transmit(&mut batch));
        batch
    }

    /// The connection is lost: the client's calls, by their numbers.
    pub fn abandon_all(&mut self) -> Vec<AbandonedCall<&'static str>> {
        let mut calls = self.client.connection.abandon_all();
        calls.sort_unstable_by_key(|call| call.number);
        calls
    }

    /// The client goes on with a server that has never heard of it.
    pub fn renew(&mut self) {
        let receiver = self.client.connection.renew(std::time::Instant::now());
        let protocol = self
            .client
            .connection
            .protocol()
            .expect("a client knows it");
        let client = self.client.config.clone();
        let server = self.server.config.clone();
        self.server = Self::new(protocol, client, server).server;
        self.client.receiver = receiver;
    }

    // ---- The server's side ----

    /// Answers a call with these results.
    pub fn answer(&mut self, caller: Caller, results: &[u8]) {
        answer(&mut self.server, caller, results);
    }

    /// Answers a call with an exception, behind a part of a result.
    pub fn refuse(&mut self, caller: Caller, exception: &Exception<'_>) {
        let mut reply = Buffer::default();
        let ReplyDraft::Lean(draft) = ReplyDraft::begin(&mut reply, caller) else {
            panic!("no call of ONC RPC");
        };
        reply.extend(b"half a result");
        draft.refuse(&mut reply, exception).seal(&mut reply);
        self.server.connection.push_reply(&mut reply);
    }
}

/// Answers a call of the other end.
pub fn answer<W>(end: &mut End<W>, caller: Caller, results: &[u8]) {
    let mut reply = End::<W>::reply(caller, results);
    end.connection.push_reply(&mut reply);
    assert!(reply.is_empty());
}

/// Brings everything that one end has to say to the other.
pub fn carry(from: &mut End<&'static str>, to: &mut End<&'static str>) -> Received {
    let bytes = from.transmit_all();
    take_in(to, &bytes).unwrap()
}

/// Has an end take in what it receives.
pub fn take_in(end: &mut End<&'static str>, bytes: &[u8]) -> Result<Received, ConnectionError> {
    let mut received = Received::default();
    let mut at = 0;
    while at < bytes.len() {
        at += end.receive(&bytes[at..])?;
        while let Some(frame) = end.receiver.next_frame()? {
            match end.connection.handle_frame(frame, &end.services)? {
                Event::Called(call) => received.calls.push(Served {
                    service: call.service,
                    procedure: call.procedure,
                    time_left: call.time_left,
                    order: call.order,
                    wants_stamps: call.wants_stamps,
                    extensions: call
                        .extensions
                        .map(|extension| (extension.kind, extension.content.to_vec()))
                        .collect(),
                    arguments: call.arguments.to_vec(),
                    caller: call.caller,
                }),
                Event::Unbegun(call) => received.unbegun.push(call),
                event => received.told.extend(describe(event)),
            }
        }
    }
    Ok(received)
}

/// An event in words, if it is one for its owner.
fn describe(event: Event<'_, &'static str>) -> Option<String> {
    Some(match event {
        Event::Answered(answer) => {
            let waiter = answer.waiter;
            match answer.outcome {
                Ok(results) => format!("{waiter}: {}", results.escape_ascii()),
                Err(error) => format!("{waiter} {}", describe_error(error)),
            }
        }
        Event::Cancelled(_) => "cancelled".to_owned(),
        Event::PeerClosing(closing) => describe_closing(&closing),
        Event::Pong(number) => format!("pong {number}"),
        Event::Items(item) => format!(
            "item of {}: {}{}",
            item.id.number,
            item.content.escape_ascii(),
            if item.has_more { " and more" } else { "" }
        ),
        Event::StreamEnded(id) => format!("end of {}", id.number),
        Event::Called(_)
        | Event::CancelledHere(_)
        | Event::Unbegun(_)
        | Event::Progress
        | Event::Handled => return None,
    })
}

fn describe_error(error: ReplyError<'_>) -> String {
    match error {
        ReplyError::Refused(refused) => format!("refused: {refused}"),
        ReplyError::Violation(violation) => format!("ended by a violation: {violation}"),
        ReplyError::Unbound(refusal) => format!("unbound: {refusal}"),
        ReplyError::Exception(exception) if exception.details.is_empty() => {
            format!("failed: {exception}")
        }
        ReplyError::Exception(exception) => {
            let details = exception.details.escape_ascii();
            format!("failed: {exception} ({details})")
        }
    }
}

fn describe_closing(closing: &PeerClosing<'_, &'static str>) -> String {
    let last = closing.close.last_call;
    let unbegun = waiters(&closing.unbegun);
    format!(
        "closing behind {last:?}: {}; not begun: {unbegun:?}",
        closing.close
    )
}

/// The waiters of calls that ended without an answer, in their order.
pub fn waiters(calls: &[AbandonedCall<&'static str>]) -> Vec<&'static str> {
    calls.iter().map(|call| call.waiter).collect()
}
