//! Prints the members of the records.

#[path = "../interface.rs"]
mod interface;

/// Over more, rustc takes too long.
const MEMBERS: &[u32] = &[128, 1024];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    interface::print("rust_records", MEMBERS, "records.rs")?;
    Ok(())
}
