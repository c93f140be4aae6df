//! Makes the stubs.

fn main() -> Result<(), tenon_build::Error> {
    tenon_build::Builder::new()
        .tokio(true)
        .compile("../hello.x")?;
    Ok(())
}
