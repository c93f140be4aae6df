//! The conversion of numbers to members of an enum.
//!
//! A compiler makes a routine of a `match` over many numbers, or not, depending on which other code looks for them. So
//! many members are looked up in tables, wherever that is.

use tenon_schema::EnumMember;

use super::RustFile;
use crate::writer::{HoleContent, SourceWriter};

/// Members among which a `match` looks, as compilers make it a few comparisons.
const FEW: usize = 8;

/// Most tables for an enum: each is a comparison for numbers that are in none before.
const TABLES: usize = 4;

/// Places of a table for each member in it, at most.
const PLACES: usize = 8;

/// A lookup table of members with numbers near to each other, in the order of their numbers.
struct MemberTable<'a> {
    members: Vec<(i32, &'a str)>,
}

/// Writes the conversion of numbers to the enum `name`, which has `members`, each with a number of its own.
pub fn write(
    w: &mut SourceWriter,
    rust: &RustFile<'_>,
    name: &str,
    members: &[(&EnumMember, &String)],
) {
    rust.uses(&["wire::DecodeErrorKind"]);
    let tables = match members.len() <= FEW {
        true => None,
        false => tables(members),
    };
    let (inline, body): (_, &dyn Fn(&mut SourceWriter)) = match &tables {
        Some(tables) => {
            rust.uses(&["wire::ByNumber"]);
            ("#[inline(always)]", &|w| write_tables(w, name, tables))
        }
        None => ("#[inline]", &|w| write_match(w, members)),
    };
    w.skeleton(
        "
impl TryFrom<i32> for $name$ {
    type Error = DecodeErrorKind;

    $inline$
    fn try_from(value: i32) -> Result<Self, DecodeErrorKind> {
        $body$
    }
}
",
        &[
            ("name", HoleContent::Text(name)),
            ("inline", HoleContent::Text(inline)),
            ("body", HoleContent::Lines(body)),
        ],
    );
}

fn write_match(w: &mut SourceWriter, members: &[(&EnumMember, &String)]) {
    w.braces("match value", |w| {
        for (member, name) in members {
            w.line(format!("{} => Ok(Self::{name}),", member.value));
        }
        w.line("value => Err(DecodeErrorKind::UnknownValue(value)),");
    });
}

fn write_tables(w: &mut SourceWriter, name: &str, tables: &[MemberTable<'_>]) {
    let mut found = String::new();
    for table in tables {
        let (label, span) = (table.label(), table.span());
        w.line(format!(
            "static {label}: ByNumber<{name}, {span}> = ByNumber::of(&["
        ));
        w.indented(|w| {
            for (number, member) in &table.members {
                w.line(format!("({number}, {name}::{member}),"));
            }
        });
        w.line("]);");
        found = match found.is_empty() {
            true => format!("{label}.find(value)"),
            false => format!("{found}.or_else(|| {label}.find(value))"),
        };
    }
    w.line(format!("let member = {found};"));
    w.line("member.ok_or(DecodeErrorKind::UnknownValue(value))");
}

/// The members in as few tables as hold them, if they are few and no table is mostly empty.
fn tables<'a>(members: &[(&EnumMember, &'a String)]) -> Option<Vec<MemberTable<'a>>> {
    let mut sorted: Vec<(i32, &str)> = members
        .iter()
        .map(|(member, name)| (member.value, name.as_str()))
        .collect();
    sorted.sort_unstable();
    let mut tables: Vec<MemberTable<'_>> = Vec::new();
    for member in sorted {
        match tables.last_mut().filter(|table| table.takes(member.0)) {
            Some(table) => table.members.push(member),
            None => tables.push(MemberTable {
                members: vec![member],
            }),
        }
    }
    (tables.len() <= TABLES).then_some(tables)
}

impl MemberTable<'_> {
    fn least(&self) -> i32 {
        self.members[0].0
    }

    /// Returns whether `number`, which is above all others, is near enough.
    fn takes(&self, number: i32) -> bool {
        let places = (self.members.len() + 1).saturating_mul(PLACES);
        (number.abs_diff(self.least()) as usize) < places
    }

    /// Places from the least number to the greatest.
    fn span(&self) -> usize {
        let greatest = self.members.last().map_or(self.least(), |last| last.0);
        greatest.abs_diff(self.least()) as usize + 1
    }

    /// Returns the name of its static.
    fn label(&self) -> String {
        let (least, sign) = (self.least(), if self.least() < 0 { "MINUS_" } else { "" });
        format!("FROM_{sign}{}", least.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use tenon_schema::MemberAnnotations;

    use super::*;

    /// Returns the names of the tables of such members, their places, and the number of members in each.
    fn laid_out(values: impl IntoIterator<Item = i32>) -> Option<Vec<(String, usize, usize)>> {
        let member = |value| EnumMember {
            name: String::new(),
            doc: String::new(),
            annotations: MemberAnnotations::default(),
            value,
        };
        let name = String::from("Member");
        let members: Vec<EnumMember> = values.into_iter().map(member).collect();
        let named: Vec<_> = members.iter().map(|member| (member, &name)).collect();
        let tables = tables(&named)?;
        let of = |table: &MemberTable<'_>| (table.label(), table.span(), table.members.len());
        Some(tables.iter().map(of).collect())
    }

    fn expected(tables: &[(&str, usize, usize)]) -> Option<Vec<(String, usize, usize)>> {
        let of = |(label, places, members): &(&str, usize, usize)| {
            (String::from(*label), *places, *members)
        };
        Some(tables.iter().map(of).collect())
    }

    #[test]
    fn members_that_are_near_to_each_other_share_a_table() {
        assert_eq!(
            laid_out([70, 0, 1, 5, 13, -3, 25, 10_001, 10_002]),
            expected(&[
                ("FROM_MINUS_3", 29, 6),
                ("FROM_70", 1, 1),
                ("FROM_10001", 2, 2)
            ])
        );
        assert_eq!(
            laid_out([i32::MIN, i32::MIN + 1, i32::MAX]),
            expected(&[("FROM_MINUS_2147483648", 2, 2), ("FROM_2147483647", 1, 1)])
        );
    }

    #[test]
    fn scattered_members_have_no_tables() {
        assert_eq!(laid_out((0..9).map(|number| number * 1000)), None);
        assert_eq!(laid_out((0..9).map(|number| number * 16)), None);
        assert!(laid_out((0..9).map(|number| number * 8)).is_some());
    }
}
