//! `tenon gen`.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use tenon_gen::rust::{self, Form};
use tenon_plan::{Pass, Plans, Representation};
use tenon_schema::Schema;

use crate::args::{GenArgs, Language};
use crate::failure::Failure;
use crate::output;

pub fn run(args: &GenArgs) -> Result<(), Failure> {
    let schema = args.interface.schema(&args.file)?;
    let (source, extension) = match args.lang {
        Language::Rust => (rust_source(&args.file, &schema)?, "rs"),
    };
    match &args.out {
        Some(directory) => write_file(args, directory, &source, extension),
        None => output::print(&source),
    }
}

fn rust_source(file: &Path, schema: &Schema) -> Result<String, Failure> {
    let plans = plans(file, schema)?;
    let forms: Vec<_> = Form::of(&plans).into_iter().collect();
    let name = file.file_name().unwrap_or_default();
    let options = rust::Options {
        source: name.to_string_lossy().into_owned(),
        ..rust::Options::default()
    };
    Ok(rust::generate(schema, &forms, &options))
}

fn plans(file: &Path, schema: &Schema) -> Result<Plans, Failure> {
    let failed = |error: &dyn Display| Failure::new(format!("{}: {error}", file.display()));
    let mut plans =
        tenon_plan::lower(schema, Representation::XDR).map_err(|error| failed(&error))?;
    tenon_plan::specialize(schema, &mut plans, Pass::ALL).map_err(|error| failed(&error))?;
    Ok(plans)
}

fn write_file(
    args: &GenArgs,
    directory: &Path,
    source: &str,
    extension: &str,
) -> Result<(), Failure> {
    let name = args.file.with_extension(extension);
    let path = directory.join(name.file_name().unwrap_or_default());
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&path, source))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
