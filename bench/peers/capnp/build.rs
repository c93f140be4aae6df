//! Generates readers, builders and stubs, and prints the members of the records.

#[path = "../interface.rs"]
mod interface;

/// Over more, rustc takes too long.
const MEMBERS: &[u32] = &[128, 1024];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    interface::print("rust_records", MEMBERS, "records.rs")?;
    let file = interface::print("capnp_interface", MEMBERS, "bench.capnp")?;
    let folder = file.parent().ok_or("no folder")?;
    capnpc::CompilerCommand::new()
        .src_prefix(folder)
        .file(&file)
        .run()?;
    Ok(())
}
