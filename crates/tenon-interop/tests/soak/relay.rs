//! Networks that are worse than the loopback.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tenon_exec::random::Random;

/// Longest pause of the network.
const PAUSE_MAX_US: u64 = 2000;

/// A network in front of the server at `url`, until the process ends: what goes through it arrives in
/// pieces and late, and connections are cut anywhere. Its address.
pub fn relay_stream(url: &str) -> String {
    let server = url.trim_start_matches("tcp://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for (seed, client) in (1..).zip(listener.incoming()) {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) else {
                continue;
            };
            let mut random = Random::new(seed);
            for (from, to) in [(&client, &server), (&server, &client)] {
                // A connection lives for some hundred calls.
                let life = random.below(2 << 20);
                let (from, to) = (from.try_clone(), to.try_clone());
                if let (Ok(from), Ok(to)) = (from, to) {
                    let random = Random::new(random.bits());
                    thread::spawn(move || pump(from, to, life, random));
                }
            }
        }
    });
    format!("tcp://{address}")
}

/// Hands on so many bytes, then cuts the connection.
fn pump(mut from: TcpStream, mut to: TcpStream, mut life: u64, mut random: Random) {
    let mut room = vec![0; 16 << 10];
    let _ = to.set_nodelay(true);
    while life > 0 {
        let wanted = match random.below(4) {
            0 => 1 + random.below(64),
            _ => room.len() as u64,
        };
        let wanted = wanted.min(life) as usize;
        let Ok(received @ 1..) = from.read(&mut room[..wanted]) else {
            break;
        };
        if random.below(50) == 0 {
            thread::sleep(Duration::from_micros(random.below(PAUSE_MAX_US)));
        }
        if to.write_all(&room[..received]).is_err() {
            break;
        }
        life -= received as u64;
    }
    for end in [from, to] {
        // The other direction may have done so.
        let _ = end.shutdown(Shutdown::Both);
    }
}

/// A network in front of the server at `url`, until the process ends: of the datagrams that go through
/// it some are lost, some arrive twice, and some late. Its address.
pub fn relay_datagrams(url: &str) -> String {
    let server = url.trim_start_matches("udp://").to_owned();
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
    let address = socket.local_addr().expect("bound");
    thread::spawn(move || {
        let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
        let mut room = vec![0; 65_536];
        let mut random = Random::new(1);
        while let Ok((length, client)) = socket.recv_from(&mut room) {
            let to_server = clients.entry(client).or_insert_with(|| {
                let to_server = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
                to_server.connect(&server).expect("a loopback address");
                let (from, to) = (Arc::clone(&to_server), Arc::clone(&socket));
                thread::spawn(move || hand_back(&from, &to, client));
                to_server
            });
            for _ in 0..copies(&mut random) {
                // The server may be gone: the network does not know.
                let _ = to_server.send(&room[..length]);
            }
        }
    });
    format!("udp://{address}")
}

fn hand_back(from: &UdpSocket, to: &UdpSocket, client: SocketAddr) {
    let mut room = vec![0; 65_536];
    let mut random = Random::new(2);
    while let Ok(length) = from.recv(&mut room) {
        for _ in 0..copies(&mut random) {
            // The client may be gone: the network does not know.
            let _ = to.send_to(&room[..length], client);
        }
    }
}

/// How many times a datagram arrives, after a pause perhaps.
fn copies(random: &mut Random) -> u32 {
    match random.below(100) {
        0..2 => 0,
        2..5 => 2,
        5..8 => {
            thread::sleep(Duration::from_micros(random.below(PAUSE_MAX_US)));
            1
        }
        _ => 1,
    }
}
