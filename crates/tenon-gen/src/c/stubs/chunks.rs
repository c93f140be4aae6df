//! Functions of a file: those that are needed, in an order that C understands.

use std::collections::{BTreeMap, BTreeSet};

use crate::writer::SourceWriter;

/// A function of C.
#[derive(Debug, Clone)]
pub struct CFunction {
    /// Its name.
    pub name: String,
    /// Its prototype.
    pub prototype: String,
    /// Its definition.
    pub text: String,
}

/// Writes the functions that `roots` need, directly or not. Functions that are called before their definition
/// have a prototype in front.
pub fn write(w: &mut SourceWriter, chunks: &[CFunction], roots: &str) {
    let positions: BTreeMap<&str, usize> = chunks
        .iter()
        .enumerate()
        .map(|(position, chunk)| (chunk.name.as_str(), position))
        .collect();
    let used_by = |text: &str| -> BTreeSet<usize> {
        let names = words(text);
        names
            .filter_map(|name| positions.get(name).copied())
            .collect()
    };
    let calls: Vec<BTreeSet<usize>> = chunks.iter().map(|chunk| used_by(&chunk.text)).collect();
    let mut wanted = BTreeSet::new();
    let mut open: Vec<usize> = used_by(roots).into_iter().collect();
    while let Some(position) = open.pop() {
        if wanted.insert(position) {
            open.extend(&calls[position]);
        }
    }
    let early = |position: &usize| {
        let mut callers = wanted.iter();
        callers.any(|caller| caller < position && calls[*caller].contains(position))
    };
    let early: Vec<usize> = wanted.iter().copied().filter(early).collect();
    for position in &early {
        w.line(&chunks[*position].prototype);
    }
    if !early.is_empty() {
        w.line("");
    }
    for position in wanted {
        w.raw_text(&chunks[position].text);
        w.line("");
    }
}

/// The names in a text of C.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
}
