//! The tables of an opened interface, as generated code has them.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;

use tenon_exec::MessageId;
use tenon_plan::Fingerprints;
use tenon_schema::{Procedure, Program, Schema, TypeId, Version};

use super::runtime_codec::{OpenedMessage, RuntimeCodec};
use super::types::{CInterface, CMessage, CPart, CProcedure, CRaisedType};
use crate::opened::OpenedValues;
use crate::text::c_text;

/// The tables of an opened interface. They refer to each other, so that none may move.
pub(super) struct OpenedTables {
    values: Arc<OpenedValues>,
    versions: Vec<VersionTables>,
    /// One per named type.
    types: Vec<MessageTable>,
    /// The named types.
    names: HashMap<String, usize>,
}

/// A message, and what moves it.
struct MessageTable {
    message: Box<CMessage>,
    _codec: Box<RuntimeCodec>,
}

/// The tables of a version.
struct VersionTables {
    /// The position of its program.
    program: usize,
    interface: Box<CInterface>,
    raised: Vec<RaisedTable>,
    _procedures: Box<[CProcedure]>,
    _messages: Vec<MessageTable>,
    _parts: Box<[CPart]>,
    _texts: Vec<CString>,
}

/// An error that a procedure raises.
struct RaisedTable {
    procedure: String,
    name: String,
    table: Box<CRaisedType>,
    _text: CString,
}

impl OpenedTables {
    /// Makes the tables.
    pub(super) fn new(values: OpenedValues) -> Self {
        let values = Arc::new(values);
        let schema = values.schema();
        let ids = (0..schema.types.len() as u32).map(TypeId);
        let types: Vec<_> = ids
            .map(|id| MessageTable::new(&values, MessageId::Type(id)))
            .collect();
        let named = schema.types.iter().map(|def| def.name.clone());
        let names = named.zip(0..).collect();
        let fingerprints = Fingerprints::new(schema);
        let mut versions = Vec::new();
        let mut position = 0;
        for (at, program) in schema.programs.iter().enumerate() {
            for version in &program.versions {
                let tables = VersionTables::new(
                    &values,
                    &types,
                    &fingerprints,
                    (at, program, version),
                    position,
                );
                versions.push(tables);
                position += version.procedures.len();
            }
        }
        Self {
            versions,
            types,
            names,
            values: Arc::clone(&values),
        }
    }

    fn schema(&self) -> &Schema {
        self.values.schema()
    }

    /// The table of a named type.
    pub(super) fn of_type(&self, name: &str) -> Option<*const CMessage> {
        let position = *self.names.get(name)?;
        Some(&raw const *self.types[position].message)
    }

    /// The table of a version of a program: of the only one if it has no name, of the highest that there is if
    /// there is no version 0.
    pub(super) fn version(&self, program: Option<&str>, version: u32) -> Option<*const CInterface> {
        let programs = &self.schema().programs;
        let is_wanted = |it: &&VersionTables| match program {
            Some(name) => programs[it.program].name == name,
            None => programs.len() == 1,
        };
        let of_program = || self.versions.iter().filter(is_wanted);
        let exact = of_program().find(|it| it.interface.version == version);
        let highest = || of_program().max_by_key(|it| it.interface.version);
        let found = exact.or_else(|| (version == 0).then(highest).flatten())?;
        Some(&raw const *found.interface)
    }

    /// The table of an error that a procedure of a version raises.
    pub(super) fn raised(
        &self,
        interface: *const CInterface,
        procedure: &str,
        name: &str,
    ) -> Option<*const CRaisedType> {
        let mut versions = self.versions.iter();
        let version = versions.find(|it| ptr::eq(&raw const *it.interface, interface))?;
        let mut raised = version.raised.iter();
        let raised = raised.find(|it| it.procedure == procedure && it.name == name)?;
        Some(&raw const *raised.table)
    }
}

fn has_streams(procedure: &Procedure) -> bool {
    let streams = procedure.annotations.streams;
    streams.arguments || streams.result
}

