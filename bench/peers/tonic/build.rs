//! Generates the messages and the stubs, and prints the members of the records.

#[path = "../interface.rs"]
mod interface;

const MEMBERS: &[u32] = &[128, 1024, 4096, 8192];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    interface::print("rust_records", MEMBERS, "records.rs")?;
    let file = interface::print("proto_interface", MEMBERS, "bench.proto")?;
    tonic_prost_build::compile_protos(file)?;
    Ok(())
}
