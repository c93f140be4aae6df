//! What the cost model says of a study beside its predictions: equations, and the parameters of this machine.

use tenon_plan::cost::Symbol;

use crate::design::{StubDesign, StubEngine};
use crate::study::StudyDirection;

/// The cost model of a study.
#[derive(Debug, Clone, Default)]
pub struct StudyModel {
    /// The equations of `(A[256] I)`.
    pub equations: Vec<ModelEquation>,
    /// The parameters that occur in equations of the study.
    pub parameters: Vec<ModelParameter>,
}

/// What one design takes for `(A[256] I)`, one way.
#[derive(Debug, Clone)]
pub struct ModelEquation {
    /// The design.
    pub design: StubDesign,
    /// Encoding or decoding.
    pub direction: StudyDirection,
    /// The sum of uses of parameters.
    pub text: String,
}

/// A parameter of this machine.
#[derive(Debug, Clone)]
pub struct ModelParameter {
    /// The engine that has it.
    pub engine: StubEngine,
    /// Encoding or decoding.
    pub direction: StudyDirection,
    /// Its name in equations.
    pub symbol: Symbol,
    /// Its value where everything lies in the nearest cache.
    pub nanoseconds: f64,
}