impl MessageTable {
    fn new(values: &Arc<OpenedValues>, id: MessageId) -> Self {
        let opened = OpenedMessage::new(values, id);
        let extent = opened.xdr().extent();
        let codec = Box::new(RuntimeCodec(Box::new(opened)));
        let message = Box::new(CMessage {
            size: extent.size as usize,
            align: extent.align as usize,
            encode_xdr: None,
            decode_xdr: None,
            encode_lean: None,
            decode_lean: None,
            free: None,
            codec: &raw const *codec,
            xdr_unit: 0,
            lean_unit: 0,
        });
        Self {
            message,
            _codec: codec,
        }
    }
}

impl VersionTables {
    /// `position` is that of the first procedure among all.
    fn new(
        values: &Arc<OpenedValues>,
        types: &[MessageTable],
        fingerprints: &Fingerprints<'_>,
        (at, program, version): (usize, &Program, &Version),
        position: usize,
    ) -> Self {
        let mut texts = Vec::new();
        let mut messages = Vec::new();
        let mut procedures: Vec<_> = (position..)
            .zip(&version.procedures)
            .filter(|(_, procedure)| !has_streams(procedure) && !is_null(procedure))
            .map(|(position, procedure)| CProcedure {
                number: procedure.number,
                name: kept(&mut texts, &procedure.name),
                arguments: match procedure.arguments.is_empty() {
                    true => ptr::null(),
                    false => made(&mut messages, values, MessageId::Arguments(position)),
                },
                result: match procedure.result {
                    None => ptr::null(),
                    Some(_) => made(&mut messages, values, MessageId::Result(position)),
                },
            })
            .collect();
        procedures.sort_by_key(|procedure| procedure.number);
        let parts = fingerprints.parts(version).into_iter().map(|part| CPart {
            name: kept(&mut texts, &part.name),
            fingerprint: part.fingerprint,
            layout: part.layout,
            procedure: part.procedure,
        });
        let parts: Box<[CPart]> = parts.collect();
        let procedures: Box<[CProcedure]> = procedures.into();
        let interface = Box::new(CInterface {
            program: program.number,
            version: version.number,
            name: kept(&mut texts, &version.name),
            fingerprint: fingerprints.of_version(version),
            parts: parts.as_ptr(),
            part_count: parts.len(),
            procedures: procedures.as_ptr(),
            procedure_count: procedures.len(),
        });
        Self {
            program: at,
            interface,
            raised: raised(values, types, version),
            _procedures: procedures,
            _messages: messages,
            _parts: parts,
            _texts: texts,
        }
    }
}

/// Returns whether a procedure is the ping that every server answers.
fn is_null(procedure: &Procedure) -> bool {
    procedure.number == 0 && procedure.arguments.is_empty() && procedure.result.is_none()
}

/// The address of a text, which is kept.
fn kept(texts: &mut Vec<CString>, text: &str) -> *const c_char {
    let text = c_text(text.as_bytes());
    let address = text.as_ptr();
    texts.push(text);
    address
}

/// The address of the table of a message, which is kept.
fn made(
    messages: &mut Vec<MessageTable>,
    values: &Arc<OpenedValues>,
    id: MessageId,
) -> *const CMessage {
    let table = MessageTable::new(values, id);
    let address = &raw const *table.message;
    messages.push(table);
    address
}

fn raised(values: &OpenedValues, types: &[MessageTable], version: &Version) -> Vec<RaisedTable> {
    let mut tables = Vec::new();
    for procedure in &version.procedures {
        for (position, id) in (0..).zip(&procedure.annotations.raises) {
            let name = values.schema().type_def(*id).name.clone();
            let text = c_text(name.as_bytes());
            let table = Box::new(CRaisedType {
                position,
                name: text.as_ptr(),
                align: values.lean.wire_align(*id),
                message: &raw const *types[id.0 as usize].message,
            });
            tables.push(RaisedTable {
                procedure: procedure.name.clone(),
                name,
                table,
                _text: text,
            });
        }
    }
    tables
}
