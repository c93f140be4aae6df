//! The packet exchange as owners of sockets see it: through the endpoints, beside ONC RPC.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::connection::{
    BindError, CallDraft, LeanCall, OutgoingCounters, ReplyDraft, ReplyError, ServiceTable,
    StartError,
};
use tenon_proto::endpoint::{
    CallFailure, ClientEndpoint, DatagramCallId, DatagramCallKey, Retransmission, ServerEndpoint,
};
use tenon_proto::exchange::server::{CloseRecipients, ServerLimits};
use tenon_proto::exchange::{Failure, Reason, ReassembledMessage};
use tenon_proto::lean::{ByteOrder, Features, Interface, Preamble, Status};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_wire::Buffer;

use crate::exchange::support::{
    address, client_endpoint, known, request, server_endpoint, services,
};

const ORDER: ByteOrder = ByteOrder::NATIVE;
const SECOND: Duration = Duration::from_secs(1);

fn whole() -> ReassembledMessage {
    ReassembledMessage::new(&Preamble::client(64 << 20))
}

/// A client, a server that returns arguments, and how calls ended.
struct Pair {
    now: Instant,
    client: ClientEndpoint<&'static str>,
    server: ServerEndpoint<SocketAddr>,
    services: ServiceTable,
    /// Calls that the server keeps from now on.
    keeps_calls: bool,
    kept: Vec<DatagramCallKey<SocketAddr>>,
    ended: Vec<String>,
}

