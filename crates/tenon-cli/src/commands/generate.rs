//! `tenon gen`.

use std::fs;
use std::path::Path;

use tenon_gen::c::stubs::Refusal;
use tenon_gen::rust::{self, Form};
use tenon_plan::{Pass, Plans};
use tenon_schema::Schema;

use crate::args::{GenArgs, LanguageArg, RepresentationArg};
use crate::failure::CommandFailure;
use crate::interface;
use crate::output;

pub fn run(args: &GenArgs) -> Result<(), CommandFailure> {
    match args.lang {
        LanguageArg::Rust => rust_stubs(args),
        LanguageArg::C => c_stubs(args),
    }
}

fn rust_stubs(args: &GenArgs) -> Result<(), CommandFailure> {
    if interface::is_stdin(&args.file) && args.out.is_some() {
        return Err(nameless("redirect stdout into a file, without -o"));
    }
    let schema = args.interface.schema(&args.file)?;
    let source = rust_source(args, &schema)?;
    match &args.out {
        Some(directory) => write_file(directory, rust::file_name(&args.file), &source),
        None => output::print(&source),
    }
}

/// Both representations are always there: a table of functions that lacks one is of no use to a server.
fn c_stubs(args: &GenArgs) -> Result<(), CommandFailure> {
    for (is_given, option) in [
        (args.views, "--views"),
        (args.reserved, "--reserved"),
        (args.tokio, "--tokio"),
        (args.utf8_strings, "--utf8-strings"),
        (!args.derive.is_empty(), "--derive"),
        (args.representation.len() != 2, "--representation"),
    ] {
        if is_given {
            return Err(CommandFailure::usage(format!(
                "{option} is for --lang rust"
            )));
        }
    }
    let Some(directory) = &args.out else {
        let message = "C stubs are two files: say with -o DIR where they belong";
        return Err(CommandFailure::usage(message));
    };
    if interface::is_stdin(&args.file) {
        return Err(nameless("write the interface into a file"));
    }
    let (schema, written) = args.interface.written(&args.file)?;
    let name = interface::source_name(&args.file);
    let stubs = tenon_gen::c::stubs::generate(&schema, &written, &name)
        .map_err(|refusal| refused(&args.file, &refusal))?;
    let name = |extension| {
        let path = args.file.with_extension(extension);
        path.file_name().unwrap_or_default().to_owned()
    };
    write_file(directory, name("h"), &stubs.header)?;
    write_file(directory, name("c"), &stubs.source)
}

/// Refuses to write files that are named after their interface file where there is none.
fn nameless(remedy: &str) -> CommandFailure {
    let message = "stubs are named after their interface file, and stdin has no name";
    CommandFailure::usage(message).hint(remedy)
}

/// Returns the failure for an item that C cannot have, with its place.
fn refused(file: &Path, refusal: &Refusal) -> CommandFailure {
    let place = match &refusal.origin {
        Some(origin) => origin.to_string(),
        None => interface::shown(file),
    };
    CommandFailure::new(format!("{place}: {refusal}")).hint(refusal.why.hint())
}

fn rust_source(args: &GenArgs, schema: &Schema) -> Result<String, CommandFailure> {
    let mut names: Vec<RepresentationArg> = Vec::new();
    for name in &args.representation {
        if !names.contains(name) {
            names.push(*name);
        }
    }
    let plans = names.into_iter().map(|name| plans(args, schema, name));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let forms: Vec<_> = plans.iter().filter_map(Form::of).collect();
    let options = rust::Options {
        source: interface::source_name(&args.file),
        views: args.views,
        reserved: args.reserved,
        utf8_strings: args.utf8_strings,
        derives: args.derive.clone(),
        tokio: args.tokio.then(|| "::tenon_tokio".to_owned()),
        ..rust::Options::default()
    };
    rust::generate(schema, &forms, &options)
        .map_err(|error| CommandFailure::new(format!("{}: {error}", interface::shown(&args.file))))
}

fn plans(
    args: &GenArgs,
    schema: &Schema,
    name: RepresentationArg,
) -> Result<Plans, CommandFailure> {
    Plans::new(schema, name.plan(), Pass::ALL)
        .map_err(|error| CommandFailure::new(format!("{}: {error}", interface::shown(&args.file))))
}

fn write_file(
    directory: &Path,
    name: impl AsRef<Path>,
    source: &str,
) -> Result<(), CommandFailure> {
    let path = directory.join(name);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&path, source))
        .map_err(|error| {
            CommandFailure::new(format!("cannot write {}: {error}", path.display()))
        })?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
