//! Types within themselves: where a value can end, and what is said where none can.

use expect_test::{Expect, expect};
use tenon_idl::{Options, Style, parse_text};

fn is_taken(text: &str) {
    let parsed = parse_text("test.x", text, &Options::default());
    assert!(parsed.schema.is_some(), "{}", parsed.render(Style::Plain));
    assert_eq!(parsed.diagnostics, [], "{text}");
}

fn says(text: &str, expect: Expect) {
    let parsed = parse_text("test.x", text, &Options::default());
    expect.assert_eq(&parsed.render(Style::Plain));
}

#[test]
fn a_value_ends_in_another_arm() {
    is_taken("union u switch (int k) { case 0: void; case 1: w n; }; struct w { u v; };");
    is_taken("union u switch (int k) { case 1: w n; default: void; }; struct w { u v; };");
    is_taken("union u switch (int k) { case 0: int x; case 1: u n[3]; };");
    is_taken(
        "union u switch (int k) { case 0: v n; }; union v switch (int k) { case 0: u n; case 1: int x; };",
    );
    is_taken(
        "typedef u t; union u switch (bool k) { case TRUE: struct { int x; t rest; } s; case FALSE: void; };",
    );
}

#[test]
fn a_value_that_cannot_end_is_told_apart() {
    says(
        "struct s { int x; s again; };",
        expect![[r#"
            error: `s` contains itself, so it would have no end
             --> test.x:1:8
              |
            1 | struct s { int x; s again; };
              |        ^
              = hint: put a pointer (`*`) or a counted array (`<>`) in between

        "#]],
    );
    says(
        "union u switch (int k) { case 0: w n; default: u m; };\nstruct w { u v; };",
        expect![[r#"
            error: `u` contains itself in every arm, so no value of it would end
             --> test.x:1:7
              |
            1 | union u switch (int k) { case 0: w n; default: u m; };
              |       ^
             --> test.x:2:8
              |
            2 | struct w { u v; };
              |        - by way of `w`
              = hint: give the union an arm that holds something else, or put a pointer (`*`) or a counted array (`<>`) in between

        "#]],
    );
    says(
        "union u switch (int k) { case 0: u n; case 1: void; };\n\
         struct a { b it; };\nstruct b { u x; a it; };\nstruct on_the_way { a it; };\n",
        expect![[r#"
            error: `a` contains itself, so it would have no end
             --> test.x:2:8
              |
            2 | struct a { b it; };
              |        ^
             --> test.x:3:8
              |
            3 | struct b { u x; a it; };
              |        - by way of `b`
              = hint: put a pointer (`*`) or a counted array (`<>`) in between

        "#]],
    );
}

#[test]
fn a_union_is_not_switched_by_what_is_not_known() {
    says(
        "%#include \"foreign.h\"\nunion u switch (foreign_t k) { case 0: int x; };",
        expect![[r#"
            warning: the type `foreign_t` is not defined in this interface
             --> test.x:2:17
              |
            2 | union u switch (foreign_t k) { case 0: int x; };
              |                 ^^^^^^^^^ taken to be declared elsewhere
              = hint: only generated code that supplies its marshalling can use it

            warning: this union is switched by `foreign_t`, which this interface does not define
             --> test.x:2:17
              |
            2 | union u switch (foreign_t k) { case 0: int x; };
              |                 ^^^^^^^^^ its values are not known
              = hint: only `tenon rpcgen` can make stubs of it

        "#]],
    );
}
