//! What a call would take if something were faster: Firefly's authors asked that of the network and of the processor.

use serde_json::{Value as Json, json};
use tenon::{Address, Owner, PacketCoverage, PacketStep, Part, Protocol, Transport};

use super::measuring::ProfileFinding;
use super::report::{part_name, shown};
use crate::args::{Factor, FactorName};
use crate::commands::table::render;
use crate::failure::CommandFailure;

/// Round trips with the factors, each by itself and all together.
pub struct Projection {
    /// The round trip as it was measured, in nanoseconds.
    measured: f64,
    /// The same with one factor.
    each: Vec<(Factor, f64)>,
    /// The same with all factors.
    all: f64,
}

/// Computes round trips from the typical times of the steps.
///
/// # Errors
/// A factor concerns a part of a step that is not divided further.
pub fn project(finding: &ProfileFinding, factors: &[Factor]) -> Result<Projection, CommandFailure> {
    let parts = finding.summary.parts.iter();
    let steps: Vec<_> = parts
        .map(|step| (step.part, step.figures.typical))
        .collect();
    let transport = finding.address.transport();
    project_steps(&steps, transport, factors).map_err(|mixed| mixed.explained(finding))
}

/// A step that a factor concerns in part.
#[derive(Debug, PartialEq)]
struct MixedStep {
    factor: FactorName,
    part: Part,
}

fn project_steps(
    steps: &[(Part, f64)],
    transport: Transport,
    factors: &[Factor],
) -> Result<Projection, MixedStep> {
    let round_trip = |factors: &[Factor]| {
        let times = steps.iter();
        let times = times.map(|(part, nanos)| faster(*part, *nanos, transport, factors));
        times.sum::<Result<f64, MixedStep>>()
    };
    let each = factors.iter().map(|factor| {
        let alone = round_trip(std::slice::from_ref(factor))?;
        Ok((*factor, alone))
    });
    Ok(Projection {
        measured: round_trip(&[])?,
        each: each.collect::<Result<_, _>>()?,
        all: round_trip(factors)?,
    })
}

/// Returns the time of a step with all factors that concern it.
fn faster(
    part: Part,
    nanos: f64,
    transport: Transport,
    factors: &[Factor],
) -> Result<f64, MixedStep> {
    factors.iter().try_fold(nanos, |nanos, factor| {
        let mixed = MixedStep {
            factor: factor.name,
            part,
        };
        Ok(match concerns(factor.name, part, transport).ok_or(mixed)? {
            false => nanos,
            true if factor.times == 0.0 => 0.0,
            true => nanos / factor.times,
        })
    })
}

/// Returns whether a step is what would be faster; `None` if a part of it is.
fn concerns(factor: FactorName, part: Part, transport: Transport) -> Option<bool> {
    let is_code = match part.owner() {
        Owner::Client | Owner::Server => Some(true),
        Owner::Kernel => Some(false),
        Owner::Unknown => None,
    };
    if factor == FactorName::Stubs {
        return is_code;
    }
    if is_code == Some(true) {
        return Some(factor == FactorName::Cpu);
    }
    // Where no network is between the ends, all is software.
    let has_no_wire = transport.stays_on_host();
    match (factor, part) {
        (FactorName::Cpu, _) if has_no_wire => Some(true),
        (FactorName::Wire, _) if has_no_wire => Some(false),
        (_, Part::Packet(_, PacketStep::WireAndIn)) if factor == FactorName::Headers => Some(false),
        (_, Part::Packet(_, PacketStep::OutAndWire)) if factor == FactorName::Wakeup => Some(false),
        (_, Part::Packet(_, PacketStep::WireAndIn | PacketStep::OutAndWire)) => None,
        (FactorName::Cpu, Part::Packet(_, step)) => Some(step != PacketStep::Wire),
        (FactorName::Wire, Part::Packet(_, step)) => Some(step == PacketStep::Wire),
        (FactorName::Wakeup, Part::Packet(_, step)) => Some(step == PacketStep::WakeUp),
        (FactorName::Headers, Part::Packet(_, step)) => Some(step == PacketStep::Headers),
        (factor, Part::BothWires) => Some(factor == FactorName::Wire),
        _ => None,
    }
}

