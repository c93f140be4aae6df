//! What idle connections keep of the memory that a burst of large calls has taken.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::ALLOCATOR;
use crate::common::obliging::{ECHO, PATIENCE, PROGRAM, VERSION, obliging};
use crate::common::place::fresh_host;

const CONNECTIONS: usize = 32;

/// Bytes that are echoed, in one piece.
const ECHOED: usize = 60_000;

/// Bytes of memory that are taken.
fn taken() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Has the server echo so many bytes, twice, as it has two buffers to send from.
fn burst(connections: &mut [TcpStream], bytes: usize) {
    let mark = 1 << 31 | (40 + bytes) as u32;
    let words = [mark, 7, 0, 2, PROGRAM, VERSION, ECHO.into(), 0, 0, 0, 0];
    let mut message: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    message.resize(message.len() + bytes, 0x5a);
    let mut reply = vec![0; 28 + bytes];
    for _ in 0..2 {
        for connection in &mut *connections {
            connection.write_all(&message).unwrap();
            connection.read_exact(&mut reply).unwrap();
        }
    }
}

fn check(driver: &str, address: &str) {
    let place = address.trim_start_matches("tcp://");
    let connect = |_| {
        let stream = TcpStream::connect(place).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let mut connections: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    // Threads of the run time and tables have their memory by then.
    burst(&mut connections, 4);
    burst(&mut connections[..1], ECHOED);
    let before = taken();
    burst(&mut connections, ECHOED);
    let deadline = Instant::now() + PATIENCE;
    // Two buffers of 16 KiB each, and something for tables.
    let most = before + CONNECTIONS * (40 << 10);
    while taken() > most {
        let now = taken();
        assert!(
            Instant::now() < deadline,
            "{driver}: {before} bytes before, {now} behind"
        );
        thread::sleep(Duration::from_millis(20));
    }
    burst(&mut connections, ECHOED);
}

pub fn idle_connections_keep_little_of_a_burst() {
    let address = || format!("tcp://{}:0", fresh_host());
    let builder = tenon::Server::builder().listen(&address()).unwrap();
    let server = builder.service(obliging()).start().unwrap();
    check("threads", &server.addresses()[0].to_string());
    drop(server);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let builder = tenon_tokio::Server::builder().listen(&address()).unwrap();
    let server = builder.sync_service(obliging());
    let server = runtime.block_on(server.start()).unwrap();
    check("tasks", &server.addresses()[0].to_string());
}
