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
    let options = rust::Options {
        source: file_name(file),
        ..rust::Options::default()
    };
    rust::generate(interface.schema(), interface.plans(), &options)
}

fn file_name(file: &Path) -> String {
    file.file_name()
        .unwrap_or(file.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn write_file(
    args: &GenArgs,
    directory: &Path,
    source: &str,
    extension: &str,
) -> Result<(), Failure> {
    let name = Path::new(&file_name(&args.file)).with_extension(extension);
    let path = directory.join(name);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&path, source))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
