//! The client's stubs.

use super::declare::spaced;
use super::procedures::{StubSide, VersionedProcedure, has_record, procedures};
use super::{Interface, Options, heading, names};
use crate::writer::SourceWriter;

/// The file of the stubs; empty if there are no programs.
pub fn write(of: Interface<'_>, options: &Options) -> String {
    if of.schema.programs.is_empty() {
        return String::new();
    }
    let mut w = SourceWriter::with_tabs();
    heading(&mut w, options);
    w.line("#include <memory.h> /* for memset */");
    w.line(format!("#include \"{}\"", options.header));
    of.passthrough(&mut w);
    w.line("");
    w.line("/* Default timeout can be changed using clnt_control() */");
    w.line("static struct timeval TIMEOUT = { 25, 0 };");
    for procedure in procedures(of) {
        w.line("");
        stub(&mut w, of, &procedure, options);
    }
    w.finish()
}

fn stub(
    w: &mut SourceWriter,
    of: Interface<'_>,
    procedure: &VersionedProcedure<'_>,
    options: &Options,
) {
    let parameters = procedure.named_parameters(of, options, StubSide::Client, "clnt_res");
    w.line(procedure.returns(of, options, StubSide::Client).trim_end());
    w.line(format!("{}({parameters})", procedure.c_name()));
    w.braces_below(|w| {
        if has_record(procedure, options) {
            w.line(format!("{} arg;", procedure.record_name()));
            if options.reentrant {
                w.line("");
            }
        }
        match options.reentrant {
            true => reentrant(w, procedure, options),
            false => with_static_result(w, of, procedure, options),
        }
    });
}

/// With `-M`: what the call returns is the caller's to judge.
fn reentrant(w: &mut SourceWriter, procedure: &VersionedProcedure<'_>, options: &Options) {
    fill_record(w, procedure, options);
    w.line(format!(
        "return (clnt_call (clnt, {},",
        procedure.definition.name
    ));
    parts(w, procedure, options, "clnt_res");
    w.indented(|w| w.line("TIMEOUT));"));
}

fn with_static_result(
    w: &mut SourceWriter,
    of: Interface<'_>,
    procedure: &VersionedProcedure<'_>,
    options: &Options,
) {
    let result = procedure.result();
    let is_vector = result.is_some_and(|(ty, _)| of.vector(ty).is_some());
    let held = result.map(|(_, spelling)| names::c_type(spelling));
    let address = match is_vector {
        true => "clnt_res",
        false => "&clnt_res",
    };
    w.line(format!(
        "static {}clnt_res;",
        spaced(held.as_deref().unwrap_or("char"))
    ));
    w.line("");
    w.line(format!("memset((char *){address}, 0, sizeof(clnt_res));"));
    fill_record(w, procedure, options);
    w.line(format!(
        "if (clnt_call (clnt, {},",
        procedure.definition.name
    ));
    parts(w, procedure, options, address);
    w.indented(|w| w.line("TIMEOUT) != RPC_SUCCESS) {"));
    w.indented(|w| w.line("return (NULL);"));
    w.line("}");
    match held {
        Some(_) => w.line(format!("return ({address});")),
        None => w.line("return ((void *)&clnt_res);"),
    }
}

fn fill_record(w: &mut SourceWriter, procedure: &VersionedProcedure<'_>, options: &Options) {
    if !has_record(procedure, options) {
        return;
    }
    for field in &procedure.definition.arguments {
        w.line(format!("arg.{0} = {0};", field.name));
    }
}

/// The arguments and the result, as `clnt_call` takes them.
fn parts(
    w: &mut SourceWriter,
    procedure: &VersionedProcedure<'_>,
    options: &Options,
    result: &str,
) {
    let arguments = &procedure.definition.arguments;
    let argument = match (options.by_value, arguments.as_slice()) {
        (false, _) => "argp".to_owned(),
        (true, []) => "NULL".to_owned(),
        (true, [only]) => format!("&{}", only.name),
        (true, _) => "&arg".to_owned(),
    };
    let routines = (
        procedure.argument_routine(options),
        procedure.result_routine(),
    );
    w.indented(|w| {
        w.line(format!(
            "{}, (caddr_t) {argument},",
            names::cast_routine(&routines.0)
        ));
        w.line(format!(
            "{}, (caddr_t) {result},",
            names::cast_routine(&routines.1)
        ));
    });
}
