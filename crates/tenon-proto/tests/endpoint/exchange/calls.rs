//! What two ends do when packets are lost, calls take long, servers are restarted and clients idle.

use std::time::Duration;

use tenon_proto::connection::{BindError, ReplyError};
use tenon_proto::exchange::client::{CallId, ExchangeClientCounters};
use tenon_proto::exchange::server::{CloseRecipients, ServerEvent, ServerLimits};
use tenon_proto::exchange::{DropReason, Failure, PACKET_HEADER, PacketKind, Reason};
use tenon_proto::lean::{ByteOrder, Interface, Status};
use tenon_wire::Buffer;

use crate::exchange::support::{
    ORDERS, Pair, message, outgoing, packet, part, server_granting, server_of,
};

const ORDER: ByteOrder = ByteOrder::NATIVE;

fn pair() -> Pair {
    Pair::new(ORDER, ORDER)
}

fn kind(datagram: &[u8]) -> u8 {
    datagram[6]
}

#[test]
fn a_call_takes_two_packets_once_the_ends_know_each_other() {
    for (client, server) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut pair = Pair::new(ORDERS[client], ORDERS[server]);
        assert_eq!(pair.call(b"the first"), 4, "greeting, call, result");
        for arguments in [&b""[..], b"x", &[7; 1000], &[0; 1400]] {
            assert_eq!(pair.call(arguments), 2);
            assert_eq!(pair.results.pop().as_deref(), Some(arguments));
        }
        assert_eq!(pair.server.counters().conversations, 1);
    }
}

#[test]
fn the_commonest_answer_shows_by_a_few_words_and_no_other_does() {
    let mut pair = pair();
    pair.call(b"warm up");
    let before = pair.client.counters();
    let id = pair.start(&message(ORDER, 7, b"results"));
    let call = pair.take_from_client();
    let key = pair.bring_to_server(&call).unwrap();
    pair.answer(key, b"results");
    let answer = pair.take_from_server();
    for bit in 0..answer.len() * 8 {
        let mut spoiled = answer.clone();
        spoiled[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            pair.client.take_common(pair.now, &spoiled, id),
            None,
            "{bit}"
        );
    }
    for length in 0..answer.len() {
        let cut = &answer[..length];
        assert_eq!(pair.client.take_common(pair.now, cut, id), None, "{length}");
    }
    assert_eq!(pair.client.take_common(pair.now, &call, id), None);
    assert_eq!(
        (pair.client.counters(), pair.client.in_flight()),
        (before_with_a_call(before), 1)
    );
    let place = pair.client.take_common(pair.now, &answer, id).unwrap();
    assert_eq!(&answer[PACKET_HEADER..][place], b"results");
    assert_eq!(
        (pair.client.in_flight(), pair.client.lanes_in_use()),
        (0, 0)
    );
    assert_eq!(pair.client.counters().successes, before.successes + 1);
    // It has had its answer, and what comes again is looked at as anything is.
    assert_eq!(pair.client.take_common(pair.now, &answer, id), None);
    pair.bring_to_client(&answer);
    assert_eq!(pair.client.counters().ignored.of(DropReason::Repeated), 1);
    assert_eq!(pair.call(b"the next"), 2);
}

fn before_with_a_call(before: ExchangeClientCounters) -> ExchangeClientCounters {
    ExchangeClientCounters {
        calls: before.calls + 1,
        ..before
    }
}

#[test]
fn an_answer_to_another_call_or_in_another_order_is_not_the_commonest() {
    let mut first = pair();
    first.call(b"warm up");
    let ids = [0, 1].map(|_| first.start(&message(ORDER, 7, b"one of two")));
    let calls = [0, 1].map(|_| first.poll_client().unwrap());
    let keys = calls.map(|call| first.bring_to_server(&call).unwrap());
    first.answer(keys[0], b"one of two");
    let answer = first.take_from_server();
    assert_eq!(first.client.take_common(first.now, &answer, ids[1]), None);
    assert!(
        first
            .client
            .take_common(first.now, &answer, ids[0])
            .is_some()
    );

    let other = ORDERS.into_iter().find(|order| *order != ORDER).unwrap();
    let mut second = Pair::new(ORDER, other);
    second.call(b"warm up");
    let id = second.start(&message(ORDER, 7, b"swapped"));
    let call = second.take_from_client();
    let key = second.bring_to_server(&call).unwrap();
    second.answer(key, b"swapped");
    let answer = second.take_from_server();
    assert_eq!(second.client.take_common(second.now, &answer, id), None);
    second.bring_to_client(&answer);
    assert_eq!(second.results.last().unwrap(), b"swapped");
}

