//! Calls Null by ONC RPC over many connections, one call outstanding on each, by one thread: what servers of ONC RPC,
//! and the raw echo, are compared with under the same load. Between the first call of a round and the last reply it
//! does not sleep, so servers pay nothing for waking it.
//!
//! usage: `onc_connections_client CONNECTIONS tcp HOST PORT|unix PATH`

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use tenon_bench::onc::{REPLY_BYTES, null_call, null_reply};
use tenon_bench::streams::{Readiness, Stream};
use tenon_bench_common::address::Address;
use tenon_bench_common::measure::{Round, Rounds};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// How long no connection may get a reply.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Looks between two readings of the clock.
const LOOKS: u32 = 1024;

/// How much of the time between these counts, at most: this process may have been stopped meanwhile.
const LOOKED_MAX: Duration = Duration::from_millis(10);

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, connections, address @ ..] = &arguments[..] else {
        return Err("usage: onc_connections_client CONNECTIONS ADDRESS...".into());
    };
    let mut callers = Callers::connect(connections.parse()?, &Address::from_arguments(address)?)?;
    let mut rounds = Rounds::begin()?;
    while let Some(mut round) = rounds.next_round()? {
        callers.call(&mut round)?;
        rounds.answer(round)?;
    }
    Ok(())
}

/// All connections.
struct Callers {
    callers: Vec<Caller>,
    readiness: Readiness,
    ready: Vec<usize>,
    /// Calls without a reply.
    outstanding: usize,
}

impl Callers {
    fn connect(connections: usize, address: &Address) -> Outcome<Self> {
        let mut all = Self {
            callers: Vec::with_capacity(connections),
            readiness: Readiness::new()?,
            ready: Vec::new(),
            outstanding: 0,
        };
        for made in 0..connections {
            all.add(address)
                .map_err(|error| format!("connection {} of {connections}: {error}", made + 1))?;
        }
        Ok(all)
    }

    /// Connects once more and makes a call. That has the server accept the connection before the next is made: no
    /// listener has a queue for a thousand.
    fn add(&mut self, address: &Address) -> Outcome {
        let stream = Stream::connect(address)?;
        self.readiness.add(&stream, self.callers.len())?;
        let mut caller = Caller::new(stream);
        caller.send(Instant::now())?;
        self.callers.push(caller);
        self.outstanding = 1;
        self.receive(|_| None)
    }

    /// Calls for a round.
    fn call(&mut self, round: &mut Round) -> Outcome {
        for caller in &mut self.callers {
            caller.send(round.start())?;
        }
        self.outstanding = self.callers.len();
        self.receive(|sent| {
            let now = round.record(sent);
            round.goes_on(now).then_some(now)
        })
    }

    /// Receives until no call is outstanding. `next` is told when the call of each reply was sent, and returns the
    /// time if another is to be made.
    fn receive(&mut self, mut next: impl FnMut(Instant) -> Option<Instant>) -> Outcome {
        while self.outstanding > 0 {
            self.look()?;
            for index in &self.ready {
                let caller = &mut self.callers[*index];
                if !caller.receive()? {
                    continue;
                }
                match next(caller.sent) {
                    Some(now) => caller.send(now)?,
                    None => self.outstanding -= 1,
                }
            }
        }
        Ok(())
    }

    /// Looks until some connections have something to receive.
    fn look(&mut self) -> Outcome {
        let mut silence = Duration::ZERO;
        let mut before = None;
        for looks in 1_u32.. {
            self.readiness.look(&mut self.ready)?;
            if !self.ready.is_empty() {
                break;
            }
            if looks.is_multiple_of(LOOKS) {
                let now = Instant::now();
                silence += (now - before.replace(now).unwrap_or(now)).min(LOOKED_MAX);
            }
            if silence > SILENCE_MAX {
                let (silent, all) = (self.outstanding, self.callers.len());
                return Err(format!("{silent} of {all} connections get no reply").into());
            }
        }
        Ok(())
    }
}

/// A connection with its call.
struct Caller {
    stream: Stream,
    xid: u32,
    sent: Instant,
    reply: [u8; REPLY_BYTES],
    received: usize,
}

impl Caller {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            xid: 0,
            sent: Instant::now(),
            reply: [0; REPLY_BYTES],
            received: 0,
        }
    }

    fn send(&mut self, now: Instant) -> io::Result<()> {
        self.xid = self.xid.wrapping_add(1);
        self.sent = now;
        self.received = 0;
        self.stream.send(&null_call(self.xid))
    }

    /// Receives what is there, and says whether that completes the reply. One receive is enough: a reply that comes
    /// in two parts is told of twice.
    fn receive(&mut self) -> Outcome<bool> {
        match self.stream.receive(&mut self.reply[self.received..])? {
            None => return Ok(false),
            Some(0) => return Err("the server has ended a connection".into()),
            Some(received) => self.received += received,
        }
        if self.received < REPLY_BYTES {
            return Ok(false);
        }
        if self.reply == null_reply(self.xid) {
            Ok(true)
        } else {
            Err(format!("call {} was answered by {:02x?}", self.xid, self.reply).into())
        }
    }
}
