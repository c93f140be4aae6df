//! Stands between clients and a server over TCP, and swallows from some moment on what it is sent, in both directions
//! and without a word, as a network does that has forgotten a connection.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Works as long as the process.
pub struct SwallowingRelay {
    pub address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Connections so far.
    accepted: AtomicUsize,
    /// Of so many, the first ones, everything is swallowed.
    swallowed: AtomicUsize,
    /// Connections that their clients have ended.
    ended: AtomicUsize,
    /// Bytes that were swallowed.
    bytes: AtomicUsize,
}

impl SwallowingRelay {
    /// Stands in front of a server, and swallows nothing yet.
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::<Counts>::default();
        let server = Arc::new(Mutex::new(server));
        let (relayed, leads_to) = (Arc::clone(&counts), Arc::clone(&server));
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let number = relayed.accepted.fetch_add(1, Ordering::SeqCst);
                let server = TcpStream::connect(*leads_to.lock().unwrap()).unwrap();
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let counts = Arc::clone(&relayed);
                thread::spawn(move || {
                    carry(client, server, number, &counts);
                    counts.ended.fetch_add(1, Ordering::SeqCst);
                });
                let counts = Arc::clone(&relayed);
                thread::spawn(move || carry(back.0, back.1, number, &counts));
            }
        });
        Self {
            address,
            server,
            counts,
        }
    }

    /// Leads to another server from the next connection on.
    pub fn lead_to(&self, server: SocketAddr) {
        *self.server.lock().unwrap() = server;
    }

    /// Swallows everything from now on over the connections that there are. Those that follow are carried.
    pub fn swallow(&self) {
        let accepted = self.counts.accepted.load(Ordering::SeqCst);
        self.counts.swallowed.store(accepted, Ordering::SeqCst);
    }

    /// Bytes that were swallowed so far.
    pub fn swallowed_bytes(&self) -> usize {
        self.counts.bytes.load(Ordering::SeqCst)
    }

    /// Connections that their clients have ended.
    pub fn ended(&self) -> usize {
        self.counts.ended.load(Ordering::SeqCst)
    }
}

/// Carries or swallows what one end sends, until it ends.
fn carry(mut from: TcpStream, mut to: TcpStream, number: usize, counts: &Counts) {
    let mut room = [0; 16 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut room) {
        if number < counts.swallowed.load(Ordering::SeqCst) {
            counts.bytes.fetch_add(bytes, Ordering::SeqCst);
        } else if to.write_all(&room[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
