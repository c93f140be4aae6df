//! Procedures with streams: of each a function that makes a call, and functions for the items that its client and its
//! handler send and receive.

use tenon_plan::{Plan, ProcedurePlan};
use tenon_schema::written::{Spelling, Written};
use tenon_schema::{Length, Schema, Type};

use super::messages::{StubMessage, StubParameter, StubProcedure, is_unnamed_array};
use super::procedures::{deprecated, number};
use super::{StubPrinter, StubVersion, messages};
use crate::c::Interface;
use crate::c::declare::{CDeclaration, spaced};
use crate::c::procedures::VersionedProcedure;
use crate::writer::{SourceWriter, c_comment, literal};

/// The types of the items of a procedure.
#[derive(Debug, Clone)]
pub struct StreamTypes {
    argument: Option<ItemType>,
    result: Option<ItemType>,
}

/// The type of the items of a stream.
#[derive(Debug, Clone)]
struct ItemType {
    ty: Type,
    spelling: Spelling,
    /// The name of a type of its own, which is used if it needs one.
    name: String,
}

/// The streams of a procedure.
#[derive(Debug, Clone, Copy)]
pub struct StubStreams<'a> {
    /// The last argument.
    pub argument: Option<StreamItem<'a>>,
    /// The result.
    pub result: Option<StreamItem<'a>>,
}

/// The items of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamItem<'a> {
    of: &'a ItemType,
    /// Its plan in each representation.
    pub plans: [&'a Plan; 2],
}

/// A function for a call with streams.
struct StreamFunction {
    /// The type that it returns.
    returns: &'static str,
    /// Its name and its parameters.
    head: String,
    /// The expression that it returns.
    value: String,
}

impl StreamTypes {
    /// The types of the items of a procedure as the interface declares it.
    pub fn of(procedure: &VersionedProcedure<'_>) -> Self {
        let (definition, written) = (procedure.definition, procedure.written);
        let item = |of: Option<(&Type, &Spelling)>, which: &str| {
            of.map(|(ty, spelling)| ItemType {
                ty: ty.clone(),
                spelling: spelling.clone(),
                name: format!("{}_{which}_item", procedure.c_name()),
            })
        };
        let argument = definition.argument_item().map(|field| &field.ty);
        let result = definition.result_item();
        Self {
            argument: item(argument.zip(written.arguments.last()), "argument"),
            result: item(result.zip(written.result.as_ref()), "result"),
        }
    }
}

/// The interface without what is a stream, as a call with streams has its arguments and its result.
pub fn left_out(schema: &Schema, written: &Written) -> (Schema, Written) {
    let (mut schema, mut written) = (schema.clone(), written.clone());
    let versions = schema.programs.iter_mut().flat_map(|it| &mut it.versions);
    let procedures = versions.flat_map(|version| &mut version.procedures);
    for (procedure, written) in procedures.zip(&mut written.procedures) {
        let streams = procedure.annotations.streams;
        if streams.arguments {
            procedure.arguments.pop();
            written.arguments.pop();
        }
        if streams.result {
            procedure.result = None;
            written.result = None;
        }
    }
    (schema, written)
}

/// Returns whether an interface has procedures with streams.
pub fn has_streams(schema: &Schema) -> bool {
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    let mut procedures = versions.flat_map(|version| &version.procedures);
    procedures.any(|procedure| {
        let streams = procedure.annotations.streams;
        streams.arguments || streams.result
    })
}

impl<'a> StubStreams<'a> {
    /// The streams of a procedure that has these types and these plans of them; `None` if it has no streams.
    pub fn of(types: &'a StreamTypes, plans: [&'a ProcedurePlan; 2]) -> Option<Self> {
        let [xdr, lean] = plans.map(|plan| plan.streams.as_deref());
        let (xdr, lean) = (xdr?, lean?);
        let item = |of: &'a Option<ItemType>, xdr: &'a Option<Plan>, lean: &'a Option<Plan>| {
            let plans = [xdr.as_ref()?, lean.as_ref()?];
            of.as_ref().map(|of| StreamItem { of, plans })
        };
        Some(Self {
            argument: item(&types.argument, &xdr.argument, &lean.argument),
            result: item(&types.result, &xdr.result, &lean.result),
        })
    }

    /// The items of both.
    pub fn items(self) -> impl Iterator<Item = StreamItem<'a>> {
        self.argument.into_iter().chain(self.result)
    }
}

impl<'a> StreamItem<'a> {
    /// The message of an item.
    pub fn message(self, of: Interface<'a>) -> StubMessage<'a> {
        messages::of_declared(of, &self.of.ty, &self.of.spelling, &self.of.name)
    }

    /// The name of its type if the interface has none for it.
    pub fn own_type(self) -> Option<&'a str> {
        is_unnamed_array(&self.of.ty).then_some(self.of.name.as_str())
    }

