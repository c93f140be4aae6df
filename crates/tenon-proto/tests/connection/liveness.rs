//! When a peer is asked whether it is there, and when it is given up.

use std::time::{Duration, Instant};

use tenon_proto::config::{ConnectionConfig, PingConfig};
use tenon_proto::connection::{PeerSilence, WireProtocol};
use tenon_proto::lean::ByteOrder;

use crate::pair::{Pair, SECOND, client_config, known, server_config};

const INTERVAL: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(20);
const PROTOCOLS: [WireProtocol; 2] = [WireProtocol::Onc, WireProtocol::Lean];

/// Two ends that have heard of each other, of which the client asks after an interval, from its `now` on.
fn pair(protocol: WireProtocol, when_idle: bool) -> Pair {
    let order = ByteOrder::NATIVE;
    let client = ConnectionConfig {
        pings: PingConfig {
            lean_interval: Some(INTERVAL),
            onc_interval: Some(INTERVAL),
            timeout: TIMEOUT,
            when_idle,
        },
        ..client_config(order)
    };
    let mut pair = Pair::new(protocol, client, server_config(order));
    pair.client.connection.ping_by(300, 5);
    pair.client.receiver = pair.client.connection.renew(pair.now);
    assert!(pair.serve().is_empty());
    hear(&mut pair);
    pair
}

fn call(pair: &mut Pair, protocol: WireProtocol, waiter: &'static str) -> u32 {
    match protocol {
        WireProtocol::Onc => pair.call_onc(b"", waiter).number,
        WireProtocol::Lean => pair.call(&known(5), 1, b"", waiter).number,
    }
}

/// Brings what the server says to the client, which notes that something has come.
fn hear(pair: &mut Pair) -> Vec<String> {
    let told = pair.take_answers();
    pair.client.connection.note_heard();
    told
}

/// What the client does when so much time has passed; returns whether it asks.
fn asks(pair: &mut Pair, at: Instant) -> Result<bool, PeerSilence> {
    pair.client.connection.handle_silence(at)?;
    Ok(pair.client.connection.has_transmit())
}

#[test]
fn a_silent_peer_is_asked_and_then_given_up() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, false);
        let now = pair.now;
        call(&mut pair, protocol, "waits");
        assert_eq!(pair.serve().len(), 1);
        // What was heard before the first look counts from then on.
        assert_eq!(asks(&mut pair, now), Ok(false));
        let due = now + INTERVAL;
        assert_eq!(pair.client.connection.silence_timeout(), Some(due));
        assert_eq!(asks(&mut pair, due - SECOND), Ok(false));
        // The call was started behind the look before.
        pair.client.connection.note_silence(now);
        assert_eq!(asks(&mut pair, due), Ok(true), "{protocol:?}");
        assert!(pair.serve().is_empty(), "no service sees it");
        assert_eq!(pair.server.connection.incoming_counters().pings, 1);
        let late = due + TIMEOUT;
        assert_eq!(pair.client.connection.silence_timeout(), Some(late));
        assert_eq!(asks(&mut pair, late - SECOND), Ok(false));
        let given_up = PeerSilence::NoPong(TIMEOUT);
        assert_eq!(asks(&mut pair, late), Err(given_up));
        assert_eq!(given_up.to_string(), "no reply to a ping for 20s");
        pair.abandon_all();
        assert_eq!(pair.client.connection.silence_timeout(), None);
    }
}

#[test]
fn a_call_that_waited_at_the_last_look_has_its_peer_asked_at_the_next() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, false);
        let now = pair.now;
        call(&mut pair, protocol, "waits");
        pair.serve();
        assert_eq!(asks(&mut pair, now), Ok(false));
        assert_eq!(asks(&mut pair, now + INTERVAL), Ok(true));
    }
}

#[test]
fn a_call_that_has_just_begun_has_nothing_asked() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, false);
        let now = pair.now;
        let hour = now + 3600 * SECOND;
        assert_eq!(asks(&mut pair, now), Ok(false));
        assert_eq!(pair.client.connection.silence_timeout(), None);
        call(&mut pair, protocol, "waits");
        pair.serve();
        // Nothing was looked after for an hour.
        assert!(pair.client.connection.silence_timeout().unwrap() < hour);
        assert_eq!(asks(&mut pair, hour), Ok(false));
        let next = pair.client.connection.silence_timeout();
        assert_eq!(next, Some(hour + INTERVAL));
        assert_eq!(asks(&mut pair, hour + INTERVAL), Ok(true));
    }
}

