//! Makes the stubs of the three interfaces, with what tasks of tokio call and serve.

fn main() -> Result<(), tenon_build::Error> {
    let stubs = tenon_build::Builder::new().tokio(true).utf8_strings(true);
    for interface in ["kv.x", "jobs.x", "uploads.x"] {
        stubs.compile(interface)?;
    }
    Ok(())
}
