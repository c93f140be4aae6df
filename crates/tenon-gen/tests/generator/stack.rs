//! Interfaces with values that are too large for the stack of a thread: Rust's stubs are refused, and the
//! error says which type is at fault.

use tenon_gen::rust::{self, Form, Options, Refused};
use tenon_plan::{Pass, Plans, Representation};

fn generate(text: &str) -> Result<String, Refused> {
    let parsed = tenon_idl::parse_text("large.x", text, &tenon_idl::Options::default());
    let said = parsed.render(tenon_idl::Style::Plain);
    let schema = parsed.schema.unwrap_or_else(|| panic!("{said}"));
    let plans = Plans::new(&schema, Representation::XDR, Pass::ALL).expect("types that end");
    let form = Form::of(&plans).expect("a representation with a name");
    rust::generate(&schema, &[form], &Options::default())
}

/// A struct of so many members of one type, and what else it has.
fn wide(name: &str, member: &str, count: u32, more: &str) -> String {
    let members = (0..count).map(|at| format!("{member} m{at}; "));
    format!(
        "struct {name} {{ {}{more} }};\n",
        members.collect::<String>()
    )
}

fn large(name: &str, bytes: u64) -> Result<(), Refused> {
    Err(Refused::TooLarge(name.to_owned(), bytes))
}

fn deep(name: &str, bytes: u64) -> Result<(), Refused> {
    Err(Refused::TooDeep(name.to_owned(), bytes))
}

#[test]
fn a_type_that_contains_itself_may_not_be_wide() {
    let node = |count| wide("node", "hyper", count, "node *left; hyper tag;");
    let done = |text: String| generate(&text).map(drop);
    assert_eq!(done(node(126)), Ok(()));
    assert_eq!(done(node(127)), deep("node", 8 * 129));
    // Values that it holds in place count; those with memory of their own do not.
    let held = wide("held", "hyper", 200, "");
    let around = "struct node { held it; node *left; int tag; };";
    assert_eq!(done(format!("{held}{around}")), deep("node", 8 * 201 + 4));
    let around = "struct node { held it<1>; opaque page[4096]; node *left; int tag; };";
    assert_eq!(done(format!("{held}{around}")), Ok(()));
    // A list is read in a loop.
    assert_eq!(done(wide("link", "hyper", 1000, "link *next;")), Ok(()));
    // Through others, and through a count.
    let text = wide("a", "hyper", 10, "b *inner; int tag;") + &wide("b", "hyper", 200, "a next<>;");
    assert_eq!(done(text), deep("a", 8 * 10 + (8 * 200 + 24 + 8) + 4));
}

#[test]
fn any_other_value_may_be_wide_but_no_more_than_a_stack() {
    let page = "typedef opaque page[4096];\n";
    let of = |count| format!("{page}{}", wide("pages", "page", count, ""));
    assert_eq!(generate(&of(32)).map(drop), Ok(()));
    assert_eq!(generate(&of(33)).map(drop), large("pages", 33 * 4096));
    // Each of these is put together while the one around it is.
    let around = "struct outer { pages it; int tag; };";
    let text = format!("{}{around}", of(20));
    assert_eq!(generate(&text).map(drop), large("outer", 2 * 20 * 4096 + 4));
    let program = "program P { version V { void F(pages, pages) = 1; } = 1; } = 9;";
    assert_eq!(generate(&format!("{}{program}", of(16))).map(drop), Ok(()));
    let refused = generate(&format!("{}{program}", of(17)));
    assert_eq!(refused.map(drop), large("F", 2 * 17 * 4096));
}

#[test]
fn the_error_names_the_type_and_a_way_out() {
    let refused = generate(&wide("node", "hyper", 200, "node *left; int tag;"));
    let said = refused.expect_err("it is too large").to_string();
    assert!(said.starts_with("node: a value takes 1612 bytes"), "{said}");
    assert!(said.contains("pointers"), "{said}");
}