#[test]
fn whatever_is_received_is_an_answer() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, false);
        let mut now = pair.now;
        call(&mut pair, protocol, "waits");
        pair.serve();
        assert_eq!(asks(&mut pair, now), Ok(false));
        for round in 0..3 {
            now += INTERVAL;
            assert_eq!(asks(&mut pair, now), Ok(true));
            pair.serve();
            if round == 1 {
                // A part of something long.
                pair.client.connection.note_heard();
            } else {
                let told = hear(&mut pair);
                // The pong of the second round comes with that of the third. By ONC RPC the answers are to calls that no
                // caller knows.
                let pongs = if round == 2 { 2 } else { 1 };
                let is_lean = protocol == WireProtocol::Lean;
                assert_eq!(told.len(), if is_lean { pongs } else { 0 });
            }
            now += INTERVAL;
            assert_eq!(pair.client.connection.silence_timeout(), Some(now));
            assert_eq!(asks(&mut pair, now), Ok(false));
            assert_eq!(pair.client.connection.in_flight(), 1);
        }
        // The pong of the second round has come late, and is no unknown reply.
        assert_eq!(pair.client.connection.outgoing_counters().unmatched, 0);
    }
}

#[test]
fn an_idle_peer_is_asked_only_if_that_is_wanted() {
    for protocol in PROTOCOLS {
        for when_idle in [false, true] {
            let mut pair = pair(protocol, when_idle);
            let now = pair.now;
            assert_eq!(asks(&mut pair, now), Ok(false));
            let timeout = pair.client.connection.silence_timeout();
            assert_eq!(timeout, when_idle.then_some(now + INTERVAL));
            assert_eq!(asks(&mut pair, now + INTERVAL), Ok(when_idle));
        }
    }
}

/// Starts a call and lets its time run out.
fn run_out(pair: &mut Pair, protocol: WireProtocol) {
    let number = call(pair, protocol, "late");
    pair.serve();
    pair.now += SECOND;
    let late = pair.client.connection.handle_call_timeout(number, pair.now);
    assert!(late.is_some());
    pair.client.transmit_all();
}

#[test]
fn three_late_calls_in_a_row_are_enough_if_they_take_long() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol, false);
        run_out(&mut pair, protocol);
        let first = pair.now;
        pair.now = first + TIMEOUT - 3 * SECOND;
        run_out(&mut pair, protocol);
        assert_eq!(asks(&mut pair, first + TIMEOUT), Ok(false));
        run_out(&mut pair, protocol);
        assert!(pair.now < first + TIMEOUT);
        let now = pair.now;
        assert_eq!(asks(&mut pair, now), Ok(false), "it is not long enough");
        let late = PeerSilence::LateCalls {
            calls: 3,
            silence: TIMEOUT,
        };
        assert_eq!(asks(&mut pair, first + TIMEOUT), Err(late));
    }
}

#[test]
fn late_calls_say_nothing_if_something_comes_or_an_older_call_waits() {
    for protocol in PROTOCOLS {
        let mut heard = pair(protocol, false);
        for _ in 0..10 {
            for _ in 0..2 {
                run_out(&mut heard, protocol);
            }
            heard.client.connection.note_heard();
        }
        let now = heard.now;
        assert_eq!(asks(&mut heard, now + TIMEOUT), Ok(false));

        let mut older = pair(protocol, false);
        let number = call(&mut older, protocol, "older");
        older.serve();
        for _ in 0..40 {
            run_out(&mut older, protocol);
        }
        let now = older.now;
        assert!(asks(&mut older, now).is_ok());
        older.client.connection.cancel_call(number);
        assert!(asks(&mut older, now).is_err());
    }
}

#[test]
fn a_client_that_waits_for_a_new_servers_preamble_asks() {
    let mut pair = pair(WireProtocol::Lean, false);
    call(&mut pair, WireProtocol::Lean, "lost");
    pair.serve();
    pair.abandon_all();
    let now = pair.now;
    pair.client.receiver = pair.client.connection.renew(now);
    let silence = pair.client.connection.silence_timeout();
    assert_eq!(silence, Some(now + INTERVAL));
    pair.client.transmit_all();
    assert_eq!(asks(&mut pair, now), Ok(false));
    assert_eq!(asks(&mut pair, now + INTERVAL), Ok(true));
    let late = now + INTERVAL + TIMEOUT;
    assert!(asks(&mut pair, late).is_err());
}
