//! Packets that go out together arrive one by one or together, as they were, whatever the system knows.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon_net::{Address, Carrier, PacketTrain, ReceivedTrain};

const PATIENCE: Duration = Duration::from_secs(60);

/// Packets that are sent together: how many of which length, and the length of one behind them.
const TRAINS: [(usize, usize, usize); 7] = [
    (1, 1448, 0),
    (2, 1448, 0),
    (44, 1448, 100),
    (64, 40, 39),
    // More than one datagram holds.
    (3, 40_000, 1),
    // More than any system takes as one.
    (200, 10, 0),
    // As before: what was refused goes on being sent otherwise.
    (10, 1448, 1447),
];

struct Ends {
    server: Carrier,
    client: Carrier,
}

impl Ends {
    fn new() -> Self {
        let server = Carrier::bind(&"udp://127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.address().unwrap();
        let client = Carrier::connect(&address, Instant::now() + PATIENCE).unwrap();
        Self { server, client }
    }
}

/// A train whose packets differ.
fn bytes(count: usize, size: usize, rest: usize) -> Vec<u8> {
    let packets = (0..=count).map(|index| {
        let length = if index < count { size } else { rest };
        vec![index as u8; length]
    });
    packets.flatten().collect()
}

/// Takes what came apart, and says how many packets it was.
fn take_apart(room: &[u8], came: ReceivedTrain, whole: &mut Vec<u8>, size: usize) -> usize {
    let packets = room[..came.length].chunks(came.size);
    for packet in packets.clone() {
        assert!(packet.len() <= size);
        assert!(
            packet.iter().all(|byte| *byte == packet[0]),
            "a packet is cut where it was joined"
        );
    }
    whole.extend_from_slice(&room[..came.length]);
    packets.len()
}

/// Sends all of a train, which may take several attempts.
fn send(mut train: PacketTrain<'_>, mut attempt: impl FnMut(PacketTrain<'_>) -> usize) {
    while !train.bytes.is_empty() {
        let sent = attempt(train);
        assert!(sent.is_multiple_of(train.size) || sent == train.bytes.len());
        train = train.behind(sent);
    }
}

/// Sends every train from the client to the server and back; says how many receives that took.
fn exchange_trains(expects: bool) -> usize {
    let ends = Ends::new();
    let mut room = vec![0; Carrier::RECEIVE_MAX];
    let mut receives = 0;
    for (count, size, rest) in TRAINS {
        let expected = bytes(count, size, rest);
        let packets = count + usize::from(rest > 0);
        let train = PacketTrain {
            bytes: &expected,
            size,
            message_packets: 1,
        };
        if expects {
            ends.server.expect_train(size);
            ends.client.expect_train(size);
        }
        send(train, |train| ends.client.try_send(train).unwrap());
        let (mut whole, mut found, mut from) = (Vec::new(), 0, None::<SocketAddr>);
        while found < packets {
            let (came, sender) = ends.server.recv_from_within(&mut room, PATIENCE).unwrap();
            assert!(from.is_none_or(|from| from == sender));
            from = Some(sender);
            found += take_apart(&room, came, &mut whole, size);
            receives += 1;
        }
        assert_eq!(whole, expected);
        let to = from.unwrap();
        send(train, |train| ends.server.try_send_to(train, to).unwrap());
        let (mut whole, mut found) = (Vec::new(), 0);
        while found < packets {
            let until = Instant::now() + PATIENCE;
            let came = ends.client.recv_until(&mut room, until.into()).unwrap();
            found += take_apart(&room, came, &mut whole, size);
            receives += 1;
        }
        assert_eq!(whole, expected);
    }
    receives
}

#[test]
fn trains_arrive_packet_by_packet_where_none_is_expected() {
    let packets = TRAINS.map(|(count, _, rest)| count + usize::from(rest > 0));
    assert_eq!(exchange_trains(false), 2 * packets.iter().sum::<usize>());
}

/// Linux hands over together what it was given together, if it is another process of the same machine.
#[test]
fn trains_arrive_together_where_they_are_expected() {
    let single = exchange_trains(false);
    let together = exchange_trains(true);
    // Those behind the one that is refused go out one by one, from the client.
    assert!(
        together < single - 2 * (2 + 45 + 65 - 4),
        "{together} of {single}"
    );
}

/// Linux sends nothing to port 0, and says so as it says that it cannot cut on some way.
#[test]
fn what_is_refused_on_the_way_to_one_peer_is_not_refused_to_others() {
    let ends = Ends::new();
    let bytes = bytes(10, 1448, 0);
    let train = PacketTrain {
        bytes: &bytes,
        size: 1448,
        message_packets: 1,
    };
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    ends.server.try_send_to(train, nowhere).unwrap_err();

    let mut room = vec![0; Carrier::RECEIVE_MAX];
    ends.client.expect_train(1448);
    ends.client.try_send(PacketTrain::one(b"here")).unwrap();
    let (_, to) = ends.server.recv_from_within(&mut room, PATIENCE).unwrap();
    assert_eq!(ends.server.try_send_to(train, to).unwrap(), bytes.len());
    let until = Instant::now() + PATIENCE;
    let came = ends.client.recv_until(&mut room, until.into()).unwrap();
    assert_eq!((came.length, came.size), (bytes.len(), 1448));
}

#[test]
fn a_train_that_nobody_waits_for_leaves_the_next_receive_what_it_was() {
    let ends = Ends::new();
    ends.server.expect_train(1448);
    let mut room = vec![0; Carrier::RECEIVE_MAX];
    for round in 0..600_usize {
        let packet = vec![round as u8; 100 + round];
        ends.client.try_send(PacketTrain::one(&packet)).unwrap();
        let (came, _) = ends.server.recv_from_within(&mut room, PATIENCE).unwrap();
        assert_eq!(came, ReceivedTrain::one(packet.len()));
        assert_eq!(room[..came.length], packet);
    }
    let nothing = ends.server.try_recv_from(&mut room).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn an_address_of_packets_is_one_of_udp() {
    let tcp: Address = "tcp://127.0.0.1:1".parse().unwrap();
    assert!(Carrier::connect(&tcp, Instant::now() + PATIENCE).is_err());
    assert!(Carrier::bind(&tcp).is_err());
}
