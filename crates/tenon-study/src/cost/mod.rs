//! The cost model on this machine: its parameters are measured, so that the equations of
//! [`tenon_plan::cost`] come to nanoseconds, and predictions are held against measurements.
//!
//! [`calibrate`] times the messages of `corpus.x` and fits the parameters to them. [`CalibrationStore`] keeps
//! them for the next time. [`check`] times messages of any interface beside what was predicted.

mod calibrate;
mod check;
mod compiled;
mod corpus;
mod entrant;
mod estimate;
mod fit;
mod known;
mod labels;
mod planned;
mod predict;
mod processor;
mod report;
mod store;
#[cfg(test)]
mod tests;

use std::time::Duration;

use tenon_plan::{PlanError, UnknownName};
use thiserror::Error;

pub use calibrate::{EngineCalibration, calibrate};
pub use check::{CheckedPrediction, check, left_out};
pub use estimate::{DirectionEstimate, MessageEstimate, MessageRole, estimate, verify_names};
pub use predict::predict;
pub use report::CostReport;
pub use store::{CalibrationStore, StoreError};

pub(crate) use compiled::enter_yardstick;

use crate::measure::MeasurementEffort;

/// The run-time items that the generated stubs use, by the names that they use.
mod run_time {
    pub use crate::moving::wire;
}

/// Effort of measuring figures that are to be kept. Turns are short, so that a yardstick is as fast or slow as the
/// messages around it.
pub const EFFORT: MeasurementEffort = MeasurementEffort {
    rounds: 60,
    turn: Duration::from_micros(20),
};

/// Costs cannot be found out.
#[derive(Debug, Error)]
pub enum CostError {
    /// The messages that parameters are measured by cannot be read: a bug of Tenon.
    #[error("a bug in Tenon: the messages that parameters are measured by are none")]
    Corpus,
    /// The study has no plans: a bug of Tenon.
    #[error("a bug in Tenon: {0}")]
    Study(String),
    /// No plans can be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Nothing has the name.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// Nothing that varies has the name.
    #[error("nothing called `{0}` has a length or arms")]
    UnknownPart(String),
    /// Nothing of the name can be so long.
    #[error("`{name}` cannot be {length} long: its bound is {bound}")]
    OverBound {
        /// The name, as it was given.
        name: String,
        /// The length that was asked for, in bytes or elements.
        length: u64,
        /// The most that it can be.
        bound: u32,
    },
    /// Nothing that selects an arm has the name.
    #[error("no union has an arm that `{0}` selects")]
    UnknownLabel(String),
    /// There are no compiled stubs of the type in this program.
    #[error("no stub of `{0}` was compiled together with this program, so it cannot be timed")]
    NotCompiled(String),
    /// The engine does not work here, or not for this type.
    #[error("the engine cannot move `{0}`")]
    Refused(String),
}

/// Deviations of predictions from measurements, as parts of the measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PredictionErrors {
    /// Number of predictions.
    pub count: usize,
    /// Half of them are less wrong.
    pub median: f64,
    /// The largest.
    pub worst: f64,
}

impl PredictionErrors {
    /// Returns the errors of pairs of predicted and measured.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let pairs = pairs.into_iter();
        let mut errors: Vec<f64> = pairs.map(|(said, is)| (said - is).abs() / is).collect();
        errors.sort_by(f64::total_cmp);
        Self {
            count: errors.len(),
            median: errors.get(errors.len() / 2).copied().unwrap_or(0.0),
            worst: errors.last().copied().unwrap_or(0.0),
        }
    }
}
