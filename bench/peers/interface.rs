//! The interface of the section `rpc` in the languages of the peers, for their build scripts.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Has a script of this folder print it, with LargeData records of so many members, into a file where
/// Cargo wants generated ones.
pub fn print(script: &str, members: &[u32], file: &str) -> Result<PathBuf, Box<dyn Error>> {
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(script);
    println!("cargo::rerun-if-changed={}", script.display());
    let members = members.iter().map(u32::to_string);
    let printed = Command::new("bash").arg(&script).args(members).output()?;
    let file = Path::new(&env::var("OUT_DIR")?).join(file);
    fs::write(&file, printed.stdout)?;
    Ok(file)
}
