//! The passes that make blocks, before and after, in both representations.

use crate::support::schema;
use expect_test::{Expect, expect};
use tenon_plan::{Pass, Representation, explain, lower, specialize};

/// The plan of `name` after `passes`.
fn check(
    representation: Representation,
    passes: &[Pass],
    definitions: &str,
    name: &str,
    expect: Expect,
) {
    let schema = schema(definitions);
    let mut plans = lower(&schema, representation).expect("types that end");
    assert_eq!(specialize(&schema, &mut plans, passes), Ok(()));
    expect.assert_eq(&explain(&schema, &plans, Some(name)).expect("a type"));
}

const MIXED: &str = "
struct mixed { bool a; hyper b; short c; string d<>; hyper e; double f<>; bool g; int h; };
";

#[test]
fn an_element_of_a_list_ends_where_its_like_may_begin() {
    check(
        Representation::LEAN,
        &[],
        "struct link { hyper a; bool b; link *next; };",
        "link",
        expect![[r#"
            list element link: 16 bytes
                align 8
                reserve 8
                    put a: i64 @0
                reserve 1
                    put b: bool @0
                align 8
        "#]],
    );
}

#[test]
fn what_may_have_to_be_aligned_is_as_lowered() {
    check(
        Representation::LEAN,
        &[],
        MIXED,
        "mixed",
        expect![[r#"
            struct mixed: 32 bytes or more
                reserve 1
                    put a: bool @0
                align 8
                reserve 8
                    put b: i64 @0
                align 2
                reserve 2
                    put c: i16 @0
                align 4
                copy d: string<>
                align 8
                reserve 8
                    put e: i64 @0
                align 8 before 4
                loop f: <> of 8 bytes
                    reserve 8
                        put it: f64 @0
                reserve 1
                    put g: bool @0
                align 4
                reserve 4
                    put h: i32 @0
        "#]],
    );
}

#[test]
fn positions_that_the_interface_fixes_need_no_look() {
    let passes = &[Pass::FoldAligns];
    check(
        Representation::LEAN,
        passes,
        MIXED,
        "mixed",
        expect![[r#"
            struct mixed: 32 bytes or more
                reserve 1
                    put a: bool @0
                reserve 7
                    zero 7 @0
                reserve 8
                    put b: i64 @0
                reserve 2
                    put c: i16 @0
                reserve 2
                    zero 2 @0
                copy d: string<>
                align 8
                reserve 8
                    put e: i64 @0
                reserve 4
                    zero 4 @0
                loop f: <> of 8 bytes
                    reserve 8
                        put it: f64 @0
                reserve 1
                    put g: bool @0
                reserve 3
                    zero 3 @0
                reserve 4
                    put h: i32 @0
        "#]],
    );
}

#[test]
fn xdr_aligns_nothing() {
    let passes = &[Pass::FoldAligns];
    check(
        Representation::XDR,
        passes,
        MIXED,
        "mixed",
        expect![[r#"
            struct mixed: 40 bytes or more
                reserve 4
                    put a: bool @0
                reserve 8
                    put b: i64 @0
                reserve 4
                    put c: i16 @0
                copy d: string<>
                reserve 8
                    put e: i64 @0
                loop f: <> of 8 bytes
                    reserve 8
                        put it: f64 @0
                reserve 4
                    put g: bool @0
                reserve 4
                    put h: i32 @0
        "#]],
    );
}

#[test]
fn the_hole_at_the_end_of_a_record_is_filled() {
    let definitions = "struct tail { hyper a; bool b; }; struct two { tail t[2]; tail u<>; };";
    let passes = &[Pass::FoldAligns, Pass::MergeChecks];
    check(
        Representation::LEAN,
        passes,
        definitions,
        "tail",
        expect![[r#"
            struct tail: 16 bytes
                reserve 16
                    put a: i64 @0
                    put b: bool @8
                    zero 7 @9
        "#]],
    );
    check(
        Representation::LEAN,
        passes,
        definitions,
        "two",
        expect![[r#"
            struct two: 36 bytes or more
                loop t: [2] of 16 bytes
                    call it: tail
                reserve 4
                    zero 4 @0
                loop u: <> of 16 bytes
                    call it: tail
        "#]],
    );
}

const POINTS: &str = "
struct point { int x; int y; float z; };
struct pair { hyper a; int b; int c; };
struct hole { int a; hyper b; };
typedef opaque sum[8];
struct all { point p; point ps[9]; point qs<9>; pair pairs[2]; hole h; sum sums[3]; bool set; };
";

#[test]
fn what_has_no_hole_is_a_block() {
    let passes = &[Pass::FoldAligns, Pass::MergeBlocks];
    check(
        Representation::XDR,
        passes,
        POINTS,
        "all",
        expect![[r#"
        struct all: 196 to 304 bytes
            reserve 12
                blit p: 3 of 4 @0
            reserve 108
                blit ps: [9] 3 of 4 @0
            blit qs: <9> 3 of 4
            reserve 32
                blit pairs: [2] 1 of 8, 2 of 4 @0
            call h: hole
            reserve 24
                blit sums: [3] 8 of 1 @0
            reserve 4
                put set: bool @0
    "#]],
    );
    check(
        Representation::XDR,
        passes,
        POINTS,
        "pair",
        expect![[r#"
        struct pair: 16 bytes
            reserve 16
                blit it: 1 of 8, 2 of 4 @0
    "#]],
    );
}

#[test]
fn in_lean_small_numbers_are_blocks_too() {
    let definitions =
        "struct s { short a; unsigned short b; char c[4]; }; struct t { short a; int b; };";
    let passes = &[Pass::FoldAligns, Pass::MergeBlocks];
    check(
        Representation::LEAN,
        passes,
        definitions,
        "s",
        expect![[r#"
            struct s: 8 bytes
                reserve 8
                    blit it: 2 of 2, 4 of 1 @0
        "#]],
    );
    check(
        Representation::LEAN,
        passes,
        definitions,
        "t",
        expect![[r#"
            struct t: 8 bytes
                reserve 2
                    put a: i16 @0
                reserve 2
                    zero 2 @0
                reserve 4
                    put b: i32 @0
        "#]],
    );
    check(
        Representation::XDR,
        passes,
        definitions,
        "s",
        expect![[r#"
            struct s: 24 bytes
                reserve 4
                    put a: i16 @0
                reserve 4
                    put b: u16 @0
                loop c: [4] of 4 bytes
                    reserve 4
                        put it: i8 @0
        "#]],
    );
}

#[test]
fn what_is_too_large_to_lie_inside_of_something_breaks_a_block() {
    let definitions = "struct s { int a; int large[1025]; };";
    let passes = &[Pass::MergeBlocks];
    check(
        Representation::XDR,
        passes,
        definitions,
        "s",
        expect![[r#"
            struct s: 4104 bytes
                reserve 4
                    put a: i32 @0
                reserve 4100
                    blit large: [1025] 1 of 4 @0
        "#]],
    );
}

#[test]
fn elements_of_one_size_are_checked_at_once() {
    let definitions = "
struct flag { bool set; int value; };
struct named { string name<>; };
struct flags { flag few[3]; flag many<>; named names<>; };
";
    check(
        Representation::XDR,
        Pass::ALL,
        definitions,
        "flags",
        expect![[r#"
            struct flags: 32 bytes or more
                elements few: [3] of 8 bytes
                    put set: bool @0
                    put value: i32 @4
                elements many: <> of 8 bytes
                    put set: bool @0
                    put value: i32 @4
                loop names: <> of at least 4 bytes
                    call it: named
        "#]],
    );
    check(
        Representation::LEAN,
        Pass::ALL,
        definitions,
        "flags",
        expect![[r#"
            struct flags: 32 bytes or more
                elements few: [3] of 8 bytes
                    put set: bool @0
                    zero 3 @1
                    put value: i32 @4
                elements many: <> of 8 bytes
                    put set: bool @0
                    zero 3 @1
                    put value: i32 @4
                loop names: <> of at least 4 bytes
                    align 4
                    call it: named
        "#]],
    );
}

#[test]
fn a_check_of_each_element_becomes_one_of_all() {
    let definitions = "
struct flag { bool set; int value; };
struct named { string name<>; };
struct flags { flag few[3]; flag many<9>; named names<>; };
";
    let before = [
        Pass::FoldAligns,
        Pass::MergeArrays,
        Pass::MergeBlocks,
        Pass::Inline,
        Pass::MergeChecks,
    ];
    check(
        Representation::XDR,
        &before,
        definitions,
        "flags",
        expect![[r#"
            struct flags: 32 bytes or more
                loop few: [3] of 8 bytes
                    call it: flag
                loop many: <9> of 8 bytes
                    call it: flag
                loop names: <> of at least 4 bytes
                    call it: named
        "#]],
    );
    let after = [&before[..], &[Pass::HoistChecks]].concat();
    check(
        Representation::XDR,
        &after,
        definitions,
        "flags",
        expect![[r#"
            struct flags: 32 bytes or more
                elements few: [3] of 8 bytes
                    put set: bool @0
                    put value: i32 @4
                elements many: <9> of 8 bytes
                    put set: bool @0
                    put value: i32 @4
                loop names: <> of at least 4 bytes
                    call it: named
        "#]],
    );
}

#[test]
fn arrays_of_numbers_are_moved_at_once() {
    let definitions = "typedef int row[3]; struct s { bool set[2]; double reals<7>; row rows<>; };";
    let passes = &[Pass::MergeArrays];
    check(
        Representation::XDR,
        &[],
        definitions,
        "s",
        expect![[r#"
        struct s: 16 bytes or more
            loop set: [2] of 4 bytes
                reserve 4
                    put it: bool @0
            loop reals: <7> of 8 bytes
                reserve 8
                    put it: f64 @0
            loop rows: <> of 12 bytes
                loop it: [3] of 4 bytes
                    reserve 4
                        put it: i32 @0
    "#]],
    );
    check(
        Representation::XDR,
        passes,
        definitions,
        "s",
        expect![[r#"
        struct s: 16 bytes or more
            reserve 8
                put set: bool[2] @0
            put reals: f64<7>
            loop rows: <> of 12 bytes
                reserve 12
                    put it: i32[3] @0
    "#]],
    );
}

#[test]
fn a_fixed_array_of_what_varies_begins_where_its_elements_may() {
    check(
        Representation::LEAN,
        &[Pass::FoldAligns],
        "typedef string text<>; struct names { bool known[3]; text names[2]; };",
        "names",
        expect![[r#"
            struct names: 11 bytes or more
                loop known: [3] of 1 bytes
                    reserve 1
                        put it: bool @0
                reserve 1
                    zero 1 @0
                loop names: [2] of at least 4 bytes
                    align 4
                    copy it: string<>
        "#]],
    );
}
