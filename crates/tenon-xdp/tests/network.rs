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
use tenon_xdp::{
    EthernetEndpoint, FrameHeaderTemplate, MacAddress, OutgoingDatagrams, UdpChecksum, XdpSocket,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// More frames than a test sends whose checksum is, by chance, that of a frame whose checksum is left to hardware, which
/// passes to the kernel: one in 65,536 is.
const BY_CHANCE: u64 = 4;

const OPTIONAL: UdpChecksum = UdpChecksum::Optional;

fn server(pair: &Pair) -> XdpSocket {
    server_that_takes(OPTIONAL, pair)
}

fn server_that_takes(checksum: UdpChecksum, pair: &Pair) -> XdpSocket {
    let at = SocketAddrV4::new(pair.server_at, 0);
    pair.in_server(|| XdpSocket::bind(at, checksum).unwrap())
}

fn client(pair: &Pair, of: &XdpSocket) -> XdpSocket {
    pair.in_client(|| XdpSocket::connect(of.address(), OPTIONAL).unwrap())
}

/// The next datagram, and who sent it.
fn receive(socket: &XdpSocket) -> (Vec<u8>, SocketAddr) {
    let deadline = Instant::now() + PATIENCE;
    let mut room = vec![0; 65_536];
    loop {
        match socket.try_recv(&mut room) {
            Ok(came) => return (room[..came.length].to_vec(), came.from),
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
        let by_kernel = counters.received_by_kernel;
        assert!((1..=1 + BY_CHANCE).contains(&by_kernel), "{counters:?}");
        assert_eq!(counters.received + by_kernel, 1000, "{counters:?}");
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
    let counters = server.counters();
    let by_kernel = counters.sent_by_kernel;
    assert!((1..=1 + BY_CHANCE).contains(&by_kernel), "{counters:?}");
    assert_eq!(counters.sent + by_kernel, 99, "{counters:?}");
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

/// Receives so many bytes. Returns them, and the most that came together.
fn receive_all(socket: &XdpSocket, bytes: usize) -> (Vec<u8>, usize) {
    let deadline = Instant::now() + PATIENCE;
    let mut room = vec![0; 65_536];
    let (mut all, mut most) = (Vec::new(), 0);
    while all.len() < bytes {
        match socket.try_recv_ready(&mut room) {
            Ok(came) => {
                assert!(came.size == came.length || came.size == 1448, "{came:?}");
                all.extend_from_slice(&room[..came.length]);
                most = most.max(came.length);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                assert!(Instant::now() < deadline, "{} bytes came", all.len());
                std::thread::yield_now();
            }
        }
    }
    (all, most)
}

#[test]
fn a_long_message_goes_in_one_piece_where_frames_are_copied() {
    let Some(pair) = Pair::make("a_long_message_goes_in_one_piece_where_frames_are_copied") else {
        return;
    };
    let server = server(&pair);
    let client = client(&pair, &server);
    // The kernel finds the way, both ways.
    client.try_send(b"hello").unwrap();
    let peer = receive(&server).1;
    server.try_send_to(b"you", peer).unwrap();
    receive(&client);
    let message: Vec<u8> = (0..40_048u32).map(|n| (n / 100) as u8).collect();
    let datagrams = message.len().div_ceil(1448) as u64;
    let all = OutgoingDatagrams {
        bytes: &message,
        size: 1448,
        message_datagrams: datagrams as u32,
    };
    let short = OutgoingDatagrams {
        bytes: &message[..2 * 1448],
        size: 1448,
        message_datagrams: 2,
    };
    let before = client.counters();
    // One by one, as nothing is said of more.
    assert_eq!(client.try_send_all(all).unwrap(), message.len());
    assert_eq!(receive_all(&server, message.len()), (message.clone(), 1448));
    server.expect_many();
    assert_eq!(client.try_send_all(all).unwrap(), message.len());
    assert_eq!(
        receive_all(&server, message.len()),
        (message.clone(), message.len())
    );
    let counters = client.counters();
    assert_eq!(
        counters.sent_by_kernel,
        before.sent_by_kernel + 2 * datagrams
    );
    assert_eq!(counters.sent, before.sent);
    assert_eq!(client.try_send_all(short).unwrap(), short.bytes.len());
    assert_eq!(receive_all(&server, short.bytes.len()).0, short.bytes);
    assert_eq!(client.counters().sent, before.sent + 2);
    // The other way as well, and what is the last of a message alone goes the way of the others.
    client.expect_many();
    let (front, last) = message.split_at(27 * 1448);
    for bytes in [front, last] {
        let part = OutgoingDatagrams { bytes, ..all };
        assert_eq!(server.try_send_all_to(part, peer).unwrap(), bytes.len());
    }
    assert_eq!(
        receive_all(&client, message.len()),
        (message.clone(), front.len())
    );
    assert_eq!(server.counters().sent_by_kernel, 1 + datagrams);
    assert_eq!(client.counters().received_by_kernel, 1 + datagrams);
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
        match client.try_recv(&mut room) {
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
        match pair.in_client(|| XdpSocket::connect(server.address(), OPTIONAL)) {
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
        while server.try_recv_ready(&mut room).is_ok() {
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
        let own = XdpSocket::connect(at(pair.client_at, 4000), OPTIONAL);
        says(own, ErrorKind::InvalidInput, "no Ethernet");
        let own = XdpSocket::bind(at(Ipv4Addr::LOCALHOST, 0), OPTIONAL);
        says(own, ErrorKind::InvalidInput, "no Ethernet");
        let elsewhere = XdpSocket::connect(at(Ipv4Addr::new(203, 0, 113, 1), 4000), OPTIONAL);
        says(elsewhere, ErrorKind::NetworkUnreachable, "");
        let everywhere = XdpSocket::bind(at(Ipv4Addr::UNSPECIFIED, 0), OPTIONAL);
        says(everywhere, ErrorKind::AddrNotAvailable, "one interface");
        // Somebody else filters there.
        let holder = XdpSocket::bind(at(pair.client_at, 0), OPTIONAL).unwrap();
        let port = holder.address().port();
        says(
            XdpSocket::bind(at(pair.client_at, port), OPTIONAL),
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

/// The packet of IP of a datagram from another socket of the client's host than those that there are.
fn packet_to(pair: &Pair, server: &XdpSocket, data: &[u8]) -> Vec<u8> {
    let place = |at| EthernetEndpoint {
        mac: MacAddress([2; 6]),
        at,
    };
    let prototype = FrameHeaderTemplate::new(place(stranger(pair)));
    let mut frame = vec![0; data.len() + 100];
    let length = prototype.toward(place(server.address()));
    let length = length.write(data, &mut frame).unwrap();
    frame[14..length].to_vec()
}

fn stranger(pair: &Pair) -> SocketAddrV4 {
    SocketAddrV4::new(pair.client_at, 9)
}

#[test]
fn what_is_damaged_on_its_way_is_not_taken_for_right() {
    let Some(pair) = Pair::make("what_is_damaged_on_its_way_is_not_taken_for_right") else {
        return;
    };
    for checksum in [OPTIONAL, UdpChecksum::Required] {
        let server = server_that_takes(checksum, &pair);
        let client = client(&pair, &server);
        client.try_send(b"hello").unwrap();
        receive(&server);
        let packet = packet_to(&pair, &server, &[0x5a; 100]);
        let raw = pair.in_client(raw_socket);
        let to = SocketAddrV4::new(pair.server_at, 0);
        let before = server.counters();
        let (mut sent, mut room) = (0, [0; 200]);
        for at in 0..packet.len() {
            for bit in 0..8 {
                let mut damaged = packet.clone();
                damaged[at] ^= 1 << bit;
                // What the kernel does not send is no matter.
                let flags = SendFlags::empty();
                sent += usize::from(rustix::net::sendto(&raw, &damaged, flags, &to).is_ok());
                // How many hops it made is not covered by a sum of UDP.
                if let Ok(came) = server.try_recv_ready(&mut room) {
                    assert_eq!(room[..came.length], [0x5a; 100], "byte {at}, bit {bit}");
                    assert_eq!(came.from, SocketAddr::V4(stranger(&pair)));
                }
            }
        }
        assert!(sent > 500, "{sent}");
        let dropped = server.counters().dropped - before.dropped;
        assert!(dropped > 500, "{dropped}");
        client.try_send(b"the end").unwrap();
        assert_eq!(receive(&server).0, b"the end");
    }
}

/// Sends a packet of IP from the network of clients to that of servers.
fn send_packet(pair: &Pair, packet: &[u8]) {
    let to = SocketAddrV4::new(pair.server_at, 0);
    pair.in_client(|| {
        let sent = rustix::net::sendto(raw_socket(), packet, SendFlags::empty(), &to);
        assert_eq!(sent.unwrap(), packet.len());
    });
}

/// The packet with neither a checksum of UDP nor anything else in its place.
fn without_checksum(mut packet: Vec<u8>) -> Vec<u8> {
    packet[26..28].fill(0);
    packet
}

/// The packet in two fragments (RFC 791), the first with 64 bytes behind its header.
fn in_fragments(packet: &[u8]) -> [Vec<u8>; 2] {
    const CUT: usize = 20 + 64;
    let (mut first, mut last) = (packet[..CUT].to_vec(), packet[..20].to_vec());
    last.extend(&packet[CUT..]);
    // More fragments follow; the place in units of 8 bytes. Both have an identification.
    first[4..8].copy_from_slice(&[0, 7, 0x20, 0]);
    last[4..8].copy_from_slice(&[0, 7, 0, 8]);
    [first, last]
}

#[test]
fn a_checksum_is_optional_or_required() {
    let Some(pair) = Pair::make("a_checksum_is_optional_or_required") else {
        return;
    };
    let data = [0x5a; 100];
    for checksum in [OPTIONAL, UdpChecksum::Required] {
        let server = server_that_takes(checksum, &pair);
        let bare = without_checksum(packet_to(&pair, &server, &data));
        let mut expected = Vec::new();
        // In a frame, and in fragments, which the kernel joins.
        send_packet(&pair, &bare);
        for fragment in in_fragments(&bare) {
            send_packet(&pair, &fragment);
        }
        if checksum == OPTIONAL {
            expected.extend([data.to_vec(), data.to_vec()]);
        }
        for fragment in in_fragments(&packet_to(&pair, &server, &data)) {
            send_packet(&pair, &fragment);
        }
        send_packet(&pair, &packet_to(&pair, &server, b"the end"));
        expected.extend([data.to_vec(), b"the end".to_vec()]);
        // The kernel's socket has an order of its own.
        let mut came: Vec<_> = expected.iter().map(|_| receive(&server).0).collect();
        came.sort();
        expected.sort();
        assert_eq!(came, expected, "{checksum:?}");
        let mut room = [0; 200];
        let more = server.try_recv_ready(&mut room).unwrap_err();
        assert_eq!(more.kind(), ErrorKind::WouldBlock);
        let dropped = u64::from(checksum == UdpChecksum::Required);
        assert_eq!(server.counters().dropped, dropped, "{checksum:?}");
    }
}

#[test]
fn what_is_not_sound_is_refused_and_counted() {
    let Some(pair) = Pair::make("what_is_not_sound_is_refused_and_counted") else {
        return;
    };
    let server = server_that_takes(UdpChecksum::Required, &pair);
    let sound = packet_to(&pair, &server, b"some data");
    let changed = |at: usize, is: u8| {
        let mut packet = sound.clone();
        packet[at] = is;
        packet
    };
    let unsound = [
        ("UDP shorter than its header", changed(25, 7)),
        ("UDP longer than IP", changed(25, 18)),
        ("UDP of 64 KiB", changed(24, 0xff)),
        ("UDP that ends early", changed(25, 16)),
        ("an end that is missing", sound[..sound.len() - 1].to_vec()),
        ("a wrong checksum", changed(26, sound[26] ^ 1)),
        ("other data", changed(30, b'O')),
        ("no checksum", without_checksum(sound.clone())),
        ("no port", {
            let mut packet = without_checksum(sound.clone());
            packet[20..22].fill(0);
            packet
        }),
    ];
    for (what, packet) in &unsound {
        send_packet(&pair, packet);
        send_packet(&pair, &sound);
        assert_eq!(receive(&server).0, b"some data", "{what}");
    }
    let dropped = server.counters().dropped + 1;
    assert!(dropped >= unsound.len() as u64, "{dropped}");
}

#[test]
fn a_frame_takes_what_the_interface_does() {
    let Some(pair) = Pair::make("a_frame_takes_what_the_interface_does") else {
        return;
    };
    for (mtu, bytes) in [(1500, 1472), (1400, 1372), (9000, 1750)] {
        pair.in_client(|| ip(&format!("link set tenon0 mtu {mtu}")));
        pair.in_server(|| ip(&format!("link set tenon0 mtu {mtu}")));
        let server = server(&pair);
        let client = client(&pair, &server);
        assert_eq!(server.frame_data_max(), bytes);
        assert_eq!(client.frame_data_max(), bytes);
        client.try_send(b"find the way").unwrap();
        receive(&server);
        for fill in 0..10 {
            client.try_send(&vec![fill; bytes]).unwrap();
            assert_eq!(receive(&server).0.len(), bytes);
        }
        assert_eq!(client.counters().sent, 10);
        let received = server.counters().received;
        assert!(received + BY_CHANCE >= 10, "an MTU of {mtu}: {received}");
    }
    // Where the interface takes larger ones, the kernel's socket receives them.
    let server = server(&pair);
    for bytes in 1740..2020 {
        send_packet(&pair, &packet_to(&pair, &server, &vec![7; bytes]));
        assert_eq!(receive(&server).0.len(), bytes);
    }
    let received = server.counters().received;
    assert!((11 - BY_CHANCE..=11).contains(&received), "{received}");
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
