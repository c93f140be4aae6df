//! Fragments that are lost, each by name.

use std::time::Duration;

use tenon_proto::exchange::server::CloseRecipients;
use tenon_proto::exchange::{Failure, Reason};
use tenon_proto::lean::ByteOrder;

use crate::exchange::support::{Pair, address, message};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// A pair whose server has an answer of so many bytes to send.
fn answering(bytes: usize) -> Pair {
    let mut pair = Pair::new(ORDER, ORDER);
    pair.call(b"warm up");
    pair.start(&message(ORDER, 7, b"much"));
    let call = pair.take_from_client();
    let key = pair.bring_to_server(&call).unwrap();
    pair.answer(key, &vec![7; bytes]);
    pair
}

/// All that the server may send now.
fn burst(pair: &mut Pair) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| pair.poll_server()).collect()
}

/// Brings packets to the client, and what it says to the server.
fn bring(pair: &mut Pair, packets: &[Vec<u8>]) {
    for packet in packets {
        pair.bring_to_client(packet);
        while let Some(said) = pair.poll_client() {
            pair.bring_to_server(&said);
        }
    }
}

/// The server's time-out. It may look at its timers earlier.
fn time_out(pair: &mut Pair) {
    loop {
        pair.now = pair.server.poll_timeout().unwrap();
        pair.server.handle_timeout(pair.now);
        if pair.server.has_transmit() || !pair.server.has_unarrived() {
            return;
        }
    }
}

#[test]
fn fragments_that_are_known_to_be_lost_outlast_a_time_out() {
    let mut pair = answering(200_000);
    let mut packets = burst(&mut pair);
    while packets.len() < 40 {
        bring(&mut pair, &packets);
        packets = burst(&mut pair);
    }
    // What is missing between those that arrive is found to be lost, and waits for room in a window that is
    // full of what is lost behind them.
    bring(&mut pair, &packets[..5]);
    bring(&mut pair, &packets[10..14]);
    assert_eq!(pair.poll_server(), None);
    time_out(&mut pair);
    pair.settle(|_| true);
    assert_eq!(pair.results.len(), 2, "one time-out is enough");
    assert_eq!(pair.server.under_way(), 0);
}

/// Between a loss and what is sent again nothing is under way.
#[test]
fn an_answer_has_not_arrived_before_its_client_says_so() {
    let mut pair = answering(100_000);
    assert!(pair.server.has_unarrived(), "nothing is sent yet");
    assert_eq!(burst(&mut pair).len(), 10);
    time_out(&mut pair);
    time_out(&mut pair);
    assert_eq!(pair.server.under_way(), 0);
    assert!(pair.server.has_unarrived());
    pair.settle(|_| true);
    assert_eq!(pair.results.len(), 2);
    assert!(!pair.server.has_unarrived());
}

#[test]
fn an_answer_that_is_never_acknowledged_is_given_up_until_its_client_asks() {
    let mut pair = answering(100_000);
    let heard = burst(&mut pair);
    bring(&mut pair, &heard);
    for _ in 0..9 {
        assert!(pair.server.has_unarrived());
        burst(&mut pair);
        time_out(&mut pair);
    }
    assert!(!pair.server.has_unarrived());
    assert_eq!(pair.poll_server(), None);
    pair.client.handle_timeout(pair.now);
    let asking = pair.take_from_client();
    pair.bring_to_server(&asking);
    assert!(pair.server.has_unarrived());
    pair.settle(|_| true);
    assert_eq!(pair.results.len(), 2);
}

/// A client that asks again and again and takes nothing does not keep a server that stops.
#[test]
fn a_server_that_stops_gives_an_answer_up_however_often_its_client_asks() {
    let mut pair = answering(100_000);
    let heard = burst(&mut pair);
    bring(&mut pair, &heard);
    pair.server.close();
    for _ in 0..9 {
        assert!(pair.server.has_unarrived());
        burst(&mut pair);
        time_out(&mut pair);
        pair.client.handle_timeout(pair.now);
        while let Some(said) = pair.poll_client() {
            pair.bring_to_server(&said);
        }
    }
    assert!(!pair.server.has_unarrived());
}

