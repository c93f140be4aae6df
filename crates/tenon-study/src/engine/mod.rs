//! How a design is run: each engine shows that its answers are right, then enters the contests.

mod compiled;
mod dynamic;

/// What the generated stubs stand on, by the names that they use.
mod run_time {
    pub use tenon_wire as wire;
}

use crate::design::{Design, Engine};
use crate::entry::Contests;
use crate::study::{StudyError, Wire};
use crate::work::{Sample, Work};

pub use dynamic::{Interfaces, interface};

/// One work, made ready: everything that all designs are given.
pub struct Stage<'a> {
    /// Which.
    pub work: Work,
    /// How its items lie on the wire.
    pub wire: Wire,
    /// Its value.
    pub sample: &'a Sample,
    /// What every design has to write and to read.
    pub bytes: &'a [u8],
    /// For the engines that learn an interface at run time.
    pub interfaces: &'a Interfaces,
}

/// Lets a design enter the contests of a work.
///
/// # Errors
/// It writes other bytes than it should, or reads another value.
pub fn enter<'a>(
    design: &'a Design,
    stage: &Stage<'a>,
    contests: &mut Contests<'a>,
) -> Result<(), StudyError> {
    let refused = |why: String| StudyError::Wrong {
        design: design.name(),
        work: stage.work.notation(),
        why,
    };
    match design.engine {
        Engine::Interpreted => dynamic::enter_interpreted(design, stage, contests),
        Engine::Compiled => compiled::enter(design, stage, contests),
        Engine::Machine => dynamic::enter_machine(design, stage, contests),
    }
    .map_err(refused)
}

/// Holds the bytes that a design has written against those it had to write.
fn check_bytes(written: &[u8], expected: &[u8]) -> Result<(), String> {
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

    /// Each design, held against the bytes that `spoil` leaves of the right ones.
    fn outcomes(wire: Wire, spoil: impl Fn(&mut Vec<u8>)) -> Vec<Result<(), StudyError>> {
        let sample = Sample::new();
        let interfaces = Interfaces::new(wire).expect("plans can be made");
        let mut outcomes = Vec::new();
        for work in Work::ALL {
            let mut bytes = work.bytes(&sample, wire);
            spoil(&mut bytes);
            let stage = Stage {
                work,
                wire,
                sample: &sample,
                bytes: &bytes,
                interfaces: &interfaces,
            };
            let mut contests = Contests::default();
            let entered = DESIGNS
                .iter()
                .map(|design| enter(design, &stage, &mut contests));
            outcomes.extend(entered);
        }
        outcomes
    }

    #[test]
    fn every_design_writes_the_right_bytes() {
        for wire in [Wire::Xdr, Wire::Lean] {
            for outcome in outcomes(wire, |_| {}) {
                outcome.expect("a design that does what it should");
            }
        }
    }

    #[test]
    fn a_design_whose_bytes_are_others_is_refused() {
        for outcome in outcomes(Wire::Xdr, |bytes| bytes[0] ^= 1) {
            assert!(matches!(outcome, Err(StudyError::Wrong { .. })));
        }
    }
}
