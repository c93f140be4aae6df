//! The library that counts long copies, and a test called `child` that runs with it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::fresh_path;

/// Builds the library.
pub fn build() -> PathBuf {
    let library = fresh_path().with_extension("so");
    // From the folder of any crate.
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/tests/copies/count.c");
    let status = Command::new("cc")
        .args(["-O2", "-fno-builtin", "-shared", "-fPIC", "-o"])
        .args([library.as_os_str(), source.as_ref()])
        .status();
    assert!(status.unwrap().success());
    library
}

/// Returns the bytes that the threads called `client` of the process copy, and those that all others copy.
pub fn run_child(counter: &Path, variables: &[(&str, &str)]) -> (usize, usize) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env("LD_PRELOAD", counter)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let line = told.lines().find_map(|line| line.strip_prefix("copied "));
    let (client, others) = line.unwrap().split_once(' ').unwrap();
    (client.parse().unwrap(), others.parse().unwrap())
}