#[test]
fn an_answer_of_one_packet_need_only_be_sent() {
    let mut pair = answering(10);
    assert!(pair.server.has_unarrived());
    pair.take_from_server();
    assert!(!pair.server.has_unarrived());
}

/// The server has forgotten at its goodbye what it had carried out, though it has long been there.
#[test]
fn a_call_whose_answer_and_goodbye_were_lost_may_have_been_carried_out() {
    let mut pair = Pair::new(ORDER, ORDER);
    pair.call(b"warm up");
    pair.now += Duration::from_secs(30);
    pair.start(&message(ORDER, 7, b"once"));
    let call = pair.take_from_client();
    let key = pair.bring_to_server(&call).unwrap();
    pair.answer(key, b"done");
    pair.take_from_server();
    pair.server.send_close(CloseRecipients::ToIdle);
    pair.take_from_server();
    pair.pass_time();
    assert_eq!(pair.settle(|_| true), 2, "asked again, reset");
    let reason = Reason::Forgotten {
        was_restarted: false,
    };
    let may_have_run = true;
    let failure = Failure {
        reason,
        may_have_run,
    };
    assert_eq!(pair.failures, [failure]);
}

/// One that was sent behind the goodbye, which did not arrive, was not taken.
#[test]
fn a_call_that_was_sent_behind_a_goodbye_was_not_carried_out() {
    let mut pair = Pair::new(ORDER, ORDER);
    pair.call(b"warm up");
    pair.server.send_close(CloseRecipients::ToIdle);
    pair.take_from_server();
    pair.now += Duration::from_secs(1);
    pair.start(&message(ORDER, 7, b"late"));
    pair.settle(|_| true);
    assert!(!pair.failures[0].may_have_run, "{}", pair.failures[0]);
    assert!(matches!(pair.failures[0].reason, Reason::Refused(_)));
}

/// The client has the answer and has given its lane to another call; nothing of that has come when the server sends the
/// answer again, and asks.
#[test]
fn an_answer_that_comes_again_to_a_lane_with_another_call_is_acknowledged() {
    let mut pair = answering(10_000);
    for packet in burst(&mut pair) {
        pair.bring_to_client(&packet);
        // What the client says of the answer is lost.
        while pair.poll_client().is_some() {}
    }
    assert_eq!(pair.results.len(), 2);
    pair.start(&message(ORDER, 7, b"lost, too"));
    let next = pair.take_from_client();
    assert!(pair.server.under_way() > 0);
    time_out(&mut pair);
    let again = pair.take_from_server();
    bring(&mut pair, &[again]);
    assert_eq!(pair.server.under_way(), 0);
    assert!(!pair.server.has_unarrived());
    // It ended the call that it is of, and no other.
    assert!(pair.bring_to_server(&next).is_some());
}

/// A packet from the new address overtakes the one that begins the conversation, whose call is carried out.
#[test]
fn a_client_that_moves_before_it_is_known_is_not_told_that_nothing_was_begun() {
    let mut pair = Pair::new(ORDER, ORDER);
    // The server has been there for long enough to know.
    pair.now += Duration::from_secs(60);
    pair.start(&message(ORDER, 7, b"greets"));
    let hello = pair.take_from_client();
    pair.bring_to_server(&hello);
    let welcome = pair.take_from_server();
    pair.bring_to_client(&welcome);
    let first = pair.take_from_client();
    pair.start(&message(ORDER, 7, b"overtakes"));
    let second = pair.take_from_client();
    let before = std::mem::replace(&mut pair.address, address(2, 1001));
    assert!(pair.bring_to_server(&second).is_none());
    let reset = pair.take_from_server();
    pair.address = before;
    assert!(pair.bring_to_server(&first).is_some());
    pair.bring_to_client(&reset);
    let may_have_run = pair.failures.iter().map(|failure| failure.may_have_run);
    assert_eq!(may_have_run.collect::<Vec<_>>(), [true, true]);
}