#[test]
fn an_answer_that_was_lost_is_sent_again_and_the_call_not_carried_out_again() {
    let mut pair = pair();
    pair.call(b"warm up");
    let before = pair.server.counters().calls;
    pair.start(&message(ORDER, 7, b"once"));
    let mut lost = 0;
    pair.settle(|datagram| {
        let is_reply = kind(datagram) == PacketKind::Reply as u8;
        lost += u32::from(is_reply);
        !is_reply
    });
    assert_eq!(lost, 1);
    assert_eq!(pair.server.counters().calls, before + 1);
    pair.pass_time();
    assert_eq!(pair.settle(|_| true), 2, "the call again, the answer again");
    assert_eq!(pair.results.last().unwrap(), b"once");
    assert_eq!(pair.server.counters().calls, before + 1);
}

#[test]
fn a_long_call_is_asked_for_until_it_is_done() {
    let mut pair = pair();
    pair.call(b"warm up");
    pair.start(&message(ORDER, 7, b"long"));
    let call = pair.take_from_client();
    let began = pair.now;
    let key = pair.bring_to_server(&call).unwrap();
    let mut asked = 0;
    while pair.now < began + Duration::from_secs(15) {
        pair.pass_time();
        asked += pair.settle(|_| true);
        assert!(pair.failures.is_empty());
    }
    assert!((20..80).contains(&asked), "{asked} packets in 15 seconds");
    pair.answer(key, b"done at last");
    pair.settle(|_| true);
    assert_eq!(pair.results.last().unwrap(), b"done at last");
}

#[test]
fn time_runs_out_and_the_server_hears_of_it() {
    let mut pair = pair();
    pair.call(b"warm up");
    pair.start(&message(ORDER, 7, b"too long"));
    let call = pair.take_from_client();
    let key = pair.bring_to_server(&call).unwrap();
    while pair.failures.is_empty() {
        pair.pass_time();
        pair.settle(|_| true);
    }
    let expired = Failure {
        reason: Reason::Expired,
        may_have_run: true,
    };
    assert_eq!(pair.failures, [expired]);
    pair.settle(|_| true);
    assert_eq!(pair.server.poll_event(), Some(ServerEvent::Cancelled(key)));
    assert_eq!(pair.client.lanes_in_use(), 1, "the server is still at it");
    pair.answer(key, b"not waited for");
    pair.settle(|_| true);
    assert_eq!((pair.results.len(), pair.client.lanes_in_use()), (1, 0));
}

#[test]
fn a_server_that_is_gone_is_noticed() {
    let mut pair = pair();
    pair.call(b"warm up");
    let began = pair.now;
    let service = pair
        .client
        .bind(&crate::exchange::support::known(5), 7)
        .unwrap();
    let mut call = outgoing(service, 7, pair.now);
    call.deadline += Duration::from_secs(1000);
    let mut message = message(ORDER, 7, b"lost");
    pair.client.start(pair.now, &call, &mut message, 1).unwrap();
    while pair.failures.is_empty() {
        pair.settle(|_| false);
        pair.pass_time();
    }
    assert_eq!(pair.failures[0].reason, Reason::Unreachable);
    assert!(pair.failures[0].may_have_run);
    let waited = pair.now - began;
    let expected = Duration::from_secs(30)..Duration::from_secs(45);
    assert!(expected.contains(&waited), "{waited:?}");
    assert_eq!(pair.client.lanes_in_use(), 0);
}

#[test]
fn a_server_that_does_not_answer_at_first_was_not_reached() {
    let mut pair = pair();
    pair.start(&message(ORDER, 7, b"hello?"));
    while pair.failures.is_empty() {
        assert_eq!(pair.settle(|_| false), 1);
        pair.pass_time();
    }
    assert_eq!(pair.failures[0].reason, Reason::Expired);
    assert!(!pair.failures[0].may_have_run, "no call was sent");
}

