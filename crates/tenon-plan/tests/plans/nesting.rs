//! Types that hold others twice, line by line: what a value consists of doubles with each line, and
//! the work of making plans must not. Where it does, these tests do not come to an end.

use std::fmt::Write;

use crate::support::schema;
use expect_test::{Expect, expect};
use tenon_plan::cost::{Assumed, Assumptions, Deriving, Direction, Engine, Moves, Symbol, Tally};
use tenon_plan::{Pass, Plans, Representation, explain};
use tenon_schema::{Schema, TypeId};

/// `s0` with a body of its own, and so many structs of which each holds the one before it twice.
fn doubled(first: &str, pointer: &str, lines: usize) -> Schema {
    let mut text = format!("struct s0 {{ {first} }};\n");
    for line in 1..=lines {
        let before = line - 1;
        writeln!(
            text,
            "struct s{line} {{ s{before} {pointer}a; s{before} {pointer}b; }};"
        )
        .expect("text");
    }
    writeln!(text, "struct top {{ s{lines} all<>; }};").expect("text");
    schema(&text)
}

fn check(schema: &Schema, representation: Representation, name: &str, expect: Expect) {
    let plans = Plans::new(schema, representation, Pass::ALL).expect("types that fit");
    expect.assert_eq(&explain(schema, &plans, Some(name)).expect("a type"));
}

#[test]
fn numbers_of_one_size_are_one_run_however_many() {
    check(
        &doubled("int a;", "", 23),
        Representation::XDR,
        "s23",
        expect![[r#"
            struct s23: 33554432 bytes
                reserve 33554432
                    blit it: 8388608 of 4 @0
        "#]],
    );
}

#[test]
fn what_has_too_many_runs_is_moved_part_by_part() {
    let schema = doubled("hyper a; int b; int c;", "", 21);
    check(
        &schema,
        Representation::XDR,
        "s11",
        expect![[r#"
            struct s11: 32768 bytes
                call a: s10
                call b: s10
        "#]],
    );
    check(
        &schema,
        Representation::LEAN,
        "top",
        expect![[r#"
            struct top: 4 bytes or more
                align 8 before 4
                loop all: <> of 33554432 bytes
                    call it: s21
        "#]],
    );
}

/// The bytes of memory that an element of `top` takes in frames, as its equation says.
fn in_a_frame(schema: &Schema) -> String {
    let plans = Plans::new(schema, Representation::XDR, Pass::ALL).expect("types that fit");
    let deriving = Deriving {
        schema,
        plans: &plans,
        engine: Engine::Interpreter,
        direction: Direction::Decode,
        moves: Moves::default(),
    };
    let top = schema.types.iter().position(|def| def.name == "top");
    let equation = deriving.message(TypeId(top.expect("a type called top") as u32));
    let text = equation.to_string();
    let (_, behind) = text.split_once(" a(").expect("memory for elements");
    let (bytes, _) = behind.split_once(" |all|").expect("a length");
    bytes.to_owned()
}

/// The bytes of memory that a message of `top` takes in compiled stubs, one element there.
fn allocated(schema: &Schema) -> f64 {
    let plans = Plans::new(schema, Representation::XDR, Pass::ALL).expect("types that fit");
    let deriving = Deriving {
        schema,
        plans: &plans,
        engine: Engine::Compiled,
        direction: Direction::Decode,
        moves: Moves::default(),
    };
    let top = schema.types.iter().position(|def| def.name == "top");
    let equation = deriving.message(TypeId(top.expect("a type called top") as u32));
    let assumptions = Assumptions {
        length: 1,
        lengths: vec![("a".to_owned(), 0), ("b".to_owned(), 0)],
        ..Assumptions::default()
    };
    let tally = Tally::of(&deriving.equations(), &equation, Assumed::new(&assumptions));
    tally.times(Symbol::AllocateByte)
}

#[test]
fn memory_is_estimated_type_by_type() {
    let schema = doubled("int a;", "*", 40);
    assert_eq!(in_a_frame(&schema), "16");
    // 4 bytes at the bottom, and each of two is there or not: a word more.
    let nested = (0..40).fold(4_u64, |held, _| 2 * (held + 8).next_multiple_of(4));
    assert_eq!(allocated(&schema), nested as f64);
}

#[test]
fn what_lies_inside_itself_takes_a_pointer() {
    let tree =
        schema("struct top { node all<>; }; struct node { int tag; node *a; node *b; int end; };");
    assert_eq!(in_a_frame(&tree), "32");
    assert_eq!(allocated(&tree), 32.0);
}
