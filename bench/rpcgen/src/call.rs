//! Whole calls: a value there and back, between programs of either maker.

use std::error::Error;
use std::time::Duration;

use tenon_bench::contestant::{Contestant, Plan};

use crate::Maker;
use crate::row::CodecStats;

/// Rounds that each pair of programs calls, in turns. The first, which warms up, does not count.
const ROUNDS: usize = 14;

/// How long a round takes.
const ROUND: Duration = Duration::from_millis(20);

/// What the calls go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
    Unix,
}

impl Transport {
    pub const ALL: [Transport; 3] = [Transport::Tcp, Transport::Udp, Transport::Unix];

    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Unix => "unix",
        }
    }
}

/// Where the ends run. Those of libtirpc sleep while they wait; a client with `--fast` looks before that, and a server with
/// `--fast` does not, as it may use one core alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Each on a core.
    Block,
    /// Both on one, where no wake-up of a core hides what a call costs.
    OneCore,
}

impl Mode {
    pub const ALL: [Mode; 2] = [Mode::Block, Mode::OneCore];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Block => "block",
            Mode::OneCore => "onecore",
        }
    }

    fn server_core(self) -> usize {
        match self {
            Mode::Block => 0,
            Mode::OneCore => 1,
        }
    }
}

/// Who is made by whom: client, then server.
const MIXES: [(&str, [Maker; 2]); 6] = [
    ("rpcgen", [Maker::Rpcgen, Maker::Rpcgen]),
    ("client", [Maker::Tenon, Maker::Rpcgen]),
    ("server", [Maker::Rpcgen, Maker::Tenon]),
    ("both", [Maker::Tenon, Maker::Tenon]),
    ("fast_client", [Maker::Fast, Maker::Rpcgen]),
    ("fast", [Maker::Fast, Maker::Fast]),
];

/// A work over a transport.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub transport: Transport,
    pub mode: Mode,
    pub work: &'static str,
}

impl Call {
    /// Its name: two cores are not mentioned.
    pub fn name(&self) -> String {
        let (transport, work) = (self.transport.name(), self.work);
        match self.mode {
            Mode::Block => format!("call.{transport}.{work}"),
            Mode::OneCore => format!("call.{transport}.onecore.{work}"),
        }
    }

    /// Whether libtirpc carries it: a directory of a hundred entries takes more than the 8000 bytes that it has for
    /// arguments in a datagram.
    pub fn fits_datagram(&self) -> bool {
        (self.transport, self.work) != (Transport::Udp, "nested100")
    }

    /// Lets the pairs call in turns.
    ///
    /// # Errors
    /// A contestant, which the error names, fails or gives a wrong answer.
    pub fn measure(&self) -> Result<Vec<CodecStats>, Box<dyn Error>> {
        let mut contestants = Vec::new();
        for (name, makers) in MIXES {
            let started = Contestant::start(&self.plan(name, makers), Ok);
            contestants.push(started.map_err(|error| format!("{name}: {error}"))?);
        }
        let mut figures: Vec<CodecStats> = MIXES.map(|(name, _)| CodecStats::new(name)).into();
        for round in 0..ROUNDS {
            for (contestant, figures) in contestants.iter_mut().zip(&mut figures) {
                let measured = contestant.round(ROUND);
                let measured = measured.map_err(|error| format!("{}: {error}", figures.name))?;
                if round > 0 {
                    figures.nanoseconds.push(measured.median_us * 1e3);
                }
            }
        }
        Ok(figures)
    }

    fn plan(&self, name: &str, [client, server]: [Maker; 2]) -> Plan {
        let program = |maker: Maker, role: &str| maker.program(role).display().to_string();
        let listen = match self.transport {
            Transport::Tcp | Transport::Udp => self.transport.name().to_owned(),
            // The server removes what is there.
            Transport::Unix => {
                let file = format!("tenon-bench-rpcgen-{}-{name}.sock", std::process::id());
                format!("unix={}", std::env::temp_dir().join(file).display())
            }
        };
        Plan {
            server: vec![program(server, "server"), listen],
            server_core: self.mode.server_core(),
            client: vec![program(client, "client"), self.work.to_owned()],
            client_core: 1,
            clients: 1,
            spins: false,
        }
    }
}