/// Owners ask only when there may be something to send, and sleep until there is something to do.
#[test]
fn a_hello_that_was_lost_is_sent_again_when_its_time_has_come() {
    let mut pair = pair();
    pair.start(&message(ORDER, 7, b"hello?"));
    for _ in 0..4 {
        assert!(pair.client.has_transmit());
        let hello = pair.take_from_client();
        assert_eq!(kind(&hello), PacketKind::Hello as u8);
        assert!(!pair.client.has_transmit());
        assert!(pair.client.poll_timeout().unwrap() > pair.now);
        pair.pass_time();
    }
    assert!(pair.client.has_transmit());
    assert_eq!(pair.settle(|_| true), 4, "greeting, call, result");
    assert_eq!(pair.results, [b"hello?"]);
}

#[test]
fn a_server_that_never_answers_is_given_up_by_those_that_have_more_time() {
    let mut pair = pair();
    let service = pair
        .client
        .bind(&crate::exchange::support::known(5), 7)
        .unwrap();
    let mut call = outgoing(service, 7, pair.now);
    call.deadline += Duration::from_secs(1000);
    let mut message = message(ORDER, 7, b"lost");
    let began = pair.now;
    pair.client.start(pair.now, &call, &mut message, 1).unwrap();
    while pair.failures.is_empty() {
        while pair.client.has_transmit() {
            pair.poll_client().unwrap();
        }
        pair.pass_time();
    }
    assert_eq!(pair.failures[0].reason, Reason::Unreachable);
    assert!(!pair.failures[0].may_have_run, "no call was sent");
    let waited = pair.now - began;
    assert!(waited >= Duration::from_secs(30), "{waited:?}");
    assert!(waited < Duration::from_secs(50), "{waited:?}");
}

#[test]
fn a_server_that_was_restarted_between_two_calls_costs_no_error() {
    let mut pair = pair();
    pair.call(b"before");
    pair.server = server_of(ORDER, ServerLimits::default(), 4, pair.now);
    pair.now += Duration::from_secs(1);
    let packets = pair.call(b"after");
    assert_eq!(packets, 6, "call, reset, greeting, call, result");
    assert_eq!(pair.results, [&b"before"[..], b"after"]);
    assert!(pair.failures.is_empty());
    assert_eq!(pair.server.counters().calls, 1);
}

/// A pair whose client has had 20 calls in flight; the server, which granted 64, has been followed by one that
/// grants 16, a second ago.
fn pair_of_a_client_that_has_used_more_lanes() -> Pair {
    let mut pair = pair();
    pair.call(b"warm up");
    for _ in 0..20 {
        pair.start(&message(ORDER, 7, b"at once"));
    }
    while pair.results.len() < 21 {
        pair.settle(|_| true);
    }
    pair.results.clear();
    pair.server = server_granting(16, ORDER, ServerLimits::default(), 4, pair.now);
    pair.now += Duration::from_secs(1);
    pair
}

#[test]
fn a_server_that_grants_fewer_lanes_than_the_last_one_is_called_on_those() {
    let mut pair = pair_of_a_client_that_has_used_more_lanes();
    assert_eq!(pair.call(b"after"), 6);
    assert_eq!(pair.call(b"again"), 2);
    assert_eq!(pair.results, [b"after", b"again"]);
}

#[test]
fn calls_move_to_the_lanes_that_there_are_and_keep_their_names() {
    let mut pair = pair_of_a_client_that_has_used_more_lanes();
    let ids: Vec<CallId> = (0..20_u8)
        .map(|number| pair.start(&message(ORDER, 7, &[number])))
        .collect();
    let first = pair.poll_client().unwrap();
    pair.bring_to_server(&first);
    let reset = pair.take_from_server();
    pair.bring_to_client(&reset);
    assert!(pair.client.is_greeting());
    for id in &ids[..10] {
        assert_eq!(pair.client.cancel(*id), Some(0));
    }
    let hello = pair.take_from_client();
    pair.bring_to_server(&hello);
    let welcome = pair.take_from_server();
    pair.bring_to_client(&welcome);
    assert_eq!((pair.client.in_flight(), pair.failures.len()), (10, 0));
    for id in &ids[10..] {
        assert!(pair.client.next_timeout(*id).is_some());
    }
    assert_eq!(pair.client.cancel(ids[19]), Some(0));
    assert_eq!(pair.client.cancel(ids[19]), None);
    pair.settle(|_| true);
    let mut results = pair.results.concat();
    results.sort_unstable();
    assert_eq!(results, (10..19).collect::<Vec<u8>>());
    assert_eq!(pair.client.lanes_in_use(), 0);
}

