//! What the model says of the cells of the study.

use tenon_plan::cost::Direction;

use super::CostError;
use super::calibrate::Calibration;
use super::planned::{Planned, in_model};
use crate::design::DESIGNS;
use crate::study::{self, Study, StudyError};
use crate::work::{Sample, Work};
use crate::{Design, interface};

/// Tells a study what `calibrations` say that its cells should take, of as many engines as there
/// are calibrations of.
///
/// # Errors
/// The study's own plans cannot be made.
pub fn predict(study: &mut Study, calibrations: &[[Calibration; 2]]) -> Result<(), CostError> {
    let schema = interface().map_err(|error: StudyError| CostError::Study(error.to_string()))?;
    let sample = Sample::new();
    let representation = study.options.wire.representation();
    let mut predicted = Vec::new();
    for design in DESIGNS {
        let is_of_engine = |of: &&[Calibration; 2]| of[0].engine == in_model(design.engine);
        let Some(of_engine) = calibrations.iter().find(is_of_engine) else {
            continue;
        };
        let planned = Planned::new(&schema, representation, *design)?;
        for work in Work::ALL {
            let id = schema
                .find_type(work.type_name())
                .ok_or(CostError::Corpus)?;
            let value = work.value(&sample);
            for calibration in of_engine {
                let tally = planned.tally(calibration.direction, id, &value);
                let nanoseconds = calibration.parameters.price(&tally);
                let yardsticks = nanoseconds / calibration.yardstick;
                predicted.push((*design, work, calibration.direction, yardsticks));
            }
        }
    }
    study.predict(|design: Design, work, direction| {
        let cell = (design, work, in_direction(direction));
        let mut known = predicted.iter();
        let known = known.find(|(design, work, way, _)| (*design, *work, *way) == cell);
        known.map(|(_, _, _, yardsticks)| *yardsticks)
    });
    Ok(())
}

fn in_direction(direction: study::Direction) -> Direction {
    match direction {
        study::Direction::Encode => Direction::Encode,
        study::Direction::Decode => Direction::Decode,
    }
}
