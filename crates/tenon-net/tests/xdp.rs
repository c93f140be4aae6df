//! Packets past the kernel, as a carrier has them, between two networks that the test makes.

#![allow(clippy::unwrap_used)]

#[path = "../../tenon-xdp/tests/common/pair.rs"]
mod pair;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use pair::Pair;
use tenon_net::{Address, Carrier, PacketTrain, Ready, Transport};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A client and a server that know each other; none where that is not allowed.
fn ends(test: &str) -> Option<(Pair, Carrier, Carrier, SocketAddr)> {
    let pair = Pair::make(test)?;
    let anywhere: Address = format!("xdp://{}:0", pair.server_at).parse().unwrap();
    let server = pair.in_server(|| Carrier::bind(&anywhere).unwrap());
    let address = server.address().unwrap();
    assert!(!address.to_string().ends_with(":0"));
    assert!(address.to_string().starts_with("xdp://198.18."));
    let client = pair.in_client(|| Carrier::connect(&address, soon()).unwrap());
    client.try_send(PacketTrain::one(b"hello")).unwrap();
    let (came, from) = receive(&server);
    assert_eq!(came, b"hello");
    assert_eq!(from.ip(), pair.client_at);
    server.try_send_to(PacketTrain::one(b"you"), from).unwrap();
    let mut room = [0; 100];
    assert_eq!(
        client.recv_until(&mut room, soon().into()).unwrap().length,
        3
    );
    Some((pair, client, server, from))
}

/// The next packet that comes to a server, and whose it is.
fn receive(server: &Carrier) -> (Vec<u8>, SocketAddr) {
    let mut room = vec![0; Carrier::RECEIVE_MAX];
    let (came, from) = server
        .recv_from_within(&mut room, Duration::from_secs(60))
        .unwrap();
    (room[..came.length].to_vec(), from)
}

#[test]
fn trains_arrive_packet_by_packet() {
    let Some((_pair, client, server, peer)) = ends("trains_arrive_packet_by_packet") else {
        return;
    };
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n / 1000) as u8).collect();
    let train = PacketTrain {
        bytes: &bytes,
        size: 1448,
        message_packets: 1,
    };
    let mut room = vec![0; Carrier::RECEIVE_MAX];
    assert_eq!(client.try_send(train).unwrap(), bytes.len());
    for packet in train.packets() {
        assert_eq!(receive(&server).0, packet);
    }
    assert_eq!(server.try_send_to(train, peer).unwrap(), bytes.len());
    for packet in train.packets() {
        let came = client.recv_until(&mut room, soon().into()).unwrap();
        assert_eq!(&room[..came.length], packet);
    }
    // A long message goes in one piece; its packets come one by one until several are expected.
    let long = PacketTrain {
        bytes: &bytes[..65_000],
        message_packets: 45,
        ..train
    };
    for expects in [false, true] {
        if expects {
            client.expect_train(1448);
        }
        assert_eq!(server.try_send_to(long, peer).unwrap(), 65_000);
        let mut all = Vec::new();
        while all.len() < long.bytes.len() {
            let came = client.recv_until(&mut room, soon().into()).unwrap();
            assert_eq!(came.length > came.size, expects);
            for packet in came.packets(&room) {
                all.extend_from_slice(packet);
            }
        }
        assert_eq!(all, long.bytes);
    }
    // More than finds room: what was sent is whole packets, and the rest may be sent later.
    let long = vec![7; 3000 * 1000];
    let sent = client.try_send(PacketTrain {
        bytes: &long,
        size: 1000,
        message_packets: 1,
    });
    assert!(sent.unwrap().is_multiple_of(1000));
}

#[test]
fn waiting_ends_at_the_deadline_and_by_a_shutdown() {
    let Some((_pair, client, server, _)) = ends("waiting_ends_at_the_deadline_and_by_a_shutdown")
    else {
        return;
    };
    let mut room = [0; 100];
    let behind = client.recv_until(&mut room, Instant::now().into());
    assert_eq!(behind.unwrap_err().kind(), ErrorKind::TimedOut);
    let short = server.recv_from_within(&mut room, Duration::from_millis(5));
    assert_eq!(short.unwrap_err().kind(), ErrorKind::WouldBlock);
    let readable = Ready {
        readable: true,
        writable: false,
    };
    let in_vain = client.wait(readable, Instant::now() + Duration::from_millis(5));
    assert_eq!(in_vain.unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(client.wait(Ready::WRITABLE, soon()).unwrap().writable);
    let behind = client.wait(Ready::WRITABLE, Instant::now());
    assert_eq!(behind.unwrap_err().kind(), ErrorKind::TimedOut);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| client.recv_until(&mut [0; 100], soon().into()));
        client.shutdown().unwrap();
        assert_eq!(sleeper.join().unwrap().unwrap().length, 0);
    });
}

#[test]
fn what_is_there_comes_even_behind_the_deadline() {
    let Some((_pair, client, server, peer)) = ends("what_is_there_comes_even_behind_the_deadline")
    else {
        return;
    };
    server.try_send_to(PacketTrain::one(b"late"), peer).unwrap();
    client
        .wait(
            Ready {
                readable: true,
                writable: false,
            },
            soon(),
        )
        .unwrap();
    let mut room = [0; 100];
    let came = client.recv_until(&mut room, Instant::now().into()).unwrap();
    assert_eq!(&room[..came.length], b"late");
}

#[test]
fn an_address_of_another_kind_is_refused() {
    let address: Address = "xdp://[::1]:7".parse().unwrap();
    assert_eq!(address.transport(), Transport::Xdp);
    let refused = Carrier::bind(&address).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("IPv4 only"), "{refused}");
}

#[test]
fn trains_of_a_kernel_arrive_packet_by_packet() {
    let Some((pair, _client, server, _)) = ends("trains_of_a_kernel_arrive_packet_by_packet")
    else {
        return;
    };
    let address = server.address().unwrap().to_string();
    let address: Address = address.replace("xdp://", "lean+udp://").parse().unwrap();
    let kernel = pair.in_client(|| Carrier::connect(&address, soon()).unwrap());
    // Of these a frame holds several, of those none does.
    for size in [100, 1448] {
        let bytes: Vec<u8> = (0..10 * size).map(|n| (n / size) as u8).collect();
        let train = PacketTrain {
            bytes: &bytes,
            size,
            message_packets: 1,
        };
        assert_eq!(kernel.try_send(train).unwrap(), bytes.len());
        for packet in train.packets() {
            assert_eq!(receive(&server).0, packet);
        }
    }
}
