//! Makes the stubs, with clients whose calls are awaited.

fn main() -> Result<(), tenon_build::Error> {
    let builder = tenon_build::Builder::new().tokio(true);
    builder.compile("../greeter/greeter.x")?;
    Ok(())
}
