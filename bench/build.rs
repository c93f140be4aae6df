//! Generates the stubs of the section `rpc`.

mod stubs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    stubs::generate(env!("CARGO_MANIFEST_DIR"), &[128, 1024, 4096, 8192], true)
}
