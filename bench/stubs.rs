//! Stubs for the interface of the section `rpc`, with records of so many members.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use tenon_gen::rust;
use tenon_plan::{Pass, lower, specialize};

/// Writes `bench.rs` where Cargo wants generated files.
pub fn generate(bench: &str, members: &[u32]) -> Result<(), Box<dyn Error>> {
    let script = Path::new(bench).join("rpc_interface");
    println!("cargo::rerun-if-changed={}", script.display());
    let printed = Command::new("bash")
        .arg(&script)
        .args(members.iter().map(u32::to_string))
        .output()?;
    let text = String::from_utf8(printed.stdout)?;
    let parsed = tenon_idl::parse_text("bench.x", &text, &tenon_idl::Options::default());
    let said = parsed.render(tenon_idl::Style::Plain);
    let schema = parsed.schema.ok_or(said)?;
    let mut plans = lower(&schema)?;
    specialize(&schema, &mut plans, Pass::ALL)?;
    let options = rust::Options {
        source: "bench.x".to_owned(),
        for_include: true,
        ..rust::Options::default()
    };
    let file = Path::new(&env::var("OUT_DIR")?).join("bench.rs");
    fs::write(file, rust::generate(&schema, &plans, &options))?;
    Ok(())
}
