//! The client's bookkeeping: xids, replies and their blame, deadlines and retransmission.

mod common;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use common::{Random, words};
use tenon_proto::onc::auth::AuthStat;
use tenon_proto::onc::client::{ClientEngine, ReplyError, Retransmission, Timeout};
use tenon_proto::onc::message::{Refused, Violation};

const SECOND: Duration = Duration::from_secs(1);

const RETRANSMISSION: Retransmission = Retransmission {
    first: SECOND,
    longest: Duration::from_secs(4),
};

/// The reply of a success without a verifier.
fn success(xid: u32, results: &[u32]) -> Vec<u8> {
    words(&[&[xid, 1, 0, 0, 0, 0], results].concat())
}

fn stream() -> (ClientEngine<&'static str>, Instant) {
    (ClientEngine::stream(1), Instant::now())
}

fn datagram() -> (ClientEngine<&'static str>, Instant) {
    (ClientEngine::datagram(1, RETRANSMISSION), Instant::now())
}

#[test]
fn a_reply_finds_its_call_in_any_order_and_its_results_stay_in_place() {
    let (mut engine, now) = stream();
    let first = engine.start(now, now + SECOND, "first");
    let second = engine.start(now, now + SECOND, "second");
    for (xid, waiter) in [(second, "second"), (first, "first")] {
        let message = success(xid, &[7, 8]);
        let answer = engine.handle_reply(&message).unwrap().unwrap();
        assert_eq!((answer.xid, answer.waiter), (xid, waiter));
        let results = answer.outcome.unwrap();
        assert_eq!(results.as_ptr_range(), message[24..].as_ptr_range());
    }
    assert_eq!(engine.in_flight(), 0);
    assert_eq!(engine.counters().successes, 2);
}

#[test]
fn a_verifier_in_the_reply_does_not_hide_its_results() {
    let (mut engine, now) = stream();
    let xid = engine.start(now, now + SECOND, "call");
    let message = words(&[xid, 1, 0, 2, 5, 0, 0, 0, 42]);
    let answer = engine.handle_reply(&message).unwrap().unwrap();
    assert_eq!(answer.outcome, Ok(&message[32..]));
}

#[test]
fn every_refusal_reaches_the_caller_with_its_exact_status() {
    let cases: [(&[u32], Refused); 7] = [
        (&[1, 0, 2, 3], Refused::RpcMismatch { low: 2, high: 3 }),
        (&[1, 1, 5], Refused::Authentication(AuthStat::TOO_WEAK)),
        (&[0, 0, 0, 1], Refused::ProgramUnavailable),
        (
            &[0, 0, 0, 2, 2, 4],
            Refused::ProgramMismatch { low: 2, high: 4 },
        ),
        (&[0, 0, 0, 3], Refused::ProcedureUnavailable),
        (&[0, 0, 0, 4], Refused::GarbageArguments),
        (&[0, 0, 0, 5], Refused::SystemError),
    ];
    for (status, refused) in cases {
        let (mut engine, now) = stream();
        let xid = engine.start(now, now + SECOND, "call");
        let message = words(&[&[xid, 1], status].concat());
        let answer = engine.handle_reply(&message).unwrap().unwrap();
        assert_eq!(answer.outcome, Err(ReplyError::Refused(refused)));
        assert_eq!(engine.counters().refusals, 1);
    }
}

#[test]
fn strangers_and_second_replies_are_counted_and_ignored() {
    for (mut engine, now) in [stream(), datagram()] {
        let xid = engine.start(now, now + SECOND, "call");
        assert_eq!(engine.handle_reply(&success(xid + 1, &[])), Ok(None));
        assert_eq!(engine.handle_reply(&success(xid + 16, &[])), Ok(None));
        assert!(engine.handle_reply(&success(xid, &[])).unwrap().is_some());
        assert_eq!(engine.handle_reply(&success(xid, &[])), Ok(None));
        assert_eq!(engine.counters().unmatched, 3);
    }
}

#[test]
fn a_reply_after_cancellation_or_expiry_is_ignored() {
    let (mut engine, now) = datagram();
    let cancelled = engine.start(now, now + SECOND, "cancelled");
    let expired = engine.start(now, now + SECOND, "expired");
    assert_eq!(engine.cancel(cancelled), Some("cancelled"));
    assert_eq!(engine.cancel(cancelled), None);
    let timeout = engine.handle_timeout(expired, now + SECOND);
    assert_eq!(timeout, Some(Timeout::Expired("expired")));
    assert_eq!(engine.handle_reply(&success(cancelled, &[])), Ok(None));
    assert_eq!(engine.handle_reply(&success(expired, &[])), Ok(None));
    assert_eq!(engine.next_timeout(expired), None);
    assert_eq!(engine.handle_timeout(expired, now), None);
    let counters = engine.counters();
    assert_eq!((counters.cancellations, counters.timeouts), (1, 1));
}

