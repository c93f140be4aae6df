//! The parts of `runtime.c` that a file uses.

use std::collections::BTreeSet;

use crate::writer::Writer;

/// What routines share, in C.
const SOURCE: &str = include_str!("runtime.c");

/// What marks the beginning of a part; its name follows.
const MARK: &str = "/*@ ";

/// Writes the parts that `text` uses, and those that they use, in their order.
pub fn write(w: &mut Writer, text: &str) {
    let parts: Vec<(&str, &str)> = parts().collect();
    let mut wanted = BTreeSet::new();
    let mut open = vec![text];
    while let Some(text) = open.pop() {
        for (index, (name, part)) in parts.iter().enumerate() {
            if uses(text, name) && wanted.insert(index) {
                open.push(part);
            }
        }
    }
    let first = parts.iter().position(|(name, _)| *name == "tenon_includes");
    wanted.extend(first.filter(|_| text.contains("return")));
    for index in wanted {
        w.raw(parts[index].1.trim_end());
        w.line("");
    }
}

/// The names of all parts, and their texts.
fn parts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let marked = SOURCE.split(MARK).skip(1);
    marked.filter_map(|part| part.split_once(" */\n"))
}

/// Whether `name` occurs in `text` as a word.
fn uses(text: &str, name: &str) -> bool {
    let is_letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].chars().next();
        !before.is_some_and(is_letter) && !behind.is_some_and(is_letter)
    })
}
