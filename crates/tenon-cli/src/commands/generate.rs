//! `tenon gen`.

use std::fs;
use std::path::Path;

use tenon_exec::Interface;
use tenon_gen::rust;

use crate::args::{GenArgs, Language};
use crate::failure::Failure;
use crate::output;

pub fn run(args: &GenArgs) -> Result<(), Failure> {
    let interface = args.interface.interface(&args.file)?;
    let (source, extension) = match args.lang {
        Language::Rust => (rust_source(&args.file, &interface), "rs"),
    };
    match &args.out {
        Some(directory) => write_file(args, directory, &source, extension),
        None => output::print(&source),
    }
}

fn rust_source(file: &Path, interface: &Interface) -> String {
    let name = file.file_name().unwrap_or_default();
    let options = rust::Options {
        source: name.to_string_lossy().into_owned(),
        ..rust::Options::default()
    };
    rust::generate(interface.schema(), interface.plans(), &options)
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
