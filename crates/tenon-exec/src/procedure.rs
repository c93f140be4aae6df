//! Procedures as dynamic clients and servers see them: their types, and their arguments and results as values.

use std::collections::HashSet;

use serde_json::Value as Json;
use tenon_plan::{Layout, ProcedurePlan};
use tenon_schema::{self as schema, Field, Type, TypeId};
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

/// An error that a procedure raised.
#[derive(Debug, Clone, PartialEq)]
pub struct RaisedError {
    /// Its type, one of those that the interface declares for the procedure.
    pub id: TypeId,
    /// Its value.
    pub value: Value,
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

    /// The procedure with this number, of a version of a program that are given by theirs.
    pub fn numbered(&self, program: u32, version: u32, number: u32) -> Option<Procedure<'_>> {
        self.procedures().find(|it| {
            let (of_program, of_version) = (it.program().number, it.version().number);
            (of_program, of_version, it.number()) == (program, version, number)
        })
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

    /// Returns the names of the errors that the interface declares for the procedure.
    pub fn error_names(self) -> Vec<&'a str> {
        let schema = self.interface.schema();
        let raises = self.definition().annotations.raises.iter();
        raises.map(|id| &*schema.type_def(*id).name).collect()
    }

    /// Returns the name of the type of an error.
    pub fn error_name(self, raised: &RaisedError) -> &'a str {
        &self.interface.schema().type_def(raised.id).name
    }

    /// Returns the error of the type called `name` that holds `value`; `None` if the interface does not
    /// [declare](schema::ProcedureAnnotations::raises) it for the procedure.
    pub fn raised(self, name: &str, value: Value) -> Option<RaisedError> {
        let schema = self.interface.schema();
        let mut raises = self.definition().annotations.raises.iter();
        let id = *raises.find(|id| schema.type_def(**id).name == name)?;
        Some(RaisedError { id, value })
    }

    /// Appends the details of a lean exception that raises an error: its position among those that the interface declares
    /// for the procedure, and its value.
    ///
    /// # Errors
    /// The value is not one of the error's type.
    ///
    /// # Panics
    /// If the interface does not declare the error for the procedure.
    pub fn encode_raised<R: Representation>(
        self,
        raised: &RaisedError,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), EncodeError> {
        let mut raises = self.definition().annotations.raises.iter();
        let position = raises.position(|id| *id == raised.id);
        let position = position.expect("the error is declared for the procedure");
        out.put(position as u32);
        let align = self.interface.plans().of_type(raised.id).align;
        out.align(align as usize, 0);
        self.interface.encode(raised.id, &raised.value, out)
    }

    /// Reads the error that the procedure raised from the details of a lean exception: its position among those that the
    /// interface [declares](schema::ProcedureAnnotations::raises), and its value. `None` if it is none of these.
    ///
    /// # Errors
    /// The bytes are not an error of this type.
    pub fn decode_raised<R: Representation>(
        self,
        input: &mut Decoder<'_, R>,
    ) -> Result<Option<RaisedError>, DecodeError> {
        let position: u32 = input.get()?;
        let raises = &self.definition().annotations.raises;
        let Some(id) = raises.get(position as usize).copied() else {
            return Ok(None);
        };
        input.align(self.interface.plans().of_type(id).align as usize, 0)?;
        let value = self.interface.decode(id, input)?;
        input.finish()?;
        Ok(Some(RaisedError { id, value }))
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

    /// A small result that shows what results look like. `None` if even that would be large.
    pub fn example_result(self) -> Option<Value> {
        match self.result() {
            Some(ty) => example::item(self.interface.schema(), ty),
            None => Some(Value::Void),
        }
    }

    /// The result from JSON; see [`json::read`]. Nothing but `null` is the result of a procedure without one.
    ///
    /// # Errors
    /// The JSON is not a value of the result's type.
    pub fn read_result(self, result: &Json) -> Result<Value, JsonError> {
        match self.result() {
            Some(ty) => json::read(self.interface.schema(), ty, result),
            None if result.is_null() => Ok(Value::Void),
            None => Err(JsonError::root("null, as there is no result", result)),
        }
    }

    /// An error that the procedure raises from JSON: an object with its value under its name, as
    /// [`write_raised`](Self::write_raised) makes it. `None` if it is none that the interface declares for the procedure.
    ///
    /// # Errors
    /// The JSON is not a value of the error's type.
    pub fn read_raised(self, raised: &Json) -> Result<Option<RaisedError>, JsonError> {
        let members = raised.as_object().filter(|members| members.len() == 1);
        let Some((name, value)) = members.and_then(|members| members.iter().next()) else {
            return Ok(None);
        };
        let Some(RaisedError { id, .. }) = self.raised(name, Value::Void) else {
            return Ok(None);
        };
        let value = json::read(self.interface.schema(), &Type::Named(id), value)?;
        Ok(Some(RaisedError { id, value }))
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

    /// The error that the procedure raised as JSON: an object with its value under its name.
    ///
    /// # Errors
    /// The value is not one of this type.
    pub fn write_raised(self, raised: &RaisedError) -> Result<Json, JsonError> {
        let (schema, name) = (self.interface.schema(), self.error_name(raised).to_owned());
        let value = json::write(schema, &Type::Named(raised.id), &raised.value)?;
        Ok(Json::Object([(name, value)].into_iter().collect()))
    }

    pub(crate) fn arguments_layout(self) -> Layout<'a> {
        Layout::Record(self.parameters())
    }

    pub(crate) fn result_layout(self) -> Layout<'a> {
        self.result().map_or(Layout::Nothing, Layout::Use)
    }
}
