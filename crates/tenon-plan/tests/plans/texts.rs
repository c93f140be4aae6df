//! The text form of plans as they are lowered, for every kind of type.

use crate::support::{sample, schema};
use expect_test::{Expect, expect};
use tenon_plan::{Representation, UnknownName, explain, lower};

/// The plans of `definitions` as they are lowered.
fn check(definitions: &str, expect: Expect) {
    let schema = schema(definitions);
    let plans = lower(&schema, Representation::XDR).expect("types that end");
    let text = explain(&schema, &plans, None).expect("all of them");
    expect.assert_eq(&text);
}

#[test]
fn scalars() {
    check(
        "enum color { RED = 0 };
         typedef color paint;
         struct scalars {
             int a; unsigned int b; hyper c; unsigned hyper d; short e; unsigned short f;
             char g; unsigned char h; float i; double j; quadruple k; bool l; color m; paint n;
         };",
        expect![[r#"
            enum color: 4 bytes
                reserve 4
                    put it: color @0

            typedef paint: 4 bytes
                reserve 4
                    put it: color @0

            struct scalars: 80 bytes
                reserve 4
                    put a: i32 @0
                reserve 4
                    put b: u32 @0
                reserve 8
                    put c: i64 @0
                reserve 8
                    put d: u64 @0
                reserve 4
                    put e: i16 @0
                reserve 4
                    put f: u16 @0
                reserve 4
                    put g: i8 @0
                reserve 4
                    put h: u8 @0
                reserve 4
                    put i: f32 @0
                reserve 8
                    put j: f64 @0
                reserve 16
                    put k: f128 @0
                reserve 4
                    put l: bool @0
                reserve 4
                    put m: color @0
                reserve 4
                    put n: color @0
        "#]],
    );
}

#[test]
fn bytes_and_strings() {
    check(
        "struct bytes { opaque a[5]; opaque b<5>; opaque c<>; string d<7>; string e<>; };",
        expect![[r#"
            struct bytes: 24 bytes or more
                reserve 8
                    copy a: opaque[5] @0
                copy b: opaque<5>
                copy c: opaque<>
                copy d: string<7>
                copy e: string<>
        "#]],
    );
}

#[test]
fn arrays() {
    check(
        "struct point { int x; };
         typedef int row[3];
         struct arrays {
             hyper fixed[2]; bool counted<2>; row rows[2]; string texts<9>; point points<>;
             opaque sums<4>;
         };",
        expect![[r#"
            struct point: 4 bytes
                reserve 4
                    put x: i32 @0

            typedef row: 12 bytes
                loop it: [3] of 4 bytes
                    reserve 4
                        put it: i32 @0

            struct arrays: 56 bytes or more
                loop fixed: [2] of 8 bytes
                    reserve 8
                        put it: i64 @0
                loop counted: <2> of 4 bytes
                    reserve 4
                        put it: bool @0
                loop rows: [2] of 12 bytes
                    loop it: [3] of 4 bytes
                        reserve 4
                            put it: i32 @0
                copy texts: string<9>
                loop points: <> of 4 bytes
                    call it: point
                copy sums: opaque<4>
        "#]],
    );
}

#[test]
fn structs_in_structs() {
    check(
        "struct point { int x; int y; }; struct line { point from; point to; }; struct none {};",
        expect![[r#"
            struct point: 8 bytes
                reserve 4
                    put x: i32 @0
                reserve 4
                    put y: i32 @0

            struct line: 16 bytes
                call from: point
                call to: point

            struct none: 0 bytes
        "#]],
    );
}

#[test]
fn unions() {
    check(
        "enum status { OK = 0, WRONG = 5, LATE = 6 };
         union reply switch (status code) {
         case OK: hyper size;
         case WRONG: case LATE: string why<>;
         default: void;
         };
         union small switch (bool yes) { case TRUE: int a[2]; case FALSE: void; };",
        expect![[r#"
            enum status: 4 bytes
                reserve 4
                    put it: status @0

            union reply: 4 bytes or more
                switch it: status
                    case OK (0): size
                        reserve 8
                            put it: i64 @0
                    case WRONG (5), LATE (6): why
                        copy it: string<>
                    default: void

            union small: 4 to 12 bytes
                switch it: bool
                    case TRUE (1): a
                        loop it: [2] of 4 bytes
                            reserve 4
                                put it: i32 @0
                    case FALSE (0): void
        "#]],
    );
}

#[test]
fn optional_data() {
    check(
        "struct point { int x; }; typedef int *maybe; struct o { point *a; maybe b; maybe *c; };",
        expect![[r#"
            struct point: 4 bytes
                reserve 4
                    put x: i32 @0

            typedef maybe: 4 to 8 bytes
                optional it
                    reserve 4
                        put it: i32 @0

            struct o: 12 to 28 bytes
                optional a
                    call it: point
                optional b
                    reserve 4
                        put it: i32 @0
                optional c
                    optional it
                        reserve 4
                            put it: i32 @0
        "#]],
    );
}

#[test]
fn linked_lists() {
    check(
        "struct entry { int id; entry *next; };
         typedef entry *entries;
         struct uses { entry first; entry *second; entries third; entries many<2>; };",
        expect![[r#"
            list element entry: 4 bytes
                reserve 4
                    put id: i32 @0

            typedef entries: 4 bytes or more
                list it: entry

            struct uses: 20 bytes or more
                list first: entry, first bare
                list second: entry
                list third: entry
                loop many: <2> of at least 4 bytes
                    list it: entry
        "#]],
    );
}

#[test]
fn recursion() {
    check(
        "struct tree { tree *left; tree *right; int value; };
         struct folder { folder inside<>; };
         struct chapter { chapter *parts; string title<>; chapter *next; };",
        expect![[r#"
            struct tree: 12 bytes or more, recursive
                optional left
                    call it: tree
                optional right
                    call it: tree
                reserve 4
                    put value: i32 @0

            struct folder: 4 bytes or more, recursive
                loop inside: <> of at least 4 bytes
                    call it: folder

            list element chapter: 8 bytes or more, recursive
                list parts: chapter
                copy title: string<>
        "#]],
    );
}

#[test]
fn external_types() {
    check(
        "struct uses { int id; foreign_thing what; };",
        expect![[r#"
            struct uses: 4 bytes or more
                reserve 4
                    put id: i32 @0
                call what: foreign_thing

            external foreign_thing: 0 bytes or more
                external it: foreign_thing
        "#]],
    );
}

#[test]
fn procedures() {
    let schema = sample();
    let plans = lower(&schema, Representation::XDR).expect("types that end");
    let text = |name| explain(&schema, &plans, Some(name));
    let all = ["NOTHING", "LOOK", "LIST"].map(|name| text(name).expect("a procedure"));
    expect![[r#"
        procedure NOTHING = 0 of SAMPLE_V2 = 2, SAMPLE = 536870913
        arguments: 0 bytes
        result: 0 bytes

        procedure LOOK = 1 of SAMPLE_V2 = 2, SAMPLE = 536870913
        arguments: 12 bytes or more
            optional arg1
                call it: folder
            copy name: string<>
            reserve 4
                put arg3: color @0
        result: 4 bytes or more
            call it: answer

        procedure LIST = 2 of SAMPLE_V2 = 2, SAMPLE = 536870913
        arguments: 12 bytes or more
            list arg1: entry, first bare
        result: 12 bytes or more
            list it: entry, first bare
    "#]]
    .assert_eq(&all.join("\n"));
    assert_eq!(text("missing"), Err(UnknownName("missing".to_owned())));
}