#[test]
fn on_a_stream_a_malformed_reply_ends_its_call_and_a_stray_message_the_connection() {
    let (mut engine, now) = stream();
    let xid = engine.start(now, now + SECOND, "call");
    assert_eq!(engine.handle_reply(b"ab"), Err(Violation::Truncated(0)));
    let call = words(&[xid, 0, 2, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(engine.handle_reply(&call), Err(Violation::NotAReply(0)));

    let message = words(&[xid, 1, 0, 0, 0, 6]);
    let answer = engine.handle_reply(&message).unwrap().unwrap();
    let violation = Violation::UnknownAcceptStat(6);
    assert_eq!(answer.outcome, Err(ReplyError::Violation(violation)));
    assert_eq!(engine.handle_reply(&message), Err(violation), "nobody's");
}

#[test]
fn on_datagrams_a_malformed_reply_is_dropped_and_the_call_goes_on() {
    let (mut engine, now) = datagram();
    let xid = engine.start(now, now + SECOND, "call");
    let reply = success(xid, &[]);
    for end in 0..reply.len() {
        assert_eq!(engine.handle_reply(&reply[..end]), Ok(None));
    }
    assert_eq!(engine.handle_reply(&words(&[xid, 1, 7])), Ok(None));
    assert_eq!(engine.counters().violations, reply.len() as u64 + 1);
    assert!(engine.handle_reply(&reply).unwrap().is_some());
}

#[test]
fn a_datagram_is_sent_again_after_times_that_double_up_to_the_cap() {
    let (mut engine, start) = datagram();
    let xid = engine.start(start, start + 20 * SECOND, "call");
    let mut sent_at = Vec::new();
    loop {
        let now = engine.next_timeout(xid).unwrap();
        match engine.handle_timeout(xid, now).unwrap() {
            Timeout::Retransmit(next) => assert_eq!(engine.next_timeout(xid), Some(next)),
            Timeout::Expired(_) => break,
            Timeout::Wait(_) => panic!("the time had come"),
        }
        sent_at.push((now - start).as_secs());
    }
    assert_eq!(sent_at, [1, 3, 7, 11, 15, 19]);
    assert_eq!(engine.counters().retransmissions, 6);
}

#[test]
fn before_its_time_a_call_waits() {
    let (mut engine, now) = datagram();
    let xid = engine.start(now, now + 9 * SECOND, "call");
    let early = engine.handle_timeout(xid, now + SECOND / 2);
    assert_eq!(early, Some(Timeout::Wait(now + SECOND)));
}

#[test]
fn the_deadline_comes_before_a_later_retransmission() {
    let (mut engine, now) = datagram();
    let deadline = now + SECOND / 2;
    let xid = engine.start(now, deadline, "call");
    assert_eq!(engine.next_timeout(xid), Some(deadline));
    assert_eq!(
        engine.handle_timeout(xid, now + 5 * SECOND),
        Some(Timeout::Expired("call"))
    );
}

#[test]
fn on_a_stream_nothing_is_sent_again() {
    let (mut engine, now) = stream();
    let xid = engine.start(now, now + 99 * SECOND, "call");
    assert_eq!(engine.next_timeout(xid), Some(now + 99 * SECOND));
    let waiting = engine.handle_timeout(xid, now + 98 * SECOND);
    assert_eq!(waiting, Some(Timeout::Wait(now + 99 * SECOND)));
}

#[test]
fn xids_run_around_and_never_meet_one_in_flight() {
    let now = Instant::now();
    let mut engine = ClientEngine::stream(u32::MAX - 100);
    let mut random = Random(7);
    let mut in_flight = HashSet::new();
    for _ in 0..10_000 {
        let xid = engine.start(now, now + SECOND, ());
        assert!(in_flight.insert(xid), "{xid} is in flight");
        if in_flight.len() > random.below(200) {
            let done: Vec<u32> = in_flight.iter().copied().take(random.below(100)).collect();
            for xid in done {
                let message = success(xid, &[]);
                let answer = engine.handle_reply(&message).unwrap().unwrap();
                assert_eq!(answer.xid, xid);
                in_flight.remove(&xid);
            }
        }
        assert_eq!(engine.in_flight(), in_flight.len());
    }
}

#[test]
fn a_call_that_stays_in_flight_does_not_get_in_the_way_of_others() {
    let (mut engine, now) = stream();
    let long = engine.start(now, now + SECOND, "long");
    let xids: HashSet<u32> = (0..1000)
        .map(|_| {
            let xid = engine.start(now, now + SECOND, "short");
            assert!(engine.handle_reply(&success(xid, &[])).unwrap().is_some());
            xid
        })
        .collect();
    assert_eq!(xids.len(), 1000, "no xid came twice");
    let message = success(long, &[]);
    let answer = engine.handle_reply(&message).unwrap().unwrap();
    assert_eq!(answer.waiter, "long");
}

#[test]
fn when_the_connection_is_lost_everybody_who_waits_is_found() {
    let (mut engine, now) = stream();
    let xids = ["a", "b", "c"].map(|waiter| engine.start(now, now + SECOND, waiter));
    let mut left: Vec<_> = engine.cancel_all().map(|(_, waiter)| waiter).collect();
    left.sort_unstable();
    assert_eq!(left, ["a", "b", "c"]);
    assert_eq!(engine.in_flight(), 0);
    assert_eq!(engine.counters().cancellations, 3);
    assert_eq!(engine.handle_reply(&success(xids[0], &[])), Ok(None));
    assert!(!xids.contains(&engine.start(now, now + SECOND, "d")));
}
