//! The size of routines, beside that of rpcgen's.

use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_gen::c;
use tenon_interop::compiled::INTERFACES;

use crate::libtirpc::{OPTIMISED, compile, folder, generate_with, options};

/// Returns real interfaces: those of the C library, and ours.
fn interfaces() -> Vec<PathBuf> {
    let compiled = INTERFACES.iter().filter(|listed| listed.name != "torture");
    let further = ["demo", "descriptor", "health"].map(|name| format!("interfaces/{name}.x"));
    let further = further.iter().map(|file| tenon_interop::root().join(file));
    compiled
        .map(|listed| listed.path.into())
        .chain(further)
        .collect()
}

/// Returns the bytes of code and of what goes with it in an object file.
fn text_of(object: &Path) -> u64 {
    let said = tenon_interop::run({
        let mut command = Command::new("size");
        command.arg(object);
        command
    });
    let line = said.lines().nth(1).expect("a line behind the heading");
    let text = line.split_whitespace().next().expect("a first column");
    text.parse().expect("a number")
}

/// Has rpcgen write `option` of the interface called `name` in `folder` to a file.
fn rpcgen(folder: &Path, name: &str, option: &str, file: &str) {
    let _ = std::fs::remove_file(folder.join(file));
    let mut command = Command::new("rpcgen");
    command.current_dir(folder);
    tenon_interop::run({
        command.args(["-N", option, "-o", file, &format!("{name}.x")]);
        command
    });
}

/// Returns the size of what rpcgen makes of an interface, and of ours with `--small`.
fn sizes(path: &Path, name: &str) -> (u64, u64) {
    let theirs = folder(&format!("sizes/{name}/theirs"));
    std::fs::copy(path, theirs.join(format!("{name}.x"))).expect("a copy");
    rpcgen(&theirs, name, "-h", &format!("{name}.h"));
    rpcgen(&theirs, name, "-c", &format!("{name}_xdr.c"));
    let ours = folder(&format!("sizes/{name}/ours"));
    let options = c::Options {
        size: c::Size::Small,
        ..options(name)
    };
    generate_with(path, name, &ours, &options);
    let source = format!("{name}_xdr.c");
    let texts = [&theirs, &ours].map(|folder| {
        let arguments = [&OPTIMISED[..], &["-w", "-Dbool=bool_t", "-c", &source]];
        compile(folder, &arguments.concat());
        text_of(&folder.join(format!("{name}_xdr.o")))
    });
    texts.into()
}

#[test]
fn small_routines_are_at_most_twice_as_large_as_those_of_rpcgen() {
    let mut total = (0, 0);
    for path in interfaces() {
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("a name");
        let (theirs, ours) = sizes(&path, name);
        assert!(
            ours <= 2 * theirs,
            "{name}: {ours} bytes, and {theirs} of rpcgen"
        );
        total = (total.0 + theirs, total.1 + ours);
    }
    let (theirs, ours) = total;
    assert!(
        4 * ours <= 5 * theirs,
        "{ours} bytes of all, and {theirs} of rpcgen"
    );
}
