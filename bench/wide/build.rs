//! Generates the stubs for a record of 8192 distinct members.

#[path = "../stubs.rs"]
mod stubs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    stubs::generate(concat!(env!("CARGO_MANIFEST_DIR"), "/.."), &[8192], false)
}
