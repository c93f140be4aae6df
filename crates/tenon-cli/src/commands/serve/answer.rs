//! An answer to a call, as JSON says it.

use std::time::Duration;

use serde_json::{Map, Value as Json};
use tenon_dynamic::StreamedProcedure;
use tenon_exec::{Procedure, Value};

use crate::args::parse_duration;

/// The members of an answer: exactly one of the first four, unless the procedure has no result.
const MEMBERS: [&str; 6] = ["result", "raise", "fail", "invalid", "items", "delay"];

/// The types that an answer is held to.
#[derive(Clone, Copy)]
pub struct AnswerTypes<'a> {
    /// The procedure, without its streams.
    pub procedure: Procedure<'a>,
    /// A procedure of which the result is an item of the result, if that is a stream.
    pub item: Option<Procedure<'a>>,
}

impl<'a> AnswerTypes<'a> {
    /// Those of a procedure, which is `streamed` if it has streams.
    pub fn of(procedure: Procedure<'a>, streamed: Option<&'a StreamedProcedure>) -> Self {
        match streamed {
            None => Self {
                procedure,
                item: None,
            },
            Some(streamed) => Self {
                procedure: streamed.call(),
                item: streamed.result_item(),
            },
        }
    }
}

/// An answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Time that passes before it is given.
    pub delay: Duration,
    /// Items of a result that is a stream, which come before everything else.
    pub items: Vec<Value>,
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
        Self {
            delay: Duration::ZERO,
            items: Vec::new(),
            kind,
        }
    }

    /// Reads an answer of a procedure.
    ///
    /// # Errors
    /// It is none; the text says why.
    pub fn read(types: AnswerTypes<'_>, members: &Map<String, Json>) -> Result<Self, String> {
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
        let items = match (members.get("items"), types.item) {
            (None, _) => Vec::new(),
            (Some(items), Some(item)) => read_items(item, items)?,
            (Some(_), None) => {
                return Err("`items` are those of a result that is a stream".to_owned());
            }
        };
        let is_kind = |key: &str| !matches!(key, "delay" | "items");
        let mut kinds = members.iter().filter(|(key, _)| is_kind(key));
        let (kind, other) = (kinds.next(), kinds.next());
        if let (Some((one, _)), Some((other, _))) = (kind, other) {
            return Err(format!("`{one}` and `{other}` exclude each other"));
        }
        let kind = match kind {
            Some((key, _)) if key == "result" && types.item.is_some() => {
                return Err("the result is a stream: write its `items`, in an array".to_owned());
            }
            Some((key, value)) => Self::kind(types.procedure, key, value)?,
            None if types.procedure.result().is_none() => AnswerKind::Result(Value::Void),
            None => return Err("it lacks a `result`, `raise`, `fail` or `invalid`".to_owned()),
        };
        Ok(Self { delay, items, kind })
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

fn read_items(item: Procedure<'_>, json: &Json) -> Result<Vec<Value>, String> {
    let Json::Array(items) = json else {
        return Err("write `items` as an array".to_owned());
    };
    let items = items.iter().enumerate().map(|(index, json)| {
        let value = item.read_result(json);
        value.map_err(|error| format!("item {} does not fit: {error}", index + 1))
    });
    items.collect()
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
