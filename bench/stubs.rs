//! Stubs for the interface of the section `rpc`, with records of so many members.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Writes `bench.rs` where Cargo wants generated files, with asynchronous clients if so wanted.
pub fn generate(bench: &str, members: &[u32], tokio: bool) -> Result<(), Box<dyn Error>> {
    let script = Path::new(bench).join("rpc_interface");
    println!("cargo::rerun-if-changed={}", script.display());
    let printed = Command::new("bash")
        .arg(&script)
        .args(members.iter().map(u32::to_string))
        .output()?;
    let interface = Path::new(&env::var("OUT_DIR")?).join("bench.x");
    fs::write(&interface, printed.stdout)?;
    tenon_build::Builder::new()
        .reserved(true)
        .tokio(tokio)
        .compile(&interface)?;
    Ok(())
}
