//! Generates the stubs of the sections `rpc` and `stream`.

mod stubs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    stubs::generate(env!("CARGO_MANIFEST_DIR"), &[128, 1024, 4096, 8192], true)?;
    tenon_build::Builder::new()
        .tokio(true)
        .compile("stream.x")?;
    Ok(())
}
