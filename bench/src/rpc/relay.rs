//! A place between a client and a server over TCP that counts the bytes that pass.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// A relay; its threads end with the connections.
#[derive(Debug)]
pub struct Relay {
    /// Where clients find it, as servers print addresses.
    pub address: String,
    passed: Arc<AtomicU64>,
}

impl Relay {
    /// A relay for one connection to a server at `address`, which is `tcp HOST PORT`.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn to(address: &str) -> io::Result<Relay> {
        let server = address.trim_start_matches("tcp ").replace(' ', ":");
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let relay = Relay {
            address: format!("tcp 127.0.0.1 {}", listener.local_addr()?.port()),
            passed: Arc::default(),
        };
        let passed = Arc::clone(&relay.passed);
        // Who cannot connect finds out: the client has an end of its connection.
        thread::spawn(move || carry(&listener, &server, &passed));
        Ok(relay)
    }

    /// Bytes that have passed, in both directions.
    pub fn passed(&self) -> u64 {
        self.passed.load(Relaxed)
    }
}

fn carry(listener: &TcpListener, server: &str, passed: &Arc<AtomicU64>) -> io::Result<()> {
    let client = listener.accept()?.0;
    let server = TcpStream::connect(server)?;
    let back = (server.try_clone()?, client.try_clone()?, Arc::clone(passed));
    thread::spawn(move || copy(back.0, back.1, &back.2));
    copy(client, server, passed)
}

fn copy(mut from: TcpStream, mut to: TcpStream, passed: &AtomicU64) -> io::Result<()> {
    to.set_nodelay(true)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return to.shutdown(Shutdown::Write);
        }
        passed.fetch_add(count as u64, Relaxed);
        to.write_all(&buffer[..count])?;
    }
}
