//! A thousand connections with a call outstanding on each, all of them from one thread: none of them starves. The test
//! changes how many descriptors its process may have.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::common::caller::{PATIENCE, builder, call, eventually, record, success};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenon::Server;
use tenon_net::{PollRegistry, Poller, Watch};

/// Calls over all connections together: enough that it does not matter who was first.
const CALLS: usize = 20_000;

/// A connection with a call outstanding.
struct Busy<S> {
    socket: S,
    replies: usize,
    /// How much of the next reply has come.
    received: usize,
    reply: Vec<u8>,
}

impl<S: Read + Write + AsFd> Busy<S> {
    fn new(socket: S, number: usize, registry: &PollRegistry) -> Self {
        registry.add(&socket, number, Watch::Receive).unwrap();
        Self {
            socket,
            replies: 0,
            received: 0,
            reply: record(&success(number as u32, &[])),
        }
    }

    fn call(&mut self, number: usize) {
        let request = record(&call(number as u32, 0, &[]));
        self.socket.write_all(&request).unwrap();
    }

    /// Receives what is there; calls again when a reply is whole.
    fn go_on(&mut self, number: usize) {
        let mut room = [0; 256];
        loop {
            match self.socket.read(&mut room) {
                Ok(0) => panic!("the server closed connection {number}"),
                Ok(bytes) => {
                    let expected = &self.reply[self.received..];
                    assert!(expected.starts_with(&room[..bytes]), "{number}");
                    self.received += bytes;
                }
                Err(error) => return assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            if self.received == self.reply.len() {
                self.received = 0;
                self.replies += 1;
                // Others first: an answer to this one is an event of its own.
                return self.call(number);
            }
        }
    }
}

/// Calls over all connections until so many replies have come; each of them has a fair part of these.
fn keep_busy<S: Read + Write + AsFd>(server: &Server, count: usize, connect: impl Fn() -> S) {
    let mut poller = Poller::new().unwrap();
    let registry = poller.registry().unwrap();
    let busy = (0..count).map(|number| Busy::new(connect(), number, &registry));
    let mut busy: Vec<_> = busy.collect();
    eventually("all are accepted", || {
        server.counters().connections_open == count as u64
    });
    for (number, connection) in busy.iter_mut().enumerate() {
        connection.call(number);
    }
    let begin = Instant::now();
    let replies = |busy: &[Busy<S>]| busy.iter().map(|one| one.replies).sum::<usize>();
    while replies(&busy) < CALLS {
        assert!(begin.elapsed() < PATIENCE, "{} replies", replies(&busy));
        poller.wait(Some(Duration::from_secs(1))).unwrap();
        for event in poller.events() {
            busy[event.token].go_on(event.token);
        }
    }
    let least = busy.iter().map(|one| one.replies).min().unwrap();
    let most = busy.iter().map(|one| one.replies).max().unwrap();
    assert!(
        least >= CALLS / count / 3,
        "of {count} connections one has {least} replies, another {most}"
    );
    drop(busy);
    eventually("all are closed", || server.counters().connections_open == 0);
}

/// Grants the process as many descriptors as it may have, and returns how many connections with both ends that makes.
fn connections_max() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.unwrap_or(4096).min(4096);
    limit.current = Some(maximum);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.current,
            maximum: limit.maximum,
        },
    )
    .unwrap();
    (maximum as usize / 2).saturating_sub(100).min(1000)
}

pub fn no_connection_starves_among_many_busy_ones() {
    let server = builder().start().unwrap();
    let address = |scheme: &str| {
        let mut addresses = server.addresses().iter().map(ToString::to_string);
        let found = addresses.find_map(|at| at.strip_prefix(scheme).map(str::to_owned));
        found.unwrap()
    };
    let (tcp, unix) = (address("tcp://"), address("unix://"));
    // Two may have a thread each, and then the system says which of them goes on.
    for count in [3, 64, connections_max()] {
        keep_busy(&server, count, || {
            let socket = TcpStream::connect(&tcp).unwrap();
            socket.set_nodelay(true).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        });
        keep_busy(&server, count, || {
            let socket = UnixStream::connect(&unix).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        });
    }
}
