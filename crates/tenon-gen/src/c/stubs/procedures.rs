//! Clients and services: a function for each procedure, and for each version a struct of handlers.

use tenon_schema::Procedure;

use super::messages::{StubMessage, StubProcedure};
use super::{StubPrinter, StubVersion};
use crate::c::declare::{CDeclaration, spaced};
use crate::c::header::record;
use crate::writer::{SourceWriter, c_comment, c_literal, literal};

impl<'a> StubPrinter<'a> {
    pub fn declare_clients(&self, w: &mut SourceWriter, version: &StubVersion<'a>) {
        for (_, call) in &version.calls {
            let procedure = &call.procedure;
            if call.has_record() {
                let name = procedure.record_name();
                w.line("");
                w.line(format!("typedef struct {name} {name};"));
                let arguments = (
                    &procedure.definition.arguments,
                    &procedure.written.arguments,
                );
                record(w, self.of, &name, arguments.0, arguments.1);
            }
            self.declare_items(w, call);
            if let (true, Some((ty, spelling))) = (call.has_own_result(), procedure.result()) {
                let name = call.result_name();
                let declared = CDeclaration {
                    name: &name,
                    ty,
                    spelling,
                };
                w.line("");
                declared.typedef(w, self.of.dialect, &self.of.c_type(ty, spelling));
            }
        }
        if Self::unary(version).any(|(_, call)| call.index.is_some()) {
            w.line("");
            w.line("/* Clients. What ends in _start sends a call, and tenon_finish waits for its result. */");
        }
        if Self::unary(version).next().is_some() {
            w.line("");
        }
        for (_, call) in Self::unary(version) {
            let definition = call.procedure.definition;
            c_comment(w, &definition.doc);
            let deprecated = deprecated(definition);
            w.line(format!("bool {}{deprecated};", self.client_head(call)));
            if call.index.is_some() {
                let head = self.start_head(call);
                w.line(format!("tenon_pending *{head}{deprecated};"));
            }
        }
        self.declare_streams_of_calls(w, version);
        self.declare_errors_of_calls(w, version);
    }

    fn client_head(&self, call: &StubProcedure<'a>) -> String {
        let mut parameters = vec!["tenon_channel *channel".to_owned()];
        let own = call.parameters(self.of);
        parameters.extend(own.iter().map(|parameter| parameter.declared()));
        if let Some(result) = call.result_type(self.of) {
            parameters.push(format!("{}*result", spaced(&result)));
        }
        parameters.push("tenon_error *error".to_owned());
        format!("{} ({})", call.procedure.c_name(), parameters.join(", "))
    }

    fn start_head(&self, call: &StubProcedure<'a>) -> String {
        let mut parameters = vec!["tenon_channel *channel".to_owned()];
        let own = call.parameters(self.of);
        parameters.extend(own.iter().map(|parameter| parameter.declared()));
        parameters.push("tenon_error *error".to_owned());
        format!(
            "{}_start ({})",
            call.procedure.c_name(),
            parameters.join(", ")
        )
    }

