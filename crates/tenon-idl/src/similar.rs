//! Suggestions for misspelt names.

/// The names of types that the language has.
const BUILT_IN: [&str; 12] = [
    "string",
    "opaque",
    "int",
    "unsigned",
    "hyper",
    "float",
    "double",
    "quadruple",
    "bool",
    "short",
    "long",
    "char",
];

/// Bytes of a name: longer ones are not compared.
const BYTES_MAX: usize = 64;

/// Number of names that are compared with one: a hostile file may have thousands of misspelt ones.
const COMPARED_MAX: usize = 1000;

/// Returns the type most similar to `word`, which no type is called: of those of the language and of the `declared`
/// ones that with the smallest edit distance, if it is small for a name of this length.
pub(crate) fn similar<'n>(word: &str, declared: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    closest(word, declared.take(COMPARED_MAX).chain(BUILT_IN))
}

/// Returns the candidate with the smallest edit distance from `word`, if that is small for a word of this length.
pub(crate) fn closest<'n>(
    word: &str,
    candidates: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    let slips_max = match word.len() {
        0..3 => return None,
        3..8 => 1,
        8..=BYTES_MAX => 2,
        _ => return None,
    };
    let near = candidates.filter(|name| name.len().abs_diff(word.len()) <= slips_max);
    let with_slips = near.map(|name| (slips(word.as_bytes(), name.as_bytes()), name));
    let closest = with_slips.min_by_key(|(slips, _)| *slips);
    closest
        .filter(|(slips, _)| *slips <= slips_max)
        .map(|(_, name)| name)
}

/// Counts the letters that are missing, added, wrong or swapped with their neighbour: the optimal string alignment
/// distance.
fn slips(one: &[u8], other: &[u8]) -> usize {
    // Distances of all prefixes of `other` from three prefixes of `one`, each a letter longer.
    let mut before_last = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut now = vec![0; other.len() + 1];
    for (i, letter) in one.iter().enumerate() {
        now[0] = i + 1;
        for (j, meant) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(letter != meant);
            let mut best = replaced.min(last[j + 1] + 1).min(now[j] + 1);
            if i > 0 && j > 0 && one[i - 1] == *meant && *letter == other[j - 1] {
                best = best.min(before_last[j - 1] + 1);
            }
            now[j + 1] = best;
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut now);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_letters_missing_added_wrong_or_swapped() {
        for (one, other, expected) in [
            ("visitor", "visitor", 0),
            ("vistor", "visitor", 1),
            ("visiitor", "visitor", 1),
            ("visitir", "visitor", 1),
            ("vistior", "visitor", 1),
            ("vistro", "visitor", 2),
            ("", "abc", 3),
            ("abc", "", 3),
        ] {
            let found = slips(one.as_bytes(), other.as_bytes());
            assert_eq!(found, expected, "{one}, {other}");
        }
    }

    #[test]
    fn the_nearest_name_is_meant_if_it_is_near_enough() {
        let declared = ["visitor", "visits", "a_long_name"];
        let similar = |word| similar(word, declared.into_iter());
        assert_eq!(similar("vistor"), Some("visitor"));
        assert_eq!(similar("strng"), Some("string"));
        assert_eq!(similar("a_lnog_nam"), Some("a_long_name"));
        assert_eq!(similar("in"), None);
        assert_eq!(similar("vest"), None);
        assert_eq!(similar("guest_list"), None);
        assert_eq!(similar(&"visitor".repeat(10)), None);
    }
}
