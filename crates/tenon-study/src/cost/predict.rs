//! What the model says of the cells of the study.

use tenon_plan::cost::{Direction, Level, Tally};

use super::CostError;
use super::calibrate::EngineCalibration;
use super::planned::{PlannedInterface, in_model};
use crate::design::DESIGNS;
use crate::model::{ModelEquation, ModelParameter, StudyModel};
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
    let mut model = StudyModel::default();
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
                let direction = in_study(calibration.direction);
                note_parameters(&mut model, *design, calibration, &tally);
                if work == Workload::Numbers {
                    model.equations.push(ModelEquation {
                        design: *design,
                        direction,
                        text: planned.equation(calibration.direction, id),
                    });
                }
                let nanoseconds = calibration.parameters.price(&tally);
                let yardsticks = nanoseconds / calibration.yardstick;
                predicted.push((*design, work, direction, yardsticks));
            }
        }
    }
    study.predict(|design: StubDesign, work, direction| {
        let cell = (design, work, direction);
        let mut known = predicted.iter();
        let known = known.find(|(design, work, way, _)| (*design, *work, *way) == cell);
        known.map(|(_, _, _, yardsticks)| *yardsticks)
    });
    study.model = model;
    Ok(())
}

/// Adds the parameters that `tally` has and the model lacks.
fn note_parameters(
    model: &mut StudyModel,
    design: StubDesign,
    calibration: &EngineCalibration,
    tally: &Tally,
) {
    let direction = in_study(calibration.direction);
    for share in calibration.parameters.shares(tally) {
        let symbol = share.symbol;
        let name = (design.engine, direction, symbol);
        let mut known = model.parameters.iter();
        let is_known = known.any(|it| (it.engine, it.direction, it.symbol) == name);
        let level = Level { symbol, level: 0 };
        if let Some(nanoseconds) = calibration.parameters.nanoseconds.get(&level)
            && !is_known
        {
            model.parameters.push(ModelParameter {
                engine: design.engine,
                direction,
                symbol,
                nanoseconds: *nanoseconds,
            });
        }
    }
}

fn in_study(direction: Direction) -> study::StudyDirection {
    match direction {
        Direction::Encode => study::StudyDirection::Encode,
        Direction::Decode => study::StudyDirection::Decode,
    }
}
