//! Makes the stubs.

fn main() -> Result<(), tenon_build::Error> {
    tenon_build::compile("../hello.x")?;
    Ok(())
}
