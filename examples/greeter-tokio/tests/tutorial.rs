//! The tutorial of the README as a reader of it gets it to run: the pieces as they are printed, in crates outside of
//! this repository, compiled by cargo, print what is said of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the README says, from the tutorial on.
struct Tutorial {
    text: String,
}

impl Tutorial {
    fn new() -> Self {
        let readme = fs::read_to_string(root().join("README.md")).expect("there is one");
        let (_, text) = readme.split_once("## Five minutes").expect("a tutorial");
        Self { text: text.into() }
    }

    /// The only piece of code that `sign` occurs in.
    fn piece(&self, sign: &str) -> &str {
        let fenced = self.text.split("```").skip(1).step_by(2);
        let mut found = fenced.filter(|piece| piece.contains(sign));
        let piece = found.next().expect(sign);
        assert!(found.next().is_none(), "{sign} is in several pieces");
        piece.split_once('\n').expect("the language, and code").1
    }

    /// What a program is said to print: what stands in backticks behind `words`.
    fn printed(&self, words: &str) -> String {
        let (_, rest) = self.text.split_once(words).expect(words);
        rest.split('`').nth(1).expect("it is quoted").to_owned() + "\n"
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A crate of a user's, whose clone of this repository is where it is.
fn write_crate(name: &str, manifest: &str, build: &str, main: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let clone = root().canonicalize().expect("it is there");
    let manifest = manifest.replace("../tenon/", &format!("{}/", clone.display()));
    let head = format!("[package]\nname = {name:?}\nedition = \"2024\"\n\n[workspace]\n\n");
    let write = |path: &str, text: &str| {
        fs::write(folder.join(path), text).expect("the folder is ours");
    };
    fs::create_dir_all(folder.join("src")).expect("the folder can be made");
    write("Cargo.toml", &(head + manifest.as_str()));
    write("build.rs", build);
    write("src/main.rs", main);
    write("greeter.x", Tutorial::new().piece("program GREETER"));
    folder
}

/// What the program in `folder` prints. Cargo uses what the present build has compiled already, and asks nobody.
fn run(folder: &Path) -> String {
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("there is one");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["run", "--quiet", "--offline"])
        .current_dir(folder);
    cargo.env("CARGO_TARGET_DIR", target);
    let output = cargo.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains("warning"), "{errors}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn the_first_program_runs_by_either_protocol() {
    let tutorial = Tutorial::new();
    let manifest = tutorial.piece("[build-dependencies]");
    let build = tutorial.piece("tenon_build::compile(");
    let main = tutorial.piece("let client = GreeterV1Client::connect(&address)?");
    let printed = tutorial.printed("`cargo run` prints");
    let folder = write_crate("tutorial", manifest, build, main);
    assert_eq!(run(&folder), printed);

    // "One line of the client changes".
    let lean = tutorial.piece("lean+{address}");
    let (before, rest) = main.split_once("    let client = ").expect("a client");
    let (_, after) = rest.split_once('\n').expect("a line");
    fs::write(folder.join("src/main.rs"), format!("{before}{lean}{after}")).expect("ours");
    assert_eq!(run(&folder), printed);
}

#[test]
fn the_program_of_tasks_runs() {
    let tutorial = Tutorial::new();
    let (dependencies, building) = tutorial
        .piece("[build-dependencies]")
        .split_once("\n\n")
        .expect("two sections");
    let manifest = format!(
        "{dependencies}\n{}\n{building}",
        tutorial.piece("tokio = {")
    );
    let main = tutorial.piece("#[tokio::main");
    let build = tutorial.piece("tokio(true)");
    let folder = write_crate("tutorial-tokio", &manifest, build, main);
    assert_eq!(run(&folder), tutorial.printed("\nprints"));
}
