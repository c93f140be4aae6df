//! The layers of ARCHITECTURE.md, checked against what Cargo says: a crate depends on crates that
//! stand above it in the table only. And two rules for every crate: it takes the workspace's lints,
//! and `unsafe` occurs in named rooms only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tenon_interop::root;

/// The crates in the order of the table, from the lowest layer to what stands beside the layers.
const CRATES: [&str; 23] = [
    "tenon-schema",
    "tenon-wire",
    "tenon-sync",
    "tenon-idl",
    "tenon-plan",
    "tenon-descriptor",
    "tenon-proto",
    "tenon-shm",
    "tenon-xdp",
    "tenon-net",
    "tenon-core",
    "tenon-exec",
    "tenon-gen",
    "tenon",
    "tenon-tokio",
    "tenon-middleware",
    "tenon-reflection",
    "tenon-study",
    "tenon-c",
    "tenon-dynamic",
    "tenon-cli",
    "tenon-build",
    "tenon-interop",
];

/// What the examples may depend on: the crates that a user's programs depend on, the last five if an
/// interface becomes known to them when they run.
const FOR_USERS: [&str; 10] = [
    "tenon",
    "tenon-tokio",
    "tenon-middleware",
    "tenon-reflection",
    "tenon-build",
    "tenon-dynamic",
    "tenon-exec",
    "tenon-idl",
    "tenon-plan",
    "tenon-descriptor",
];

/// Folders and files that may say `unsafe`.
const ROOMS: [&str; 12] = [
    // Moves arrays by vector instructions.
    "crates/tenon-wire/src/kernels",
    // Fills and reads memory in C's layout.
    "crates/tenon-exec/src/frame",
    // Makes machine code and enters it.
    "crates/tenon-exec/src/jit",
    // Maps memory that another process writes.
    "crates/tenon-shm/src/segment.rs",
    // Copies lines of such memory.
    "crates/tenon-shm/src/segment",
    // Maps memory that the kernel puts frames into, and takes them out of.
    "crates/tenon-xdp/src/memory.rs",
    // Loads a filter into the kernel by the system call bpf, which has no safe wrapper.
    "crates/tenon-xdp/src/bpf.rs",
    // Is called by C, and calls it.
    "crates/tenon-c/src/abi",
    // Moves numbers in ways that compilers would make better, to measure what those cost.
    "crates/tenon-study/src/moving.rs",
    // Maps memory that must not be read, for tests of code that reads too far.
    "crates/tenon-interop/src/guarded.rs",
    // Calls rpcgen's routines, which are in C, to measure them.
    "bench/marshal/src/codecs/libtirpc.rs",
    // Says what `unsafe` looks like.
    "crates/tenon-interop/tests/sources/layers.rs",
];

/// Crates with such a folder: they deny elsewhere what the others forbid.
const CRATES_WITH_ROOMS: [&str; 7] = [
    "tenon-wire",
    "tenon-exec",
    "tenon-shm",
    "tenon-xdp",
    "tenon-c",
    "tenon-study",
    "tenon-interop",
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().expect("a list of packages")
}

/// The folder of a package, by which documents call it: packages have longer names in the registry.
fn folder(package: &Value) -> &str {
    let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
    let folder = manifest.parent().and_then(Path::file_name);
    folder.and_then(|name| name.to_str()).expect("a folder")
}

/// Dependencies of the workspace that are more than help for tests.
fn dependencies(package: &Value) -> impl Iterator<Item = &str> {
    let all = package["dependencies"].as_array().expect("a list");
    all.iter()
        .filter(|dependency| dependency["kind"] != "dev")
        .filter_map(|dependency| dependency["path"].as_str()?.rsplit('/').next())
}

fn position(of: &str) -> usize {
    let found = CRATES.iter().position(|known| *known == of);
    found.unwrap_or_else(|| panic!("{of} stands in no layer yet: give it its place in CRATES"))
}

