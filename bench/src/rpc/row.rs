//! One row of the section: an operation over a transport, called in some way.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tenon_bench_common::address::Transport;
use tenon_bench_common::operation::Operation;
use tenon_bench_common::protocol::Protocol;

use super::system::System;
use crate::report::{Figures, Measured, Unit};
use tenon_bench::contestant::{Contestant, Plan};

/// Rounds that each contestant measures, in turns. The first, which warms up, does not count.
const ROUNDS: usize = 14;

/// How long a round takes.
const ROUND: Duration = Duration::from_millis(30);

/// Bytes that a UDP datagram holds, at most.
const DATAGRAM_MAX: usize = 65_507;

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
    /// So many at once by one client, on two cores.
    InFlight(usize),
    /// One at a time by each of so many clients, all on one core, the server on the other.
    Clients(usize),
}

impl Mode {
    const CALLS: [Mode; 3] = [Mode::Block, Mode::OneCore, Mode::Spin];
    const THROUGHPUT: [Mode; 4] = [
        Mode::InFlight(1),
        Mode::InFlight(8),
        Mode::InFlight(64),
        Mode::Clients(4),
    ];

    fn server_core(self) -> usize {
        match self {
            Mode::OneCore => 1,
            Mode::Block | Mode::Spin | Mode::InFlight(_) | Mode::Clients(_) => 0,
        }
    }

    /// Calls that a client has in flight.
    pub fn in_flight(self) -> usize {
        match self {
            Mode::InFlight(calls) => calls,
            Mode::Block | Mode::OneCore | Mode::Spin | Mode::Clients(_) => 1,
        }
    }

    /// How many clients there are.
    pub fn clients(self) -> usize {
        match self {
            Mode::Clients(count) => count,
            Mode::Block | Mode::OneCore | Mode::Spin | Mode::InFlight(_) => 1,
        }
    }

    /// How those wait who can be told.
    pub fn waiting(self) -> &'static str {
        match self {
            Mode::Block | Mode::OneCore => "block",
            Mode::Spin => "spin",
            Mode::InFlight(_) | Mode::Clients(_) => "adaptive",
        }
    }

    /// What counts: how long a call takes, or how many there are.
    fn unit(self) -> Unit {
        match self {
            Mode::Block | Mode::OneCore | Mode::Spin => Unit::Time,
            Mode::InFlight(_) | Mode::Clients(_) => Unit::Rate,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Block => f.write_str("block"),
            Mode::OneCore => f.write_str("onecore"),
            Mode::Spin => f.write_str("spin"),
            Mode::InFlight(calls) => write!(f, "inflight{calls}"),
            Mode::Clients(count) => write!(f, "clients{count}"),
        }
    }
}

/// What is measured together.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub transport: Transport,
    pub mode: Mode,
    pub operation: Operation,
}

impl Row {
    /// All there are.
    pub fn all() -> Vec<Row> {
        let mut rows = Vec::new();
        for transport in Transport::ALL {
            let mut add = |mode, operations: &[Operation]| {
                rows.extend(operations.iter().map(|operation| Row {
                    transport,
                    mode,
                    operation: *operation,
                }));
            };
            if transport == Transport::Xdp {
                // What can be saved is the kernel's work, and not that of waking who sleeps.
                add(Mode::Spin, &Operation::all());
                continue;
            }
            for mode in Mode::CALLS {
                add(mode, &Operation::all());
            }
            if transport.is_stream() {
                for mode in Mode::THROUGHPUT {
                    add(mode, &Operation::SMALL);
                }
            }
        }
        rows.retain(|row| row.fits_datagram(DATAGRAM_MAX));
        rows
    }

    /// `tcp.onecore.null`, for instance.
    pub fn name(&self) -> String {
        format!("{}.{}.{}", self.transport, self.mode, self.operation)
    }

    /// Whether its messages, by ONC RPC, find room if the transport carries datagrams of so many bytes.
    pub fn fits_datagram(&self, bytes_max: usize) -> bool {
        let [call, reply] = self.message_bytes(Protocol::Onc);
        self.transport.is_stream() || call.max(reply) <= bytes_max
    }

    /// Whether Tenon's messages by the packet exchange find room in a datagram, if it goes by that.
    pub fn is_datagram(&self) -> bool {
        let [call, reply] = self.message_bytes(Protocol::Lean);
        self.transport != Transport::Exchange || call.max(reply) <= DATAGRAM_MAX
    }

    /// Whether it is the one in shared memory in which a system of sockets takes part, over a Unix socket: many
    /// greetings at once.
    pub fn is_greetings_in_memory(&self) -> bool {
        let many = Mode::InFlight(64);
        self.transport == Transport::Shm
            && self.mode == many
            && self.operation == Operation::SayHello
    }

    /// Bytes of its calls and replies by a protocol of Tenon's.
    pub fn message_bytes(&self, protocol: Protocol) -> [usize; 2] {
        let operation = self.operation;
        [
            protocol.call_bytes(operation.argument_bytes(), self.transport),
            protocol.reply_bytes(operation.result_bytes(), self.transport),
        ]
    }

    /// Lets all contestants that can take part call in turns.
    pub fn measure(&self, systems: &[System]) -> Result<Measured, Box<dyn Error>> {
        let (able, unable): (Vec<System>, Vec<System>) = systems
            .iter()
            .partition(|system| system.left_out(self).is_none());
        let mut contestants = Vec::new();
        for system in &able {
            contestants.push(Contestant::start(&self.plan(*system), Ok)?);
        }
        let mut figures: Vec<Figures> = able.iter().map(|s| Figures::new(s.name())).collect();
        for round in 0..ROUNDS {
            for (contestant, figures) in contestants.iter_mut().zip(&mut figures) {
                let measured = contestant.round(ROUND)?;
                if round > 0 {
                    figures.rounds.push(measured);
                }
            }
        }
        let left_out = unable
            .into_iter()
            .filter_map(|system| Some((system.name(), system.left_out(self)?)));
        Ok(Measured {
            name: self.name(),
            table: self.table(),
            row: self.label(),
            unit: self.mode.unit(),
            figures,
            left_out: left_out.collect(),
        })
    }

    /// The table that it belongs to.
    fn table(&self) -> String {
        match self.mode.unit() {
            Unit::Time => format!("{}.{}", self.transport, self.mode),
            Unit::Rate => self.transport.to_string(),
        }
    }

    /// Its name in there.
    fn label(&self) -> String {
        match self.mode.unit() {
            Unit::Time => self.operation.to_string(),
            Unit::Rate => format!("{}.{}", self.mode, self.operation),
        }
    }

    /// How a system takes part.
    pub fn plan(&self, system: System) -> Plan {
        Plan {
            server: system.server(self),
            server_core: self.mode.server_core(),
            client: system.client(self),
            client_core: 1,
            clients: self.mode.clients(),
            spins: system.spins(self),
        }
    }
}
