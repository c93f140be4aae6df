//! Generates the stubs of both programs.

fn main() -> Result<(), tenon_build::Error> {
    tenon_build::compile("../../interfaces/nfs3.x")?;
    tenon_build::compile("../../interfaces/mount3.x")?;
    Ok(())
}
