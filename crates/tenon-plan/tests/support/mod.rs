//! Code that the tests of this crate share. Each uses a part of it.
#![allow(dead_code)]

use tenon_schema::Schema;

/// The interface that has every operation of a plan.
pub fn sample() -> Schema {
    schema(include_str!("sample.x"))
}

/// Returns the interface that `text` describes, in which types may be missing: plans have an operation for them.
pub fn schema(text: &str) -> Schema {
    let options = tenon_idl::Options {
        undeclared: tenon_idl::Undeclared::Allowed,
        ..tenon_idl::Options::default()
    };
    let parsed = tenon_idl::parse_text("test.x", text, &options);
    let errors = parsed.render(tenon_idl::Style::Plain);
    parsed.schema.unwrap_or_else(|| panic!("{errors}"))
}
