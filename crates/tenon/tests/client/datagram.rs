//! The client against a peer made by hand, over UDP: datagrams get lost, come twice, come late,
//! and anybody may send one.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::onc_peer::{
    PATIENCE, Peer, bounded, call_raw, receive_call, start, success, words,
};
use tenon::{CallError, ChannelOptions, Client};

const SOON: Duration = Duration::from_millis(30);

/// The procedure that ends the peer's script.
const STOP: u32 = u32::MAX;

/// A client that sends again soon.
fn eager(peer: &Peer) -> Client {
    peer.client_with(ChannelOptions::default().retransmission(SOON, SOON * 2))
}

/// Answers every call with its own arguments until [`STOP`] comes.
fn echo(socket: &UdpSocket) {
    loop {
        let (call, from) = receive_call(socket).unwrap();
        let reply = success(call.xid, &call.arguments);
        socket.send_to(&reply, from).unwrap();
        if call.procedure == STOP {
            return;
        }
    }
}

fn stop(client: &Client) {
    call_raw(client, STOP, &[]).unwrap();
}

#[test]
fn a_lost_call_is_sent_again_with_the_same_xid() {
    let peer = Peer::udp(|socket| {
        let (first, _) = receive_call(&socket).unwrap();
        let (second, _) = receive_call(&socket).unwrap();
        let (third, from) = receive_call(&socket).unwrap();
        assert_eq!([first.xid, first.xid], [second.xid, third.xid]);
        assert_eq!(first.arguments, third.arguments);
        let reply = success(third.xid, &third.arguments);
        socket.send_to(&reply, from).unwrap();
    });
    let client = eager(&peer);
    assert_eq!(start(&client, 7).wait().unwrap(), 7);
    assert!(client.channel().counters().calls.retransmissions >= 2);
    peer.join();
}

#[test]
fn a_call_may_be_sent_again_never_or_at_once() {
    let silence = Duration::from_millis(20);
    for pause in [Duration::MAX, Duration::ZERO] {
        let peer = Peer::udp(move |socket| {
            let (call, from) = receive_call(&socket).unwrap();
            thread::sleep(silence);
            socket
                .send_to(&success(call.xid, &call.arguments), from)
                .unwrap();
        });
        let client = peer.client_with(ChannelOptions::default().retransmission(pause, pause));
        let begin = Instant::now();
        assert_eq!(start(&client, 7).wait().unwrap(), 7);
        let again = client.channel().counters().calls.retransmissions;
        let most = match pause.is_zero() {
            true => begin.elapsed().as_millis(),
            false => 0,
        };
        assert!(u128::from(again) <= most, "{again} times");
        peer.join();
    }
}

#[test]
fn replies_that_come_twice_or_late_or_are_garbage_are_nobodys() {
    let peer = Peer::udp(|socket| {
        let (late, from) = receive_call(&socket).unwrap();
        let (call, _) = receive_call(&socket).unwrap();
        let send = |bytes: &[u8]| socket.send_to(bytes, from).unwrap();
        send(&success(late.xid, &late.arguments));
        send(&[]);
        send(&[1, 2, 3]);
        send(&words(&[call.xid, 1, 7]));
        send(&success(call.xid, &call.arguments));
        send(&success(call.xid, &words(&[666])));
        echo(&socket);
    });
    // Nothing is sent again, however long the peer takes.
    let client = peer.client_with(ChannelOptions::default().retransmission(PATIENCE, PATIENCE));
    start(&client.with_timeout(SOON), 1).wait().unwrap_err();
    assert_eq!(start(&client, 2).wait().unwrap(), 2);
    assert_eq!(start(&client, 3).wait().unwrap(), 3);
    let counters = client.channel().counters();
    assert_eq!(counters.calls.violations, 3);
    assert_eq!(counters.calls.unmatched, 2);
    stop(&client);
    peer.join();
}

