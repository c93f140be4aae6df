//! The files of results: a section's part of RESULTS.md, and `results/SECTION.json` with every figure, which git ignores.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

const INTRODUCTION: &str = "\
# Results

Written by `bench/run`, never by hand. A figure is the median of the rounds; the contestants of a
row take turns, and a ratio is the median of the ratios of its rounds, with the lowest and the
highest behind it. `a/b` is the time of a divided by the time of b: above 1 means that b is faster.
";

/// Publishes what is said of a section (`section`, `about`, `machine` and `tables`) in RESULTS.md, in the place of what
/// stood there of it, and writes all of it to `results/SECTION.json`. Does neither if the sources have changes that are
/// not committed (`bench/run --dirty`).
///
/// # Errors
/// A file cannot be written or read.
pub fn write(section: &str, described: &Value) -> Result<(), Box<dyn Error>> {
    if env::var_os("BENCH_DIRTY").is_some() {
        eprintln!("nothing is published, as the sources have changes that are not committed");
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir_all(folder.join("results"))?;
    let file = folder.join(format!("results/{section}.json"));
    fs::write(file, serde_json::to_string_pretty(described)? + "\n")?;
    let published = folder.join("RESULTS.md");
    let before = fs::read_to_string(&published).unwrap_or_default();
    fs::write(published, with_section(&before, section, described))?;
    Ok(())
}

/// Returns the text of RESULTS.md with this section in the place of the one before. Sections stand in the order of their
/// names.
fn with_section(before: &str, section: &str, described: &Value) -> String {
    let mut sections: Vec<&str> = before.split("\n## ").skip(1).collect();
    sections.retain(|text| name_of(text) != section);
    let new = section_text(section, described);
    sections.push(&new);
    sections.sort_by_key(|text| name_of(text));
    let mut text = String::from(INTRODUCTION);
    for section in sections {
        let _ = writeln!(text, "\n## {}", section.trim_end());
    }
    text
}

/// Returns the name of a section, which is the first line of its text.
fn name_of(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn section_text(section: &str, described: &Value) -> String {
    let said = |what: &str| described[what].as_str().unwrap_or_default();
    let mut text = format!("{section}\n\n{}\n", said("about"));
    for (what, value) in described["machine"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "- {what}: {}", value.to_string().trim_matches('"'));
    }
    text.push_str(said("tables"));
    text
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_section_takes_the_place_of_the_one_before() {
        let described = |about: &str| {
            json!({
                "about": about,
                "machine": { "cores": 2 },
                "tables": "\n### rows\n\n| a |\n",
            })
        };
        let text = with_section("", "rpc", &described("first"));
        let text = with_section(&text, "marshal", &described("second"));
        let both = with_section(&text, "rpc", &described("third"));
        let table = "- cores: 2\n\n### rows\n\n| a |\n";
        let expected =
            format!("{INTRODUCTION}\n## marshal\n\nsecond\n{table}\n## rpc\n\nthird\n{table}");
        assert_eq!(both, expected);
    }
}
