//! `tenon check`.

use std::collections::HashSet;
use std::path::Path;

use serde_json::json;
use tenon_exec::AmplifyingType;
use tenon_idl::{Parsed, Severity};
use tenon_plan::{LowerError, Representation};
use tenon_schema::{Origin, Schema};

use crate::args::CheckArgs;
use crate::failure::CommandFailure;
use crate::interface;
use crate::output;

pub fn run(args: &CheckArgs) -> Result<(), CommandFailure> {
    let from_stdin = args.files.iter().filter(|file| interface::is_stdin(file));
    if from_stdin.count() > 1 {
        return Err(CommandFailure::usage(
            "`-` is given twice, and stdin can be read only once",
        ));
    }
    let mut failed = 0;
    for file in &args.files {
        if !check(args, file)? {
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        _ if args.json => Err(CommandFailure::explained()),
        _ => {
            let warnings = if args.deny_warnings {
                ", warnings counted"
            } else {
                ""
            };
            let all = args.files.len();
            let message = format!("{failed} of {all} files failed the check{warnings}");
            Err(CommandFailure::new(message))
        }
    }
}

fn check(args: &CheckArgs, file: &Path) -> Result<bool, CommandFailure> {
    if let Some(descriptor) = interface::descriptor(file)? {
        let summary = summary(descriptor.schema());
        let warned = warn_of_memory(args, file, descriptor.schema())?;
        if !args.json {
            let shown = interface::shown(file);
            output::print(&format!("{shown}: ok, a descriptor of {summary}\n"))?;
        }
        return Ok(!(warned && args.deny_warnings));
    }
    let parsed = args.interface.parse(file);
    match args.json {
        true => print_reports(file, &parsed)?,
        false => interface::show(&parsed),
    }
    let warned = parsed
        .diagnostics
        .iter()
        .any(|it| it.severity == Severity::Warning);
    let Some(schema) = parsed.schema else {
        return Ok(false);
    };
    let summary = summary(&schema);
    let lowered = tenon_plan::lower(&schema, Representation::XDR);
    // What is not known of it has drawn a warning.
    let lowered = lowered
        .err()
        .filter(|error| !matches!(error, LowerError::UnknownDiscriminant(..)));
    if let Some(error) = lowered {
        report(
            args,
            file,
            &schema,
            ("error", error.name(), &error.to_string()),
        )?;
        return Ok(false);
    }
    let warned = warn_of_memory(args, file, &schema)? || warned;
    if warned && args.deny_warnings {
        return Ok(false);
    }
    if !args.json {
        output::print(&format!("{}: ok, {summary}\n", interface::shown(file)))?;
    }
    Ok(true)
}

/// Says where values may take more memory than their bytes pay for; whether there is anything to say.
fn warn_of_memory(args: &CheckArgs, file: &Path, schema: &Schema) -> Result<bool, CommandFailure> {
    let mut warned = HashSet::new();
    for representation in [Representation::XDR, Representation::LEAN] {
        for amplifying in tenon_exec::amplifying_types(schema, representation) {
            let AmplifyingType { name, bytes } = &amplifying;
            let message = format!(
                "{name}: an item may take {bytes} bytes of memory more than its bytes in a message pay for, so \
                 that some receivers refuse many of them"
            );
            if warned.insert(name.clone()) {
                report(args, file, schema, ("warning", name, &message))?;
            }
        }
    }
    Ok(!warned.is_empty())
}

/// Says something of a type or procedure that the parser, which knows only how it is written, does
/// not know: that there is no way to carry its values, for instance.
fn report(
    args: &CheckArgs,
    file: &Path,
    schema: &Schema,
    (severity, name, message): (&str, &str, &str),
) -> Result<(), CommandFailure> {
    let at_fault = schema.types.iter().find(|def| def.name == name);
    let origin = match at_fault {
        Some(def) => def.origin.clone(),
        None => Origin {
            file: interface::shown(file).into(),
            line: 1,
            included: false,
        },
    };
    if args.json {
        let report = json!({
            "severity": severity, "file": &*origin.file, "line": origin.line, "column": 1,
            "message": message, "expected": "", "hint": null,
        });
        return output::print_json(&report, true);
    }
    eprintln!("{severity}: {message}\n --> {origin}\n");
    Ok(())
}

/// Reports that have no place in the text, as there is none, are printed for the file.
fn print_reports(file: &Path, parsed: &Parsed) -> Result<(), CommandFailure> {
    for diagnostic in &parsed.diagnostics {
        let report = diagnostic.report(&parsed.sources);
        let place = match report.file.is_empty() {
            true => interface::shown(file),
            false => report.file,
        };
        let json = json!({
            "severity": report.severity,
            "file": place,
            "line": report.line,
            "column": report.column,
            "message": report.message,
            "expected": report.label,
            "hint": report.hint,
        });
        output::print_json(&json, true)?;
    }
    Ok(())
}

fn summary(schema: &Schema) -> String {
    let versions = || schema.programs.iter().flat_map(|program| &program.versions);
    let counts = [
        (schema.types.len(), "type"),
        (schema.constants.len(), "constant"),
        (schema.programs.len(), "program"),
        (versions().count(), "version"),
        (versions().map(|v| v.procedures.len()).sum(), "procedure"),
    ];
    let present = counts.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = present
        .map(|(count, word)| format!("{count} {word}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    match words.is_empty() {
        true => "but it defines nothing".into(),
        false => words.join(", "),
    }
}
