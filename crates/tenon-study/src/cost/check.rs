//! Predictions beside measurements: messages of any interface, with random values.

use std::collections::HashSet;

use tenon_exec::Value;
use tenon_exec::random::Random;
use tenon_plan::Representation;
use tenon_plan::cost::Direction;
use tenon_plan::links::is_link;
use tenon_schema::{Schema, Type, TypeId, TypeKind};

use super::CostError;
use super::calibrate::EngineCalibration;
use super::planned::{PlannedInterface, usual_design};
use crate::measure::MeasurementEffort;

/// Random values of each type.
const VALUES: u64 = 3;

/// About how many parts each has.
const PARTS: usize = 100;

/// A message that was predicted and measured.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPrediction {
    /// The type.
    pub name: String,
    /// Encoding or decoding.
    pub direction: Direction,
    /// Bytes of the message.
    pub bytes: u64,
    /// Nanoseconds that the equation comes to.
    pub predicted: f64,
    /// Nanoseconds that it took, or would have at the pace of the calibration.
    pub measured: f64,
}

impl CheckedPrediction {
    /// Returns the error of the prediction, as a part of the measured; below zero if it is too low.
    pub fn error(&self) -> f64 {
        (self.predicted - self.measured) / self.measured
    }
}

/// Times the messages of an interface, three random values of each, beside what `calibrations`
/// predict: what its procedures take and give or, if it has none, all its types. Without those that are
/// [`left_out`].
///
/// # Errors
/// The engine does not work here, or no plans can be made.
pub fn check(
    schema: &Schema,
    representation: Representation,
    calibrations: &[EngineCalibration; 2],
    effort: MeasurementEffort,
    progress: impl FnMut(f64),
) -> Result<Vec<CheckedPrediction>, CostError> {
    let engine = calibrations[0].engine;
    let mut planned = PlannedInterface::new(schema, representation, usual_design(engine))?;
    planned.known_as = Some("nfs3");
    let fastest = calibrations
        .each_ref()
        .map(|calibration| calibration.yardstick);
    let (timed, _) = planned.time(values(schema), effort, fastest, progress)?;
    let checked = timed.into_iter().flat_map(|timed| {
        let both = calibrations.iter().map(move |calibration| {
            let at = calibration.direction as usize;
            CheckedPrediction {
                name: timed.name.clone(),
                direction: calibration.direction,
                bytes: timed.tallies[at].wire_bytes(),
                predicted: calibration.parameters.price(&timed.tallies[at]),
                measured: timed.taken[at] * calibration.yardstick,
            }
        });
        both.collect::<Vec<_>>()
    });
    Ok(checked.collect())
}

/// Returns the messages that [`check`] cannot time, as values of theirs hold something that the interface does not
/// declare: the name of each, and of what it holds.
pub fn left_out(schema: &Schema) -> Vec<(&str, &str)> {
    let found = messages(schema).into_iter().filter_map(|id| {
        let unknown = undeclared(schema, id)?;
        Some((&*schema.type_def(id).name, unknown))
    });
    found.collect()
}

/// Returns the types with values that are messages.
fn messages(schema: &Schema) -> Vec<TypeId> {
    let mut ids = of_procedures(schema);
    if ids.is_empty() {
        ids = (0..schema.types.len() as u32).map(TypeId).collect();
    }
    ids.retain(|id| stands_alone(schema, *id));
    ids
}

fn values(schema: &Schema) -> Vec<(TypeId, Value)> {
    let ids = messages(schema).into_iter();
    let known = ids.filter(|id| undeclared(schema, *id).is_none());
    let values = known.flat_map(|id| {
        (0..VALUES).map(move |seed| {
            let mut random = Random::new(seed << 32 | u64::from(id.0));
            (id, random.value(schema, &Type::Named(id), PARTS))
        })
    });
    values.collect()
}

/// Returns the named types that procedures take and give, each once.
fn of_procedures(schema: &Schema) -> Vec<TypeId> {
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    let procedures = versions.flat_map(|version| &version.procedures);
    let types = procedures.flat_map(|procedure| {
        let arguments = procedure.arguments.iter().map(|field| &field.ty);
        arguments.chain(&procedure.result)
    });
    let mut seen = HashSet::new();
    let named = types.filter_map(|ty| match ty {
        Type::Named(id) => Some(*id),
        _ => None,
    });
    named.filter(|id| seen.insert(*id)).collect()
}

/// Typedefs and links are no messages of their own in stubs.
fn stands_alone(schema: &Schema, id: TypeId) -> bool {
    match &schema.type_def(id).kind {
        TypeKind::Struct(_) => !is_link(schema, id),
        TypeKind::Union(_) => true,
        TypeKind::Enum(_) | TypeKind::Typedef(_) | TypeKind::External => false,
    }
}

/// Returns the name of an external type that values of the type `id` may hold, at whatever depth.
fn undeclared(schema: &Schema, id: TypeId) -> Option<&str> {
    let (mut seen, mut open) = (HashSet::new(), vec![id]);
    while let Some(id) = open.pop() {
        let def = schema.type_def(id);
        if def.kind == TypeKind::External {
            return Some(&def.name);
        }
        if seen.insert(id) {
            let types = def.kind.types().into_iter();
            open.extend(types.filter_map(Type::innermost_name));
        }
    }
    None
}
