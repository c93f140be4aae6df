//! Namespaces from outside: what names mean in them, and what is said of those that are wrong.
#![allow(clippy::unwrap_used)]

use expect_test::{Expect, expect};
use tenon_idl::{Options, Style, parse_text};

/// What is said of `text` and what it means, in the short form of [`tenon_idl::dump`].
fn check(text: &str, expect: Expect) {
    let parsed = parse_text("test.x", text, &Options::default());
    let said = parsed.render(Style::Plain);
    let meant = parsed.schema.as_ref().map(tenon_idl::dump);
    expect.assert_eq(&(said + &meant.unwrap_or_default()));
}

#[test]
fn a_namespace_takes_several_lines_and_loses_none() {
    check(
        "namespace x { const A = 5;\nconst B = 6;\n}\nconst C = x::A + x::B;",
        expect![[r#"
            const x::A = 5
            const x::B = 6
            const C = 11
        "#]],
    );
}

#[test]
fn namespaces_nest_and_are_opened_again() {
    check(
        "namespace a {\nnamespace b { typedef int t; }\ntypedef b::t u;\n}\n\
         namespace a::b { typedef u v; };\nnamespace a { typedef b::v w; }\n",
        expect![[r#"
            typedef a::b::t: int
            typedef a::u: a::b::t
            typedef a::b::v: a::u
            typedef a::w: a::b::v
        "#]],
    );
}

#[test]
fn names_are_looked_for_from_the_inside_out() {
    check(
        "const N = 1;\nconst ONLY_OUTSIDE = 9;\n\
         namespace a { const N = 2; namespace b { const N = 3;\n\
         struct s { int near[N]; int around[a::N]; int far[::N]; int out[ONLY_OUTSIDE]; }; } }\n",
        expect![[r#"
            const N = 1
            const ONLY_OUTSIDE = 9
            const a::N = 2
            const a::b::N = 3
            struct a::b::s
                near: int[3]
                around: int[2]
                far: int[1]
                out: int[9]
        "#]],
    );
}

#[test]
fn members_are_found_in_their_namespace_and_behind_their_enum() {
    check(
        "enum color { RED = 1 };\nnamespace n { enum color { RED = 2, BLUE };\n\
         union near switch (color c) { case RED: int a; case color::BLUE: void; };\n\
         union far switch (::color c) { case ::RED: void; };\n\
         union far_too switch (::color c) { case ::color::RED: void; }; }\n",
        expect![[r#"
            enum color
                RED = 1
            enum n::color
                RED = 2
                BLUE = 3
            union n::near switch c: n::color
                case RED = 2: a: int
                case BLUE = 3: void
            union n::far switch c: color
                case RED = 1: void
            union n::far_too switch c: color
                case RED = 1: void
        "#]],
    );
}

#[test]
fn types_that_are_defined_where_they_are_used_stand_in_the_namespace() {
    check(
        "namespace n { struct s { union switch (int k) { case 0: enum { ONE, TWO } which; } u; };\n\
         const PAST = TWO + 1;\n\
         program P { version V { void F(out int a, out struct { int b; } c) = 1; } = 1; } = 1; }",
        expect![[r#"
            const n::PAST = 2
            enum n::s_u_which
                ONE = 0
                TWO = 1
            union n::s_u switch k: int
                case 0 = 0: which: n::s_u_which
            struct n::s
                u: n::s_u
            struct n::F_arg2
                b: int
            struct n::F_result
                a: int
                c: n::F_arg2
            program n::P = 1
                version V = 1
                    1 F() -> n::F_result
        "#]],
    );
}

#[test]
fn names_of_two_namespaces_do_not_meet() {
    check(
        "namespace a { struct s { int x; }; }\nnamespace b { struct s { hyper x; }; }\n\
         namespace a { struct s { int y; }; }",
        expect![[r#"
            error: the type `a::s` is defined twice
             --> test.x:3:22
              |
            3 | namespace a { struct s { int y; }; }
              |                      ^
             --> test.x:1:22
              |
            1 | namespace a { struct s { int x; }; }
              |                      - the first definition

        "#]],
    );
}

#[test]
fn what_is_not_there_is_said_with_its_path() {
    check(
        "namespace a { struct s { b::t x; int y[b::N]; }; }",
        expect![[r#"
            error: the type `b::t` is not defined in this interface
             --> test.x:1:26
              |
            1 | namespace a { struct s { b::t x; int y[b::N]; }; }
              |                          ^^^^ stubs would not compile
              = hint: allow undefined types (`--allow-undefined`), or name what declares it in a `%#include` line

            error: `b::N` is not defined, but this length has to be known
             --> test.x:1:40
              |
            1 | namespace a { struct s { b::t x; int y[b::N]; }; }
              |                                        ^^^^
              = hint: give it a value with `namespace b { const N = ..; }`

        "#]],
    );
}

#[test]
fn a_namespace_is_closed_once() {
    check(
        "namespace a {\nstruct s { int x; };\n",
        expect![[r#"
            error: this `{` is not closed
             --> test.x:1:13
              |
            1 | namespace a {
              |             ^

        "#]],
    );
    check(
        "namespace a;\nconst A = 1;\n",
        expect![[r#"
            error: a namespace encloses its definitions
             --> test.x:1:12
              |
            1 | namespace a;
              |            ^
              = hint: write `namespace name { .. }` around them

        "#]],
    );
}

#[test]
fn an_error_in_a_namespace_does_not_end_it() {
    check(
        "namespace a {\n\nstruct s { int; };\ntypedef s t;\n}\n\nnamespace b {\n    stroct x { int y; };\n    \
         typedef float float;\n    typedef a::t u;\n}\nconst A = ;\n",
        expect![[r#"
            error: expected the name of the field, found `;`
             --> test.x:3:15
              |
            3 | struct s { int; };
              |               ^

            error: expected a definition, found `stroct`
             --> test.x:8:5
              |
            8 |     stroct x { int y; };
              |     ^^^^^^ `const`, `typedef`, `enum`, `struct`, `union`, `program` or `namespace` starts one

            error: expected the name of the new type, found `float`
             --> test.x:9:19
              |
            9 |     typedef float float;
              |                   ^^^^^
              = hint: this word has a meaning in the language

            error: expected a number or a name, found `;`
              --> test.x:12:11
               |
            12 | const A = ;
               |           ^

        "#]],
    );
}

#[test]
fn hostile_namespaces_are_bounded() {
    let refused = |text: String, expected: &str| {
        let said = parse_text("test.x", &text, &Options::default()).render(Style::Plain);
        assert!(said.contains(expected), "{said}");
    };
    refused("namespace a { ".repeat(100_000), "nested too deeply");
    refused(
        format!("namespace {} {{ }}", "a".repeat(10_000)),
        "too long a name",
    );
    refused(
        format!("namespace {}a {{ }}", "a::".repeat(10_000)),
        "too long a name",
    );
    refused("const A = ::;".to_owned(), "expected a number or a name");
    refused(
        "struct s { ::; };".to_owned(),
        "expected the name of a type",
    );
}

#[test]
fn strict_reading_refuses_namespaces() {
    let strict = Options {
        strict_rpcgen: true,
        ..Options::default()
    };
    for text in [
        "namespace n { const A = 1; }",
        "const A = 1;\nconst B = ::A;",
        "struct s { int x; };\nstruct t { ::s x; };",
        "enum e { A = 1 };\nconst B = e::A;",
    ] {
        let parsed = parse_text("test.x", text, &strict);
        assert!(parsed.schema.is_none(), "{text}");
        assert!(
            parsed
                .render(Style::Plain)
                .contains("rpcgen knows no namespaces"),
            "{text}"
        );
    }
}
