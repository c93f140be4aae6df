//! The kernel's time stamps of datagrams: in order, each of its own datagram, and none unless they were asked for.
#![cfg(all(target_os = "linux", not(tenon_portable)))]
#![allow(clippy::unwrap_used)]

use std::io;
use std::time::{Duration, Instant, SystemTime};

use tenon_net::{Carrier, FollowedPackets, PacketCosts, PacketStamps, PacketTrain};

const PATIENCE: Duration = Duration::from_secs(60);

fn ends(host: &str) -> (Carrier, Carrier) {
    let server = Carrier::bind(&format!("udp://{host}:0").parse().unwrap()).unwrap();
    let address = server.address().unwrap();
    let client = Carrier::connect(&address, Instant::now() + PATIENCE).unwrap();
    (client, server)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_nanos() as u64
}

/// Sends a datagram there, and another one back.
fn exchange(client: &Carrier, server: &Carrier, byte: u8) {
    let mut room = [0; 2048];
    client.try_send(PacketTrain::one(&[byte; 40])).unwrap();
    let (came, from) = server.recv_from_within(&mut room, PATIENCE).unwrap();
    assert_eq!(room[..came.length], [byte; 40]);
    server
        .try_send_to(PacketTrain::one(&[byte + 1; 20]), from)
        .unwrap();
    let until = (Instant::now() + PATIENCE).into();
    let came = client.recv_until(&mut room, until).unwrap();
    assert_eq!(room[..came.length], [byte + 1; 20]);
}

/// Exchanges datagrams until the kernel stamps those that this end receives, which it begins with in its own time.
fn begin_stamping(client: &Carrier, server: &Carrier, end: &Carrier) {
    let until = Instant::now() + PATIENCE;
    while end.received_stamp().is_none() {
        assert!(Instant::now() < until, "there are no stamps");
        exchange(client, server, 0);
    }
    end.take_sent_stamps();
}

#[test]
fn the_times_of_both_ends_are_in_order() {
    for host in ["127.0.0.1", "[::1]"] {
        let (client, server) = ends(host);
        client.follow_packets(FollowedPackets::All).unwrap();
        server.follow_packets(FollowedPackets::Received).unwrap();
        begin_stamping(&client, &server, &client);
        begin_stamping(&client, &server, &server);
        // More than a socket waits for before it no longer expects several datagrams at once.
        for round in 0..300 {
            let before = now();
            exchange(&client, &server, (round % 200) as u8);
            let after = now();
            let sent = client.take_stamps();
            let came = server.received_stamp().unwrap();
            let times = [
                before,
                sent.scheduled.unwrap(),
                sent.transmitted.unwrap(),
                came,
                sent.received.unwrap(),
                after,
            ];
            assert!(times.is_sorted(), "{host}, {round}: {times:?}");
        }
    }
}

#[test]
fn what_is_sent_is_stamped_while_that_is_wanted_and_each_is_told_once() {
    let (client, server) = ends("127.0.0.1");
    exchange(&client, &server, 1);
    assert_eq!(client.take_stamps(), PacketStamps::default());
    server.follow_packets(FollowedPackets::Received).unwrap();
    begin_stamping(&client, &server, &server);
    server.follow_packets(FollowedPackets::All).unwrap();
    exchange(&client, &server, 2);
    server.follow_packets(FollowedPackets::Received).unwrap();
    let sent = server.take_sent_stamps();
    assert!(sent.scheduled.unwrap() <= sent.transmitted.unwrap());
    exchange(&client, &server, 3);
    assert_eq!(server.take_sent_stamps(), PacketStamps::default());
    // What was sent behind the datagram that was received last is not what that one answers.
    client.follow_packets(FollowedPackets::All).unwrap();
    begin_stamping(&client, &server, &client);
    exchange(&client, &server, 4);
    client.try_send(PacketTrain::one(&[9; 9])).unwrap();
    let stamps = client.take_stamps();
    assert!(stamps.transmitted.unwrap() <= stamps.received.unwrap());
    assert_eq!(client.take_stamps().transmitted, None);
    client.follow_packets(FollowedPackets::None).unwrap();
    let mut room = [0; 2048];
    let (behind, _) = server.recv_from_within(&mut room, PATIENCE).unwrap();
    assert_eq!(behind.length, 9);
    exchange(&client, &server, 5);
    assert_eq!(client.take_stamps(), PacketStamps::default());
}

#[test]
fn trains_still_come_together_or_one_by_one() {
    let (client, server) = ends("127.0.0.1");
    server.follow_packets(FollowedPackets::Received).unwrap();
    begin_stamping(&client, &server, &server);
    server.expect_train(100);
    let bytes: Vec<u8> = (0..250).map(|byte| byte as u8).collect();
    let train = PacketTrain {
        bytes: &bytes,
        size: 100,
        message_packets: 1,
    };
    assert_eq!(client.try_send(train).unwrap(), bytes.len());
    let mut room = vec![0; Carrier::RECEIVE_MAX];
    let mut got: Vec<u8> = Vec::new();
    while got.len() < bytes.len() {
        let (came, _) = server.recv_from_within(&mut room, PATIENCE).unwrap();
        got.extend(came.packets(&room).flatten());
        assert!(server.received_stamp().is_some());
    }
    assert_eq!(got, bytes);
}

#[test]
fn what_has_no_stamps_is_measured() {
    let costs = PacketCosts::measure(100).unwrap();
    assert!(costs.system_call > 0, "{costs:?}");
    // A datagram that no socket sends.
    let error = PacketCosts::measure(100_000).unwrap_err();
    assert_ne!(error.kind(), io::ErrorKind::Unsupported);
}
