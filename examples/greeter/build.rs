//! Makes the stubs.

fn main() -> Result<(), tenon_build::Error> {
    tenon_build::compile("greeter.x")?;
    Ok(())
}
