//! One row of the section: an operation over a transport, called in some way.

use std::error::Error;
use std::time::Duration;

use tenon_bench_common::address::Transport;
use tenon_bench_common::operation::Operation;
use tenon_bench_common::protocol::Protocol;

use super::mode::Mode;
use super::system::System;
use crate::report::{CodecStats, Measured, Unit};
use tenon_bench::contestant::{Contestant, Plan};

/// Bytes that a UDP datagram holds, at most.
const DATAGRAM_MAX: usize = 65_507;

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
            for mode in Mode::of_null_calls(transport) {
                add(mode, &[Operation::Null]);
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

    /// Lets all contestants that can take part call in turns, in rounds of so long if that is said.
    ///
    /// # Errors
    /// A contestant, which the error names, fails or gives a wrong answer.
    pub fn measure(
        &self,
        systems: &[System],
        round: Option<Duration>,
    ) -> Result<Measured, Box<dyn Error>> {
        let (able, unable): (Vec<System>, Vec<System>) = systems
            .iter()
            .partition(|system| system.left_out(self).is_none());
        let left_out = unable
            .into_iter()
            .filter_map(|system| Some((system.name(), system.left_out(self)?)));
        Ok(Measured {
            name: self.name(),
            table: self.table(),
            row: self.label(),
            unit: self.mode.unit(),
            figures: self.take_turns(&able, round.unwrap_or(self.mode.round()))?,
            further: self.mode.further_ratios(),
            left_out: left_out.collect(),
        })
    }

    fn take_turns(
        &self,
        systems: &[System],
        length: Duration,
    ) -> Result<Vec<CodecStats>, Box<dyn Error>> {
        let mut contestants = Vec::new();
        for system in systems {
            let started = Contestant::start(&self.plan(*system), Ok);
            contestants.push(started.map_err(|error| format!("{}: {error}", system.name()))?);
        }
        let mut figures: Vec<CodecStats> =
            systems.iter().map(|s| CodecStats::new(s.name())).collect();
        for round in 0..self.mode.rounds() {
            for (contestant, figures) in contestants.iter_mut().zip(&mut figures) {
                let measured = contestant.round(length);
                let measured = measured.map_err(|error| format!("{}: {error}", figures.name))?;
                // The first warms up.
                if round > 0 {
                    figures.rounds.push(measured);
                }
            }
        }
        Ok(figures)
    }

    /// The table that it belongs to.
    fn table(&self) -> String {
        match (self.mode, self.mode.unit()) {
            (Mode::Clients(_), _) => format!("{}.clients", self.transport),
            (Mode::Threads(_), _) => format!("{}.threads", self.transport),
            (_, Unit::Time) => format!("{}.{}", self.transport, self.mode),
            (_, Unit::Rate | Unit::Bytes | Unit::Items) => self.transport.to_string(),
        }
    }

    /// Its name in there.
    fn label(&self) -> String {
        match self.mode.unit() {
            Unit::Time => self.operation.to_string(),
            Unit::Rate | Unit::Bytes | Unit::Items => {
                format!("{}.{}", self.mode, self.operation)
            }
        }
    }

    /// How a system takes part.
    pub fn plan(&self, system: System) -> Plan {
        Plan {
            server: system.server(self),
            server_core: self.mode.server_core(),
            client: system.client(self),
            client_core: 1,
            clients: self.mode.processes(),
            spins: system.spins(self),
        }
    }
}
