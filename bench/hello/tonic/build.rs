//! Generates the messages and the stubs.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tonic_prost_build::compile_protos("../hello.proto")?;
    Ok(())
}
