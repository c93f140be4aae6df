//! Answers from a file: for each procedure one, or several of which the first is given that is for the call's arguments.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value as Json};
use tenon::Protocol;
use tenon_dynamic::{DynamicInterface, StreamedProcedure};
use tenon_exec::{Procedure, Value, json};
use tenon_schema::local_name;

use super::answer::{Answer, AnswerKind, AnswerTypes};
use crate::failure::CommandFailure;

/// Numbers of a program, of a version and of a procedure.
type ProcedureNumbers = (u32, u32, u32);

/// The answers of all procedures that have some.
pub struct AnswersFile {
    rules: HashMap<ProcedureNumbers, Vec<AnswerRule>>,
}

/// An answer, and the arguments that it is for: all, if it names none.
struct AnswerRule {
    arguments: Option<Value>,
    answer: Answer,
}

impl AnswersFile {
    /// Reads the answers of an interface, and holds each to its types.
    pub fn read(path: &Path, interface: &DynamicInterface) -> Result<Self, CommandFailure> {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| CommandFailure::new(format!("cannot read {shown}: {error}")))?;
        let parsed = json::parse(&text)
            .map_err(|error| CommandFailure::new(format!("{shown} is not JSON: {error}")))?;
        let Json::Object(members) = parsed else {
            let message = format!("{shown} is no object of JSON");
            return Err(CommandFailure::new(message).hint(
                "write {\"PROCEDURE\": {\"result\": ...}}, with a member for each procedure",
            ));
        };
        Self::of(&members, interface).map_err(|problem| {
            CommandFailure::new(format!("{shown}: {problem}"))
                .hint("`tenon serve --help` shows how answers are written")
        })
    }

    fn of(members: &Map<String, Json>, interface: &DynamicInterface) -> Result<Self, String> {
        let mut rules = HashMap::new();
        let mut used = Vec::new();
        let interface = interface.of(Protocol::Onc);
        for procedure in interface.procedures() {
            let names = names(procedure);
            let Some(name) = names.iter().find(|name| members.contains_key(*name)) else {
                continue;
            };
            used.push(name.clone());
            let streamed = StreamedProcedure::new(interface.schema(), procedure);
            let streamed = streamed.map_err(|error| format!("{name}: {error}"))?;
            let types = AnswerTypes::of(procedure, streamed.as_ref());
            let of_procedure = rules_of(types, &members[name]);
            let of_procedure = of_procedure.map_err(|problem| format!("{name}: {problem}"))?;
            rules.insert(numbers(procedure), of_procedure);
        }
        match members.keys().find(|key| !used.contains(key)) {
            None => Ok(Self { rules }),
            Some(unknown) => {
                let known: Vec<&str> = interface.procedures().map(Procedure::name).collect();
                let known = known.join(", ");
                Err(format!(
                    "no procedure is called `{unknown}`; there are: {known}"
                ))
            }
        }
    }

    /// Returns the answer to a call with these arguments.
    pub fn answer(&self, procedure: Procedure<'_>, arguments: &Value) -> Answer {
        let Some(rules) = self.rules.get(&numbers(procedure)) else {
            return Answer::at_once(AnswerKind::Unavailable);
        };
        let is_for = |rule: &&AnswerRule| match &rule.arguments {
            Some(of_rule) => of_rule == arguments,
            None => true,
        };
        match rules.iter().find(is_for) {
            Some(rule) => rule.answer.clone(),
            None => {
                let reason = "there is no answer for these arguments".to_owned();
                Answer::at_once(AnswerKind::Invalid(reason))
            }
        }
    }
}

/// The names that a procedure goes by in the file, those first that tell most.
fn names(procedure: Procedure<'_>) -> [String; 3] {
    let (program, version, name) = (procedure.program(), procedure.version(), procedure.name());
    [
        format!("{}.{name}", version.name),
        format!("{}.{name}", local_name(&program.name)),
        name.to_owned(),
    ]
}

fn numbers(procedure: Procedure<'_>) -> ProcedureNumbers {
    let (program, version) = (procedure.program().number, procedure.version().number);
    (program, version, procedure.number())
}

fn rules_of(types: AnswerTypes<'_>, json: &Json) -> Result<Vec<AnswerRule>, String> {
    match json {
        Json::Object(members) => Ok(vec![rule(types, members)?]),
        Json::Array(rules) => {
            let rules = rules.iter().enumerate().map(|(index, json)| {
                let members = json.as_object().ok_or("an answer is an object".to_owned());
                let rule = members.and_then(|members| rule(types, members));
                rule.map_err(|problem| format!("answer {}: {problem}", index + 1))
            });
            rules.collect()
        }
        _ => Err("write an answer as {\"result\": ...}, or several in an array".to_owned()),
    }
}

fn rule(types: AnswerTypes<'_>, members: &Map<String, Json>) -> Result<AnswerRule, String> {
    let mut members = members.clone();
    let arguments = members.remove("arguments");
    let arguments = arguments.map(|json| types.procedure.read_arguments(Some(&json)));
    let arguments = arguments.transpose();
    Ok(AnswerRule {
        arguments: arguments.map_err(|error| format!("`arguments` do not fit: {error}"))?,
        answer: Answer::read(types, &members)?,
    })
}