#[test]
fn every_crate_depends_on_what_stands_above_it() {
    for package in packages(&metadata()) {
        if is_example(package) {
            continue;
        }
        let own = position(folder(package));
        for dependency in dependencies(package) {
            assert!(
                position(dependency) < own,
                "{} depends on {dependency}, which does not stand above it",
                folder(package)
            );
        }
    }
}

fn is_example(package: &Value) -> bool {
    let name = package["name"].as_str().expect("a name");
    name.starts_with("tenon-example-")
}

#[test]
fn examples_stand_on_what_users_have() {
    for package in packages(&metadata()).iter().filter(|p| is_example(p)) {
        for dependency in dependencies(package) {
            assert!(
                FOR_USERS.contains(&dependency),
                "{} depends on {dependency}, which is not for users",
                folder(package)
            );
        }
    }
}

#[test]
fn the_table_is_the_one_of_the_map() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map is readable");
    let rows = map.lines().filter(|line| line.starts_with("| "));
    let drawn = rows
        .filter_map(|row| row.split('`').nth(1))
        .filter(|name| name.starts_with("tenon") && !name.contains(['/', ':']));
    assert_eq!(drawn.collect::<Vec<_>>(), CRATES);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for package in packages(&metadata()) {
        let path = package["manifest_path"].as_str().expect("a path");
        let manifest = fs::read_to_string(path).expect("the manifest is readable");
        let lints = match CRATES_WITH_ROOMS.contains(&folder(package)) {
            true => lints_with_a_room(),
            false => "[lints]\nworkspace = true\n".to_owned(),
        };
        assert!(manifest.contains(&lints), "{path} lacks\n{lints}");
    }
}

/// The workspace's lints as a crate repeats them that has a room for `unsafe`.
fn lints_with_a_room() -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest is readable");
    let sections = manifest.split_inclusive("\n\n");
    let lints = sections.filter(|section| section.starts_with("[workspace.lints."));
    let repeated = lints.collect::<String>().replace("[workspace.", "[");
    let denied = repeated.replace("unsafe_code = \"forbid\"", "unsafe_code = \"deny\"");
    assert_ne!(denied, repeated, "the workspace forbids unsafe code");
    denied
}

#[test]
fn unsafe_occurs_in_named_rooms_only() {
    for folder in ["crates", "bench", "fuzz", "examples"] {
        for file in rust_files(&root().join(folder)) {
            let relative = file.strip_prefix(root()).expect("a file below the root");
            if ROOMS.iter().any(|room| relative.starts_with(room)) {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a source file is text");
            for (number, line) in text.lines().enumerate() {
                assert!(
                    !says_unsafe(line),
                    "{}:{}: unsafe outside the named rooms: {line}",
                    relative.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn unsafe_is_recognised() {
    let opens = ["unsafe { x }", "pub unsafe fn f()", "#[unsafe(no_mangle)]"];
    assert!(opens.into_iter().all(says_unsafe));
    let harmless = ["// unsafe { x }", "forbid(unsafe_code)", "\"unsafe\","];
    assert!(!harmless.into_iter().any(says_unsafe));
}

/// Whether the line opens something unsafe; the word alone, in a comment or a list of keywords,
/// does not.
fn says_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("unsafe").any(|(at, word)| {
        let starts = !code[..at].ends_with(|c: char| c.is_alphanumeric() || "_\"".contains(c));
        let rest = code[at + word.len()..].trim_start();
        let opens = ["{", "(", "fn ", "impl ", "impl<", "trait ", "extern "];
        starts && opens.iter().any(|open| rest.starts_with(open))
    })
}

/// Every `.rs` file below `folder`, which need not exist.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true if path.ends_with("target") => Vec::new(),
            true => rust_files(&path),
            false if path.extension().is_some_and(|end| end == "rs") => vec![path],
            false => Vec::new(),
        })
        .collect()
}
