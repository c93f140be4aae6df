//! How a design is run: each engine shows that its answers are right, then enters the contests.

mod compiled;
mod dynamic;

/// The run-time items that the generated stubs use, by the names that they use.
pub(crate) mod run_time {
    pub use crate::moving::wire;
}

use crate::design::{StubDesign, StubEngine};
use crate::entry::CodecBenchmarks;
use crate::study::{StudyError, WireFormat};
use crate::work::{SampleValues, Workload};

pub use dynamic::{DesignInterfaces, interface};

/// One work, made ready: everything that all designs are given.
pub struct PreparedWorkload<'a> {
    /// The procedure.
    pub work: Workload,
    /// The layout of its items on the wire.
    pub wire: WireFormat,
    /// Its value.
    pub sample: &'a SampleValues,
    /// The bytes that every design has to write and to read.
    pub bytes: &'a [u8],
    /// For the engines that learn an interface at run time.
    pub interfaces: &'a DesignInterfaces,
}

/// Lets a design enter the contests of a work.
///
/// # Errors
/// It writes other bytes than it should, or reads another value.
pub fn enter<'a>(
    design: &'a StubDesign,
    stage: &PreparedWorkload<'a>,
    contests: &mut CodecBenchmarks<'a>,
) -> Result<(), StudyError> {
    let refused = |why: String| StudyError::Wrong {
        design: design.name(),
        work: stage.work.notation(),
        why,
    };
    match design.engine {
        StubEngine::Interpreted => dynamic::enter_interpreted(design, stage, contests),
        StubEngine::Compiled => compiled::enter(design, stage, contests),
        StubEngine::Machine => dynamic::enter_machine(design, stage, contests),
    }
    .map_err(refused)
}

/// Holds the bytes that a design has written against those it had to write.
pub fn check_bytes(written: &[u8], expected: &[u8]) -> Result<(), String> {
    match written == expected {
        true => Ok(()),
        false => Err("the bytes that it writes are others".to_owned()),
    }
}

/// Holds the value that a design has read against the one that was meant.
fn check_value<T: PartialEq>(read: &T, expected: &T) -> Result<(), String> {
    match read == expected {
        true => Ok(()),
        false => Err("the value that it reads is another".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DESIGNS;

    /// Checks each design against the bytes that `spoil` leaves of the right ones.
    fn outcomes(wire: WireFormat, spoil: impl Fn(&mut Vec<u8>)) -> Vec<Result<(), StudyError>> {
        let sample = SampleValues::new();
        let interfaces = DesignInterfaces::new(wire).expect("plans can be made");
        let mut outcomes = Vec::new();
        for work in Workload::ALL {
            let mut bytes = work.bytes(&sample, wire);
            spoil(&mut bytes);
            let stage = PreparedWorkload {
                work,
                wire,
                sample: &sample,
                bytes: &bytes,
                interfaces: &interfaces,
            };
            let mut contests = CodecBenchmarks::default();
            let entered = DESIGNS
                .iter()
                .map(|design| enter(design, &stage, &mut contests));
            outcomes.extend(entered);
        }
        outcomes
    }

    #[test]
    fn every_design_writes_the_right_bytes() {
        for wire in [WireFormat::Xdr, WireFormat::Lean] {
            for outcome in outcomes(wire, |_| {}) {
                outcome.expect("a design that does what it should");
            }
        }
    }

    #[test]
    fn a_design_whose_bytes_are_others_is_refused() {
        for outcome in outcomes(WireFormat::Xdr, |bytes| bytes[0] ^= 1) {
            assert!(matches!(outcome, Err(StudyError::Wrong { .. })));
        }
    }
}
