//! `tenon call`: a client without generated code.

use std::io::Read;

use serde_json::Value as Json;
use tenon_exec::Procedure;

use crate::args::CallArgs;
use crate::commands::connect;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &CallArgs) -> Result<(), Failure> {
    let interface = args.interface.interface(&args.file)?;
    let procedure = interface
        .procedure(&args.procedure, args.version)
        .map_err(Failure::new)?;
    let arguments = arguments(args, procedure)?;
    let client = connect::client(
        &args.address,
        &args.options,
        procedure.program().number,
        procedure.version().number,
    )?;
    let result = client
        .call(
            procedure.number(),
            |out| procedure.encode_arguments(&arguments, out),
            |input| procedure.decode_result(input),
        )
        .map_err(Failure::new)?;
    let json = procedure.write_result(&result).map_err(Failure::new)?;
    output::print_json(&json, args.compact)
}

fn arguments(args: &CallArgs, procedure: Procedure<'_>) -> Result<tenon_exec::Value, Failure> {
    let text = match args.json.as_deref() {
        Some("-") => Some(read_stdin()?),
        other => other.map(str::to_owned),
    };
    let json = text.as_deref().map(parse_json).transpose()?;
    procedure.read_arguments(json.as_ref()).map_err(|error| {
        let (file, name) = (args.file.display(), procedure.name());
        Failure::new(format!("the arguments do not fit: {error}")).hint(format!(
            "`tenon explain {file} {name}` shows what is asked for"
        ))
    })
}

fn read_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::new("the arguments are not JSON: what stdin brought is not UTF-8")
            .hint("write a string that is not UTF-8 as {\"hex\": \"00ff\"}")
    })
}

fn parse_json(text: &str) -> Result<Json, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::new(format!("the arguments are not JSON: {error}"))
            .hint("quote a string twice, for the shell and for JSON: '\"Ada\"'")
    })
}