#[test]
fn tickets_and_threads_share_a_socket() {
    bounded(|| {
        let peer = Peer::udp(|socket| echo(&socket));
        let client = peer.client();
        thread::scope(|scope| {
            for thread in 0..8_u32 {
                let client = &client;
                scope.spawn(move || {
                    for number in 0..100 {
                        let token = thread << 16 | number;
                        let other = start(client, token + 1_000_000);
                        assert_eq!(start(client, token).wait().unwrap(), token);
                        assert_eq!(other.wait().unwrap(), token + 1_000_000);
                    }
                });
            }
        });
        assert_eq!(client.channel().counters().in_flight, 0);
        stop(&client);
        peer.join();
    });
}

#[test]
fn who_sleeps_sends_again_too() {
    bounded(|| {
        let peer = Peer::udp(|socket| {
            let (slow, from) = receive_call(&socket).unwrap();
            // What the other thread sends first is lost.
            let mut seen = Vec::new();
            let call = loop {
                let (call, _) = receive_call(&socket).unwrap();
                if call.xid != slow.xid && seen.contains(&call.xid) {
                    break call;
                }
                seen.push(call.xid);
            };
            for call in [call, slow] {
                let reply = success(call.xid, &call.arguments);
                socket.send_to(&reply, from).unwrap();
            }
        });
        let client = eager(&peer);
        thread::scope(|scope| {
            let (slow, quick) = (start(&client, 1), start(&client, 2));
            scope.spawn(|| assert_eq!(slow.wait().unwrap(), 1));
            scope.spawn(|| assert_eq!(quick.wait().unwrap(), 2));
        });
        peer.join();
    });
}

#[test]
fn the_deadline_ends_it() {
    let peer = Peer::udp(|socket| {
        receive_call(&socket).unwrap();
    });
    let client = peer.client().with_timeout(SOON);
    let error = start(&client, 1).wait().unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    peer.join();
}

#[test]
fn a_closed_port_is_reported_and_a_later_call_gets_through() {
    let peer = Peer::udp(drop);
    let client = peer.client();
    let address = peer.address["udp://".len()..].to_owned();
    peer.join();
    let error = start(&client, 1).wait().unwrap_err();
    assert!(matches!(error, CallError::Disconnected { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!(
            "nothing listens at the peer's port: udp://{address}: Connection refused"
        )),
        "{text}"
    );
    // The kernel does not say which datagram it was that met the closed port.
    assert!(error.may_have_executed());

    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let again = thread::spawn(move || echo(&socket));
    assert_eq!(start(&client, 2).wait().unwrap(), 2);
    stop(&client);
    again.join().unwrap();
}

#[test]
fn what_no_datagram_carries_is_refused_before_it_is_sent() {
    let peer = Peer::udp(|socket| echo(&socket));
    let client = peer.client();
    let fits = 65_507 - 40;
    let error = call_raw(&client, 1, &vec![0; fits + 1]).unwrap_err();
    assert!(!error.may_have_executed());
    let text = error.to_string();
    assert!(text.contains("limit of 65507"), "{text}");
    assert!(text.contains("use a stream"), "{text}");
    // The reply's header is shorter, so what can be sent can come back.
    let most = vec![6; fits];
    assert!(call_raw(&client, 1, &most).unwrap() == most);
    stop(&client);
    peer.join();
}

#[test]
fn what_came_before_a_refusal_still_counts() {
    let peer = Peer::udp(|socket| {
        let (answered, from) = receive_call(&socket).unwrap();
        receive_call(&socket).unwrap();
        let reply = success(answered.xid, &answered.arguments);
        socket.send_to(&reply, from).unwrap();
    });
    let client = eager(&peer);
    let (answered, unanswered) = (start(&client, 1), start(&client, 2));
    peer.join();
    // The kernel tells of the closed port before it hands out the reply that came earlier.
    let refused = start(&client, 3);
    assert_eq!(answered.wait().unwrap(), 1);
    for call in [unanswered, refused] {
        let error = call.wait().unwrap_err();
        assert!(matches!(error, CallError::Disconnected { .. }), "{error}");
    }
}
