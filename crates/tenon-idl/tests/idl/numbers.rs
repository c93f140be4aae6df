//! Numbers from outside: the names that have one, and those that are too big.
#![allow(clippy::unwrap_used)]

use expect_test::{Expect, expect};
use tenon_idl::{Define, Options, Style, parse_text};

fn check(text: &str, expect: Expect) {
    check_with(text, &[], expect);
}

fn check_with(text: &str, defines: &[&str], expect: Expect) {
    let options = Options {
        defines: defines.iter().map(|text| Define::parse(text)).collect(),
        ..Options::default()
    };
    let parsed = parse_text("test.x", text, &options);
    let said = parsed.render(Style::Plain);
    let meant = parsed.schema.as_ref().map(tenon_idl::dump);
    expect.assert_eq(&(said + &meant.unwrap_or_default()));
}

/// As the interface of NFS version 4 uses them (RFC 7530), which defines none.
#[test]
fn flavours_of_authentication_have_their_numbers() {
    let union = "union u switch (unsigned int flavor) {\n  \
                 case AUTH_NONE: void; case AUTH_SYS: int uid; case RPCSEC_GSS: opaque h<>;\n};\n";
    check(
        union,
        expect![[r#"
        union u switch flavor: uint
            case AUTH_NONE = 0: void
            case AUTH_SYS = 1: uid: int
            case RPCSEC_GSS = 6: h: opaque<>
    "#]],
    );
    // What the interface or the command line says of a name is meant before.
    check(
        &format!("const AUTH_SYS = 7;\n{union}"),
        expect![[r#"
        const AUTH_SYS = 7
        union u switch flavor: uint
            case AUTH_NONE = 0: void
            case AUTH_SYS = 7: uid: int
            case RPCSEC_GSS = 6: h: opaque<>
    "#]],
    );
    check_with(
        union,
        &["AUTH_NONE=9"],
        expect![[r#"
        union u switch flavor: uint
            case AUTH_NONE = 9: void
            case AUTH_SYS = 1: uid: int
            case RPCSEC_GSS = 6: h: opaque<>
    "#]],
    );
}

#[test]
fn a_procedures_name_is_its_number() {
    check(
        "program P {\n  version V3 { int CALLIT(int) = 5; } = 3;\n  \
         version V4 { int BCAST(int) = CALLIT; int SAME(V3_arg) = 6; } = 4;\n} = 0x20000001;\n\
         typedef opaque V3_arg[V4];\nconst BEHIND = BCAST + P;\n",
        expect![[r#"
            const BEHIND = 536870918
            typedef V3_arg: opaque[4]
            program P = 536870913
                version V3 = 3
                    5 CALLIT(arg1: int) -> int
                version V4 = 4
                    5 BCAST(arg1: int) -> int
                    6 SAME(arg1: V3_arg) -> int
        "#]],
    );
    // A constant of the name is meant before.
    check(
        "const A = 3;\nprogram P { version V { void A(void) = 5; void B(void) = A; } = 1; } = 2;\n",
        expect![[r#"
            const A = 3
            program P = 2
                version V = 1
                    5 A() -> void
                    3 B() -> void
        "#]],
    );
    check(
        "namespace n { program P { version V { void A(void) = 5; void B(void) = A + 1; } = 1; } = 2; }\n\
         const C = n::B;\n",
        expect![[r#"
            const C = 6
            program n::P = 2
                version V = 1
                    5 A() -> void
                    6 B() -> void
        "#]],
    );
}

#[test]
fn a_name_with_several_numbers_has_none() {
    check(
        "program P {\n  version V1 { void A(void) = 1; void B(void) = 3; } = 1;\n  \
         version V2 { void A(void) = 2; void B(void) = 3; } = 2;\n} = 2;\nconst C = A;\nconst D = B;\n",
        expect![[r#"
            error: `A` is the name of procedures with different numbers
             --> test.x:5:11
              |
            5 | const C = A;
              |           ^
             --> test.x:3:21
              |
            3 |   version V2 { void A(void) = 2; void B(void) = 3; } = 2;
              |                     - one of them
              = hint: write the number

        "#]],
    );
}

#[test]
fn a_number_from_the_command_line_leaves_the_definition_its_name() {
    check_with(
        "program P { version V { int CALLIT(int) = 5; int BCAST(int) = CALLIT; } = 1; } = 2;\n",
        &["CALLIT=7"],
        expect![[r#"
            program P = 2
                version V = 1
                    5 CALLIT(arg1: int) -> int
                    7 BCAST(arg1: int) -> int
        "#]],
    );
    check_with(
        "program P { version V { int BCAST(int) = CALLIT; } = 1; } = 2;\n",
        &["CALLIT=(3 + 4)"],
        expect![[r#"
            program P = 2
                version V = 1
                    7 BCAST(arg1: int) -> int
        "#]],
    );
    check_with(
        "const CALLIT = 1;\nstruct s { int CALLIT; int y[CALLIT]; };\n",
        &["CALLIT=(3 + 4)"],
        expect![[r#"
            const CALLIT = 1
            struct s
                CALLIT: int
                y: int[7]
        "#]],
    );
}

#[test]
fn a_number_of_many_bits_is_wrong_where_it_is_used() {
    check(
        "const SMALL = 0xffffffffffffffff;\nconst WIDE = 0x1ffffffffffffffff;\n\
         const HUGE = 0x1ffffffffffffffffffffffffffffffff;\nconst SHIFTED = 1 << 63 << 63 << 63;\n",
        expect![[r#"
            warning: this constant does not fit into 64 bits
             --> test.x:2:14
              |
            2 | const WIDE = 0x1ffffffffffffffff;
              |              ^^^^^^^^^^^^^^^^^^^ no item has so many

            warning: this constant does not fit into 64 bits
             --> test.x:3:14
              |
            3 | const HUGE = 0x1ffffffffffffffffffffffffffffffff;
              |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ no item has so many

            warning: this constant does not fit into 64 bits
             --> test.x:4:17
              |
            4 | const SHIFTED = 1 << 63 << 63 << 63;
              |                 ^^^^^^^^^^^^^^^^^^^ no item has so many

            const SMALL = 18446744073709551615
            const WIDE = 36893488147419103231
            const HUGE = 0x1ffffffffffffffffffffffffffffffff?
            const SHIFTED = 1 << 63 << 63 << 63?
        "#]],
    );
    check(
        "const HUGE = 0x1ffffffffffffffffffffffffffffffff;\nstruct s { int x[HUGE]; string y<HUGE>; };\n\
         enum e { A = HUGE };\nunion u switch (int k) { case HUGE: void; };\n\
         program P { version V { void F(void) = 99999999999999999999999999999999999999999; } = HUGE; } = 1;\n",
        expect![[r#"
            warning: this constant does not fit into 64 bits
             --> test.x:1:14
              |
            1 | const HUGE = 0x1ffffffffffffffffffffffffffffffff;
              |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ no item has so many

            error: this length is too big: it does not fit into 32 bits
             --> test.x:2:18
              |
            2 | struct s { int x[HUGE]; string y<HUGE>; };
              |                  ^^^^
             --> test.x:1:14
              |
            1 | const HUGE = 0x1ffffffffffffffffffffffffffffffff;
              |              ----------------------------------- its value

            error: this bound is too big: it does not fit into 32 bits
             --> test.x:2:34
              |
            2 | struct s { int x[HUGE]; string y<HUGE>; };
              |                                  ^^^^
             --> test.x:1:14
              |
            1 | const HUGE = 0x1ffffffffffffffffffffffffffffffff;
              |              ----------------------------------- its value

            error: this value is too big: it does not fit into 32 bits
             --> test.x:3:14
              |
            3 | enum e { A = HUGE };
              |              ^^^^
             --> test.x:1:14
              |
            1 | const HUGE = 0x1ffffffffffffffffffffffffffffffff;
              |              ----------------------------------- its value

            error: this label is too big: it does not fit into 32 bits
             --> test.x:4:31
              |
            4 | union u switch (int k) { case HUGE: void; };
              |                               ^^^^
             --> test.x:1:14
              |
            1 | const HUGE = 0x1ffffffffffffffffffffffffffffffff;
              |              ----------------------------------- its value

            error: this procedure number is too big: it does not fit into 32 bits
             --> test.x:5:40
              |
            5 | program P { version V { void F(void) = 99999999999999999999999999999999999999999; } = HUGE; } = 1;
              |                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: this version number is too big: it does not fit into 32 bits
             --> test.x:5:87
              |
            5 | ...m P { version V { void F(void) = 99999999999999999999999999999999999999999; } = HUGE; } = 1;
              |                                                                                    ^^^^
             --> test.x:1:14
              |
            1 | const HUGE = 0x1ffffffffffffffffffffffffffffffff;
              |              ----------------------------------- its value

        "#]],
    );
}

/// RFC 5531 section 9 ends the definition of a union with the name of a variable.
#[test]
fn a_name_behind_a_definition_means_nothing() {
    check(
        "union answer switch (bool ok) {\ncase TRUE:\n    int x;\ncase FALSE:\n    void;\n} answer_of;\n\
         struct s { answer a; } s_of;\n",
        expect![[r#"
            warning: `answer_of` means nothing here: the type is called `answer`
             --> test.x:6:3
              |
            6 | } answer_of;
              |   ^^^^^^^^^
              = hint: leave it out

            warning: `s_of` means nothing here: the type is called `s`
             --> test.x:7:24
              |
            7 | struct s { answer a; } s_of;
              |                        ^^^^
              = hint: leave it out

            union answer switch ok: bool
                case TRUE = 1: x: int
                case FALSE = 0: void
            struct s
                a: answer
        "#]],
    );
    // What begins on the next line is the next definition.
    check(
        "struct s { int a; }\nt;\n",
        expect![[r#"
        error: expected `;`, found `t`
         --> test.x:1:20
          |
        1 | struct s { int a; }
          |                    ^ `;` is missing here

    "#]],
    );
}

#[test]
fn a_union_has_arms() {
    check(
        "union u switch (int d) { };",
        expect![[r#"
        error: a union has arms
         --> test.x:1:24
          |
        1 | union u switch (int d) { };
          |                        ^
          = hint: without any there is no value of it, nor of what contains it

    "#]],
    );
}
