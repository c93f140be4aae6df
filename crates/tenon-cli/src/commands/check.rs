//! `tenon check`.

use std::path::Path;

use serde_json::json;
use tenon_idl::Parsed;
use tenon_plan::{LowerError, Representation};
use tenon_schema::{Origin, Schema};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::interface;
use crate::output;

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut failed = 0;
    for file in &args.files {
        if !check(args, file)? {
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        _ if args.json => Err(Failure::explained()),
        _ => Err(Failure::new(format!(
            "{failed} of {} files failed the check",
            args.files.len()
        ))),
    }
}

fn check(args: &CheckArgs, file: &Path) -> Result<bool, Failure> {
    let parsed = tenon_idl::parse_file(file, &args.interface.options());
    match args.json {
        true => print_reports(&parsed)?,
        false => interface::show(&parsed),
    }
    let Some(schema) = parsed.schema else {
        return Ok(false);
    };
    let summary = summary(&schema);
    match tenon_plan::lower(&schema, Representation::XDR) {
        Ok(_) if args.json => Ok(true),
        Ok(_) => {
            output::print(&format!("{}: ok, {summary}\n", file.display()))?;
            Ok(true)
        }
        Err(error) => {
            report_unplannable(args, file, &schema, &error)?;
            Ok(false)
        }
    }
}

/// The interface is legal, but there is no way to carry its values.
fn report_unplannable(
    args: &CheckArgs,
    file: &Path,
    schema: &Schema,
    error: &LowerError,
) -> Result<(), Failure> {
    let at_fault = schema.types.iter().find(|def| def.name == error.name());
    let origin = match at_fault {
        Some(def) => def.origin.clone(),
        None => Origin {
            file: file.display().to_string(),
            line: 1,
            included: false,
        },
    };
    if args.json {
        let report = json!({
            "severity": "error", "file": origin.file, "line": origin.line, "column": 1,
            "message": error.to_string(), "expected": "", "hint": null,
        });
        return output::print_json(&report, true);
    }
    eprintln!("error: {error}\n --> {origin}\n");
    Ok(())
}

fn print_reports(parsed: &Parsed) -> Result<(), Failure> {
    for diagnostic in &parsed.diagnostics {
        let report = diagnostic.report(&parsed.sources);
        let json = json!({
            "severity": report.severity,
            "file": report.file,
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
