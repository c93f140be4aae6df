//! Procedures as dynamic clients and servers see them: their types, and their arguments and results as values.

use std::collections::HashSet;

use serde_json::Value as Json;
use tenon_plan::{Layout, ProcedurePlan};
use tenon_schema::{self as schema, Field, Type};
use tenon_wire::{DecodeError, Decoder, EncodeError, Encoder, Representation};
use thiserror::Error;

use crate::frame::{Message, MessageId};
use crate::json::{self, JsonError};
use crate::layout::LayoutError;
use crate::{Interface, Value, example};

/// A procedure of an [`Interface`].
#[derive(Debug, Clone, Copy)]
pub struct Procedure<'a> {
    interface: &'a Interface,
    plan: &'a ProcedurePlan,
    /// Position among the plans.
    position: usize,
}

/// The interface has no such procedure, or several.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FindError {
    /// Nothing has this name.
    #[error("no procedure is called `{name}`; the interface has: {}", .known.join(", "))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// It exists, but not in this version.
    #[error("`{name}` is not in version {version}; it is in: {}", numbers(.versions))]
    Version {
        /// The name that was asked for.
        name: String,
        /// The version that was asked for.
        version: u32,
        /// The versions that have it.
        versions: Vec<u32>,
    },
    /// Several programs have one.
    #[error("`{name}` is in several programs; say which: {}", qualified(.programs, .name))]
    Ambiguous {
        /// The name that was asked for.
        name: String,
        /// The names of the programs.
        programs: Vec<String>,
    },
}

fn qualified(programs: &[String], name: &str) -> String {
    let names = programs.iter().map(|program| format!("{program}.{name}"));
    names.collect::<Vec<_>>().join(", ")
}

fn numbers(versions: &[u32]) -> String {
    let versions: Vec<String> = versions.iter().map(u32::to_string).collect();
    versions.join(", ")
}

impl Interface {
    /// All procedures, in the order of the interface.
    pub fn procedures(&self) -> impl Iterator<Item = Procedure<'_>> {
        (0..self.plans().procedures.len()).map(|position| self.procedure_at(position))
    }

    pub(crate) fn procedure_at(&self, position: usize) -> Procedure<'_> {
        Procedure {
            interface: self,
            plan: &self.plans().procedures[position],
            position,
        }
    }

    /// The procedure called `name`, in `version` or else in the highest version that has it.
    /// `PROGRAM.NAME` looks in one program only.
    ///
    /// # Errors
    /// There is none, or several programs have one.
    pub fn procedure(&self, name: &str, version: Option<u32>) -> Result<Procedure<'_>, FindError> {
        let found: Vec<_> = self.procedures().filter(|it| it.is_called(name)).collect();
        let wanted = |it: &&Procedure<'_>| version.is_none_or(|it_is| it.version().number == it_is);
        let wanted: Vec<_> = found.iter().filter(wanted).collect();
        let Some(best) = wanted.iter().max_by_key(|it| it.version().number) else {
            return Err(self.not_found(name, version, &found));
        };
        match wanted.iter().all(|it| it.plan.program == best.plan.program) {
            true => Ok(**best),
            false => Err(ambiguous(name, &wanted)),
        }
    }

    fn not_found(&self, name: &str, version: Option<u32>, found: &[Procedure<'_>]) -> FindError {
        let name = name.to_owned();
        match version {
            Some(version) if !found.is_empty() => FindError::Version {
                name,
                version,
                versions: found.iter().map(|it| it.version().number).collect(),
            },
            _ => FindError::Unknown {
                name,
                known: self.names(),
            },
        }
    }

    /// The names of all procedures, each once.
    fn names(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let names = self.procedures().map(Procedure::name);
        names
            .filter(|name| seen.insert(*name))
            .map(str::to_owned)
            .collect()
    }
}

