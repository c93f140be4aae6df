//! Makes the stubs of the torture interface, and a table of all its types in their order.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const INTERFACE: &str = "../interfaces/torture.x";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={INTERFACE}");
    let folder = env::var("OUT_DIR")?;
    let folder = Path::new(&folder);
    let mut interface = fs::read_to_string(INTERFACE)?;
    let mut table = String::from("[\n");
    for (position, name) in type_names()?.iter().enumerate() {
        // What a typedef becomes in Rust need not have a representation of its own; a struct
        // always does, and it has the bytes of what it holds.
        writeln!(interface, "struct Wrapped{position} {{ {name} value; }};")?;
        writeln!(table, "compiled::<torture::Wrapped{position}, Self>,")?;
    }
    let wrapped = folder.join("torture.x");
    // The stubs depend on this file: it is not touched without need.
    if fs::read_to_string(&wrapped).ok().as_ref() != Some(&interface) {
        fs::write(&wrapped, interface)?;
    }
    tenon_build::compile(&wrapped)?;
    fs::write(folder.join("types.rs"), table + "]\n")?;
    Ok(())
}

fn type_names() -> Result<Vec<String>, Box<dyn Error>> {
    let parsed = tenon_idl::parse_file(Path::new(INTERFACE), &tenon_idl::Options::default());
    let said = parsed.render(tenon_idl::Style::Plain);
    let types = parsed.schema.ok_or(said)?.types;
    Ok(types.into_iter().map(|def| def.name).collect())
}
