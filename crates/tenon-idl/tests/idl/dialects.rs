//! What interfaces in the wild contain beyond the standards, one test for each habit.

use expect_test::{Expect, expect};
use tenon_idl::{Options, Style, parse_text};

fn check(text: &str, expect: Expect) {
    let parsed = parse_text("test.x", text, &Options::default());
    let said = parsed.render(Style::Plain);
    let meant = parsed.schema.as_ref().map(tenon_idl::dump);
    expect.assert_eq(&(said + &meant.unwrap_or_default()));
}

/// RFC 1833 defines `pmaplist` so.
#[test]
fn a_struct_may_be_optional_where_it_is_defined() {
    check(
        "struct *links { int id; links next; };\nstruct holder { links first; };\n",
        expect![[r#"
            struct links_type
                id: int
                next: links
            typedef links: *links_type
            struct holder
                first: links
        "#]],
    );
}

#[test]
fn digits_may_be_parted() {
    check(
        "const A = 1'000'000;\nconst B = 0xAB'CD;\nconst C = 'x';\n",
        expect![[r#"
            const A = 1000000
            const B = 43981
            const C = 120
        "#]],
    );
    check(
        "const A = 1';\n",
        expect![[r#"
        error: this character is not closed on its line
         --> test.x:1:12
          |
        1 | const A = 1';
          |            ^^

        error: expected `;`, found the end
         --> test.x:1:12
          |
        1 | const A = 1';
          |            ^ `;` is missing here

    "#]],
    );
}

#[test]
fn true_and_false_may_be_small() {
    check(
        "union u switch (bool b) { case true: int x; case false: void; };\nconst A = true;\n",
        expect![[r#"
            const A = 1
            union u switch b: bool
                case true = 1: x: int
                case false = 0: void
        "#]],
    );
}

#[test]
fn true_and_false_may_be_anything_else() {
    check(
        "enum e { true = 5 };\nconst A = true;\nconst B = false;\n",
        expect![[r#"
            const A = 5
            const B = 0
            enum e
                true = 5
        "#]],
    );
}

#[test]
fn a_type_may_be_defined_twice_in_the_same_way() {
    check(
        "typedef opaque handle<64>;\nenum e { A = 1 };\nstruct s { handle h; /* once */ };\n\
         typedef opaque handle<64>;\nenum e { A = 1 };\nstruct s { handle h; };\n",
        expect![[r#"
            warning: the type `handle` is defined twice
             --> test.x:4:16
              |
            4 | typedef opaque handle<64>;
              |                ^^^^^^ in the same way
             --> test.x:1:16
              |
            1 | typedef opaque handle<64>;
              |                ------ the first definition

            warning: the type `e` is defined twice
             --> test.x:5:6
              |
            5 | enum e { A = 1 };
              |      ^ in the same way
             --> test.x:2:6
              |
            2 | enum e { A = 1 };
              |      - the first definition

            warning: the type `s` is defined twice
             --> test.x:6:8
              |
            6 | struct s { handle h; };
              |        ^ in the same way
             --> test.x:3:8
              |
            3 | struct s { handle h; /* once */ };
              |        - the first definition

            typedef handle: opaque<64>
            enum e
                A = 1
            struct s
                h: handle
        "#]],
    );
    check(
        "typedef opaque handle<64>;\ntypedef opaque handle<32>;\nenum e { A = 1 };\nenum e { A = 2 };\n",
        expect![[r#"
            error: the type `handle` is defined twice
             --> test.x:2:16
              |
            2 | typedef opaque handle<32>;
              |                ^^^^^^
             --> test.x:1:16
              |
            1 | typedef opaque handle<64>;
              |                ------ the first definition

            error: the type `e` is defined twice
             --> test.x:4:6
              |
            4 | enum e { A = 2 };
              |      ^
             --> test.x:3:6
              |
            3 | enum e { A = 1 };
              |      - the first definition

        "#]],
    );
}

/// xdrgen's languages have enums of their own names.
#[test]
fn two_enums_may_have_members_of_one_name() {
    check(
        "enum first { STAMP = 1, OTHER = 2 };\nenum second { STAMP = 3 };\ntypedef second renamed;\n\
         union u switch (first f) { case STAMP: int x; case OTHER: void; };\n\
         union v switch (renamed s) { case STAMP: int x; };\n\
         const A = first::STAMP;\nconst B = second::STAMP;\nconst C = OTHER;\n",
        expect![[r#"
            warning: `STAMP` is defined twice
             --> test.x:2:15
              |
            2 | enum second { STAMP = 3 };
              |               ^^^^^
             --> test.x:1:14
              |
            1 | enum first { STAMP = 1, OTHER = 2 };
              |              ----- the first definition
              = hint: write `first::STAMP` or `second::STAMP` where one is used; C cannot have both

            const A = 1
            const B = 3
            const C = 2
            enum first
                STAMP = 1
                OTHER = 2
            enum second
                STAMP = 3
            typedef renamed: second
            union u switch f: first
                case STAMP = 1: x: int
                case OTHER = 2: void
            union v switch s: renamed
                case STAMP = 3: x: int
        "#]],
    );
    check(
        "enum first { STAMP = 1 };\nenum second { STAMP = 3 };\nconst A = STAMP;\n",
        expect![[r#"
            warning: `STAMP` is defined twice
             --> test.x:2:15
              |
            2 | enum second { STAMP = 3 };
              |               ^^^^^
             --> test.x:1:14
              |
            1 | enum first { STAMP = 1 };
              |              ----- the first definition
              = hint: write `first::STAMP` or `second::STAMP` where one is used; C cannot have both

            error: `STAMP` is a member of several enums
             --> test.x:3:11
              |
            3 | const A = STAMP;
              |           ^^^^^
              = hint: name the enum in front of it: `ENUM::STAMP`

        "#]],
    );
}
