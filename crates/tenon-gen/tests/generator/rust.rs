//! What the Rust back end writes for each interface of the corpus: `tests/golden`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, expect_golden};

fn golden(interface: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let name = interface.file_stem().unwrap_or_default();
    folder.join(name).with_extension("rs")
}

#[test]
fn stubs_are_as_they_were() {
    for interface in common::corpus() {
        expect_golden(&golden(&interface), &common::stubs(&interface));
    }
}

#[test]
fn stubs_are_laid_out_as_rustfmt_does() {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024", "--check"]);
    let output = rustfmt
        .args(common::corpus().iter().map(|interface| golden(interface)))
        .output()
        .expect("rustfmt is installed");
    let difference = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{difference}");
}