    /// Its type in C.
    fn c_type(self, of: Interface<'_>) -> String {
        match self.own_type() {
            Some(name) => name.to_owned(),
            None => messages::value_type(of, &self.of.ty, &self.of.spelling),
        }
    }

    /// Returns it as a parameter of a function that sends it.
    fn parameter(self, of: Interface<'_>) -> StubParameter {
        let (ty, spelling) = (&self.of.ty, &self.of.spelling);
        StubParameter::of_item(of, ty, spelling, self.own_type())
    }

    /// How many bytes an item may have, if items are bytes; 0 if they are something else.
    fn bytes_max(self, of: Interface<'_>) -> u32 {
        match of.schema.resolve(&self.of.ty) {
            Type::Opaque(Length::Counted(bound)) => *bound,
            _ => 0,
        }
    }

    fn declare_type(self, w: &mut SourceWriter, of: Interface<'_>) {
        let Some(name) = self.own_type() else { return };
        let (ty, spelling) = (&self.of.ty, &self.of.spelling);
        let declared = CDeclaration { name, ty, spelling };
        w.line("");
        declared.typedef(w, of.dialect, &of.c_type(ty, spelling));
    }
}

impl StreamFunction {
    /// Functions called after `name` that send an item.
    fn sending(of: Interface<'_>, name: &str, item: StreamItem<'_>) -> [Self; 2] {
        let item = item.parameter(of);
        ["send", "feed"].map(|verb| Self {
            returns: "bool ",
            head: format!(
                "{name}_{verb} (tenon_stream *stream, {}, tenon_error *error)",
                item.declared()
            ),
            value: format!("tenon_stream_{verb} (stream, {}, error)", item.pointer()),
        })
    }

    /// A function called after `name` that receives an item.
    fn receiving(of: Interface<'_>, name: &str, item: StreamItem<'_>) -> Self {
        let ty = item.c_type(of);
        Self {
            returns: "int ",
            head: format!(
                "{name}_receive (tenon_stream *stream, {}*item, tenon_error *error)",
                spaced(&ty)
            ),
            value: "tenon_stream_receive (stream, item, error)".to_owned(),
        }
    }

    fn declare(&self, w: &mut SourceWriter) {
        w.line(format!("{}{};", self.returns, self.head));
    }

    fn write(&self, w: &mut SourceWriter) {
        w.line("");
        w.line(self.returns.trim_end());
        w.line(&self.head);
        w.braces_below(|w| w.line(format!("return {};", self.value)));
    }
}

impl<'a> StubPrinter<'a> {
    /// The names of the functions and types for the streams of a procedure.
    pub fn made_for_streams(&self, call: &StubProcedure<'a>) -> Vec<String> {
        let Some(streams) = call.streams else {
            return Vec::new();
        };
        let name = call.procedure.c_name();
        let functions = self.client_functions(call).into_iter();
        let functions = functions.chain(self.handler_functions(call));
        let named = functions.filter_map(|it| Some(it.head.split_once(' ')?.0.to_owned()));
        let types = streams.items().filter_map(StreamItem::own_type);
        let made = [format!("{name}_open")].into_iter().chain(named);
        made.chain(types.map(str::to_owned)).collect()
    }

    /// Declares the types of items that the interface has no names for.
    pub fn declare_items(&self, w: &mut SourceWriter, call: &StubProcedure<'a>) {
        for item in call.streams.into_iter().flat_map(StubStreams::items) {
            item.declare_type(w, self.of);
        }
    }

    fn open_head(&self, call: &StubProcedure<'a>) -> String {
        let mut parameters = vec!["tenon_channel *channel".to_owned()];
        let own = call.parameters(self.of);
        parameters.extend(own.iter().map(|parameter| parameter.declared()));
        parameters.push("tenon_error *error".to_owned());
        let name = call.procedure.c_name();
        format!("{name}_open ({})", parameters.join(", "))
    }

    /// The functions for the items of a call at its client.
    fn client_functions(&self, call: &StubProcedure<'a>) -> Vec<StreamFunction> {
        let Some(streams) = call.streams else {
            return Vec::new();
        };
        let (name, of) = (call.procedure.c_name(), self.of);
        let mut functions = Vec::new();
        if let Some(item) = streams.argument {
            functions.extend(StreamFunction::sending(of, &name, item));
        }
        if let Some(item) = streams.result {
            functions.push(StreamFunction::receiving(of, &name, item));
        }
        if streams.argument.is_some() {
            let result = call.result_type(of);
            let parameter = result
                .as_deref()
                .map(|ty| format!("{}*result, ", spaced(ty)));
            let value = match (streams.result, &parameter) {
                (Some(_), _) => "tenon_stream_finish (stream, error)",
                (None, Some(_)) => "tenon_stream_result (stream, result, error)",
                (None, None) => "tenon_stream_result (stream, NULL, error)",
            };
            functions.push(StreamFunction {
                returns: "bool ",
                head: format!(
                    "{name}_finish (tenon_stream *stream, {}tenon_error *error)",
                    parameter.unwrap_or_default()
                ),
                value: value.to_owned(),
            });
        }
        functions
    }

