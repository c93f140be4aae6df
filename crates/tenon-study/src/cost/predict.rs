//! What the model says of the cells of the study.

use tenon_plan::cost::Direction;

use super::CostError;
use super::calibrate::EngineCalibration;
use super::planned::{PlannedInterface, in_model};
use crate::design::DESIGNS;
use crate::study::{self, StudyError, StudyResults};
use crate::work::{SampleValues, Workload};
use crate::{StubDesign, interface};

/// Tells a study what `calibrations` say that its cells should take, of as many engines as there
/// are calibrations of.
///
/// # Errors
/// The study's own plans cannot be made.
pub fn predict(
    study: &mut StudyResults,
    calibrations: &[[EngineCalibration; 2]],
) -> Result<(), CostError> {
    let schema = interface().map_err(|error: StudyError| CostError::Study(error.to_string()))?;
    let sample = SampleValues::new();
    let representation = study.options.wire.representation();
    let mut predicted = Vec::new();
    for design in DESIGNS {
        let is_of_engine = |of: &&[EngineCalibration; 2]| of[0].engine == in_model(design.engine);
        let Some(of_engine) = calibrations.iter().find(is_of_engine) else {
            continue;
        };
        let planned = PlannedInterface::new(&schema, representation, *design)?;
        for work in Workload::ALL {
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
    study.predict(|design: StubDesign, work, direction| {
        let cell = (design, work, in_direction(direction));
        let mut known = predicted.iter();
        let known = known.find(|(design, work, way, _)| (*design, *work, *way) == cell);
        known.map(|(_, _, _, yardsticks)| *yardsticks)
    });
    Ok(())
}

fn in_direction(direction: study::StudyDirection) -> Direction {
    match direction {
        study::StudyDirection::Encode => Direction::Encode,
        study::StudyDirection::Decode => Direction::Decode,
    }
}