#[test]
fn calls_that_there_are_no_lanes_for_any_more_are_told_so() {
    let mut pair = pair_of_a_client_that_has_used_more_lanes();
    for _ in 0..20 {
        pair.start(&message(ORDER, 7, b"at once"));
    }
    pair.settle(|_| true);
    let failure = Failure {
        reason: Reason::Overloaded,
        may_have_run: false,
    };
    assert_eq!(pair.failures, [failure; 4]);
    assert_eq!(pair.results.len(), 16);
}

#[test]
fn a_server_that_was_restarted_during_a_call_may_have_carried_it_out() {
    let mut pair = pair();
    pair.call(b"before");
    pair.start(&message(ORDER, 7, b"during"));
    let call = pair.take_from_client();
    assert!(pair.bring_to_server(&call).is_some());
    pair.now += Duration::from_millis(100);
    pair.server = server_of(ORDER, ServerLimits::default(), 4, pair.now);
    pair.pass_time();
    pair.settle(|_| true);
    let reason = Reason::Forgotten {
        was_restarted: true,
    };
    let may_have_run = true;
    assert_eq!(
        pair.failures,
        [Failure {
            reason,
            may_have_run
        }]
    );
    assert_eq!(pair.call(b"after"), 4, "a new conversation");
    assert_eq!(pair.results.len(), 2);
}

#[test]
fn a_conversation_that_was_idle_for_long_is_forgotten_and_begun_anew() {
    let mut pair = pair();
    pair.call(b"before");
    for _ in 0..10 {
        pair.now += Duration::from_secs(15);
        pair.server.handle_timeout(pair.now);
    }
    assert_eq!((pair.server.conversations(), pair.server.bytes()), (0, 0));
    assert_eq!(pair.server.poll_timeout(), None);
    assert_eq!(pair.call(b"after"), 6);
    assert_eq!(pair.results, [&b"before"[..], b"after"]);
}

#[test]
fn what_comes_from_another_address_is_not_carried_out() {
    let mut pair = pair();
    pair.call(b"before");
    pair.address.set_port(2000);
    pair.start(&message(ORDER, 7, b"moved"));
    let calls = pair.server.counters().calls;
    pair.settle(|_| true);
    assert_eq!(pair.server.counters().calls, calls);
    assert!(pair.failures[0].may_have_run, "neither end can know");
    assert_eq!(pair.call(b"after"), 4);
    assert_eq!(pair.results, [&b"before"[..], b"after"]);
}

#[test]
fn a_call_that_overtook_its_cancellation_is_not_carried_out() {
    let mut pair = pair();
    pair.call(b"warm up");
    let id = pair.start(&message(ORDER, 7, b"slow"));
    let call = pair.take_from_client();
    assert_eq!(pair.client.cancel(id), Some(0));
    assert_eq!(pair.client.cancel(id), None);
    assert_eq!(pair.settle(|_| true), 2);
    assert_eq!(pair.client.lanes_in_use(), 0);
    assert!(pair.bring_to_server(&call).is_none(), "it comes too late");
    assert_eq!(pair.call(b"next"), 2);
}

/// The server has heard it, and does not stop for it.
#[test]
fn a_cancellation_is_repeated_as_seldom_as_a_long_call_is_asked_for() {
    let mut pair = pair();
    pair.call(b"warm up");
    let id = pair.start(&message(ORDER, 7, b"long"));
    let call = pair.take_from_client();
    let began = pair.now;
    let key = pair.bring_to_server(&call).unwrap();
    pair.client.cancel(id);
    let mut packets = 0;
    while pair.now < began + Duration::from_secs(15) {
        packets += pair.settle(|_| true);
        pair.pass_time();
    }
    assert!(
        (20..80).contains(&packets),
        "{packets} packets in 15 seconds"
    );
    pair.answer(key, b"not waited for");
    pair.settle(|_| true);
    assert_eq!(pair.client.lanes_in_use(), 0);
}