    /// The functions for the items of a call in its handler.
    fn handler_functions(&self, call: &StubProcedure<'a>) -> Vec<StreamFunction> {
        let Some(streams) = call.streams else {
            return Vec::new();
        };
        let name = format!("{}_svc", call.procedure.c_name());
        let mut functions = Vec::new();
        if let Some(item) = streams.argument {
            functions.push(StreamFunction::receiving(self.of, &name, item));
        }
        if let Some(item) = streams.result {
            functions.extend(StreamFunction::sending(self.of, &name, item));
        }
        functions
    }

    fn streamed<'v>(
        version: &'v StubVersion<'a>,
    ) -> impl Iterator<Item = &'v StubProcedure<'a>> + use<'v, 'a> {
        let calls = version.calls.iter().map(|(_, call)| call);
        calls.filter(|call| call.streams.is_some())
    }

    /// Declares the functions of clients for the procedures with streams of a version. There are none for calls without
    /// streams: a server refuses those.
    pub fn declare_streams_of_calls(&self, w: &mut SourceWriter, version: &StubVersion<'a>) {
        if Self::streamed(version).next().is_none() {
            return;
        }
        w.line("");
        w.line("/*");
        w.line(" * Clients of procedures with streams. What ends in _open makes a call, and tenon_stream_close lets go of it.");
        w.line(" * _send sends an item, _feed with others (tenon_stream_flush), _finish says that these are all, and waits for");
        w.line(" * the result where that is no stream. _receive returns 1 and an item, 0 behind the last, or -1 and an error.");
        w.line(" */");
        w.line("");
        for call in Self::streamed(version) {
            let definition = call.procedure.definition;
            c_comment(w, &definition.doc);
            let (head, deprecated) = (self.open_head(call), deprecated(definition));
            w.line(format!("tenon_stream *{head}{deprecated};"));
            for function in self.client_functions(call) {
                function.declare(w);
            }
        }
    }

    /// Declares the functions by which handlers receive and send items.
    pub fn declare_streams_of_handlers(&self, w: &mut SourceWriter, version: &StubVersion<'a>) {
        if Self::streamed(version).next().is_none() {
            return;
        }
        w.line("");
        w.line("/*");
        w.line(" * Items in handlers, from the stream that they are handed, which ends when they return: _svc_receive returns");
        w.line(" * 1 and an item, 0 behind the last, or -1 and an error, as where the caller has given the call up.");
        w.line(" */");
        w.line("");
        for function in Self::streamed(version).flat_map(|call| self.handler_functions(call)) {
            function.declare(w);
        }
    }

    /// Writes the table of the procedures with streams of a version.
    pub fn write_stream_table(&self, w: &mut SourceWriter, version: &StubVersion<'a>) {
        if Self::streamed(version).next().is_none() {
            return;
        }
        w.line(format!(
            "static const tenon_stream_procedure tenon_streams_{}[] = {{",
            version.name
        ));
        w.indented(|w| {
            for (position, call) in &version.calls {
                let Some(streams) = call.streams else {
                    continue;
                };
                let arguments = Self::message(&call.arguments(self.of));
                let result = Self::message(&call.result(self.of, &self.result_names[*position]));
                let definition = call.procedure.definition;
                let item = |item: Option<StreamItem<'a>>| match item {
                    Some(item) => (
                        Self::message(&item.message(self.of)),
                        item.bytes_max(self.of),
                    ),
                    None => ("NULL".to_owned(), 0),
                };
                let (argument_item, argument_bytes) = item(streams.argument);
                let (result_item, result_bytes) = item(streams.result);
                w.line(format!(
                    "{{ {}, {}, {arguments}, {result}, {argument_item}, {result_item}, {}, {} }},",
                    number(definition.number),
                    literal(&definition.name),
                    number(argument_bytes),
                    number(result_bytes)
                ));
            }
        });
        w.line("};");
        w.line("");
    }

    /// Writes the functions of clients and of handlers for a procedure with streams.
    pub fn write_streams(
        &self,
        w: &mut SourceWriter,
        version: &StubVersion<'a>,
        call: &StubProcedure<'a>,
    ) {
        let Some(index) = call.index else { return };
        w.line("tenon_stream *");
        w.line(self.open_head(call));
        let procedure = format!("&tenon_streams_{}[{index}]", version.name);
        w.braces_below(|w| {
            let open = |arguments: &str| {
                format!("return tenon_stream_open (channel, {procedure}, {arguments}, error);")
            };
            let arguments = self.fill(w, call, &open);
            w.line(open(&arguments));
        });
        for function in self.client_functions(call) {
            function.write(w);
        }
        for function in self.handler_functions(call) {
            function.write(w);
        }
    }
}
