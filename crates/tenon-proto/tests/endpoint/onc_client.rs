//! Calls of ONC RPC in datagrams at their client: xids, replies, deadlines, and what is sent again when.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::connection::{CallDraft, LeanCall, ReplyError, StartError};
use tenon_proto::endpoint::{
    CallFailure, ClientEndpoint, DATAGRAM_SIZE_MAX, DatagramCallId, Retransmission,
};
use tenon_proto::exchange::ReassembledMessage;
use tenon_proto::lean::{ByteOrder, Features, Interface, Preamble};
use tenon_proto::onc::auth::{AuthStat, Credential};
use tenon_proto::onc::message::{CallTemplate, Refused};
use tenon_wire::Buffer;

use crate::common::{Random, words};
use crate::exchange::support::request;

const SECOND: Duration = Duration::from_secs(1);

const RETRANSMISSION: Retransmission = Retransmission {
    first: SECOND,
    longest: Duration::from_secs(4),
};

/// The number of the first call.
const FIRST: u32 = 1;

struct Client<W> {
    endpoint: ClientEndpoint<W>,
    template: CallTemplate,
    now: Instant,
}

impl<W> Client<W> {
    fn with_seed(seed: u32) -> Self {
        Self {
            endpoint: ClientEndpoint::onc(seed, RETRANSMISSION),
            template: CallTemplate::new(300, 1, &Credential::None),
            now: Instant::now(),
        }
    }

    /// Starts a call of procedure 7 that has so much time; returns its xid.
    fn start(&mut self, time: Duration, waiter: W) -> u32 {
        let mut message = Buffer::default();
        self.template.begin(&mut message, 7);
        message.extend(b"arguments");
        let deadline = self.now + time;
        let started =
            self.endpoint
                .start_call(self.now, &CallDraft::Onc, &mut message, deadline, waiter);
        assert!(message.is_empty(), "the endpoint keeps the message");
        match started {
            Ok(DatagramCallId::Onc(xid)) => xid,
            other => panic!("{other:?}"),
        }
    }

    fn transmit(&mut self) -> Option<Vec<u8>> {
        let mut out = Buffer::default();
        let is_there = self.endpoint.poll_transmit(self.now, &mut out);
        is_there.then(|| out.as_slice().to_vec())
    }

    /// Takes in a reply, and returns the waiter of the call that it ends and its results.
    fn receive(&mut self, datagram: &[u8]) -> Option<(W, Vec<u8>)> {
        let mut whole = whole();
        let answer = self
            .endpoint
            .handle_datagram(self.now, datagram, &mut whole)?;
        Some((answer.waiter, answer.outcome.unwrap().to_vec()))
    }

    /// Goes on to `now`, and returns the waiters of the calls whose time has run out.
    fn pass_time_to(&mut self, now: Instant) -> Vec<W> {
        self.now = now;
        self.endpoint.handle_timeout(now);
        let expired = std::iter::from_fn(|| {
            let failed = self.endpoint.poll_failure()?;
            assert_eq!(failed.failure, CallFailure::Expired);
            Some(failed.waiter)
        });
        expired.collect()
    }
}

fn client() -> Client<&'static str> {
    Client::with_seed(FIRST)
}

/// Room for answers of several packets, which ONC RPC has none of.
fn whole() -> ReassembledMessage {
    ReassembledMessage::new(&Preamble::client(0))
}

/// The reply of a success without a verifier.
fn success(xid: u32, results: &[u32]) -> Vec<u8> {
    words(&[&[xid, 1, 0, 0, 0, 0], results].concat())
}

#[test]
fn a_call_is_sent_as_a_datagram_without_a_mark() {
    let mut client = client();
    let xid = client.start(SECOND, "call");
    assert!(client.endpoint.has_transmit());
    let mut expected = words(&[xid, 0, 2, 300, 1, 7, 0, 0, 0, 0]);
    expected.extend(b"arguments");
    assert_eq!(client.transmit(), Some(expected));
    assert!(!client.endpoint.has_transmit());
    assert_eq!(client.transmit(), None, "once is enough");
}

