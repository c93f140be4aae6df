//! The libraries behind `tenon rpcgen --fast`, as a user installs them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{root, run};

/// Installs the libraries into a folder below `folder`, those in C under the sanitizers, and returns their prefix.
///
/// # Panics
/// If that fails.
pub fn install(folder: &Path) -> PathBuf {
    let prefix = folder.join("prefix");
    // cargo has built the library for this test, which depends on it.
    let built = env::current_exe().expect("the test has a file");
    let mut install = Command::new(root().join("crates/tenon-c/install"));
    install.args(["--prefix".as_ref(), prefix.as_os_str()]);
    install.args([
        "--built".as_ref(),
        built.parent().expect("a folder").as_os_str(),
    ]);
    install.env(
        "CFLAGS",
        "-O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined",
    );
    run(install);
    prefix
}

/// Returns what the compiler is told of the libraries that are installed below `prefix`.
///
/// # Panics
/// If pkg-config does not know them.
pub fn flags(prefix: &Path) -> Vec<String> {
    flags_of(prefix, "tenon-tirpc")
}

/// Returns what the compiler is told of one of them, `tenon-tirpc` or `tenon`, as pkg-config calls it.
///
/// # Panics
/// If pkg-config does not know it.
pub fn flags_of(prefix: &Path, package: &str) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    command.args(["--cflags", "--libs", package]);
    let said = run(command);
    let mut flags: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
    flags.push(format!("-Wl,-rpath,{}", prefix.join("lib").display()));
    flags
}