#[test]
fn a_service_that_the_server_does_not_have() {
    let mut pair = pair();
    let other = std::sync::Arc::new(Interface {
        fingerprint: 5,
        parts: vec![part("point", 5, 0)],
        ..(*crate::exchange::support::known(5)).clone()
    });
    let service = pair.client.bind(&other, 7).unwrap();
    let call = outgoing(service, 7, pair.now);
    let mut request = message(ORDER, 7, b"");
    let id: CallId = pair.client.start(pair.now, &call, &mut request, 9).unwrap();
    for _ in 0..2 {
        let datagram = pair.take_from_client();
        assert!(pair.bring_to_server(&datagram).is_none());
        let datagram = pair.take_from_server();
        let Some(answer) = pair.client.handle_datagram(pair.now, &datagram) else {
            continue;
        };
        assert_eq!((answer.id, answer.waiter), (id, 9));
        let Err(ReplyError::Unbound(refusal)) = answer.outcome else {
            panic!("{:?}", answer.outcome);
        };
        assert!(refusal.to_string().contains("differ"), "{refusal}");
    }
    let refused = pair.client.bind(&other, 7);
    assert!(matches!(refused, Err(BindError::Refused(_))), "{refused:?}");
    assert_eq!(pair.server.counters().calls, 0);
}

