//! A path over TCP on which everything takes a while, in either direction.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Begins a path to `server` that takes `delay` in each direction; returns where it begins. It lasts as long as the
/// process.
pub fn slow_path(server: SocketAddr, delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let begin = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
            carry(
                client.try_clone().unwrap(),
                server.try_clone().unwrap(),
                delay,
            );
            carry(server, client, delay);
        }
    });
    begin
}

/// Carries what comes on after a while.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    to.set_nodelay(true).unwrap();
    let (arrived, due) = mpsc::channel();
    thread::spawn(move || {
        let mut room = vec![0; 64 << 10];
        // The end, or an error, ends the other direction when the rest has arrived.
        while let Ok(bytes @ 1..) = from.read(&mut room) {
            let _ = arrived.send((Instant::now() + delay, room[..bytes].to_vec()));
        }
    });
    thread::spawn(move || {
        for (at, bytes) in due {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}