impl MixedStep {
    fn explained(&self, finding: &ProfileFinding) -> CommandFailure {
        let (name, step) = (self.factor.word(), part_name(self.part));
        let failure = CommandFailure::new(format!(
            "what {name}={} would change is a part of \"{step}\", which this account does not divide",
            "N"
        ));
        failure.hint(remedy(finding.summary.packets, &finding.address))
    }
}

/// Returns what to do so that a step is divided.
fn remedy(known: PacketCoverage, address: &Address) -> &'static str {
    match (address.transport(), address.protocol(), known) {
        (Transport::Udp, Protocol::Lean, PacketCoverage::Neither) => {
            "--packets divides it by the kernel's time stamps"
        }
        (Transport::Udp, Protocol::Lean, _) => {
            "the server does not say when its kernel had the packets: Tenon's do of calls that are quick"
        }
        (Transport::Udp, Protocol::Onc, _) => {
            "ONC RPC has no room for what the server knows: --packets at lean+udp:// divides it"
        }
        (Transport::Tcp | Transport::Xdp, ..) => {
            "the kernel has time stamps for datagrams: --packets at lean+udp:// divides it"
        }
        (Transport::Unix | Transport::Shm, ..) => {
            "no packets go there: cpu and wire are known, and stubs by the lean protocol"
        }
    }
}

impl Projection {
    /// Returns a table with a row for each factor, and one for all.
    pub fn as_table(&self) -> String {
        let row = |what: String, nanos: f64| {
            let saved = self.measured - nanos;
            let saved_cell = match saved < 0.0 {
                true => format!("-{}", shown(-saved)),
                false => shown(saved),
            };
            let share = format!("{:.1} %", self.share(nanos));
            vec![what, shown(nanos), saved_cell, share]
        };
        let as_measured = [
            "as measured".to_owned(),
            shown(self.measured),
            String::new(),
            String::new(),
        ];
        let mut rows = vec![as_measured.to_vec()];
        let each = self.each.iter();
        rows.extend(each.map(|(factor, nanos)| row(sentence(*factor), *nanos)));
        if self.each.len() > 1 {
            rows.push(row("all of these".to_owned(), self.all));
        }
        render(&["what if", "round trip", "saved", "share"], &rows, 1)
    }

    /// Returns the part of the round trip that is saved, in per cent.
    fn share(&self, nanos: f64) -> f64 {
        100.0 * (self.measured - nanos) / self.measured.max(1.0)
    }

    /// Returns the same in microseconds.
    pub fn as_json(&self) -> Json {
        let figures = |nanos: f64| {
            json!({
                "round_trip_us": nanos / 1e3,
                "saved_us": (self.measured - nanos) / 1e3,
                "share": self.share(nanos) / 100.0,
            })
        };
        let each = self.each.iter().map(|(factor, nanos)| {
            let mut json = figures(*nanos);
            json["name"] = factor.name.word().into();
            json["times"] = factor.times.into();
            json
        });
        json!({
            "each": each.collect::<Vec<_>>(),
            "all": figures(self.all),
        })
    }
}

/// Returns what a factor says.
fn sentence(factor: Factor) -> String {
    let what = match factor.name {
        FactorName::Cpu => "all software",
        FactorName::Wire => "the wire",
        FactorName::Wakeup => "waking up",
        FactorName::Headers => "headers, checksums and copying",
        FactorName::Stubs => "client's and server's code",
    };
    match (factor.name, factor.times) {
        (FactorName::Wakeup, 0.0) => "both ends look instead of sleeping".to_owned(),
        (_, 0.0) => format!("{what} took no time"),
        (_, times) => format!("{what} {times} times as fast"),
    }
}

#[cfg(test)]
mod tests {
    use tenon::Leg;

    use super::*;

    const CALL: Leg = Leg::Call;
    const REPLY: Leg = Leg::Reply;

    /// Firefly's Null: 606 us of stubs and run time, and twice a packet of 74 bytes (its figures 1 and 2).
    fn firefly_null() -> Vec<(Part, f64)> {
        let packet = |leg| {
            [
                (Part::Packet(leg, PacketStep::Headers), 104.0),
                (Part::Packet(leg, PacketStep::SystemCall), 37.0),
                (Part::Packet(leg, PacketStep::KernelOut), 147.0),
                // Both transfers between memory and controller, and the Ethernet.
                (Part::Packet(leg, PacketStep::Wire), 70.0 + 60.0 + 80.0),
                (Part::Packet(leg, PacketStep::KernelIn), 191.0 + 45.0),
                (Part::Packet(leg, PacketStep::WakeUp), 220.0),
            ]
        };
        let code = [(Part::Encode, 400.0), (Part::Serve, 206.0)];
        [&code[..], &packet(CALL), &packet(REPLY)].concat()
    }

