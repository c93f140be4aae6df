//! The physical limit of a server with many connections: for so many bytes received, so many sent, by one thread and
//! epoll. A reply bears the second word of its call, the number by which ONC RPC tells calls apart.
//!
//! It waits as Tenon's server of threads does: several connections are waited for asleep, a single one is looked at
//! for a while before.
//!
//! usage: `raw_echo_server adaptive CALL_BYTES REPLY_BYTES tcp|unix=PATH`

use std::error::Error;
use std::hint::spin_loop;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use tenon_bench::onc::null_reply;
use tenon_bench::streams::{Listener, Readiness, Stream};

/// How long a single connection is looked at: what waking a thread costs, about.
const LOOK: Duration = Duration::from_micros(50);

/// Looks at a single connection, at most, until it is seen whether there are others.
const LOOKS: usize = 4096;

/// The listener's token; connections have those behind it.
const LISTENER: usize = 0;

/// Where calls and replies of ONC RPC have their numbers.
const NUMBER: Range<usize> = 4..8;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, waiting, call_bytes, reply_bytes, transport] = &arguments[..] else {
        return Err("usage: raw_echo_server adaptive CALL_BYTES REPLY_BYTES TRANSPORT".into());
    };
    if waiting != "adaptive" {
        return Err(format!("the echo of many connections cannot wait by {waiting}").into());
    }
    let (call_bytes, reply_bytes) = (call_bytes.parse()?, reply_bytes.parse()?);
    if call_bytes < NUMBER.end || reply_bytes < NUMBER.end {
        return Err("calls and replies have 8 bytes at least".into());
    }
    let mut echo = Echo::new(Listener::bind(transport)?, call_bytes, reply_bytes)?;
    loop {
        echo.serve()?;
    }
}

/// The server.
struct Echo {
    listener: Listener,
    readiness: Readiness,
    /// Those that have ended are empty places.
    connections: Vec<Option<Connection>>,
    call_bytes: usize,
    reply: Vec<u8>,
    room: Vec<u8>,
    ready: Vec<usize>,
}

struct Connection {
    stream: Stream,
    /// The part of a call that has come.
    part: Vec<u8>,
}

impl Echo {
    fn new(listener: Listener, call_bytes: usize, reply_bytes: usize) -> io::Result<Self> {
        let readiness = Readiness::new()?;
        readiness.add(&listener, LISTENER)?;
        let mut reply = null_reply(0).to_vec();
        reply.resize(reply_bytes, 0);
        Ok(Self {
            listener,
            readiness,
            connections: Vec::new(),
            call_bytes,
            reply,
            room: vec![0; 4096],
            ready: Vec::new(),
        })
    }

    /// Waits, and serves what there is.
    fn serve(&mut self) -> io::Result<()> {
        let is_only_one = matches!(&self.connections[..], [Some(_)]);
        let mut ready = std::mem::take(&mut self.ready);
        if is_only_one && self.look_at_the_only_one() {
            self.readiness.look(&mut ready)?;
        } else {
            self.readiness.sleep(&mut ready)?;
        }
        for token in &ready {
            if *token == LISTENER {
                self.accept()?;
            } else {
                self.serve_connection(token - 1);
            }
        }
        self.ready = ready;
        Ok(())
    }

    /// Answers the calls of the first connection as long as they come quickly, and says whether they still do.
    fn look_at_the_only_one(&mut self) -> bool {
        let mut since = Instant::now();
        for _ in 0..LOOKS {
            if self.serve_connection(0) {
                since = Instant::now();
            } else if since.elapsed() > LOOK {
                return false;
            } else {
                spin_loop();
            }
        }
        true
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Some(stream) = self.listener.accept()? {
            self.connections.push(None);
            let token = self.connections.len();
            self.readiness.add(&stream, token)?;
            let part = Vec::with_capacity(self.call_bytes);
            self.connections[token - 1] = Some(Connection { stream, part });
        }
        Ok(())
    }

    /// Answers what has come, and says whether there was something.
    fn serve_connection(&mut self, index: usize) -> bool {
        let Some(connection) = &mut self.connections[index] else {
            return false;
        };
        match connection.serve(self.call_bytes, &mut self.reply, &mut self.room) {
            Ok(has_served) => has_served,
            Err(error) => {
                // Clients end when they have measured enough.
                if error.kind() != io::ErrorKind::UnexpectedEof {
                    eprintln!("raw_echo_server: {error}");
                }
                self.connections[index] = None;
                false
            }
        }
    }
}

impl Connection {
    fn serve(&mut self, call_bytes: usize, reply: &mut [u8], room: &mut [u8]) -> io::Result<bool> {
        let mut has_served = false;
        loop {
            let received = match self.stream.receive(room)? {
                None => return Ok(has_served),
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(received) => received,
            };
            has_served = true;
            self.part.extend_from_slice(&room[..received]);
            let calls = self.part.len() / call_bytes;
            for call in self.part.chunks_exact(call_bytes) {
                reply[NUMBER].copy_from_slice(&call[NUMBER]);
                self.stream.send(reply)?;
            }
            self.part.drain(..calls * call_bytes);
            if received < room.len() {
                return Ok(true);
            }
        }
    }
}
