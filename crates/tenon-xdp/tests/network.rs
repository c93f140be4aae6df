//! Sockets of AF_XDP at the two ends of an Ethernet that the test makes.

#![allow(clippy::unwrap_used)]

#[path = "common/pair.rs"]
mod pair;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use pair::{Pair, ip};
use rustix::net::{AddressFamily, SendFlags, SocketType};
use tenon_xdp::{EthernetEndpoint, FrameHeaderTemplate, MacAddress, XdpSocket};

const PATIENCE: Duration = Duration::from_secs(60);

fn server(pair: &Pair) -> XdpSocket {
    pair.in_server(|| XdpSocket::bind(SocketAddrV4::new(pair.server_at, 0)).unwrap())
}

fn client(pair: &Pair, of: &XdpSocket) -> XdpSocket {
    pair.in_client(|| XdpSocket::connect(of.address()).unwrap())
}

/// The next datagram, and who sent it.
fn receive(socket: &XdpSocket) -> (Vec<u8>, SocketAddr) {
    let deadline = Instant::now() + PATIENCE;
    let mut room = vec![0; 65_536];
    loop {
        match socket.try_recv_from(&mut room) {
            Ok((length, from)) => return (room[..length].to_vec(), from),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                assert!(Instant::now() < deadline, "nothing came");
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn datagrams_go_both_ways_past_the_kernel() {
    let Some(pair) = Pair::make("datagrams_go_both_ways_past_the_kernel") else {
        return;
    };
    let server = server(&pair);
    let client = client(&pair, &server);
    assert_eq!(*client.address().ip(), pair.client_at);
    for round in 0..1000u32 {
        let data = vec![round as u8; round as usize % 1473];
        client.try_send(&data).unwrap();
        let (came, from) = receive(&server);
        assert_eq!(came, data);
        assert_eq!(from, SocketAddr::V4(client.address()));
        server.try_send_to(&came, from).unwrap();
        let (back, from) = receive(&client);
        assert_eq!(back, data);
        assert_eq!(from, SocketAddr::V4(server.address()));
    }
    for end in [&client, &server] {
        let counters = end.counters();
        // The kernel finds the way, once.
        assert_eq!(counters.sent_by_kernel, 1, "{counters:?}");
        assert_eq!(counters.sent, 999, "{counters:?}");
        assert_eq!(counters.received_by_kernel, 1, "{counters:?}");
        assert_eq!(counters.received, 999, "{counters:?}");
    }
}

/// A socket of the kernel's that sends to and receives from a server.
fn kernel_client(pair: &Pair, of: &XdpSocket) -> UdpSocket {
    pair.in_client(|| {
        let socket = UdpSocket::bind((pair.client_at, 0)).unwrap();
        socket.connect(of.address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    })
}

#[test]
fn a_peer_may_be_the_kernel() {
    let Some(pair) = Pair::make("a_peer_may_be_the_kernel") else {
        return;
    };
    let server = server(&pair);
    let client = kernel_client(&pair, &server);
    for round in 1..100u8 {
        let data = vec![round; usize::from(round) * 14];
        client.send(&data).unwrap();
        let (came, from) = receive(&server);
        assert_eq!(came, data);
        server.try_send_to(&came, from).unwrap();
        // The kernel looks at all checksums.
        let mut room = [0; 2000];
        let length = client.recv(&mut room).unwrap();
        assert_eq!(room[..length], data);
    }
    assert_eq!(server.counters().sent, 98);
    // The kernel leaves the sum to hardware, which is not there.
    assert_eq!(server.counters().received_by_kernel, 99);
}

#[test]
fn what_is_too_long_for_a_frame_goes_by_the_kernel() {
    let Some(pair) = Pair::make("what_is_too_long_for_a_frame_goes_by_the_kernel") else {
        return;
    };
    let server = server(&pair);
    let client = client(&pair, &server);
    for length in [1473, 2000, 20_000, 65_507] {
        let data: Vec<u8> = (0..length).map(|n| n as u8).collect();
        client.try_send(&data).unwrap();
        let (came, from) = receive(&server);
        assert_eq!(came, data);
        server.try_send_to(&came, from).unwrap();
        assert_eq!(receive(&client).0, data);
    }
    assert_eq!(server.counters().received_by_kernel, 4);
}

#[test]
fn the_kernels_other_traffic_goes_on() {
    let Some(pair) = Pair::make("the_kernels_other_traffic_goes_on") else {
        return;
    };
    let server = server(&pair);
    let _client = client(&pair, &server);
    // Another port of UDP.
    let other = pair.in_server(|| UdpSocket::bind((pair.server_at, 0)).unwrap());
    let beside = pair.in_client(|| UdpSocket::bind((pair.client_at, 0)).unwrap());
    other.set_read_timeout(Some(PATIENCE)).unwrap();
    beside
        .send_to(b"beside", other.local_addr().unwrap())
        .unwrap();
    let mut room = [0; 100];
    assert_eq!(other.recv(&mut room).unwrap(), 6);
    // The same port of TCP.
    let port = server.address().port();
    let listener = pair.in_server(|| TcpListener::bind((pair.server_at, port)).unwrap());
    let mut stream = pair.in_client(|| TcpStream::connect((pair.server_at, port)).unwrap());
    stream.write_all(b"stream").unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    let mut came = [0; 6];
    accepted.read_exact(&mut came).unwrap();
    assert_eq!(&came, b"stream");
    // And the port is taken, as the kernel sees it.
    let again = pair.in_server(|| UdpSocket::bind((pair.server_at, port)));
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_closed_port_is_told() {
    let Some(pair) = Pair::make("a_closed_port_is_told") else {
        return;
    };
    let server = server(&pair);
    let client = client(&pair, &server);
    drop(server);
    let deadline = Instant::now() + PATIENCE;
    let mut room = [0; 100];
    loop {
        // The kernel reports what an earlier datagram met before it sends another.
        let _ = client.try_send(b"is anybody there");
        match client.try_recv_from(&mut room) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            Ok(came) => panic!("{came:?}"),
        }
        assert!(Instant::now() < deadline, "nobody told");
    }
}

#[test]
fn sockets_share_an_interface_and_give_their_frames_back() {
    let Some(pair) = Pair::make("sockets_share_an_interface_and_give_their_frames_back") else {
        return;
    };
    let server = server(&pair);
    let mut clients = Vec::new();
    let full = loop {
        match pair.in_client(|| XdpSocket::connect(server.address())) {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::QuotaExceeded, "{full}");
    assert!(clients.len() > 4);
    for (number, client) in clients.iter().enumerate() {
        client.try_send(&[number as u8]).unwrap();
        let (came, from) = receive(&server);
        assert_eq!(
            (came.as_slice(), from),
            (&[number as u8][..], client.address().into())
        );
        server.try_send_to(&came, from).unwrap();
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(receive(client).0, [number as u8]);
    }
    // Sockets that go with frames that nobody has taken out of them, many more than there are.
    for round in 0..60u32 {
        clients.pop();
        let another = client(&pair, &server);
        another.try_send(b"fill me").unwrap();
        let (_, from) = receive(&server);
        for _ in 0..256 {
            server.try_send_to(&round.to_ne_bytes(), from).unwrap();
        }
        assert_eq!(receive(&another).0, round.to_ne_bytes());
        clients.push(another);
    }
    let last = clients.pop().unwrap();
    drop(clients);
    last.try_send(b"still here").unwrap();
    assert_eq!(receive(&server).0, b"still here");
}

#[test]
fn a_full_socket_loses_what_comes_and_goes_on() {
    let Some(pair) = Pair::make("a_full_socket_loses_what_comes_and_goes_on") else {
        return;
    };
    let server = server(&pair);
    let client = client(&pair, &server);
    client.try_send(b"hello").unwrap();
    receive(&server);
    for _ in 0..10 {
        // Far more than a socket holds, and than there are frames.
        for _ in 0..5000 {
            client.try_send(b"too much").unwrap();
        }
        let mut came = 0;
        let mut room = [0; 100];
        while server.try_recv_all_from(&mut room).is_ok() {
            came += 1;
        }
        assert!((1..5000).contains(&came), "{came}");
    }
    client.try_send(b"the last").unwrap();
    assert_eq!(receive(&server).0, b"the last");
}

#[test]
fn what_is_no_way_is_said() {
    let Some(pair) = Pair::make("what_is_no_way_is_said") else {
        return;
    };
    let says = |connected: std::io::Result<XdpSocket>, kind, hint: &str| {
        let error = connected.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(hint), "{error}");
    };
    let at = SocketAddrV4::new;
    pair.in_client(|| {
        let own = XdpSocket::connect(at(pair.client_at, 4000));
        says(own, ErrorKind::InvalidInput, "no Ethernet");
        let own = XdpSocket::bind(at(Ipv4Addr::LOCALHOST, 0));
        says(own, ErrorKind::InvalidInput, "no Ethernet");
        let elsewhere = XdpSocket::connect(at(Ipv4Addr::new(203, 0, 113, 1), 4000));
        says(elsewhere, ErrorKind::NetworkUnreachable, "");
        let everywhere = XdpSocket::bind(at(Ipv4Addr::UNSPECIFIED, 0));
        says(everywhere, ErrorKind::AddrNotAvailable, "one interface");
        // Somebody else filters there.
        let holder = XdpSocket::bind(at(pair.client_at, 0)).unwrap();
        let port = holder.address().port();
        says(
            XdpSocket::bind(at(pair.client_at, port)),
            ErrorKind::AddrInUse,
            "",
        );
    });
}

#[test]
fn a_peer_that_moves_is_found_again() {
    let Some(pair) = Pair::make("a_peer_that_moves_is_found_again") else {
        return;
    };
    let server = server(&pair);
    let client = kernel_client(&pair, &server);
    client.send(b"here").unwrap();
    let (_, from) = receive(&server);
    server.try_send_to(b"first", from).unwrap();
    let mut room = [0; 100];
    client.recv(&mut room).unwrap();
    pair.in_client(|| ip("link set tenon0 address 02:00:00:00:77:77"));
    let deadline = Instant::now() + PATIENCE;
    client
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    loop {
        client.send(b"there").unwrap();
        let (_, from) = receive(&server);
        server.try_send_to(b"second", from).unwrap();
        if client.recv(&mut room).is_ok() {
            return;
        }
        assert!(Instant::now() < deadline, "the peer was not found again");
    }
}

/// What the kernel sends with the header of IP that the caller wrote, but for its checksum.
fn raw_socket() -> OwnedFd {
    let raw = Some(rustix::net::ipproto::RAW);
    rustix::net::socket(AddressFamily::INET, SocketType::RAW, raw).unwrap()
}

#[test]
fn what_is_damaged_on_its_way_is_not_taken_for_right() {
    let Some(pair) = Pair::make("what_is_damaged_on_its_way_is_not_taken_for_right") else {
        return;
    };
    let server = server(&pair);
    let client = client(&pair, &server);
    client.try_send(b"hello").unwrap();
    receive(&server);
    let mac = MacAddress([2; 6]);
    let place = |at| EthernetEndpoint { mac, at };
    let other_port = SocketAddrV4::new(pair.client_at, 9);
    let prototype = FrameHeaderTemplate::new(place(other_port)).toward(place(server.address()));
    let mut frame = [0; 200];
    let length = prototype.write(&[0x5a; 100], &mut frame).unwrap();
    let packet = &frame[14..length];
    let raw = pair.in_client(raw_socket);
    let to = SocketAddrV4::new(pair.server_at, 0);
    let before = server.counters();
    let (mut sent, mut room) = (0, [0; 200]);
    for at in 0..packet.len() {
        for bit in 0..8 {
            let mut damaged = packet.to_vec();
            damaged[at] ^= 1 << bit;
            // What the kernel does not send is no matter.
            let flags = SendFlags::empty();
            sent += usize::from(rustix::net::sendto(&raw, &damaged, flags, &to).is_ok());
            // Whom it is from and how many hops it made nothing in the data says, and a sum that became one of
            // those that stand for none covers nothing.
            if let Ok((length, _)) = server.try_recv_all_from(&mut room) {
                assert_eq!(room[..length], [0x5a; 100], "byte {at}, bit {bit}");
            }
        }
    }
    assert!(sent > 500, "{sent}");
    let dropped = server.counters().dropped - before.dropped;
    assert!(dropped > 500, "{dropped}");
    client.try_send(b"the end").unwrap();
    assert_eq!(receive(&server).0, b"the end");
}

#[test]
fn what_an_interface_takes_arrives_in_a_frame_or_by_the_kernel() {
    let Some(pair) = Pair::make("what_an_interface_takes_arrives_in_a_frame_or_by_the_kernel")
    else {
        return;
    };
    pair.in_client(|| ip("link set tenon0 mtu 9000"));
    pair.in_server(|| ip("link set tenon0 mtu 9000"));
    let server = server(&pair);
    let client = client(&pair, &server);
    client.try_send(b"find the way").unwrap();
    receive(&server);
    for bytes in 1740..2020 {
        client.try_send(&vec![7; bytes]).unwrap();
        assert_eq!(receive(&server).0.len(), bytes);
    }
    // Those up to 1750 bytes.
    assert_eq!(client.counters().sent, 11);
    assert_eq!(server.counters().received, 11);
}

#[test]
fn an_interface_can_be_had_again_at_once() {
    let Some(pair) = Pair::make("an_interface_can_be_had_again_at_once") else {
        return;
    };
    for _ in 0..50 {
        drop(server(&pair));
    }
}