    fn round_trip(steps: &[(Part, f64)], factors: &[&str]) -> Result<f64, MixedStep> {
        let factors: Vec<Factor> = factors
            .iter()
            .map(|it| it.parse().expect("a factor"))
            .collect();
        project_steps(steps, Transport::Udp, &factors).map(|projection| projection.all)
    }

    #[test]
    fn projections_of_a_fixed_account_are_those_of_the_paper() {
        let steps = firefly_null();
        let projected = |factors: &[&str]| round_trip(&steps, factors).expect("all is divided");
        let check = |factors: &[&str], expected: f64| {
            let projected = projected(factors);
            let is_near = (projected - expected).abs() < 1e-6;
            assert!(is_near, "{factors:?}: {projected} {expected}");
        };
        check(&[], 2514.0);
        // The paper: a processor ten times as fast saves about 75 per cent.
        let software = 2514.0 - 420.0;
        check(&["cpu=10"], 420.0 + software / 10.0);
        let saved = 1.0 - projected(&["cpu=10"]) / 2514.0;
        assert!((0.74..0.76).contains(&saved), "{saved}");
        check(&["wire=10"], software + 42.0);
        check(&["cpu=10", "wire=10"], 251.4);
        // Looking instead of sleeping.
        check(&["wakeup=0"], 2514.0 - 440.0);
        check(&["wakeup=0", "cpu=2"], 420.0 + (software - 440.0) / 2.0);
        check(&["headers=0"], 2514.0 - 208.0);
        check(&["stubs=2"], 2514.0 - 303.0);
        check(&["cpu=1", "wire=1"], 2514.0);
        check(&["wire=0.5"], 2514.0 + 420.0);
    }

    #[test]
    fn what_an_account_does_not_divide_is_no_guess() {
        let undivided = [
            (Part::Encode, 1.0),
            (Part::CallAway, 4.0),
            (Part::Serve, 2.0),
        ];
        assert_eq!(round_trip(&undivided, &["stubs=2"]), Ok(5.5));
        for name in ["cpu", "wire", "wakeup", "headers"] {
            let factor = format!("{name}=10");
            let mixed = round_trip(&undivided, &[&factor]).expect_err("it is not divided");
            assert_eq!((mixed.factor.word(), mixed.part), (name, Part::CallAway));
        }
        // The client's packets alone are known.
        let half = [
            (Part::Packet(CALL, PacketStep::Headers), 4.0),
            (Part::Packet(CALL, PacketStep::WireAndIn), 8.0),
            (Part::Packet(REPLY, PacketStep::OutAndWire), 8.0),
            (Part::Packet(REPLY, PacketStep::WakeUp), 2.0),
        ];
        for name in ["cpu", "wire", "wakeup", "headers"] {
            let factor = format!("{name}=10");
            round_trip(&half, &[&factor]).expect_err("the server's packets are not known");
        }
        // By ONC RPC not even what is the server's.
        let onc = [(Part::Encode, 1.0), (Part::Wait, 9.0)];
        let mixed = round_trip(&onc, &["stubs=2"]).expect_err("it is not divided");
        assert_eq!((mixed.factor, mixed.part), (FactorName::Stubs, Part::Wait));
    }

    #[test]
    fn without_a_network_all_is_software() {
        let steps = [
            (Part::Encode, 1.0),
            (Part::CallAway, 4.0),
            (Part::Serve, 2.0),
        ];
        let projected = |text: &str| {
            let factor = text.parse().expect("a factor");
            project_steps(&steps, Transport::Unix, &[factor]).map(|projection| projection.all)
        };
        let cpu = projected("cpu=10").expect("all is software");
        assert!((cpu - 0.7).abs() < 1e-9, "{cpu}");
        assert_eq!(projected("wire=10"), Ok(7.0));
        assert!(projected("wakeup=0").is_err());
    }
}