#[test]
fn a_reply_finds_its_call_in_any_order_and_its_results_stay_in_place() {
    let mut client = client();
    let first = client.start(SECOND, "first");
    let second = client.start(SECOND, "second");
    let mut whole = whole();
    for (xid, waiter) in [(second, "second"), (first, "first")] {
        let datagram = success(xid, &[7, 8]);
        let answer = client
            .endpoint
            .handle_datagram(client.now, &datagram, &mut whole)
            .unwrap();
        assert_eq!((answer.number, answer.waiter), (xid, waiter));
        assert_eq!(answer.order, ByteOrder::Big);
        let results = answer.outcome.unwrap();
        assert_eq!(results.as_ptr_range(), datagram[24..].as_ptr_range());
    }
    assert_eq!(client.endpoint.in_flight(), 0);
    assert_eq!(client.endpoint.counters().successes, 2);
}

#[test]
fn every_refusal_reaches_the_caller_with_its_exact_status() {
    let cases: [(&[u32], Refused); 3] = [
        (&[1, 1, 5], Refused::Authentication(AuthStat::TOO_WEAK)),
        (
            &[0, 0, 0, 2, 2, 4],
            Refused::ProgramMismatch { low: 2, high: 4 },
        ),
        (&[0, 0, 0, 5], Refused::SystemError),
    ];
    for (status, refused) in cases {
        let mut client = client();
        let xid = client.start(SECOND, "call");
        let datagram = words(&[&[xid, 1], status].concat());
        let mut whole = whole();
        let answer = client
            .endpoint
            .handle_datagram(client.now, &datagram, &mut whole);
        let expected = ReplyError::Refused(refused);
        assert_eq!(answer.unwrap().outcome, Err(expected));
        assert_eq!(client.endpoint.counters().refusals, 1);
    }
}

#[test]
fn unsolicited_and_second_replies_are_counted_and_ignored() {
    let mut client = client();
    let xid = client.start(SECOND, "call");
    assert_eq!(client.receive(&success(xid + 1, &[])), None);
    assert_eq!(client.receive(&success(xid + 16, &[])), None);
    assert!(client.receive(&success(xid, &[])).is_some());
    assert_eq!(client.receive(&success(xid, &[])), None);
    assert_eq!(client.endpoint.counters().unmatched, 3);
}

#[test]
fn a_reply_behind_a_cancellation_or_the_deadline_is_ignored() {
    let mut client = client();
    let cancelled = client.start(SECOND, "cancelled");
    let expired = client.start(SECOND, "expired");
    let id = DatagramCallId::Onc(cancelled);
    assert_eq!(client.endpoint.cancel(id), Some("cancelled"));
    assert_eq!(client.endpoint.cancel(id), None);
    assert_eq!(client.pass_time_to(client.now + SECOND), ["expired"]);
    assert_eq!(client.receive(&success(cancelled, &[])), None);
    assert_eq!(client.receive(&success(expired, &[])), None);
    let expired = DatagramCallId::Onc(expired);
    assert_eq!(client.endpoint.call_timeout(expired), None);
    let counters = client.endpoint.counters();
    assert_eq!((counters.cancellations, counters.timeouts), (1, 1));
}

#[test]
fn a_cancelled_call_is_not_sent_any_more() {
    let mut client = client();
    let cancelled = client.start(SECOND, "cancelled");
    let other = client.start(SECOND, "other");
    client.endpoint.cancel(DatagramCallId::Onc(cancelled));
    let sent = client.transmit().unwrap();
    assert_eq!(sent[..4], other.to_be_bytes());
    assert_eq!(client.transmit(), None);
}

