//! The packets of a call by the kernel's time stamps: steps, and shares of hardware and software, as in figures 2 to 4 of
//! Firefly's authors.

use std::net::SocketAddr;

use serde_json::{Value as Json, json};
use tenon::{Address, Leg, PacketCosts, PacketCoverage, PacketStep, Part, Transport};

use super::measuring::ProfileFinding;
use super::report::{part_name, shown};
use crate::commands::table::render;
use crate::failure::CommandFailure;

/// What was measured beside the packets' time stamps.
#[derive(Debug, Clone, Copy)]
pub struct PacketMeasures {
    /// What the kernel takes for what has no time stamps.
    pub costs: PacketCosts,
    /// Nanoseconds by which a time stamp may be wrong when it is compared with the account's clock, in the median.
    pub clock_error: u64,
}

/// The steps of a packet, in order.
const STEPS: [PacketStep; 8] = [
    PacketStep::Headers,
    PacketStep::SystemCall,
    PacketStep::KernelOut,
    PacketStep::OutAndWire,
    PacketStep::Wire,
    PacketStep::WireAndIn,
    PacketStep::KernelIn,
    PacketStep::WakeUp,
];

/// Returns a failure if the packets of an address have no time stamps.
pub fn check(address: &Address) -> Result<(), CommandFailure> {
    let why = match address.transport() {
        Transport::Udp => return Ok(()),
        Transport::Tcp => "time stamps are taken of datagrams, and not of a stream's segments",
        Transport::Xdp => "its packets go past the kernel, which would stamp them",
        Transport::Unix | Transport::Shm => "no packets go there",
    };
    let failure = CommandFailure::usage(format!("--packets is not for {address}: {why}"));
    Err(failure.hint("lean+udp:// has packets with time stamps at both ends, udp:// at the client"))
}

/// Returns the phrase for a step of either packet.
fn step_name(step: PacketStep) -> &'static str {
    let name = part_name(Part::Packet(Leg::Call, step));
    name.strip_prefix("call: ").unwrap_or(name)
}

/// Nanoseconds of hardware and of software of a leg, or of the round trip.
#[derive(Debug, Clone, Copy, Default)]
struct Shares {
    hardware: f64,
    software: f64,
}

impl Shares {
    fn total(self) -> f64 {
        self.hardware + self.software
    }

    fn percent(self, nanos: f64) -> String {
        format!("{:.1} %", 100.0 * nanos / self.total().max(1.0))
    }
}

impl ProfileFinding {
    /// Returns the shares of the round trip. The wire is hardware, everything else software.
    fn shares(&self) -> Shares {
        let wires = self.summary.parts.iter().filter(|it| is_wire(it.part));
        let hardware: f64 = wires.map(|it| it.figures.typical).sum();
        Shares {
            hardware,
            software: self.summary.round_trip.typical - hardware,
        }
    }

    /// Returns the shares of a packet, if the steps of it are all known.
    fn shares_of(&self, leg: Leg) -> Option<Shares> {
        let hardware = self.typical(Part::Packet(leg, PacketStep::Wire))?;
        let steps = STEPS.into_iter();
        let all: f64 = steps
            .filter_map(|step| self.typical(Part::Packet(leg, step)))
            .sum();
        Some(Shares {
            hardware,
            software: all - hardware,
        })
    }

    /// Returns whether the wire is known apart from all else.
    fn knows_wire(&self) -> bool {
        self.summary.packets == PacketCoverage::Both
    }
}

fn is_wire(part: Part) -> bool {
    matches!(part, Part::Packet(_, PacketStep::Wire) | Part::BothWires)
}

/// Returns tables of the steps of both packets, and of the shares of hardware and software.
pub fn as_tables(finding: &ProfileFinding) -> String {
    let mut text = steps(finding);
    if finding.knows_wire() {
        text += "\n";
        text += &shares(finding);
    }
    text
}

