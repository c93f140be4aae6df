//! The files of results: `results/SECTION.json`, and RESULTS.md, which is put together from them.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const INTRODUCTION: &str = "\
# Results

Written by `bench/run`, never by hand. A figure is the median of the rounds; the contestants of a
row take turns, and a ratio is the median of the ratios of its rounds, with the lowest and the
highest behind it. `a/b` is the time of a divided by the time of b: above 1 means that b is faster.
";

/// Writes what is said of a section (`section`, `about`, `machine` and `tables` are read again),
/// and puts RESULTS.md together from all sections' files.
///
/// # Errors
/// A file cannot be written or read.
pub fn write(section: &str, described: &Value) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir_all(folder.join("results"))?;
    let file = folder.join(format!("results/{section}.json"));
    fs::write(file, serde_json::to_string_pretty(described)? + "\n")?;
    write_results(folder)
}

fn write_results(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut text = String::from(INTRODUCTION);
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("results"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    files.sort();
    for file in files {
        write_section(
            &mut text,
            &serde_json::from_str(&fs::read_to_string(file)?)?,
        );
    }
    fs::write(folder.join("RESULTS.md"), text)?;
    Ok(())
}

fn write_section(text: &mut String, described: &Value) {
    let said = |what: &str| described[what].as_str().unwrap_or_default();
    let _ = writeln!(text, "\n## {}\n\n{}", said("section"), said("about"));
    for (what, value) in described["machine"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "- {what}: {}", value.to_string().trim_matches('"'));
    }
    text.push_str(said("tables"));
}

/// A Markdown table whose columns are aligned.
pub fn aligned(table: &[Vec<String>]) -> String {
    let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table[0].len()).map(width).collect();
    let mut text = String::new();
    for (at, row) in table.iter().enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "| {cell:>width$} ");
        }
        text.push_str("|\n");
        if at == 0 {
            for width in &widths {
                let _ = write!(text, "| {}: ", "-".repeat(width - 1));
            }
            text.push_str("|\n");
        }
    }
    text
}
