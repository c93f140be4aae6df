//! How the calls of a row are made, and where.

use std::fmt;
use std::time::Duration;

use tenon_bench_common::address::Transport;

use crate::report::{Ratio, Unit};

/// How calls are made, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One at a time, client and server each on a core: each call wakes two sleeping cores, which is
    /// the kernel's cost.
    Block,
    /// One at a time, both on one core: what remains is the cost of the software.
    OneCore,
    /// One at a time on two cores, and who can does not sleep while it waits.
    Spin,
    /// One at a time on two cores, both ends waiting as Tenon does by default; what cannot sleep looks all the time.
    Adaptive,
    /// So many at once by one client, on two cores.
    InFlight(usize),
    /// One at a time by each of so many clients, all on one core, the server on the other.
    Processes(usize),
    /// One at a time on each of so many connections of one client, which is one thread, on two cores.
    Clients(usize),
    /// One at a time by each of so many threads of one client, on two cores: Tenon's share a channel.
    Threads(usize),
}

/// How long a round takes.
const ROUND: Duration = Duration::from_millis(30);

/// How long one takes with many connections or threads: all of them are to have had their turn many times.
const LONG_ROUND: Duration = Duration::from_secs(1);

impl Mode {
    pub const CALLS: [Mode; 3] = [Mode::Block, Mode::OneCore, Mode::Spin];
    pub const THROUGHPUT: [Mode; 4] = [
        Mode::InFlight(1),
        Mode::InFlight(8),
        Mode::InFlight(64),
        Mode::Processes(4),
    ];

    /// Those of which only Null calls are measured.
    pub fn of_null_calls(transport: Transport) -> Vec<Mode> {
        let adaptive = [Mode::Adaptive];
        let clients = [1, 4, 64, 1000].map(Mode::Clients);
        let threads = [4, 64].map(Mode::Threads);
        match transport {
            Transport::Tcp | Transport::Unix => [&adaptive[..], &clients, &threads].concat(),
            Transport::Shm => adaptive.to_vec(),
            Transport::Udp | Transport::Exchange | Transport::Xdp => Vec::new(),
        }
    }

    pub fn server_core(self) -> usize {
        if self == Mode::OneCore { 1 } else { 0 }
    }

    /// How many rounds each contestant measures, in turns; the first does not count.
    pub fn rounds(self) -> usize {
        if self.has_many_callers() { 8 } else { 14 }
    }

    /// How long a round takes.
    pub fn round(self) -> Duration {
        if self.has_many_callers() {
            LONG_ROUND
        } else {
            ROUND
        }
    }

    /// Descriptors of one process of a contestant, about: each of many connections is one.
    pub fn descriptors(self) -> usize {
        match self {
            Mode::Clients(count) | Mode::Threads(count) => 128 + count,
            _ => 128,
        }
    }

    /// Calls that a client has in flight.
    pub fn in_flight(self) -> usize {
        match self {
            Mode::InFlight(calls) => calls,
            _ => 1,
        }
    }

    /// How many processes call.
    pub fn processes(self) -> usize {
        match self {
            Mode::Processes(count) => count,
            _ => 1,
        }
    }

    /// Whether one process calls over many connections or by many threads.
    pub fn has_many_callers(self) -> bool {
        matches!(self, Mode::Clients(_) | Mode::Threads(_))
    }

    /// How those wait who can be told.
    pub fn waiting(self) -> &'static str {
        match self {
            Mode::Block | Mode::OneCore => "block",
            Mode::Spin => "spin",
            Mode::Adaptive
            | Mode::InFlight(_)
            | Mode::Processes(_)
            | Mode::Clients(_)
            | Mode::Threads(_) => "adaptive",
        }
    }

    /// What counts: how long a call takes, or how many there are.
    pub fn unit(self) -> Unit {
        match self {
            Mode::Block | Mode::OneCore | Mode::Spin | Mode::Adaptive => Unit::Time,
            Mode::InFlight(_) | Mode::Processes(_) | Mode::Clients(_) | Mode::Threads(_) => {
                Unit::Rate
            }
        }
    }

    /// What is compared besides each contestant with Tenon.
    pub fn further_ratios(self) -> Vec<Ratio> {
        match self {
            Mode::Adaptive => vec![
                Ratio::of("tenon_tokio", "raw"),
                Ratio::of("tarpc", "tenon_tokio"),
            ],
            Mode::Clients(_) => vec![
                Ratio::of("tenon_tokio", "raw"),
                Ratio::of_p99("tenon", "raw"),
                Ratio::of_p99("tenon_tokio", "raw"),
            ],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Block => f.write_str("block"),
            Mode::OneCore => f.write_str("onecore"),
            Mode::Spin => f.write_str("spin"),
            Mode::Adaptive => f.write_str("adaptive"),
            Mode::InFlight(calls) => write!(f, "inflight{calls}"),
            Mode::Processes(count) => write!(f, "processes{count}"),
            Mode::Clients(count) => write!(f, "clients{count}"),
            Mode::Threads(count) => write!(f, "threads{count}"),
        }
    }
}