fn steps(finding: &ProfileFinding) -> String {
    let cells = |leg, step| {
        let nanos = finding.typical(Part::Packet(leg, step));
        let percent = |nanos| format!("{:.1} %", finding.share(nanos));
        [
            nanos.map_or_else(|| "-".to_owned(), shown),
            nanos.map_or_else(|| "-".to_owned(), percent),
        ]
    };
    let has = |step: &PacketStep| {
        let legs = [Leg::Call, Leg::Reply].into_iter();
        legs.filter_map(|leg| finding.typical(Part::Packet(leg, *step)))
            .count()
            > 0
    };
    let rows = STEPS.into_iter().filter(has).map(|step| {
        let first = [step_name(step).to_owned()].into_iter();
        let both = [Leg::Call, Leg::Reply].into_iter();
        first
            .chain(both.flat_map(|leg| cells(leg, step)))
            .collect::<Vec<_>>()
    });
    let rows: Vec<_> = rows.collect();
    render(
        &["step of a packet", "call", "share", "reply", "share"],
        &rows,
        1,
    )
}

fn shares(finding: &ProfileFinding) -> String {
    let columns = [Leg::Call, Leg::Reply].map(|leg| finding.shares_of(leg));
    let columns = [columns[0], columns[1], Some(finding.shares())];
    let row = |what: &str, nanos: &dyn Fn(Shares) -> f64| {
        let cells = columns.iter().flat_map(|shares| match shares {
            Some(shares) => [shown(nanos(*shares)), shares.percent(nanos(*shares))],
            None => ["-".to_owned(), "-".to_owned()],
        });
        let first = [what.to_owned()].into_iter();
        first.chain(cells).collect::<Vec<_>>()
    };
    let rows = [
        row("hardware: the wire", &|shares| shares.hardware),
        row("software", &|shares| shares.software),
    ];
    let heading = ["", "call", "share", "reply", "share", "round trip", "share"];
    render(&heading, &rows, 1)
}

/// Returns notes on how the steps of packets are known.
pub fn notes(finding: &ProfileFinding, measures: &PacketMeasures) -> Vec<String> {
    let PacketMeasures { costs, clock_error } = measures;
    let mut notes = vec![format!(
        "The kernel's time stamps are of its real-time clock, and compared with the account's within {clock_error} ns. \
         It\nhas none of a system call by itself and of its way in from driver to socket: these were measured\nbeside, {} \
         and {} us, and what is left is \"{}\" and \"{}\".",
        shown(costs.system_call as f64),
        shown(costs.kernel_in as f64),
        step_name(PacketStep::Headers),
        step_name(PacketStep::WakeUp),
    )];
    if !finding.knows_wire() {
        notes.push(
            "The server has not said when its kernel had the packets, so the wire is not known by itself."
                .to_owned(),
        );
    } else if is_loopback(&finding.address) {
        notes.push(
            "The server is on this machine: its wire is a queue of the kernel, and no hardware takes part."
                .to_owned(),
        );
    }
    notes
}

/// Returns whether an address leads to this machine by its loopback.
fn is_loopback(address: &Address) -> bool {
    let resolved = address.host().and_then(|host| host.resolve().ok());
    let is_here = |at: &SocketAddr| at.ip().to_canonical().is_loopback();
    resolved.is_some_and(|all| all.iter().all(is_here))
}

/// Returns the same for programs.
pub fn as_json(finding: &ProfileFinding, measures: &PacketMeasures) -> Json {
    let shares = |shares: Option<Shares>| {
        shares.map(|shares| {
            json!({
                "hardware_us": shares.hardware / 1e3,
                "software_us": shares.software / 1e3,
                "hardware_share": shares.hardware / shares.total().max(1.0),
            })
        })
    };
    json!({
        "known": match finding.summary.packets {
            PacketCoverage::Both => "both",
            PacketCoverage::Client => "client",
            PacketCoverage::Neither => "none",
        },
        "system_call_us": measures.costs.system_call as f64 / 1e3,
        "kernel_in_us": measures.costs.kernel_in as f64 / 1e3,
        "clock_error_us": measures.clock_error as f64 / 1e3,
        "call": shares(finding.shares_of(Leg::Call)),
        "reply": shares(finding.shares_of(Leg::Reply)),
        "round_trip": shares(finding.knows_wire().then(|| finding.shares())),
    })
}