#[test]
fn procedures_that_agree_are_called_although_the_versions_differ() {
    let mut pair = pair();
    let other = std::sync::Arc::new(Interface {
        fingerprint: 5,
        parts: vec![
            part("procedure MOVE", 2, 7),
            part("procedure STOP", 3, 8),
            part("procedure TURN", 2, 9),
        ],
        ..(*crate::exchange::support::known(5)).clone()
    });
    let service = pair.client.bind(&other, 7).unwrap();
    for (procedure, waiter) in [(7, 1), (8, 2), (7, 3)] {
        let call = outgoing(service, procedure, pair.now);
        let mut request = message(ORDER, procedure, b"abc");
        pair.client
            .start(pair.now, &call, &mut request, waiter)
            .unwrap();
    }
    let (mut ended, mut carried_out) = (Vec::new(), 0);
    for _ in 0..8 {
        while let Some(datagram) = pair.poll_client() {
            if let Some(key) = pair.bring_to_server(&datagram) {
                carried_out += 1;
                pair.answer(key, b"done");
            }
        }
        while let Some(datagram) = pair.poll_server() {
            if let Some(answer) = pair.client.handle_datagram(pair.now, &datagram) {
                ended.push((answer.waiter, answer.outcome.is_ok()));
            }
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, [(1, true), (2, false), (3, true)]);
    assert_eq!(carried_out, 2);
    assert!(pair.client.bind(&other, 7).unwrap() != service);
    for (procedure, why) in [
        (8, "procedure STOP differs"),
        (9, "it lacks procedure TURN"),
    ] {
        let refused = pair.client.bind(&other, procedure).unwrap_err();
        assert!(refused.to_string().ends_with(why), "{refused}");
    }
}

#[test]
fn procedure_0_and_a_server_that_stops() {
    let mut pair = pair();
    pair.start(&message(ORDER, 0, b""));
    assert_eq!(pair.settle(|_| true), 4);
    assert_eq!(pair.server.counters().pings, 1);
    pair.server.close();
    pair.start(&message(ORDER, 7, b"late"));
    let datagram = pair.take_from_client();
    assert!(pair.bring_to_server(&datagram).is_none());
    let datagram = pair.take_from_server();
    let answer = pair.client.handle_datagram(pair.now, &datagram).unwrap();
    let Err(ReplyError::Exception(exception)) = answer.outcome else {
        panic!("{:?}", answer.outcome);
    };
    assert_eq!(exception.status, Status::STOPPING);
}

#[test]
fn a_client_hears_that_an_idle_server_stops_and_greets_the_next_one() {
    let mut pair = pair();
    pair.call(b"before");
    pair.server.send_close(CloseRecipients::ToIdle);
    assert_eq!(pair.settle(|_| true), 1);
    pair.server = server_of(ORDER, ServerLimits::default(), 4, pair.now);
    assert_eq!(pair.call(b"after"), 4, "greeting, call, result");
    assert_eq!(pair.results, [&b"before"[..], b"after"]);
    assert!(pair.failures.is_empty());
}

#[test]
fn a_client_that_says_goodbye_is_forgotten_and_its_packets_begin_nothing_again() {
    let mut pair = pair();
    pair.start(&message(ORDER, 7, b"running"));
    let (call, key) = loop {
        if let Some(datagram) = pair.poll_client()
            && let Some(key) = pair.bring_to_server(&datagram)
        {
            break (datagram, key);
        }
        while let Some(datagram) = pair.poll_server() {
            pair.bring_to_client(&datagram);
        }
    };
    let conversation = u64::from_be_bytes(call[8..16].try_into().unwrap());
    let mut goodbye = Buffer::default();
    assert!(pair.client.send_close(&mut goodbye));
    let expected = packet((9, 0, conversation, 0, 0, 0, 0, 0), &[]);
    assert_eq!(goodbye.as_slice(), expected);
    assert!(!pair.client.send_close(&mut goodbye), "once");
    // What is malformed, or of another conversation, changes nothing.
    for (fields, body) in [
        ((9, 0, conversation, 0, 0, 0, 0, 1), &[][..]),
        ((9, 0, conversation, 0, 0, 0, 0, 0), &[&[0; 8][..]][..]),
        ((9, 0, conversation + 1, 0, 0, 0, 0, 0), &[][..]),
    ] {
        assert!(pair.bring_to_server(&packet(fields, body)).is_none());
        assert_eq!(pair.server.conversations(), 1);
    }
    assert!(pair.bring_to_server(&expected).is_none());
    assert_eq!(pair.server.conversations(), 0);
    assert_eq!(pair.server.poll_event(), Some(ServerEvent::Cancelled(key)));
    // The call, whose cookie is still one, comes again.
    assert!(pair.bring_to_server(&call).is_none());
    assert_eq!(pair.server.conversations(), 0);
    assert_eq!(pair.server.counters().calls, 1);
}

#[test]
fn answers_that_are_there_come_before_the_goodbye() {
    let mut pair = pair();
    pair.call(b"warm up");
    pair.start(&message(ORDER, 7, b"the last"));
    let call = pair.take_from_client();
    let key = pair.bring_to_server(&call).unwrap();
    pair.server.send_close(CloseRecipients::ToIdle);
    assert_eq!(pair.poll_server(), None, "its client waits for the answer");
    pair.answer(key, b"done");
    pair.server.send_close(CloseRecipients::ToAll);
    assert_eq!(pair.settle(|_| true), 2);
    assert_eq!(pair.results.last().unwrap(), b"done");
    assert!(pair.failures.is_empty());
}

#[test]
fn a_goodbye_of_another_conversation_or_with_a_wrong_length_changes_nothing() {
    let mut pair = pair();
    pair.call(b"warm up");
    pair.start(&message(ORDER, 7, b"slow"));
    let call = pair.take_from_client();
    pair.bring_to_server(&call).unwrap();
    let conversation = u64::from_be_bytes(call[8..16].try_into().unwrap());
    let other = packet((9, 0, conversation ^ 1, 0, 0, 0, 3, 0), &[]);
    let short = packet((9, 0, conversation, 0, 0, 0, 3, 1), &[&[0; 7]]);
    let lies = packet((9, 0, conversation, 0, 0, 0, 3, 2), &[&[0; 8]]);
    for goodbye in [other, short, lies] {
        pair.bring_to_client(&goodbye);
        assert!(pair.failures.is_empty());
    }
    let nothing_begun = packet((9, 0, conversation, 0, 0, 0, 3, 0), &[]);
    pair.bring_to_client(&nothing_begun);
    assert!(pair.failures.is_empty());
    pair.server = server_of(ORDER, ServerLimits::default(), 4, pair.now);
    assert_eq!(pair.settle(|_| true), 4, "greeting, call, result");
    assert_eq!(pair.results.last().unwrap(), b"slow");
}

#[test]
fn of_more_calls_than_a_goodbye_names_all_may_have_been_carried_out() {
    let mut pair = pair();
    pair.call(b"warm up");
    pair.start(&message(ORDER, 7, b"slow"));
    let call = pair.take_from_client();
    let conversation = u64::from_be_bytes(call[8..16].try_into().unwrap());
    let others = packet((9, 0, conversation, 0, 0, 0, 3, 129), &[&[7; 8 * 128]]);
    pair.bring_to_client(&others);
    assert!(pair.failures[0].may_have_run);
}

#[test]
fn a_request_that_there_is_no_room_for_is_refused_and_not_carried_out() {
    let limits = ServerLimits {
        bytes_of_conversation: 20_000,
        ..ServerLimits::default()
    };
    let mut pair = Pair::with_limits(ORDER, ORDER, limits);
    pair.call(b"warm up");
    pair.start(&message(ORDER, 7, &[1; 60_000]));
    pair.settle(|_| true);
    let failure = Failure {
        reason: Reason::Overloaded,
        may_have_run: false,
    };
    assert_eq!(pair.failures, [failure]);
    assert!(pair.server.bytes() < 100);
    assert_eq!(pair.call(b"small"), 2);
    assert!(pair.client.poll_event().is_none());
}