impl Pair {
    fn new(client: ClientEndpoint<&'static str>) -> Self {
        let now = Instant::now();
        Self {
            now,
            client,
            server: server_endpoint(ORDER, ServerLimits::default(), 1, now),
            services: services(),
            keeps_calls: false,
            kept: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn start(
        &mut self,
        interface: &Arc<Interface>,
        arguments: &[u8],
        waiter: &'static str,
    ) -> Result<DatagramCallId, StartError> {
        let (mut message, draft) = request(ORDER, 7, arguments);
        let draft = CallDraft::Lean(LeanCall {
            draft,
            interface,
            procedure: 7,
        });
        let deadline = self.now + 20 * SECOND;
        self.client
            .start_call(self.now, &draft, &mut message, deadline, waiter)
    }

    /// Carries datagrams until there are none.
    fn settle(&mut self) {
        loop {
            let mut out = Buffer::default();
            if self.client.poll_transmit(self.now, &mut out) {
                self.serve(out.as_slice());
            } else if self.server.poll_transmit(self.now, &mut out).is_some() {
                self.receive(out.as_slice());
            } else {
                return;
            }
        }
    }

    fn serve(&mut self, datagram: &[u8]) {
        let mut whole = whole();
        let from = address(2, 1000);
        let received =
            self.server
                .handle_datagram(self.now, from, datagram, &self.services, &mut whole);
        let Some(received) = received else { return };
        if self.keeps_calls {
            self.kept.push(received.key);
            return;
        }
        let mut reply = Buffer::default();
        let draft = ReplyDraft::begin(&mut reply, received.call.caller);
        reply.extend(received.call.arguments);
        draft.seal(&mut reply);
        self.server
            .answer(self.now, received.key, &mut reply)
            .unwrap();
    }

    fn receive(&mut self, datagram: &[u8]) {
        let mut whole = whole();
        let answer = self.client.handle_datagram(self.now, datagram, &mut whole);
        let Some(answer) = answer else { return };
        let waiter = answer.waiter;
        self.ended.push(match answer.outcome {
            Ok(results) => format!("{waiter}: {}", results.escape_ascii()),
            Err(ReplyError::Unbound(refusal)) => format!("{waiter} unbound: {refusal}"),
            Err(other) => format!("{waiter}: {other:?}"),
        });
    }

    fn failures(&mut self) -> Vec<(&'static str, CallFailure)> {
        let failed = std::iter::from_fn(|| self.client.poll_failure());
        failed.map(|call| (call.waiter, call.failure)).collect()
    }
}

fn pair() -> Pair {
    Pair::new(client_endpoint(ORDER, 0))
}

/// A pair that has talked.
fn acquainted() -> Pair {
    let mut pair = pair();
    pair.start(&known(5), b"warm up", "first").unwrap();
    pair.settle();
    assert_eq!(std::mem::take(&mut pair.ended), ["first: warm up"]);
    pair
}

fn exchange(reason: Reason, may_have_run: bool) -> CallFailure {
    CallFailure::Exchange(Failure {
        reason,
        may_have_run,
    })
}

#[test]
fn one_socket_serves_clients_of_both_protocols() {
    let mut pair = acquainted();
    let lean = std::mem::replace(
        &mut pair.client,
        ClientEndpoint::onc(1, Retransmission::default()),
    );
    let mut message = Buffer::default();
    CallTemplate::new(300, 5, &Credential::None).begin(&mut message, 7);
    message.extend(b"from ONC RPC");
    let deadline = pair.now + SECOND;
    let client = &mut pair.client;
    let started = client.start_call(pair.now, &CallDraft::Onc, &mut message, deadline, "onc");
    started.unwrap();
    pair.settle();
    pair.client = lean;
    pair.start(&known(5), b"from lean", "lean").unwrap();
    pair.settle();
    assert_eq!(pair.ended, ["onc: from ONC RPC", "lean: from lean"]);
    assert_eq!(pair.server.counters().calls.calls, 3);
    assert_eq!(pair.server.conversations().counters().calls, 2);
}

#[test]
fn a_client_knows_its_server_once_it_has_greeted() {
    let mut pair = pair();
    assert!(pair.client.is_exchange());
    assert_eq!(pair.client.features(), Features::default());
    pair.client.greet(pair.now);
    assert!(pair.client.is_greeting() && pair.client.has_transmit());
    pair.settle();
    assert!(!pair.client.is_greeting());
    assert_eq!(pair.client.features(), Features::all());
    let peer = pair.client.peer().unwrap();
    assert_eq!((peer.message_max, peer.calls_max), (64 << 20, 64));
}

#[test]
fn a_service_that_the_server_does_not_bind_is_refused_once_and_then_at_once() {
    let mut pair = pair();
    let missing = Arc::new(Interface::unknown(9, 1));
    pair.start(&missing, b"", "first").unwrap();
    pair.settle();
    let why = "the server does not have program 9";
    assert_eq!(pair.ended, [format!("first unbound: {why}")]);
    match pair.start(&missing, b"", "second") {
        Err(StartError::Bind(BindError::Refused(refusal))) => {
            assert_eq!(refusal.to_string(), why);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(pair.client.counters().refusals, 1);
}

#[test]
fn a_call_of_onc_rpc_is_not_started_in_the_packet_exchange() {
    let mut pair = pair();
    let mut message = Buffer::default();
    CallTemplate::new(300, 5, &Credential::None).begin(&mut message, 7);
    let deadline = pair.now + SECOND;
    let client = &mut pair.client;
    let started = client.start_call(pair.now, &CallDraft::Onc, &mut message, deadline, "onc");
    assert_eq!(started, Err(StartError::OtherProtocol));
    assert!(!message.is_empty(), "it is as it was");
}

#[test]
fn a_call_over_what_the_server_accepts_is_not_started() {
    let mut pair = acquainted();
    let limit = 64 << 20;
    let refused = pair.start(&known(5), &vec![0; limit - 8], "large");
    let size = limit + 8;
    assert_eq!(refused, Err(StartError::TooLarge { size, limit }));
}

#[test]
fn results_of_the_commonest_answer_are_found_in_its_datagram() {
    let mut pair = acquainted();
    let id = pair.start(&known(5), b"results", "call").unwrap();
    let mut call = Buffer::default();
    assert!(pair.client.poll_transmit(pair.now, &mut call));
    pair.serve(call.as_slice());
    let mut answer = Buffer::default();
    pair.server.poll_transmit(pair.now, &mut answer).unwrap();
    let place = pair.client.take_common(pair.now, answer.as_slice(), id);
    assert_eq!(&answer.as_slice()[place.unwrap()], b"results");
    assert_eq!(pair.client.in_flight(), 0);
    assert_eq!(pair.client.call_timeout(id), None);
}

#[test]
fn a_cancelled_call_is_reported_to_its_server() {
    let mut pair = acquainted();
    pair.keeps_calls = true;
    let id = pair.start(&known(5), b"slow", "slow").unwrap();
    pair.settle();
    assert_eq!(pair.client.cancel(id), Some("slow"));
    assert_eq!(pair.client.cancel(id), None);
    pair.settle();
    assert_eq!(pair.server.poll_cancelled(), pair.kept.pop());
    assert_eq!(pair.server.poll_cancelled(), None);
    assert_eq!(pair.client.counters().cancellations, 1);
}

#[test]
fn a_call_whose_time_runs_out_is_counted_and_reported() {
    let mut pair = acquainted();
    pair.keeps_calls = true;
    pair.start(&known(5), b"too long", "late").unwrap();
    while pair.client.in_flight() > 0 {
        pair.settle();
        pair.now = pair.client.poll_timeout().expect("a timeout");
        pair.client.handle_timeout(pair.now);
        pair.server.handle_timeout(pair.now);
    }
    assert_eq!(pair.failures(), [("late", exchange(Reason::Expired, true))]);
    let counters = pair.client.counters();
    let expected = OutgoingCounters {
        calls: 2,
        successes: 1,
        timeouts: 1,
        ..counters
    };
    assert_eq!(counters, expected);
}

#[test]
fn all_calls_are_given_up_together() {
    let mut pair = acquainted();
    pair.keeps_calls = true;
    for waiter in ["a", "b", "c"] {
        pair.start(&known(5), b"slow", waiter).unwrap();
    }
    let mut waiters = pair.client.cancel_all();
    waiters.sort_unstable();
    assert_eq!(waiters, ["a", "b", "c"]);
    assert_eq!((pair.client.in_flight(), pair.failures()), (0, vec![]));
    pair.keeps_calls = false;
    pair.start(&known(5), b"the next", "d").unwrap();
    pair.settle();
    assert_eq!(pair.ended, ["d: the next"], "in another conversation");
}

#[test]
fn calls_to_a_port_where_no_server_listens_fail_at_once() {
    let mut pair = acquainted();
    pair.start(&known(5), b"lost", "lost").unwrap();
    pair.client.poll_transmit(pair.now, &mut Buffer::default());
    pair.client.handle_refusal(pair.now);
    let failures = pair.failures();
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].0, pair.client.in_flight()), ("lost", 0));
}

#[test]
fn a_server_that_stops_refuses_what_comes_later() {
    let mut pair = acquainted();
    pair.keeps_calls = true;
    pair.start(&known(5), b"slow", "slow").unwrap();
    pair.settle();
    pair.server.close(CloseRecipients::ToIdle);
    assert!(!pair.server.has_unarrived(), "nothing is answered yet");
    pair.start(&known(5), b"late", "late").unwrap();
    pair.settle();
    let [ended] = &pair.ended[..] else {
        panic!("{:?}", pair.ended);
    };
    let status = format!("{:?}", Status::STOPPING);
    assert!(
        ended.starts_with("late: ") && ended.contains(&status),
        "{ended}"
    );
}

/// The next conversation has datagrams of this size, in which more fits.
#[test]
fn the_size_of_datagrams_is_set_from_the_next_conversation_on() {
    for (bytes, datagrams) in [(1448, 8), (9000, 2)] {
        let mut pair = pair();
        pair.client.set_datagram_max(bytes);
        let limits = ServerLimits {
            datagram_max: 9000,
            ..ServerLimits::default()
        };
        pair.server = server_endpoint(ORDER, limits, 1, pair.now);
        pair.start(&known(5), b"warm up", "first").unwrap();
        pair.settle();
        pair.start(&known(5), &[1; 10_000], "large").unwrap();
        let mut count = 0;
        let mut out = Buffer::default();
        while pair.client.poll_transmit(pair.now, &mut out) {
            assert!(out.len() <= bytes);
            out.clear();
            count += 1;
        }
        assert_eq!(count, datagrams);
    }
}
