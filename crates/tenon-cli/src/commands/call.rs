//! `tenon call`: a client without generated code.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tenon::{CallOptions, Metadata, ReplyMetadata};
use tenon_dynamic::StreamedProcedure;
use tenon_exec::{Procedure, json};

use crate::args::{CallArgs, CallTarget, StreamArgs};
use crate::commands::call_streams::{StreamFailure, StreamedCall};
use crate::commands::connect;
use crate::commands::reflected::ReflectedServer;
use crate::failure::CommandFailure;
use crate::interface;
use crate::output;

pub fn run(args: &CallArgs) -> Result<(), CommandFailure> {
    let address = connect::address(&args.address)?;
    let representation = tenon_dynamic::representation(address.protocol());
    let CallTarget {
        file,
        procedure: name,
        json,
    } = args.target().map_err(CommandFailure::usage)?;
    let interface = match file {
        Some(file) => args.interface.interface_in(file, representation)?,
        None => {
            let server = ReflectedServer::connect(&address, &args.options)?;
            server.interface_of(name, args.version, representation)?
        }
    };
    let procedure = interface
        .procedure(name, args.version)
        .map_err(CommandFailure::new)?;
    let source = match file {
        Some(file) => InterfaceSource::File(file),
        None => InterfaceSource::Server(&args.address),
    };
    let streamed = StreamedProcedure::new(interface.schema(), procedure);
    let streamed = streamed.map_err(CommandFailure::new)?;
    let call = streamed.as_ref().map_or(procedure, StreamedProcedure::call);
    check_streams(&args.streams, streamed.as_ref(), json)?;
    let arguments = arguments(json, source, call)?;
    let (program, version) = (procedure.program(), procedure.version());
    let client = connect::client(&address, &args.options, program.number, version.number)?;
    let made_from = tenon_dynamic::lean_interface(interface.schema(), program, version);
    let client = client.with_interface(made_from);
    let reply_metadata = Arc::new(ReplyMetadata::new());
    let options = CallOptions::new().reply_metadata(&reply_metadata);
    let view = client.with_options(options);
    let called = match &streamed {
        None => tenon_dynamic::call(view, procedure, &arguments).map(Some),
        Some(streamed) => {
            let call = StreamedCall {
                schema: interface.schema(),
                procedure: streamed,
                args: &args.streams,
                compact: args.compact,
            };
            match call.run(view, &arguments) {
                Ok(()) => Ok(None),
                Err(StreamFailure::Call(error)) => Err(error),
                Err(StreamFailure::Items(failure)) => return Err(failure),
            }
        }
    };
    if args.reply_metadata {
        print_metadata(&reply_metadata.get());
    }
    let result = called.map_err(|error| {
        let raised = tenon_dynamic::raised(procedure, &error);
        match raised.and_then(|raised| procedure.write_raised(&raised).ok()) {
            Some(raised) => {
                let raised = output::json_text(&raised, true);
                CommandFailure::new(format!("the procedure raised {raised}"))
            }
            None => connect::failure(&address, &error),
        }
    })?;
    let Some(result) = result else {
        return Ok(());
    };
    let json = procedure
        .write_result(&result)
        .map_err(CommandFailure::new)?;
    output::print_json(&json, args.compact)
}

/// Checks that the options fit the streams that the procedure has.
fn check_streams(
    args: &StreamArgs,
    streamed: Option<&StreamedProcedure>,
    json: Option<&str>,
) -> Result<(), CommandFailure> {
    let reads_items = streamed.is_some_and(|it| it.argument_item().is_some());
    let writes_items = streamed.is_some_and(|it| it.result_item().is_some());
    if reads_items && json == Some("-") && args.input.is_none() {
        let message = "stdin brings the items or the arguments, and cannot bring both";
        return Err(CommandFailure::usage(message).hint("name a file for the items by --input"));
    }
    let unused = if args.input.is_some() && !reads_items {
        "--input is for a stream of arguments, and the procedure has none"
    } else if args.output.is_some() && !writes_items {
        "--output is for a stream of results, and the procedure has none"
    } else if args.json_items && streamed.is_none() {
        "--json-items is for streams, and the procedure has none"
    } else {
        return Ok(());
    };
    let hint = "`tenon explain FILE PROCEDURE` shows what a procedure takes and returns";
    Err(CommandFailure::usage(unused).hint(hint))
}

/// Prints metadata on stderr, a line for each pair.
fn print_metadata(metadata: &Metadata) {
    for (key, value) in metadata {
        let text: String = match key.ends_with("-bin") {
            true => value.iter().map(|byte| format!("{byte:02x}")).collect(),
            false => String::from_utf8_lossy(value).into_owned(),
        };
        eprintln!("{key}={text}");
    }
}

/// The place where the interface of a call is.
#[derive(Debug, Clone, Copy)]
pub enum InterfaceSource<'a> {
    File(&'a Path),
    /// A server that tells of it, by its address.
    Server(&'a str),
}

impl InterfaceSource<'_> {
    fn is_stdin(self) -> bool {
        matches!(self, Self::File(file) if interface::is_stdin(file))
    }

    /// Returns the command that shows a procedure.
    fn explains(self, procedure: &str) -> String {
        match self {
            Self::File(file) => format!("tenon explain {} {procedure}", file.display()),
            Self::Server(address) => format!("tenon describe {address}"),
        }
    }
}

/// Returns the arguments of a call as the command line has them, or stdin.
pub fn arguments(
    json: Option<&str>,
    source: InterfaceSource<'_>,
    procedure: Procedure<'_>,
) -> Result<tenon_exec::Value, CommandFailure> {
    let text = match json {
        Some("-") if source.is_stdin() => {
            let message = "stdin brings the interface or the arguments, and cannot bring both";
            return Err(CommandFailure::usage(message).hint("name a file for one of them"));
        }
        Some("-") => Some(read_stdin()?),
        other => other.map(str::to_owned),
    };
    let json = text.as_deref().map(json::parse).transpose();
    let json = json.map_err(|error| {
        let how = match error.is_data() {
            true => "do not fit",
            false => "are not JSON",
        };
        unfit(format!("the arguments {how}: {error}"), source, procedure)
    })?;
    procedure.read_arguments(json.as_ref()).map_err(|error| {
        let message = match json {
            Some(_) => format!("the arguments do not fit: {error}"),
            None => format!("{} takes arguments, and none are given", procedure.name()),
        };
        unfit(message, source, procedure)
    })
}

/// Says how arguments are written, as those that are given are not.
fn unfit(message: String, source: InterfaceSource<'_>, procedure: Procedure<'_>) -> CommandFailure {
    let command = source.explains(procedure.name());
    let bounds = format!("`{command}` shows what is asked for");
    CommandFailure::new(message).hint(match example(procedure) {
        Some(example) => format!("write them as in '{example}'; {bounds}"),
        None => bounds,
    })
}

/// Arguments that fit, if they are few enough to be shown.
fn example(procedure: Procedure<'_>) -> Option<String> {
    const LONGEST: usize = 400;
    let json = procedure.write_arguments(&procedure.example_arguments()?);
    let text = json.ok().filter(|json| !json.is_null())?.to_string();
    (text.len() <= LONGEST).then_some(text)
}

fn read_stdin() -> Result<String, CommandFailure> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| {
        CommandFailure::new("the arguments are not JSON: what stdin brought is not UTF-8")
            .hint("write a string that is not UTF-8 as {\"hex\": \"00ff\"}")
    })
}
