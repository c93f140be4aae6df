//! The parts of `runtime.c` that a file uses.

use std::collections::BTreeSet;

use crate::writer::SourceWriter;

/// The code that routines share, in C.
const SOURCE: &str = include_str!("runtime.c");

/// The parts of it that stubs without libtirpc use.
const SHARED: [&str; 7] = [
    "TENON_AVX2",
    "tenon_reverse4_avx2",
    "tenon_reverse8_avx2",
    "tenon_reversed4",
    "tenon_reverse4",
    "tenon_reversed8",
    "tenon_reverse8",
];

/// The mark at the beginning of a part; its name follows.
const MARK: &str = "/*@ ";

/// Writes the parts that the routines in `text` use, and those that they use, in their order.
pub fn write(w: &mut SourceWriter, text: &str) {
    let parts = parts(SOURCE);
    let mut wanted = used(&parts, text);
    let first = parts.iter().position(|(name, _)| *name == "tenon_includes");
    wanted.extend(first.filter(|_| text.contains("return")));
    write_parts(w, &parts, &wanted);
}

/// The same for stubs, which have parts of their own in `source`, and share those that reverse numbers.
pub fn write_with(w: &mut SourceWriter, text: &str, source: &'static str) {
    let mut all = parts(SOURCE);
    all.retain(|(name, _)| SHARED.contains(name));
    all.extend(parts(source));
    let wanted = used(&all, text);
    write_parts(w, &all, &wanted);
}

/// The positions of the parts that `text` uses, and of those that they use.
fn used(parts: &[(&str, &str)], text: &str) -> BTreeSet<usize> {
    let mut wanted = BTreeSet::new();
    let mut open = vec![text];
    while let Some(text) = open.pop() {
        for (index, (name, part)) in parts.iter().enumerate() {
            if uses(text, name) && wanted.insert(index) {
                open.push(part);
            }
        }
    }
    wanted
}

fn write_parts(w: &mut SourceWriter, parts: &[(&str, &str)], wanted: &BTreeSet<usize>) {
    for index in wanted {
        w.raw(parts[*index].1.trim_end());
        w.line("");
    }
}

/// The names of all parts of a source, and their texts.
fn parts(source: &'static str) -> Vec<(&'static str, &'static str)> {
    let marked = source.split(MARK).skip(1);
    marked.filter_map(|part| part.split_once(" */\n")).collect()
}

/// Returns whether `name` occurs in `text` as a word.
fn uses(text: &str, name: &str) -> bool {
    let is_letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].chars().next();
        !before.is_some_and(is_letter) && !behind.is_some_and(is_letter)
    })
}
