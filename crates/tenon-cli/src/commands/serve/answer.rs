//! An answer to a call, as JSON says it.

use std::time::Duration;

use serde_json::{Map, Value as Json};
use tenon_exec::{Procedure, Value};

use crate::args::parse_duration;

/// The members of an answer: exactly one of the first four, unless the procedure has no result.
const MEMBERS: [&str; 5] = ["result", "raise", "fail", "invalid", "delay"];

/// An answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Time that passes before it is given.
    pub delay: Duration,
    pub kind: AnswerKind,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerKind {
    /// A result of the procedure's type.
    Result(Value),
    /// An error that the interface declares for the procedure, by the name of its type.
    Raise(String, Value),
    /// The procedure fails, for this reason.
    Fail(String),
    /// The arguments are none that the procedure takes, for this reason.
    Invalid(String),
    /// There is no such procedure.
    Unavailable,
}

impl Answer {
    /// One that is given without a delay.
    pub fn at_once(kind: AnswerKind) -> Self {
        let delay = Duration::ZERO;
        Self { delay, kind }
    }

    /// Reads an answer of a procedure.
    ///
    /// # Errors
    /// It is none; the text says why.
    pub fn read(procedure: Procedure<'_>, members: &Map<String, Json>) -> Result<Self, String> {
        if let Some(unknown) = members.keys().find(|key| !MEMBERS.contains(&&***key)) {
            let known = MEMBERS.join(", ");
            return Err(format!(
                "an answer has no member `{unknown}`; there are: {known}"
            ));
        }
        let delay = match members.get("delay") {
            None => Duration::ZERO,
            Some(Json::String(delay)) => parse_duration(delay)?,
            Some(_) => return Err("write a `delay` as \"200ms\" or \"2s\"".to_owned()),
        };
        let mut kinds = members.iter().filter(|(key, _)| *key != "delay");
        let (kind, other) = (kinds.next(), kinds.next());
        if let (Some((one, _)), Some((other, _))) = (kind, other) {
            return Err(format!("`{one}` and `{other}` exclude each other"));
        }
        let kind = match kind {
            Some((key, value)) => Self::kind(procedure, key, value)?,
            None if procedure.result().is_none() => AnswerKind::Result(Value::Void),
            None => return Err("it lacks a `result`, `raise`, `fail` or `invalid`".to_owned()),
        };
        Ok(Self { delay, kind })
    }

    fn kind(procedure: Procedure<'_>, key: &str, value: &Json) -> Result<AnswerKind, String> {
        let reason = || match value {
            Json::String(reason) => Ok(reason.clone()),
            _ => Err(format!("`{key}` is a text that says why")),
        };
        Ok(match key {
            "result" => {
                let result = procedure.read_result(value);
                AnswerKind::Result(
                    result.map_err(|error| format!("`result` does not fit: {error}"))?,
                )
            }
            "raise" => {
                let raised = procedure.read_raised(value);
                let raised = raised.map_err(|error| format!("`raise` does not fit: {error}"))?;
                let raised = raised.ok_or_else(|| undeclared(procedure))?;
                AnswerKind::Raise(procedure.error_name(&raised).to_owned(), raised.value)
            }
            "fail" => AnswerKind::Fail(reason()?),
            _ => AnswerKind::Invalid(reason()?),
        })
    }
}

fn undeclared(procedure: Procedure<'_>) -> String {
    let errors = procedure.error_names();
    match errors.as_slice() {
        [] => format!("{} raises nothing in the interface", procedure.name()),
        [first, ..] => format!(
            "write `raise` as {{\"{first}\": ...}}; {} raises: {}",
            procedure.name(),
            errors.join(", ")
        ),
    }
}