fn ambiguous(name: &str, found: &[&Procedure<'_>]) -> FindError {
    let mut programs: Vec<_> = found.iter().map(|it| it.program().name.clone()).collect();
    programs.dedup();
    FindError::Ambiguous {
        name: name.to_owned(),
        programs,
    }
}

impl<'a> Procedure<'a> {
    /// The program it belongs to.
    pub fn program(self) -> &'a schema::Program {
        &self.interface.schema().programs[self.plan.program]
    }

    /// The version it belongs to.
    pub fn version(self) -> &'a schema::Version {
        &self.program().versions[self.plan.version]
    }

    /// Its definition in the interface.
    pub fn definition(self) -> &'a schema::Procedure {
        &self.version().procedures[self.plan.procedure]
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        &self.definition().name
    }

    fn is_called(self, name: &str) -> bool {
        match name.split_once('.') {
            Some((program, name)) => {
                let own = &self.program().name;
                let is_program = own == program || schema::local_name(own) == program;
                is_program && self.name() == name
            }
            None => self.name() == name,
        }
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.definition().number
    }

    /// Its arguments.
    pub fn parameters(self) -> &'a [Field] {
        &self.definition().arguments
    }

    /// Its result; `None` is `void`.
    pub fn result(self) -> Option<&'a Type> {
        self.definition().result.as_ref()
    }

    /// Appends the arguments, a [`Value::Struct`] with one field for each.
    ///
    /// # Errors
    /// The value is not one of these types.
    pub fn encode_arguments<R: Representation>(
        self,
        arguments: &Value,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), EncodeError> {
        let key = MessageId::Arguments(self.position);
        self.interface.encode_value(key, arguments, out)
    }

    /// Reads the arguments as [`encode_arguments`](Self::encode_arguments) takes them.
    ///
    /// # Errors
    /// The bytes are not values of these types.
    pub fn decode_arguments<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Result<Value, DecodeError> {
        let key = MessageId::Arguments(self.position);
        self.interface.decode_value(key, input)
    }

    /// Appends the result; [`Value::Void`] if there is none.
    ///
    /// # Errors
    /// The value is not one of this type.
    pub fn encode_result<R: Representation>(
        self,
        result: &Value,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), EncodeError> {
        let key = MessageId::Result(self.position);
        self.interface.encode_value(key, result, out)
    }

    /// Reads the result; [`Value::Void`] if there is none.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    pub fn decode_result<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Result<Value, DecodeError> {
        self.interface
            .decode_value(MessageId::Result(self.position), input)
    }

    /// The arguments, to be moved from and to frames.
    ///
    /// # Errors
    /// C has no layout for some type of the interface.
    pub fn arguments_message(self) -> Result<Message<'a>, LayoutError> {
        self.interface
            .message_of(MessageId::Arguments(self.position))
    }

    /// The result, to be moved from and to frames.
    ///
    /// # Errors
    /// C has no layout for some type of the interface.
    pub fn result_message(self) -> Result<Message<'a>, LayoutError> {
        self.interface.message_of(MessageId::Result(self.position))
    }

    /// The arguments from JSON; see [`json::read_arguments`].
    ///
    /// # Errors
    /// The JSON does not fit the parameters.
    pub fn read_arguments(self, arguments: Option<&Json>) -> Result<Value, JsonError> {
        json::read_arguments(self.interface.schema(), self.parameters(), arguments)
    }

    /// The arguments as JSON; see [`json::write_arguments`].
    ///
    /// # Errors
    /// The value is not one of these types.
    pub fn write_arguments(self, arguments: &Value) -> Result<Json, JsonError> {
        json::write_arguments(self.interface.schema(), self.parameters(), arguments)
    }

    /// Small arguments that show how arguments are written: [`write_arguments`](Self::write_arguments) makes JSON
    /// of them. `None` if even those would be large.
    pub fn example_arguments(self) -> Option<Value> {
        example::record(self.interface.schema(), self.parameters())
    }

    /// The result as JSON; `null` if there is none.
    ///
    /// # Errors
    /// The value is not one of this type.
    pub fn write_result(self, result: &Value) -> Result<Json, JsonError> {
        match self.result() {
            Some(ty) => json::write(self.interface.schema(), ty, result),
            None => Ok(Json::Null),
        }
    }

    pub(crate) fn arguments_layout(self) -> Layout<'a> {
        Layout::Record(self.parameters())
    }

    pub(crate) fn result_layout(self) -> Layout<'a> {
        self.result().map_or(Layout::Nothing, Layout::Use)
    }
}
