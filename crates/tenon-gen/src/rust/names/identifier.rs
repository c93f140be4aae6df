//! An identifier: a name split into words, joined as Rust joins them, and unlike all others of its scope.

use std::collections::HashMap;

/// The three ways to join words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentifierCase {
    /// `UpperCamelCase`
    Camel,
    /// `snake_case`
    Snake,
    /// `SCREAMING_SNAKE_CASE`
    Screaming,
}

/// Names that must differ from each other.
#[derive(Debug, Clone, Default)]
pub struct NameScope {
    reserved: &'static [&'static str],
    /// The names that are taken, with the number to try next.
    taken: HashMap<String, u32>,
}

impl NameScope {
    /// A scope in which the generated code needs `reserved` for itself.
    pub fn new(reserved: &'static [&'static str]) -> Self {
        let taken = HashMap::new();
        Self { reserved, taken }
    }

    /// The identifier for `name`, different from all handed out before.
    pub fn name(&mut self, name: &str, case: IdentifierCase) -> String {
        let mut wanted = join(&words(name), case);
        if KEYWORDS.contains(&wanted.as_str()) || self.reserved.contains(&wanted.as_str()) {
            wanted.push('_');
        }
        let mut name = wanted.clone();
        while self.taken.contains_key(&name) {
            let number = self.taken.entry(wanted.clone()).or_insert(1);
            *number += 1;
            let stem = wanted.trim_end_matches('_');
            let separator = if case == IdentifierCase::Camel {
                ""
            } else {
                "_"
            };
            name = format!("{stem}{separator}{number}");
        }
        self.taken.insert(name.clone(), 1);
        name
    }
}

/// Splits a name into words, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let chars: Vec<char> = name.chars().collect();
    for (index, char) in chars.iter().enumerate() {
        if *char == '_' || starts_word(&chars, index) {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), *char != '_') {
            word.extend(char.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a word starts at `index` though no `_` stands before it.
fn starts_word(chars: &[char], index: usize) -> bool {
    let char = chars[index];
    let Some(before) = index.checked_sub(1).map(|before| chars[before]) else {
        return false;
    };
    let small_follows = chars.get(index + 1).is_some_and(|next| next.is_lowercase());
    if char.is_uppercase() {
        let ends_word = before.is_lowercase() || before.is_ascii_digit();
        return ends_word || before.is_uppercase() && small_follows;
    }
    let mut letters = chars[..index].iter().rev();
    let before_digits = letters.find(|char| !char.is_ascii_digit());
    char.is_lowercase()
        && before.is_ascii_digit()
        && before_digits.is_some_and(|char| char.is_uppercase())
}

fn join(words: &[String], case: IdentifierCase) -> String {
    let joined = match case {
        IdentifierCase::Camel => words.iter().map(|word| capitalized(word)).collect(),
        IdentifierCase::Snake => words.join("_"),
        IdentifierCase::Screaming => words.join("_").to_uppercase(),
    };
    match joined.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("_{joined}"),
        Some(_) => joined,
        None => join(&["underscore".to_owned()], case),
    }
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// `name` without its first words.
pub(super) fn without_words(name: &str, count: usize) -> String {
    words(name)[count..].join("_")
}

/// Returns the number of words that all names start with, such that each keeps a name of its own.
pub(super) fn common_words<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let names: Vec<_> = names.map(words).collect();
    let [first, others @ ..] = names.as_slice() else {
        return 0;
    };
    if others.is_empty() {
        return 0;
    }
    let common = |other: &Vec<String>| first.iter().zip(other).take_while(|(a, b)| a == b).count();
    let common = others.iter().map(common).min().unwrap_or(0);
    let keeps_name = |name: &Vec<String>| {
        let rest = name.get(common).and_then(|word| word.chars().next());
        rest.is_some_and(char::is_alphabetic)
    };
    if names.iter().all(keeps_name) {
        common
    } else {
        0
    }
}

/// Words that Rust keeps for itself, in every case in which a name can be one of them.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str, case: IdentifierCase) -> String {
        NameScope::new(&["Vec"]).name(name, case)
    }

    #[test]
    fn words_are_found_and_joined() {
        for (given, camel, snake) in [
            ("nfs_fh3", "NfsFh3", "nfs_fh3"),
            ("LOOKUP3args", "Lookup3Args", "lookup3_args"),
            ("NFS3ERR_NOENT", "Nfs3ErrNoent", "nfs3_err_noent"),
            ("fooBar", "FooBar", "foo_bar"),
            ("XDRFile", "XdrFile", "xdr_file"),
            ("v3handle", "V3handle", "v3handle"),
            ("__a__b", "AB", "a_b"),
            ("_", "Underscore", "underscore"),
            ("_3d", "_3d", "_3d"),
        ] {
            assert_eq!(name(given, IdentifierCase::Camel), camel);
            assert_eq!(name(given, IdentifierCase::Snake), snake);
        }
        assert_eq!(name("maxSize", IdentifierCase::Screaming), "MAX_SIZE");
    }

    #[test]
    fn keywords_and_needed_names_step_aside() {
        assert_eq!(name("type", IdentifierCase::Snake), "type_");
        assert_eq!(name("self", IdentifierCase::Camel), "Self_");
        assert_eq!(name("vec", IdentifierCase::Camel), "Vec_");
    }

    #[test]
    fn the_first_of_equal_names_keeps_it() {
        let mut scope = NameScope::new(&[]);
        let mut next = |name| scope.name(name, IdentifierCase::Snake);
        assert_eq!(
            [next("a_b"), next("aB"), next("a_b_2"), next("A_B")],
            ["a_b", "a_b_2", "a_b_2_2", "a_b_3"]
        );
    }

    #[test]
    fn shared_words_are_dropped_only_where_names_remain() {
        let common = |names: &[&str]| common_words(names.iter().copied());
        assert_eq!(common(&["NFSPROC3_NULL", "NFSPROC3_READ"]), 1);
        assert_eq!(common(&["NFS3_OK", "NFS3ERR_IO"]), 1);
        assert_eq!(common(&["READ"]), 0);
        assert_eq!(common(&["READ", "READ_ALL"]), 0);
        assert_eq!(common(&["V_1", "V_2"]), 0);
    }
}
