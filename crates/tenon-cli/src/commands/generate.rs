//! `tenon gen`.

use std::fs;
use std::path::Path;

use tenon_gen::rust::{self, Form};
use tenon_plan::{Pass, Plans};
use tenon_schema::Schema;

use crate::args::{GenArgs, Language, Representation};
use crate::failure::Failure;
use crate::output;

pub fn run(args: &GenArgs) -> Result<(), Failure> {
    let schema = args.interface.schema(&args.file)?;
    let (source, extension) = match args.lang {
        Language::Rust => (rust_source(args, &schema)?, "rs"),
    };
    match &args.out {
        Some(directory) => write_file(args, directory, &source, extension),
        None => output::print(&source),
    }
}

fn rust_source(args: &GenArgs, schema: &Schema) -> Result<String, Failure> {
    let mut names: Vec<Representation> = Vec::new();
    for name in &args.representation {
        if !names.contains(name) {
            names.push(*name);
        }
    }
    let plans = names.into_iter().map(|name| plans(args, schema, name));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let forms: Vec<_> = plans.iter().filter_map(Form::of).collect();
    let name = args.file.file_name().unwrap_or_default();
    let options = rust::Options {
        source: name.to_string_lossy().into_owned(),
        views: args.views,
        reserved: args.reserved,
        tokio: args.tokio.then(|| "::tenon_tokio".to_owned()),
        ..rust::Options::default()
    };
    Ok(rust::generate(schema, &forms, &options))
}

fn plans(args: &GenArgs, schema: &Schema, name: Representation) -> Result<Plans, Failure> {
    Plans::new(schema, name.plan(), Pass::ALL)
        .map_err(|error| Failure::new(format!("{}: {error}", args.file.display())))
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
