//! Generates the messages and the stubs. Bytes share the memory that they came in.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../stream.proto");
    tonic_prost_build::configure()
        .bytes(".")
        .compile_protos(&["../stream.proto"], &[".."])?;
    Ok(())
}
