//! What a server offers and has seen, whoever executes it.

use std::sync::Arc;

use tenon_net::Transport;
use tenon_proto::onc::record::FRAGMENT_MAX;

use super::counters::Tally;
use super::limits::ServerLimits;
use super::memory::Memory;
use super::services::Services;

/// What a server offers and has seen.
pub struct Offer {
    /// What it serves.
    pub services: Services,
    /// What it grants its peers.
    pub limits: ServerLimits,
    /// Bytes of a fragment of a reply on a stream.
    pub fragment_max: usize,
    /// What it has seen.
    pub tally: Arc<Tally>,
    /// What half-received requests have taken of what they may take.
    pub memory: Arc<Memory>,
}

impl Offer {
    /// An offer that nobody has taken yet.
    pub fn new(services: Services, limits: ServerLimits, fragment_max: usize) -> Self {
        let memory = Memory::new(limits.receive_bytes);
        Self {
            services,
            limits,
            fragment_max: fragment_max.clamp(1, FRAGMENT_MAX),
            tally: Arc::default(),
            memory,
        }
    }

    /// Bytes of a fragment of a reply over `transport`. What is a datagram is not cut.
    pub fn fragment_max_over(&self, transport: Transport) -> usize {
        match transport {
            Transport::Tcp | Transport::Unix | Transport::Shm => self.fragment_max,
            Transport::Udp | Transport::Xdp => FRAGMENT_MAX,
        }
    }
}
