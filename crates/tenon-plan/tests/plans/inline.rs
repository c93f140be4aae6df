//! `inline`, before and after, and what its budget leaves called.

use crate::support::schema;
use expect_test::{Expect, expect};
use tenon_plan::{
    Op, Pass, Representation, ReservedBlock, VerifyErrorKind, explain, lower, specialize, verify,
};

/// The plan of the type `name` after `passes`.
fn after(passes: &[Pass], definitions: &str, name: &str) -> String {
    let schema = schema(definitions);
    let mut plans = lower(&schema, Representation::XDR).expect("types that end");
    assert_eq!(specialize(&schema, &mut plans, passes), Ok(()));
    explain(&schema, &plans, Some(name)).expect("a type")
}

/// The plan of `name` when structs are inlined and nothing else is done.
fn check(definitions: &str, name: &str, expect: Expect) {
    expect.assert_eq(&after(&[Pass::Inline], definitions, name));
}

const SHAPES: &str = "
    struct point { int x; int y; };
    struct line { point from; point to; };
    struct drawing { line first; unsigned hyper id; string title<>; point at; };
";

#[test]
fn a_small_struct_beside_fixed_items_is_moved_by_its_fields() {
    expect![[r#"
        struct drawing: 36 bytes or more
            call first: line
            reserve 8
                put id: u64 @0
            copy title: string<>
            call at: point
    "#]]
    .assert_eq(&after(&[], SHAPES, "drawing"));
    check(
        SHAPES,
        "drawing",
        expect![[r#"
            struct drawing: 36 bytes or more
                reserve 16
                    put first.from.x: i32 @0
                    put first.from.y: i32 @4
                    put first.to.x: i32 @8
                    put first.to.y: i32 @12
                reserve 8
                    put id: u64 @0
                copy title: string<>
                call at: point
        "#]],
    );
}

#[test]
fn merging_then_makes_one_check_of_it() {
    expect![[r#"
        struct drawing: 36 bytes or more
            reserve 24
                put first.from.x: i32 @0
                put first.from.y: i32 @4
                put first.to.x: i32 @8
                put first.to.y: i32 @12
                put id: u64 @16
            copy title: string<>
            call at: point
    "#]]
    .assert_eq(&after(
        &[Pass::MergeArrays, Pass::Inline, Pass::MergeChecks],
        SHAPES,
        "drawing",
    ));
}

#[test]
fn arguments_are_a_record_too() {
    check(
        "struct point { int x; int y; };
         program P { version V { void MOVE(point, hyper) = 1; } = 1; } = 0x20000001;",
        "MOVE",
        expect![[r#"
            procedure MOVE = 1 of V = 1, P = 536870913
            arguments: 16 bytes
                reserve 8
                    put arg1.x: i32 @0
                    put arg1.y: i32 @4
                reserve 8
                    put arg2: i64 @0
            result: 0 bytes
        "#]],
    );
}

#[test]
fn what_stands_alone_stays_called() {
    check(
        "struct point { int x; int y; };
         struct alone { point path<>; point corners[4]; string name<>; point at; opaque data<>; };",
        "alone",
        expect![[r#"
            struct alone: 52 bytes or more
                loop path: <> of 8 bytes
                    call it: point
                loop corners: [4] of 8 bytes
                    call it: point
                copy name: string<>
                call at: point
                copy data: opaque<>
        "#]],
    );
}

#[test]
fn what_can_contain_itself_or_varies_in_size_stays_called() {
    check(
        "struct tree { tree *down; int at; };
         struct text { string it<>; };
         struct mixed { int a; tree b; int c; text d; int e; };",
        "mixed",
        expect![[r#"
            struct mixed: 24 bytes or more
                reserve 4
                    put a: i32 @0
                call b: tree
                reserve 4
                    put c: i32 @0
                call d: text
                reserve 4
                    put e: i32 @0
        "#]],
    );
}

#[test]
fn the_budget_counts_items_and_more_for_those_that_are_checked() {
    let fields =
        |of: &str, count| -> String { (0..count).map(|at| format!("{of} m{at}; ")).collect() };
    let is_called = |inner: &str| {
        let definitions = format!("struct in {{ {inner} }}; struct out {{ int a; in b; }};");
        after(
            &[Pass::MergeArrays, Pass::Inline, Pass::MergeChecks],
            &definitions,
            "out",
        )
        .contains("call b: in")
    };
    assert!(!is_called(&fields("int", 16)));
    assert!(is_called(&fields("int", 17)));
    assert!(!is_called(&fields("bool", 2)));
    assert!(is_called(&fields("bool", 3)));
    assert!(!is_called("double m[32];"));
    assert!(is_called("double m[33];"));
}

#[test]
fn a_body_grows_no_longer_than_its_budget() {
    let uses: String = (0..80).map(|at| format!("point p{at}; ")).collect();
    let definitions = format!("struct point {{ int x; int y; }}; struct many {{ {uses} }};");
    let text = after(
        &[Pass::MergeArrays, Pass::Inline, Pass::MergeChecks],
        &definitions,
        "many",
    );
    assert_eq!(text.matches("    put ").count(), 96);
    assert_eq!(text.matches("    call ").count(), 32);
}

#[test]
fn a_struct_that_is_not_in_one_block_is_a_mistake() {
    let schema = schema("struct point { int x; int y; }; struct s { int a; point at; };");
    let mut plans = lower(&schema, Representation::XDR).expect("types that end");
    assert_eq!(specialize(&schema, &mut plans, &[Pass::Inline]), Ok(()));
    let body = &mut plans.types[1].body;
    let Some(Op::Reserve(first)) = body.get_mut(1) else {
        panic!("{body:?}")
    };
    let last = first.parts.pop().expect("`at.y`");
    first.bytes = 4;
    let mut second = ReservedBlock {
        bytes: 0,
        parts: Vec::new(),
    };
    second.push(last, 4);
    body.push(Op::Reserve(second));
    let error = verify(&schema, &plans).expect_err("`at` is in two blocks");
    assert_eq!(
        (error.at.as_str(), error.problem),
        ("at.y", VerifyErrorKind::Split)
    );
}
