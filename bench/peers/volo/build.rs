//! Generates the types and the stubs, and prints the members of the records.

#[path = "../interface.rs"]
mod interface;

/// Over more, rustc takes too long.
const MEMBERS: &[u32] = &[128];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    interface::print("rust_records", MEMBERS, "records.rs")?;
    let file = interface::print("thrift_interface", MEMBERS, "bench.thrift")?;
    volo_build::Builder::thrift().add_service(file).write()?;
    Ok(())
}
