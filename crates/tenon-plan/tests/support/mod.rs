//! What the tests of this crate share. Each uses a part of it.
#![allow(dead_code)]

use tenon_schema::Schema;

/// The interface that has every operation of a plan.
pub fn sample() -> Schema {
    schema(include_str!("sample.x"))
}

/// The interface that `text` describes.
pub fn schema(text: &str) -> Schema {
    let parsed = tenon_idl::parse_text("test.x", text, &tenon_idl::Options::default());
    let errors = parsed.render(tenon_idl::Style::Plain);
    parsed.schema.unwrap_or_else(|| panic!("{errors}"))
}