    /// The procedures of a version that have no streams.
    fn unary<'v>(
        version: &'v StubVersion<'a>,
    ) -> impl Iterator<Item = &'v (usize, StubProcedure<'a>)> + use<'v, 'a> {
        let calls = version.calls.iter();
        calls.filter(|(_, call)| call.streams.is_none())
    }

    /// Returns whether a version has procedures that need a handler.
    fn has_handlers(version: &StubVersion<'a>) -> bool {
        version.calls.iter().any(|(_, call)| call.index.is_some())
    }

    pub fn declare_service(&self, w: &mut SourceWriter, version: &StubVersion<'a>) {
        if !Self::has_handlers(version) {
            return;
        }
        let name = &version.name;
        w.line("");
        w.line("/*");
        w.line(format!(
            " * What carries out the procedures of {}: true and a result, or what tenon_refuse returns. What is NULL",
            version.version.name
        ));
        w.line(" * is not there.");
        w.line(" */");
        w.line(format!("typedef struct {name}_service {{"));
        w.indented(|w| {
            for (_, call) in version
                .calls
                .iter()
                .filter(|(_, call)| call.index.is_some())
            {
                w.line(format!("bool {};", self.handler(call)));
            }
        });
        w.line(format!("}} {name}_service;"));
        self.declare_streams_of_handlers(w, version);
        self.declare_errors_of_handlers(w, version);
        w.line("");
        w.line(format!("bool {};", serve_head(name)));
    }

    /// A handler as a member of the struct.
    fn handler(&self, call: &StubProcedure<'a>) -> String {
        let mut parameters = vec!["void *context".to_owned()];
        let own = call.parameters(self.of);
        parameters.extend(own.iter().map(|parameter| parameter.received()));
        if call.streams.is_some() {
            parameters.push("tenon_stream *stream".to_owned());
        }
        if let Some(result) = call.result_type(self.of) {
            parameters.push(format!("{}*result", spaced(&result)));
        }
        parameters.push("tenon_request *request".to_owned());
        format!("(*{}) ({})", call.procedure.c_name(), parameters.join(", "))
    }

    /// A pointer to the table of a message, or `NULL`.
    pub fn message(message: &StubMessage<'_>) -> String {
        match message {
            StubMessage::Nothing => "NULL".to_owned(),
            StubMessage::Named(ty) => format!("&{}", super::messages::message_name(ty)),
            StubMessage::Plain(value) => format!("&tenon_message_plain_{}", plain_key(&value.name)),
            StubMessage::Own(value) => format!("&tenon_message_own_{}", value.name),
        }
    }

    /// The tables of a version, and its clients and service.
    pub fn write_version(&self, w: &mut SourceWriter, version: &StubVersion<'a>) {
        let name = &version.name;
        let handled: Vec<&(usize, StubProcedure<'a>)> = version
            .calls
            .iter()
            .filter(|(_, call)| call.index.is_some())
            .collect();
        let unary: Vec<&(usize, StubProcedure<'a>)> = Self::unary(version)
            .filter(|(_, call)| call.index.is_some())
            .collect();
        if !unary.is_empty() {
            w.line(format!(
                "static const tenon_procedure tenon_procedures_{name}[] = {{"
            ));
            w.indented(|w| {
                for (position, call) in &unary {
                    let arguments = Self::message(&call.arguments(self.of));
                    let result =
                        Self::message(&call.result(self.of, &self.result_names[*position]));
                    let definition = call.procedure.definition;
                    w.line(format!(
                        "{{ {}, {}, {arguments}, {result} }},",
                        number(definition.number),
                        literal(&definition.name)
                    ));
                }
            });
            w.line("};");
            w.line("");
        }
        self.write_stream_table(w, version);
        self.write_interface(w, version, unary.len());
        for (_, call) in &version.calls {
            w.line("");
            match call.streams {
                None => self.write_client(w, version, call),
                Some(_) => self.write_streams(w, version, call),
            }
            self.write_errors(w, call);
        }
        if !handled.is_empty() {
            self.write_service(w, version, &handled);
        }
    }

    fn write_interface(&self, w: &mut SourceWriter, version: &StubVersion<'a>, procedures: usize) {
        let name = &version.name;
        let parts = self.fingerprints.parts(version.declared);
        let part_table = match parts.is_empty() {
            true => "NULL".to_owned(),
            false => {
                w.line(format!("static const tenon_part tenon_parts_{name}[] = {{"));
                w.indented(|w| {
                    for part in &parts {
                        let (name, procedure) = (literal(&part.name), part.procedure);
                        let (fingerprint, layout) = (part.fingerprint, part.layout);
                        w.line(format!(
                            "{{ {name}, {fingerprint:#018x}u, {layout:#018x}u, {procedure} }},"
                        ));
                    }
                });
                w.line("};");
                w.line("");
                format!("tenon_parts_{name}")
            }
        };
        let procedure_table = match procedures {
            0 => "NULL".to_owned(),
            _ => format!("tenon_procedures_{name}"),
        };
        let fingerprint = self.fingerprints.of_version(version.declared);
        w.line(format!("const tenon_interface {name}_interface = {{"));
        w.indented(|w| {
            w.line(format!(
                "{}, {}, {},",
                number(version.program.number),
                number(version.version.number),
                literal(&version.version.name)
            ));
            w.line(format!("{fingerprint:#018x}u,"));
            w.line(format!("{part_table}, {},", parts.len()));
            w.line(format!("{procedure_table}, {procedures}"));
        });
        w.line("};");
    }

    fn write_client(
        &self,
        w: &mut SourceWriter,
        version: &StubVersion<'a>,
        call: &StubProcedure<'a>,
    ) {
        w.line("bool");
        w.line(self.client_head(call));
        let Some(index) = call.index else {
            return w.braces_below(|w| w.line("return tenon_ping (channel, error);"));
        };
        let procedure = format!("&tenon_procedures_{}[{index}]", version.name);
        let result = match call.result_type(self.of) {
            Some(_) => "result",
            None => "NULL",
        };
        w.braces_below(|w| {
            let send = |arguments: &str| {
                format!("return tenon_call (channel, {procedure}, {arguments}, {result}, error);")
            };
            let arguments = self.fill(w, call, &send);
            w.line(send(&arguments));
        });
        w.line("");
        w.line("tenon_pending *");
        w.line(self.start_head(call));
        w.braces_below(|w| {
            let send = |arguments: &str| {
                format!("return tenon_start (channel, {procedure}, {arguments}, error);")
            };
            let arguments = self.fill(w, call, &send);
            w.line(send(&arguments));
        });
    }

    /// Puts arguments where they are encoded from, and returns a pointer to them. If one of them cannot be put there,
    /// because it is `NULL`, `send` is asked to send none, which is refused as a pointer that is `NULL` always is.
    pub fn fill(
        &self,
        w: &mut SourceWriter,
        call: &StubProcedure<'a>,
        send: &dyn Fn(&str) -> String,
    ) -> String {
        let parameters = call.parameters(self.of);
        match (call.has_record(), parameters.as_slice()) {
            (false, []) => "NULL".to_owned(),
            (false, [only]) => only.pointer(),
            _ => {
                w.line(format!("{} tenon_arguments;", call.procedure.record_name()));
                w.line("");
                let missing = parameters.iter().filter_map(|it| it.missing());
                let missing: Vec<String> = missing.collect();
                if !missing.is_empty() {
                    w.line(format!("if ({})", missing.join(" || ")));
                    w.indented(|w| w.line(send("NULL")));
                }
                for line in parameters.iter().flat_map(|parameter| parameter.fill()) {
                    w.line(line);
                }
                "&tenon_arguments".to_owned()
            }
        }
    }

    fn write_service(
        &self,
        w: &mut SourceWriter,
        version: &StubVersion<'a>,
        handled: &[&(usize, StubProcedure<'a>)],
    ) {
        let name = &version.name;
        for (_, call) in handled {
            w.line("");
            self.write_handler(w, version, call);
        }
        w.line("");
        w.line("bool");
        w.line(serve_head(name));
        let (streamed, unary): (Vec<_>, Vec<_>) =
            handled.iter().partition(|(_, call)| call.streams.is_some());
        // Without streams it is what a program of before there were streams calls.
        let (add, streams) = match streamed.len() {
            0 => ("tenon_server_add", ""),
            _ => ("tenon_server_add_streams", "&streams, "),
        };
        let add = |handlers: &str, service: &str| {
            format!(
                "return {add} (server, &{name}_interface, {handlers}, {streams}{service}, context, order, error);"
            )
        };
        w.braces_below(|w| {
            if !streamed.is_empty() {
                w.line(format!(
                    "tenon_stream_service streams = {{ tenon_streams_{name}, NULL, {} }};",
                    streamed.len()
                ));
                w.line("");
            }
            if !handled.is_empty() {
                w.line("if (service == NULL)");
                w.indented(|w| w.line(add("NULL", "NULL")));
                w.line("");
            }
            if !unary.is_empty() || streamed.is_empty() {
                write_handlers(w, "tenon_handler handlers", &unary);
            }
            if !streamed.is_empty() {
                write_handlers(w, "tenon_stream_handler stream_handlers", &streamed);
                w.line("streams.handlers = stream_handlers;");
            }
            w.line(match unary.is_empty() && !streamed.is_empty() {
                true => add("NULL", "service"),
                false => add("handlers", "service"),
            });
        });
    }

    fn write_handler(
        &self,
        w: &mut SourceWriter,
        version: &StubVersion<'a>,
        call: &StubProcedure<'a>,
    ) {
        let procedure = call.procedure.c_name();
        let parameters = call.parameters(self.of);
        let stream = match call.streams {
            Some(_) => "tenon_stream *stream, ",
            None => "",
        };
        w.line("static bool");
        w.line(format!(
            "tenon_handle_{procedure} (const void *methods, void *context, void *arguments, {stream}void *result, tenon_request *request)"
        ));
        w.braces_below(|w| {
            w.line(format!(
                "const {0}_service *service = (const {0}_service *) methods;",
                version.name
            ));
            let mut handed = vec!["context".to_owned()];
            match (call.has_record(), parameters.as_slice()) {
                (false, []) => {}
                (false, [only]) => handed.push(only.alone()),
                _ => {
                    let record = call.procedure.record_name();
                    w.line(format!("{record} *it = ({record} *) arguments;"));
                    handed.extend(parameters.iter().map(|it| it.out_of_record()));
                }
            }
            w.line("");
            if parameters.is_empty() {
                w.line("(void) arguments;");
            }
            if call.streams.is_some() {
                handed.push("stream".to_owned());
            }
            match call.result_type(self.of) {
                Some(result) => handed.push(format!("({}*) result", spaced(&result))),
                None => w.line("(void) result;"),
            }
            handed.push("request".to_owned());
            w.line(format!(
                "return service->{procedure} ({});",
                handed.join(", ")
            ));
        });
    }
}

/// Writes an array of handlers, `declared` as this; what the program does not have is NULL.
fn write_handlers(w: &mut SourceWriter, declared: &str, of: &[&&(usize, StubProcedure<'_>)]) {
    w.line(format!("const {declared}[] = {{"));
    w.indented(|w| {
        for (_, call) in of {
            let procedure = call.procedure.c_name();
            w.line(format!(
                "service->{procedure} != NULL ? tenon_handle_{procedure} : NULL,"
            ));
        }
    });
    w.line("};");
    w.line("");
}

/// Returns what stands behind a declaration if the interface advises against its use.
pub fn deprecated(procedure: &Procedure) -> String {
    match &procedure.annotations.deprecated {
        None => String::new(),
        Some(reason) => format!(" TENON_DEPRECATED ({})", c_literal(reason)),
    }
}

/// Returns the name that the functions of a plain type are called after.
pub fn plain_key(name: &str) -> String {
    name.chars()
        .filter(|char| char.is_ascii_alphanumeric() || *char == '_')
        .collect()
}

/// A number that no macro of the interface can stand for.
pub fn number(number: u32) -> String {
    format!("{number:#x}")
}

fn serve_head(name: &str) -> String {
    format!(
        "{name}_serve (tenon_server *server, const {name}_service *service, void *context, tenon_order order, tenon_error *error)"
    )
}
