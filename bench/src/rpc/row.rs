//! One row of the section: an operation over a transport, client and server placed on cores.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tenon_bench::address::Transport;
use tenon_bench::operation::Operation;

use super::system::System;
use crate::contestant::Contestant;
use crate::report::{Figures, Measured};

/// Rounds that each contestant measures, in turns. The first, which warms up, does not count.
const ROUNDS: usize = 14;

/// How long a round takes.
const ROUND: Duration = Duration::from_millis(30);

/// Bytes that a UDP datagram holds, at most.
const DATAGRAM_MAX: usize = 65_507;

/// Which cores client and server are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Each on its own: each call wakes two sleeping cores, which is the kernel's cost.
    Block,
    /// Both on one: what remains is the cost of the software.
    OneCore,
}

impl Placement {
    pub const ALL: [Placement; 2] = [Placement::Block, Placement::OneCore];

    fn server_core(self) -> usize {
        match self {
            Placement::Block => 0,
            Placement::OneCore => 1,
        }
    }

    fn client_core(self) -> usize {
        1
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Placement::Block => "block",
            Placement::OneCore => "onecore",
        })
    }
}

/// What is measured together.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub transport: Transport,
    pub placement: Placement,
    pub operation: Operation,
}

impl Row {
    /// `tcp.onecore.null`, for instance.
    pub fn name(&self) -> String {
        format!("{}.{}.{}", self.transport, self.placement, self.operation)
    }

    /// Whether the transport can carry it at all.
    pub fn fits(&self) -> bool {
        let largest = self
            .operation
            .call_bytes()
            .max(self.operation.reply_bytes());
        self.transport != Transport::Udp || largest <= DATAGRAM_MAX
    }

    /// Lets all contestants that can take part call in turns.
    pub fn measure(&self) -> Result<Measured, Box<dyn Error>> {
        let systems: Vec<System> = System::ALL
            .into_iter()
            .filter(|system| system.left_out(self).is_none())
            .collect();
        let mut contestants = Vec::new();
        for system in &systems {
            contestants.push(self.start(*system)?);
        }
        let mut figures: Vec<Figures> = systems.iter().map(|s| Figures::new(s.name())).collect();
        for round in 0..ROUNDS {
            for (contestant, figures) in contestants.iter_mut().zip(&mut figures) {
                let measured = contestant.round(ROUND)?;
                if round > 0 {
                    figures.rounds.push(measured);
                }
            }
        }
        let left_out = System::ALL
            .into_iter()
            .filter_map(|system| Some((system.name(), system.left_out(self)?)));
        Ok(Measured {
            group: format!("{}.{}", self.transport, self.placement),
            row: self.operation.to_string(),
            figures,
            left_out: left_out.collect(),
        })
    }

    fn start(&self, system: System) -> Result<Contestant, Box<dyn Error>> {
        Contestant::start(
            (&system.server(self), self.placement.server_core()),
            (&system.client(self), self.placement.client_core()),
        )
    }
}
