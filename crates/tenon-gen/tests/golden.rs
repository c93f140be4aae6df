//! What is generated for each interface of the corpus, to be read: `tests/golden`. To accept a
//! change, run with `TENON_BLESS=1` and look at the difference.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

fn golden(interface: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let name = interface.file_stem().unwrap_or_default();
    folder.join(name).with_extension("rs")
}

#[test]
fn stubs_are_as_they_were() {
    for interface in common::corpus() {
        let (stubs, path) = (common::stubs(&interface), golden(&interface));
        if std::env::var_os("TENON_BLESS").is_some() {
            std::fs::write(&path, &stubs).expect("the golden file can be written");
        }
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            known == stubs,
            "{} differs from what is generated now; see it with TENON_BLESS=1 and git diff",
            path.display()
        );
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
