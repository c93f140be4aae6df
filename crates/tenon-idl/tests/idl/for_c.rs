//! Interfaces that are read for rpcgen's C: what they do not define is left to the C compiler.

use tenon_idl::{Options, Parsed, Severity, Style, Undeclared, parse_text};
use tenon_schema::written::{Item, WrittenType};
use tenon_schema::{Length, Type, TypeKind};

fn read(text: &str, undeclared: Undeclared) -> Parsed {
    let options = Options {
        undeclared,
        ..Options::default()
    };
    parse_text("test.x", text, &options)
}

/// Interfaces with names that nothing defines, and what the name is of.
const FOREIGN: [(&str, &str); 6] = [
    ("struct s { opaque bytes[N]; };", "length"),
    ("typedef int row[2 * N];", "length"),
    ("union u switch (int k) { case N: int a; };", "label"),
    ("enum e { A = N };", "value"),
    (
        "program P { version V { void F(void) = N; } = 1; } = 2;",
        "procedure number",
    ),
    (
        "program P { version V { void F(void) = 1; } = N; } = 2;",
        "version number",
    ),
];

#[test]
fn numbers_that_nothing_defines_are_left_to_c_alone() {
    for (text, what) in FOREIGN {
        assert!(
            read(text, Undeclared::OfLibtirpc).schema.is_some(),
            "{text}"
        );
        let parsed = read(text, Undeclared::Usual);
        assert!(parsed.schema.is_none(), "{text}");
        let said = parsed.render(Style::Plain);
        let wanted = format!("`N` is not defined, but this {what} has to be known");
        assert!(said.contains(&wanted), "{said}");
        assert!(said.contains("`tenon rpcgen` leaves it to C"), "{said}");
    }
}

#[test]
fn what_is_written_stands_beside_placeholders() {
    let text = "const BOTH = N;
        struct s { int row[N]; opaque some<BOTH>; opaque known[3]; };
        union u switch (int k) { case A: case 0: int a; case B: void; };";
    let parsed = read(text, Undeclared::OfLibtirpc);
    let (schema, written) = parsed.schema.zip(parsed.written).expect("an interface");
    let (TypeKind::Struct(fields), WrittenType::Struct(spellings)) =
        (&schema.types[0].kind, &written.types[0])
    else {
        panic!("{schema:?}")
    };
    assert_eq!(
        fields[0].ty,
        Type::Array(Box::new(Type::Int), Length::Fixed(0))
    );
    assert_eq!(fields[1].ty, Type::Opaque(Length::Counted(u32::MAX)));
    let bounds = spellings.iter().map(|it| (it.bound.as_deref(), it.foreign));
    let bounds: Vec<_> = bounds.collect();
    assert_eq!(
        bounds,
        [(Some("N"), true), (Some("BOTH"), true), (Some("3"), false)]
    );

    let (TypeKind::Union(union), WrittenType::Union(words)) =
        (&schema.types[1].kind, &written.types[1])
    else {
        panic!("{schema:?}")
    };
    assert_eq!(words.labels, [vec!["A", "0"], vec!["B"]]);
    let values = union.arms.iter().flat_map(|arm| &arm.cases);
    let mut values: Vec<i32> = values.map(|case| case.value).collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), 3, "no label selects two arms");
}

/// An enum counts on from a member that C knows, and so do labels that are members.
#[test]
fn what_depends_on_a_foreign_number_is_foreign() {
    let text = "enum e { A = N, B, C = 7 };
        union u switch (e k) { case B: int b[B]; case C: void; };
        program P { version V { void F(u) = 1; void G(u) = F_TOO; } = 1; } = 0x20000000;";
    let parsed = read(text, Undeclared::OfLibtirpc);
    let said = parsed.render(Style::Plain);
    let schema = parsed.schema.unwrap_or_else(|| panic!("{said}"));
    let TypeKind::Union(union) = &schema.types[1].kind else {
        panic!("{schema:?}")
    };
    assert_ne!(union.arms[0].cases[0].value, 7);
    assert_eq!(union.arms[1].cases[0].value, 7);
    let [first, second] = &schema.programs[0].versions[0].procedures[..] else {
        panic!("{schema:?}")
    };
    assert_ne!(first.number, second.number);
}

/// As rpcgen does not look at labels, what it passes on is a warning at most.
#[test]
fn labels_that_do_not_fit_are_passed_on() {
    for text in [
        "enum e { A }; enum f { B = 4 }; union u switch (e k) { case B: int b; };",
        "union u switch (unsigned k) { case -1: int b; };",
        "union u switch (bool k) { case 2: int b; };",
        "union u switch (hyper k) { case 0x100000000: int b; };",
    ] {
        let parsed = read(text, Undeclared::OfLibtirpc);
        let said = parsed.render(Style::Plain);
        assert!(parsed.schema.is_some(), "{text}: {said}");
        assert!(read(text, Undeclared::Usual).schema.is_none(), "{text}");
    }
}

#[test]
fn a_type_may_be_defined_again_in_the_same_way() {
    let parsed = read(
        "typedef opaque h<8>;\nstruct s { h of; };\ntypedef opaque  h<8>;",
        Undeclared::Usual,
    );
    let severities: Vec<_> = parsed.diagnostics.iter().map(|it| it.severity).collect();
    assert_eq!(severities, [Severity::Warning]);
    let items = parsed.written.expect("an interface").items;
    assert_eq!(
        items
            .iter()
            .filter(|item| matches!(item, Item::Type(_)))
            .count(),
        2
    );
    assert!(
        read(
            "typedef opaque h<8>;\ntypedef opaque h<9>;",
            Undeclared::Usual
        )
        .schema
        .is_none()
    );
}
