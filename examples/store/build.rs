//! Makes the stubs of the interface, with what tasks of tokio serve.

fn main() -> Result<(), tenon_build::Error> {
    let stubs = tenon_build::Builder::new().tokio(true).utf8_strings(true);
    stubs.compile("store.x")?;
    Ok(())
}
