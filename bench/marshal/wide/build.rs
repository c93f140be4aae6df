//! The names of the members, for a declaration.

use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let names: Vec<String> = (1..=1000).map(|member| format!("m{member}")).collect();
    let names = names.join(" ");
    let with =
        format!("macro_rules! with_members {{ ($then:ident) => {{ $then! {{ {names} }} }}; }}\n");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("members.rs"), with)?;
    Ok(())
}