#[test]
fn a_malformed_reply_is_dropped_and_the_call_goes_on() {
    let mut client = client();
    let xid = client.start(SECOND, "call");
    let reply = success(xid, &[]);
    for end in 0..reply.len() {
        assert_eq!(client.receive(&reply[..end]), None);
    }
    assert_eq!(client.receive(&words(&[xid, 1, 7])), None);
    let call = words(&[xid, 0, 2, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(client.receive(&call), None, "not a reply");
    let violations = client.endpoint.counters().violations;
    assert_eq!(violations, reply.len() as u64 + 2);
    assert!(client.receive(&reply).is_some());
}

#[test]
fn a_call_is_sent_again_after_times_that_double_up_to_the_longest() {
    let mut client = client();
    let began = client.now;
    let xid = client.start(20 * SECOND, "call");
    let first = client.transmit().unwrap();
    let mut sent_at = Vec::new();
    loop {
        let due = client.endpoint.poll_timeout().unwrap();
        let of_call = client.endpoint.call_timeout(DatagramCallId::Onc(xid));
        assert_eq!(of_call, Some(due));
        if !client.pass_time_to(due).is_empty() {
            break;
        }
        assert_eq!(client.transmit().as_ref(), Some(&first));
        assert_eq!(client.transmit(), None);
        sent_at.push((due - began).as_secs());
    }
    assert_eq!(sent_at, [1, 3, 7, 11, 15, 19]);
    assert_eq!(client.now, began + 20 * SECOND);
    assert_eq!(client.endpoint.counters().retransmissions, 6);
    assert_eq!(client.endpoint.poll_timeout(), None, "nothing is left");
}

#[test]
fn before_its_time_a_call_is_not_sent_again() {
    let mut client = client();
    client.start(9 * SECOND, "call");
    client.transmit();
    assert!(client.pass_time_to(client.now + SECOND / 2).is_empty());
    assert!(!client.endpoint.has_transmit());
}

#[test]
fn the_deadline_comes_before_a_later_retransmission() {
    let mut client = client();
    client.start(SECOND / 2, "call");
    let deadline = client.now + SECOND / 2;
    assert_eq!(client.endpoint.poll_timeout(), Some(deadline));
    assert_eq!(client.pass_time_to(client.now + 5 * SECOND), ["call"]);
    assert_eq!(client.endpoint.counters().retransmissions, 0);
}

#[test]
fn every_call_has_a_timer_of_its_own() {
    let mut client = client();
    client.start(10 * SECOND, "early");
    client.now += SECOND / 2;
    client.start(10 * SECOND, "late");
    while client.transmit().is_some() {}
    let due = client.endpoint.poll_timeout().unwrap();
    client.pass_time_to(due);
    let again = client.transmit().unwrap();
    assert_eq!(again[..4], FIRST.to_be_bytes());
    assert_eq!(client.transmit(), None, "the other is not due");
    assert_eq!(client.endpoint.poll_timeout(), Some(due + SECOND / 2));
}

#[test]
fn xids_wrap_around_and_none_in_flight_is_taken() {
    let mut client = Client::with_seed(u32::MAX - 100);
    let mut random = Random(7);
    let mut in_flight = HashSet::new();
    for _ in 0..10_000 {
        let xid = client.start(SECOND, ());
        assert!(in_flight.insert(xid), "{xid} is in flight");
        if in_flight.len() > random.below(200) {
            let done: Vec<u32> = in_flight.iter().copied().take(random.below(100)).collect();
            for xid in done {
                assert!(client.receive(&success(xid, &[])).is_some());
                in_flight.remove(&xid);
            }
        }
        assert_eq!(client.endpoint.in_flight(), in_flight.len());
    }
}

#[test]
fn a_call_that_stays_in_flight_does_not_get_in_the_way_of_others() {
    let mut client = client();
    let long = client.start(SECOND, "long");
    let xids: HashSet<u32> = (0..1000)
        .map(|_| {
            let xid = client.start(SECOND, "short");
            assert!(client.receive(&success(xid, &[])).is_some());
            xid
        })
        .collect();
    assert_eq!(xids.len(), 1000, "no xid came twice");
    let (waiter, _) = client.receive(&success(long, &[])).unwrap();
    assert_eq!(waiter, "long");
}

#[test]
fn all_calls_can_be_given_up_together() {
    let mut client = client();
    let xids = ["a", "b", "c"].map(|waiter| client.start(SECOND, waiter));
    let mut waiters = client.endpoint.cancel_all();
    waiters.sort_unstable();
    assert_eq!(waiters, ["a", "b", "c"]);
    assert_eq!(client.endpoint.in_flight(), 0);
    assert_eq!(client.endpoint.counters().cancellations, 3);
    assert_eq!(
        (client.transmit(), client.endpoint.poll_timeout()),
        (None, None)
    );
    assert_eq!(client.receive(&success(xids[0], &[])), None);
    assert!(!xids.contains(&client.start(SECOND, "d")));
}

/// What [`ClientEndpoint::take_common`] makes of a datagram.
fn take(client: &mut Client<&'static str>, datagram: &[u8], xid: u32) -> Option<Vec<u8>> {
    let id = DatagramCallId::Onc(xid);
    let place = client.endpoint.take_common(client.now, datagram, id)?;
    Some(datagram[place].to_vec())
}

#[test]
fn the_commonest_reply_to_a_given_call_is_taken_without_looking_further() {
    let mut client = client();
    let xid = client.start(SECOND, "call");
    let other = client.start(SECOND, "other");
    let reply = success(xid, &[7, 8]);
    assert_eq!(take(&mut client, &reply, other), None, "another call");
    let with_verifier = words(&[xid, 1, 0, 2, 4, 0, 0, 42]);
    assert_eq!(take(&mut client, &with_verifier, xid), None);
    let refusal = words(&[xid, 1, 0, 0, 0, 5]);
    assert_eq!(take(&mut client, &refusal, xid), None);
    assert_eq!(client.endpoint.in_flight(), 2, "nothing has ended");
    assert_eq!(take(&mut client, &reply, xid), Some(words(&[7, 8])));
    assert_eq!(take(&mut client, &reply, xid), None, "it has ended");
    assert_eq!(client.endpoint.in_flight(), 1);
    assert_eq!(client.endpoint.counters().successes, 1);
}

#[test]
fn a_call_that_fits_into_no_datagram_is_not_started() {
    let mut client = client();
    for (limit, is) in [
        (None, DATAGRAM_SIZE_MAX),
        (Some(1472), 1472),
        (Some(usize::MAX), DATAGRAM_SIZE_MAX),
    ] {
        if let Some(limit) = limit {
            client.endpoint.set_datagram_max(limit);
        }
        for bytes in [is, is + 1] {
            let mut message = Buffer::default();
            client.template.begin(&mut message, 7);
            // In front is room for the mark of a record.
            message.room(bytes + 4 - message.len());
            let (draft, deadline) = (CallDraft::Onc, client.now + SECOND);
            let started =
                (client.endpoint).start_call(client.now, &draft, &mut message, deadline, "");
            if bytes > is {
                let (size, limit) = (bytes, is);
                let too_large = StartError::TooLargeForDatagram { size, limit };
                assert_eq!(started, Err(too_large));
                assert_eq!(message.len(), bytes + 4, "it stays where it is");
                assert_eq!(client.transmit(), None);
            } else {
                assert!(started.is_ok(), "{started:?}");
                assert_eq!(client.transmit().map(|sent| sent.len()), Some(bytes));
            }
        }
    }
    assert_eq!(client.endpoint.in_flight(), 3);
}

#[test]
fn an_endpoint_of_onc_rpc_starts_no_lean_calls_and_knows_nothing_of_conversations() {
    let mut client = client();
    let interface = Arc::new(Interface::unknown(300, 1));
    let (mut message, draft) = request(ByteOrder::NATIVE, 7, b"arguments");
    let draft = CallDraft::Lean(LeanCall {
        draft,
        interface: &interface,
        procedure: 7,
    });
    let deadline = client.now + SECOND;
    let started = client
        .endpoint
        .start_call(client.now, &draft, &mut message, deadline, "call");
    assert_eq!(started, Err(StartError::OtherProtocol));
    assert!(!message.is_empty(), "it is as it was");
    client.endpoint.greet(client.now);
    client.endpoint.handle_refusal(client.now);
    assert!(!client.endpoint.is_exchange() && !client.endpoint.is_greeting());
    assert_eq!(client.transmit(), None);
    assert_eq!(client.endpoint.peer(), None);
    assert_eq!(client.endpoint.features(), Features::default());
    assert!(client.endpoint.conversation().is_none());
}
