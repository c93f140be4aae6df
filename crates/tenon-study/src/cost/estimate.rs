//! What the messages of an interface should take, from their equations and what is assumed of
//! their values.

use tenon_plan::cost::{
    Assumed, Assumptions, Deriving, Direction, Engine, Equation, Equations, Moves, Share, Tally,
};
use tenon_plan::{Representation, UnknownName};
use tenon_schema::{Schema, TypeId};

use super::CostError;
use super::calibrate::EngineCalibration;
use super::labels::by_first_labels;
use super::planned::usual_design;

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// A value of a named type.
    Type,
    /// The arguments of a procedure.
    Arguments,
    /// The result of a procedure.
    Result,
}

/// One message, both ways.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageEstimate {
    /// The type or the procedure.
    pub name: String,
    /// Its role.
    pub role: MessageRole,
    /// Bytes of the message.
    pub bytes: u64,
    /// The message contains a type of unknown cost.
    pub has_unknown: bool,
    /// To write it, and to read it.
    pub ways: [DirectionEstimate; 2],
}

/// One message, one way.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionEstimate {
    /// Encoding or decoding.
    pub direction: Direction,
    /// The equation and those below it, one a line.
    pub equation: String,
    /// Nanoseconds that it comes to.
    pub nanoseconds: f64,
    /// Pieces of memory taken.
    pub allocations: u64,
    /// Bytes of memory taken.
    pub allocated_bytes: u64,
    /// The shares of that time, the largest first.
    pub shares: Vec<Share>,
    /// Parts that vary in size or are types of their own, with their nanoseconds, the largest
    /// first; one may lie in another.
    pub parts: Vec<(String, f64)>,
}

impl MessageRole {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Arguments => "arguments",
            Self::Result => "result",
        }
    }
}

/// Checks that an interface has what `assumptions` and `name` speak of, as [`estimate`] does, before anything is
/// measured.
///
/// # Errors
/// No plans can be made, nothing has a name that was given, or a length is over its bound.
pub fn verify_names(
    schema: &Schema,
    representation: Representation,
    engine: Engine,
    assumptions: &Assumptions,
    name: Option<&str>,
) -> Result<(), CostError> {
    let assumptions = by_first_labels(schema, assumptions)?;
    let plans = usual_design(engine).plans(schema, representation)?;
    let deriving = Deriving {
        schema,
        plans: &plans,
        engine,
        direction: Direction::ALL[0],
        moves: Moves::default(),
    };
    let equations = deriving.equations();
    verify_parts(&assumptions, &equations)?;
    let Some(name) = name else {
        return Ok(());
    };
    let ids = (0..equations.types.len() as u32).map(TypeId);
    let mut procedures = equations.procedures.iter().flatten();
    if ids.into_iter().any(|id| deriving.message(id).owner == name)
        || procedures.any(|equation| equation.owner == name)
    {
        Ok(())
    } else {
        Err(UnknownName(name.to_owned()).into())
    }
}

fn verify_parts(assumptions: &Assumptions, equations: &Equations) -> Result<(), CostError> {
    if let Some(unknown) = assumptions.unknown(equations) {
        return Err(CostError::UnknownPart(unknown.to_owned()));
    }
    match assumptions.over_bound(equations) {
        Some((name, length, bound)) => Err(CostError::OverBound {
            name: name.to_owned(),
            length,
            bound,
        }),
        None => Ok(()),
    }
}

/// Estimates the time that the types and procedures called `name` should take; without a name, all procedures or, if
/// there are none, all types.
///
/// # Errors
/// No plans can be made, nothing has a name that was given, or a length is over its bound.
pub fn estimate(
    schema: &Schema,
    representation: Representation,
    calibrations: &[EngineCalibration; 2],
    assumptions: &Assumptions,
    name: Option<&str>,
) -> Result<Vec<MessageEstimate>, CostError> {
    let assumptions = &by_first_labels(schema, assumptions)?;
    let engine = calibrations[0].engine;
    let plans = usual_design(engine).plans(schema, representation)?;
    let ways = Direction::ALL.map(|direction| {
        let deriving = Deriving {
            schema,
            plans: &plans,
            engine,
            direction,
            moves: Moves::default(),
        };
        (deriving, deriving.equations())
    });
    verify_parts(assumptions, &ways[0].1)?;
    let with = MessageEstimator {
        ways: &ways,
        calibrations,
        assumptions,
    };
    let estimates: Vec<MessageEstimate> = match name {
        Some(name) => {
            let is_called = |estimate: &MessageEstimate| estimate.name == name;
            let all = with.types().chain(with.procedures());
            all.filter(is_called).collect()
        }
        None if plans.procedures.is_empty() => with.types().collect(),
        None => with.procedures().collect(),
    };
    match name {
        Some(name) if estimates.is_empty() => Err(UnknownName(name.to_owned()).into()),
        _ => Ok(estimates),
    }
}

struct MessageEstimator<'a> {
    ways: &'a [(Deriving<'a>, Equations); 2],
    calibrations: &'a [EngineCalibration; 2],
    assumptions: &'a Assumptions,
}

impl MessageEstimator<'_> {
    fn types(&self) -> impl Iterator<Item = MessageEstimate> {
        let count = self.ways[0].1.types.len() as u32;
        (0..count).map(TypeId).map(|id| {
            let equations = self
                .ways
                .each_ref()
                .map(|(deriving, _)| deriving.message(id));
            self.message(MessageRole::Type, equations.each_ref())
        })
    }

    fn procedures(&self) -> impl Iterator<Item = MessageEstimate> {
        let count = self.ways[0].1.procedures.len();
        let roles = [MessageRole::Arguments, MessageRole::Result]
            .into_iter()
            .enumerate();
        (0..count).flat_map(move |procedure| {
            roles.clone().map(move |(message, role)| {
                let ways = self.ways.each_ref();
                let equations = ways.map(|(_, all)| &all.procedures[procedure][message]);
                self.message(role, equations)
            })
        })
    }

    fn message(&self, role: MessageRole, equations: [&Equation; 2]) -> MessageEstimate {
        let shape = Assumed::new(self.assumptions);
        let [encode, decode] = [0, 1].map(|way| {
            let all = &self.ways[way].1;
            let tally = Tally::of(all, equations[way], shape);
            (all, equations[way], tally, &self.calibrations[way])
        });
        MessageEstimate {
            name: equations[0].owner.clone(),
            role,
            bytes: encode.2.wire_bytes(),
            has_unknown: encode.2.has_unknown(),
            ways: [encode, decode].map(|(all, equation, tally, calibration)| {
                way(all.text(equation), &tally, calibration)
            }),
        }
    }
}

fn way(equation: String, tally: &Tally, calibration: &EngineCalibration) -> DirectionEstimate {
    let parameters = &calibration.parameters;
    let parts = tally
        .parts()
        .map(|(name, part)| (name.to_owned(), parameters.price(&part)));
    let mut parts: Vec<(String, f64)> = parts.collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    DirectionEstimate {
        direction: calibration.direction,
        equation,
        nanoseconds: parameters.price(tally),
        allocations: tally.allocations(),
        allocated_bytes: tally.allocated_bytes(),
        shares: parameters.shares(tally),
        parts,
    }
}
