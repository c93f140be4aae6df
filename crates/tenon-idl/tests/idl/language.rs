//! The language from outside: what files mean, which dialects are taken, and what rpcgen says.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use expect_test::{Expect, expect};
use tenon_idl::{
    Define, FileSource, Options, Output, ParseLimits, Parsed, Severity, Style, Undeclared,
    parse_file, parse_text,
};

/// What `text` means, in the short form of [`tenon_idl::dump`].
fn check(text: &str, expect: Expect) {
    check_with(text, &Options::default(), expect);
}

fn check_with(text: &str, options: &Options, expect: Expect) {
    let parsed = parse_text("test.x", text, options);
    expect.assert_eq(&outcome(&parsed));
}

fn outcome(parsed: &Parsed) -> String {
    let said = parsed.render(Style::Plain);
    let meant = parsed.schema.as_ref().map(tenon_idl::dump);
    said + &meant.unwrap_or_default()
}

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    interfaces(&folder)
}

fn interfaces(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "x"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no interfaces in {}", folder.display());
    paths
}

/// Options that allow types to be declared elsewhere, as rpcgen does.
fn foreign_types() -> Options {
    Options {
        undeclared: Undeclared::Allowed,
        ..Options::default()
    }
}

/// The meaning of every file of the corpus beside it, in a `.golden` file.
#[test]
fn corpus_means_what_it_did() {
    for path in corpus() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let parsed = parse_text(name, &text, &foreign_types());
        assert!(parsed.schema.is_some(), "{}", parsed.render(Style::Plain));
        expect_test::expect_file![path.with_extension("golden")].assert_eq(&outcome(&parsed));
    }
}

#[test]
fn an_undefined_type_is_an_error_unless_something_else_may_declare_it() {
    let text =
        "struct visitor { int visits; };\nstruct pair { vistor a; visitor b; other_t *c; };\n";
    check(
        text,
        expect![[r#"
        error: the type `vistor` is not defined in this interface
         --> test.x:2:15
          |
        2 | struct pair { vistor a; visitor b; other_t *c; };
          |               ^^^^^^ stubs would not compile
          = hint: did you mean `visitor`? If not, allow undefined types (`--allow-undefined`), or name what declares it in a `%#include` line

        error: the type `other_t` is not defined in this interface
         --> test.x:2:36
          |
        2 | struct pair { vistor a; visitor b; other_t *c; };
          |                                    ^^^^^^^ stubs would not compile
          = hint: allow undefined types (`--allow-undefined`), or name what declares it in a `%#include` line

    "#]],
    );
    let with_lines = format!("%#include \"other.h\"\n{text}");
    check(
        &with_lines,
        expect![[r#"
        warning: the type `vistor` is not defined in this interface
         --> test.x:3:15
          |
        3 | struct pair { vistor a; visitor b; other_t *c; };
          |               ^^^^^^ taken to be declared elsewhere
          = hint: did you mean `visitor`? If not, only generated code that supplies its marshalling can use it

        warning: the type `other_t` is not defined in this interface
         --> test.x:3:36
          |
        3 | struct pair { vistor a; visitor b; other_t *c; };
          |                                    ^^^^^^^ taken to be declared elsewhere
          = hint: only generated code that supplies its marshalling can use it

        struct visitor
            visits: int
        struct pair
            a: vistor
            b: visitor
            c: *other_t
        external vistor
        external other_t
        % after 0: #include "other.h"
    "#]],
    );
    let parsed = parse_text("test.x", text, &foreign_types());
    assert!(parsed.schema.is_some(), "{}", parsed.render(Style::Plain));
    assert!(
        parsed
            .diagnostics
            .iter()
            .all(|it| it.severity == Severity::Warning)
    );
}

#[test]
fn rpcsvc_interfaces_pass() {
    for path in interfaces(Path::new("/usr/include/rpcsvc")) {
        let parsed = parse_file(&path, &Options::default());
        assert!(parsed.schema.is_some(), "{}", parsed.render(Style::Plain));
    }
}

/// Each of rpcgen's outputs can be asked for.
#[test]
fn rpcsvc_interfaces_pass_for_every_output() {
    for output in [
        Output::Xdr,
        Output::Server,
        Output::Client,
        Output::Table,
        Output::Nothing,
    ] {
        for path in interfaces(Path::new("/usr/include/rpcsvc")) {
            let parsed = parse_file(
                &path,
                &Options {
                    output,
                    ..Options::default()
                },
            );
            assert!(parsed.schema.is_some(), "{}", parsed.render(Style::Plain));
        }
    }
}

/// What the machine's rpcgen makes of a file: whether it writes a header without an error.
fn rpcgen_accepts(path: &Path) -> bool {
    let status = Command::new("rpcgen")
        .arg("-h")
        .arg(path.file_name().unwrap())
        .current_dir(path.parent().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status
        .expect("rpcgen runs; it comes with rpcsvc-proto")
        .success()
}

/// The corpus is accepted whole (see above), so by default we take whatever rpcgen takes. Strict
/// reading draws the line where rpcgen does.
#[test]
fn what_comes_back_has_a_name_of_its_own() {
    let refused = [
        ("void F(out unsigned int)", "comes back has a name"),
        ("int F(inout int)", "comes back has a name"),
        ("int F(in int a, out int a)", "two parameters called `a`"),
        ("int F(out int result)", "two fields called `result`"),
        ("void F(out void a)", "`void` stands alone"),
    ];
    for (procedure, expected) in refused {
        let text = format!("program P {{ version V {{ {procedure} = 1; }} = 1; }} = 5;\n");
        let parsed = parse_text("test.x", &text, &Options::default());
        let said = parsed.render(Style::Plain);
        assert!(said.contains(expected), "{procedure}: {said}");
    }
}

#[test]
fn strict_reading_agrees_with_rpcgen() {
    let strict = Options {
        strict_rpcgen: true,
        ..foreign_types()
    };
    for path in corpus() {
        let parsed = parse_file(&path, &strict);
        let said = parsed.render(Style::Plain);
        assert_eq!(
            parsed.schema.is_some(),
            rpcgen_accepts(&path),
            "{}\n{said}",
            path.display()
        );
    }
}

#[test]
fn strict_reading_refuses_what_rpcgen_refuses() {
    let refused = [
        "const A = 1 + 2;",
        "const A = (5);",
        "const A = 0XFF;",
        "const A = 5L;",
        "// c\nconst A = 1;",
        "namespace n { const A = 1; }",
        "pragma p;\nconst A = 1;",
        "struct a { struct { int x; } y; };",
        "struct a { };",
        "enum a { A = 1, };",
        "union u switch (int d) { default: void; case 1: int x; };",
        "struct a { string s; };",
        "struct a { string *s; };",
        "program P { version V { int F(int, int) = 1; } = 1; } = 5;",
        "program P { version V { int F(in int a) = 1; } = 1; } = 5;",
        "program P { version V { void F(out int a) = 1; } = 1; } = 5;",
        "program P { version V { int F(int<>) = 1; } = 1; } = 5;",
        "program P { version V { int F(opaque x<>) = 1; } = 1; } = 5;",
        "program P { version V { foo *F(void) = 1; } = 1; } = 5;",
        "program P { version V { } = 1; } = 5;",
        "  %int x;\nconst A = 1;",
        "const A = 1;;",
        "struct a { int version; };",
        "struct a { long long x; };",
        "typedef struct { int x; } a;",
    ];
    let folder = std::env::temp_dir().join(format!("tenon-idl-strict-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("snippet.x");
    let strict = Options {
        strict_rpcgen: true,
        ..foreign_types()
    };
    for text in refused {
        std::fs::write(&path, format!("{text}\n")).unwrap();
        assert!(!rpcgen_accepts(&path), "rpcgen takes {text}");
        assert!(
            parse_file(&path, &strict).schema.is_none(),
            "strict takes {text}"
        );
        let parsed = parse_file(&path, &foreign_types());
        assert!(
            parsed.schema.is_some(),
            "{text}\n{}",
            parsed.render(Style::Plain)
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn defines_and_output_choose_parts() {
    let options = Options {
        defines: vec![Define::parse("SIZE=3"), Define::parse("EXTRA")],
        output: Output::Server,
        ..Options::default()
    };
    let text = "#ifdef RPC_SVC\nstruct a { int x[SIZE]; };\n#endif\n#if EXTRA\nstruct b { int x; };\n#endif\n#ifdef RPC_HDR\nno\n#endif\n";
    check_with(
        text,
        &options,
        expect![[r#"
        struct a
            x: int[3]
        struct b
            x: int
    "#]],
    );
}

fn in_memory(files: &[(&str, &str)]) -> Options {
    let files = files
        .iter()
        .map(|(path, text)| (PathBuf::from(path), text.to_string()));
    Options {
        files: FileSource::Memory(files.collect::<BTreeMap<_, _>>()),
        include_dirs: vec!["lib".into()],
        ..Options::default()
    }
}

#[test]
fn includes_come_from_the_own_folder_and_from_search_folders() {
    let options = in_memory(&[
        (
            "test.x",
            "#include \"near.x\"\n#include <far.x>\nstruct c { a one; b two; };\n",
        ),
        ("near.x", "struct a { int x; };\n"),
        ("lib/far.x", "struct b { int x; };\n"),
    ]);
    let parsed = parse_file(Path::new("test.x"), &options);
    let schema = parsed.schema.expect("no errors");
    let origins: Vec<(String, bool)> = schema
        .types
        .iter()
        .map(|def| (def.origin.to_string(), def.origin.included))
        .collect();
    let expected = [
        ("near.x:1", true),
        ("lib/far.x:1", true),
        ("test.x:3", false),
    ];
    assert_eq!(
        origins,
        expected.map(|(at, included)| (at.to_string(), included))
    );
}

#[cfg(unix)]
#[test]
fn a_folder_whose_name_is_not_utf8_is_looked_in() {
    use std::os::unix::ffi::OsStrExt;

    let folder = Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let main = folder.join("main.x");
    let texts = [
        (main.clone(), "#include \"near.x\"\n".to_string()),
        (folder.join("near.x"), "struct a { int x; };\n".to_string()),
    ];
    let options = Options {
        files: FileSource::Memory(BTreeMap::from(texts)),
        ..Options::default()
    };
    let schema = parse_file(&main, &options).schema.expect("no errors");
    assert_eq!(schema.types[0].name, "a");
}

#[test]
fn include_cycle_ends() {
    let options = in_memory(&[("a.x", "#include \"b.x\"\n"), ("b.x", "#include \"a.x\"\n")]);
    check_with(
        "#include \"a.x\"\n",
        &options,
        expect![[r#"
        error: files include one another too deeply
         --> b.x:1:2
          |
        1 | #include "a.x"
          |  ^^^^^^^
          = hint: does a file include itself? guard it with `#ifndef`

    "#]],
    );
}

#[test]
fn missing_include_is_reported() {
    check_with(
        "\n  #include <no.x>\n",
        &in_memory(&[]),
        expect![[r#"
        error: there is no file `no.x`
         --> test.x:2:4
          |
        2 |   #include <no.x>
          |    ^^^^^^^
          = hint: name its folder with `-I FOLDER`

    "#]],
    );
}

#[test]
fn several_errors_in_one_run() {
    check(
        "struct a {\n    int x\n    int y;\n    foo [3];\n};\nconst B = ;\nenum c { X = 1, Y = };\nint z;\n",
        expect![[r#"
            error: expected `;`, found `int`
             --> test.x:2:10
              |
            2 |     int x
              |          ^ `;` is missing here

            error: expected the name of the field, found `[`
             --> test.x:4:9
              |
            4 |     foo [3];
              |         ^

            error: expected a number or a name, found `;`
             --> test.x:6:11
              |
            6 | const B = ;
              |           ^

            error: expected a number or a name, found `}`
             --> test.x:7:21
              |
            7 | enum c { X = 1, Y = };
              |                     ^

        "#]],
    );
}

#[test]
fn names_and_numbers_have_to_differ() {
    check(
        "struct a { int x; int x; };\nstruct a { int y; };\nenum e { P = 1, P = 1 };\nconst Q = 1;\nconst Q = 2;\n\
         union u switch (e d) { case P: int i; case 1: int i; };\n\
         program R { version V { int F(void) = 1; int F(void) = 1; } = 1; version W { int F(void) = 1; } = 1; } = 7;\n\
         program S { version V { int F(void) = 1; } = 1; } = 7;\n",
        expect![[r#"
            error: there are two fields called `x`
             --> test.x:1:23
              |
            1 | struct a { int x; int x; };
              |                       ^
             --> test.x:1:16
              |
            1 | struct a { int x; int x; };
              |                - the first one

            error: the type `a` is defined twice
             --> test.x:2:8
              |
            2 | struct a { int y; };
              |        ^
             --> test.x:1:8
              |
            1 | struct a { int x; int x; };
              |        - the first definition

            error: `P` is defined twice
             --> test.x:3:17
              |
            3 | enum e { P = 1, P = 1 };
              |                 ^
             --> test.x:3:10
              |
            3 | enum e { P = 1, P = 1 };
              |          - the first definition

            error: `Q` is defined twice
             --> test.x:5:7
              |
            5 | const Q = 2;
              |       ^
             --> test.x:4:7
              |
            4 | const Q = 1;
              |       - the first definition

            error: `1` selects an arm already
             --> test.x:6:44
              |
            6 | union u switch (e d) { case P: int i; case 1: int i; };
              |                                            ^
             --> test.x:6:29
              |
            6 | union u switch (e d) { case P: int i; case 1: int i; };
              |                             - the first label of this value

            error: there are two fields called `i`
             --> test.x:6:51
              |
            6 | union u switch (e d) { case P: int i; case 1: int i; };
              |                                                   ^
             --> test.x:6:36
              |
            6 | union u switch (e d) { case P: int i; case 1: int i; };
              |                                    - the first one

            error: there are two procedures called `F`
             --> test.x:7:46
              |
            7 | program R { version V { int F(void) = 1; int F(void) = 1; } = 1; version W { int F(void) = 1; } = 1; } = 7;
              |                                              ^
             --> test.x:7:29
              |
            7 | program R { version V { int F(void) = 1; int F(void) = 1; } = 1; version W { int F(void) = 1; } = 1; } = 7;
              |                             - the first one

            error: two procedures have the number 1
             --> test.x:7:56
              |
            7 | program R { version V { int F(void) = 1; int F(void) = 1; } = 1; version W { int F(void) = 1; } = 1; } = 7;
              |                                                        ^
             --> test.x:7:39
              |
            7 | program R { version V { int F(void) = 1; int F(void) = 1; } = 1; version W { int F(void) = 1; } = 1; } = 7;
              |                                       - the first one

            error: two versions have the number 1
             --> test.x:7:99
              |
            7 | ...n V { int F(void) = 1; int F(void) = 1; } = 1; version W { int F(void) = 1; } = 1; } = 7;
              |                                                                                    ^
             --> test.x:7:63
              |
            7 | program R { version V { int F(void) = 1; int F(void) = 1; } = 1; version W { int F(void) = 1; } = 1; } = 7;
              |                                                               - the first one

            error: program 7, version 1 is defined twice, here as `S`
             --> test.x:8:53
              |
            8 | program S { version V { int F(void) = 1; } = 1; } = 7;
              |                                                     ^
             --> test.x:7:106
              |
            7 | ...nt F(void) = 1; int F(void) = 1; } = 1; version W { int F(void) = 1; } = 1; } = 7;
              |                                                                                    - the first one

        "#]],
    );
}

#[test]
fn values_have_to_fit() {
    check(
        "struct a { int x[-1]; opaque y[NOWHERE]; int z<0x1ffffffff>; string s[4]; };\n\
         enum e { HUGE = 0x1ffffffff, BITS = 0x80000000 };\nconst C = 0x1ffffffffffffffff;\nconst D = 1 / 0;\n\
         program P { version V { int F(void) = 0x100000000; } = 1; } = -5;\nconst L = M;\nconst M = L;\n",
        expect![[r#"
            error: a length cannot be negative, and this is -1
             --> test.x:1:18
              |
            1 | struct a { int x[-1]; opaque y[NOWHERE]; int z<0x1ffffffff>; string s[4]; };
              |                  ^^

            error: `NOWHERE` is not defined, but this length has to be known
             --> test.x:1:32
              |
            1 | struct a { int x[-1]; opaque y[NOWHERE]; int z<0x1ffffffff>; string s[4]; };
              |                                ^^^^^^^
              = hint: give it a value with `const NOWHERE = ..;` or `-D NOWHERE=..`; `tenon rpcgen` leaves it to C

            error: this bound is 8589934591, which does not fit into 32 bits
             --> test.x:1:48
              |
            1 | struct a { int x[-1]; opaque y[NOWHERE]; int z<0x1ffffffff>; string s[4]; };
              |                                                ^^^^^^^^^^^

            error: a string has no fixed length
             --> test.x:1:71
              |
            1 | struct a { int x[-1]; opaque y[NOWHERE]; int z<0x1ffffffff>; string s[4]; };
              |                                                                       ^
              = hint: write `<n>` for at most n bytes, or make it `opaque`

            error: the value of this member is 8589934591: too big for an enum
             --> test.x:2:10
              |
            2 | enum e { HUGE = 0x1ffffffff, BITS = 0x80000000 };
              |          ^^^^

            warning: 2147483648 does not fit into the 31 bits an enum has for it
             --> test.x:2:30
              |
            2 | enum e { HUGE = 0x1ffffffff, BITS = 0x80000000 };
              |                              ^^^^ taken as -2147483648

            warning: this constant does not fit into 64 bits
             --> test.x:3:11
              |
            3 | const C = 0x1ffffffffffffffff;
              |           ^^^^^^^^^^^^^^^^^^^ no item has so many

            error: division by zero
             --> test.x:4:11
              |
            4 | const D = 1 / 0;
              |           ^^^^^

            error: this procedure number is 4294967296, which does not fit into 32 bits
             --> test.x:5:39
              |
            5 | program P { version V { int F(void) = 0x100000000; } = 1; } = -5;
              |                                       ^^^^^^^^^^^

            error: a program number cannot be negative, and this is -5
             --> test.x:5:63
              |
            5 | program P { version V { int F(void) = 0x100000000; } = 1; } = -5;
              |                                                               ^^

            error: the value of `L` depends on itself
             --> test.x:6:7
              |
            6 | const L = M;
              |       ^

        "#]],
    );
}

#[test]
fn types_have_to_end() {
    check(
        "struct a { b inner; };\nstruct b { a inner[2]; };\ntypedef c d;\ntypedef d c;\ntypedef self *self;\n\
         struct fine { fine *next; many others<>; };\ntypedef fine many;\nstruct large { opaque x[0x7fffffff]; };\n",
        expect![[r#"
            error: `a` contains itself, so it would have no end
             --> test.x:1:8
              |
            1 | struct a { b inner; };
              |        ^
             --> test.x:2:8
              |
            2 | struct b { a inner[2]; };
              |        - by way of `b`
              = hint: put a pointer (`*`) or a counted array (`<>`) in between

            error: the typedef `d` leads back to itself
             --> test.x:3:11
              |
            3 | typedef c d;
              |           ^
              = hint: make it a struct with the pointer or array as its field

            error: the typedef `self` leads back to itself
             --> test.x:5:15
              |
            5 | typedef self *self;
              |               ^^^^
              = hint: make it a struct with the pointer or array as its field

            error: `large` takes 2147483648 bytes at least, more than 67108864
             --> test.x:8:8
              |
            8 | struct large { opaque x[0x7fffffff]; };
              |        ^^^^^
              = hint: use a counted array (`<>`) instead of a fixed one

        "#]],
    );
}

#[test]
fn unions_have_to_fit_their_discriminant() {
    check(
        "enum a { A = 1 };\nenum b { B = 2, ONE = 1 };\n\
         union u switch (a d) { case A: void; case B: void; case 7: void; };\n\
         union v switch (bool d) { case 2: void; };\n\
         union w switch (unsigned d) { case -1: void; };\n\
         union x switch (hyper d) { case 1: void; };\n\
         union y switch (a d) { case ONE: void; };\n",
        expect![[r#"
            error: `B` belongs to `b`, not to `a`
             --> test.x:3:43
              |
            3 | union u switch (a d) { case A: void; case B: void; case 7: void; };
              |                                           ^ expected a member of `a`

            error: `7` is no value of `a`
             --> test.x:3:57
              |
            3 | union u switch (a d) { case A: void; case B: void; case 7: void; };
              |                                                         ^ expected a member of `a`

            error: `2` is 2, but the discriminant is a bool
             --> test.x:4:32
              |
            4 | union v switch (bool d) { case 2: void; };
              |                                ^

            error: `-1` is -1, but the discriminant is unsigned
             --> test.x:5:36
              |
            5 | union w switch (unsigned d) { case -1: void; };
              |                                    ^^

            error: no union can be switched by this type
             --> test.x:6:17
              |
            6 | union x switch (hyper d) { case 1: void; };
              |                 ^^^^^ expected int, unsigned int, bool or an enum

            warning: `ONE` belongs to `b`, not to `a`
             --> test.x:7:29
              |
            7 | union y switch (a d) { case ONE: void; };
              |                             ^^^ its value happens to fit

        "#]],
    );
}

#[test]
fn void_holds_nothing() {
    check(
        "struct a { void; void x; };\nunion u switch (int d) { case 1: void x; };\ntypedef void nothing;\n\
         program P { version V { int F(void, int) = 1; } = 1; } = 5;\n",
        expect![[r#"
            error: a struct holds nothing that is `void`
             --> test.x:1:12
              |
            1 | struct a { void; void x; };
              |            ^^^^
              = hint: leave it out

            error: expected `;`, found `x`
             --> test.x:2:39
              |
            2 | union u switch (int d) { case 1: void x; };
              |                                       ^
              = hint: `void` holds nothing, so it has no name

            error: nothing can be declared to be `void`
             --> test.x:3:9
              |
            3 | typedef void nothing;
              |         ^^^^
              = hint: leave it out

            error: `void` stands alone or not at all
             --> test.x:4:31
              |
            4 | program P { version V { int F(void, int) = 1; } = 1; } = 5;
              |                               ^^^^

        "#]],
    );
}

#[test]
fn enums_without_values_are_refused() {
    check(
        "enum e { };\nstruct s { e x; };\n",
        expect![[r#"
        error: an enum has members
         --> test.x:1:10
          |
        1 | enum e { };
          |          ^
          = hint: without any there is no value of it, nor of what contains it

    "#]],
    );
}

#[test]
fn members_behind_the_largest_number_are_refused() {
    let largest = "18446744073709551615 * 9223372036854775808 + 9223372036854775807";
    let text = format!("enum e {{ A = {largest}, B }};\nconst C = B;\n");
    check(
        &text,
        expect![[r#"
            error: the value of this member is 170141183460469231731687303715884105727: too big for an enum
             --> test.x:1:10
              |
            1 | enum e { A = 18446744073709551615 * 9223372036854775808 + 9223372036854775807, B };
              |          ^

            error: the value of this member is 170141183460469231731687303715884105727: too big for an enum
             --> test.x:1:80
              |
            1 | enum e { A = 18446744073709551615 * 9223372036854775808 + 9223372036854775807, B };
              |                                                                                ^

            warning: this constant does not fit into 64 bits
             --> test.x:2:11
              |
            2 | const C = B;
              |           ^ no item has so many

        "#]],
    );
}

#[test]
fn directives_are_checked() {
    check(
        "#else\n#if 1 +\n#endif\n#if (1\n#endif\n#nonsense\n#define\n#error \"no\"\n#if 1\n",
        expect![[r#"
            error: there is no `#if` that this belongs to
             --> test.x:1:1
              |
            1 | #else
              | ^^^^^

            error: expected a number or a name, found the end
             --> test.x:2:7
              |
            2 | #if 1 +
              |       ^

            error: expected `)`, found the end
             --> test.x:4:6
              |
            4 | #if (1
              |      ^
             --> test.x:4:5
              |
            4 | #if (1
              |     - opened here

            error: there is no directive `#nonsense`
             --> test.x:6:1
              |
            6 | #nonsense
              | ^^^^^^^^^
              = hint: a line for the generated C code starts with `%` instead

            error: expected the name of a macro
             --> test.x:7:1
              |
            7 | #define
              | ^^^^^^^

            error: the interface refuses this: "no"
             --> test.x:8:1
              |
            8 | #error "no"
              | ^^^^^^

            error: this condition has no `#endif`
             --> test.x:9:1
              |
            9 | #if 1
              | ^^^

        "#]],
    );
}

#[test]
fn words_are_checked() {
    check(
        "const A = 09;\nconst B = 'ab';\nconst C = \"open;\nconst D = 0xg; @\n/* open",
        expect![[r#"
            error: this is not an octal number (a leading 0 makes it one)
             --> test.x:1:11
              |
            1 | const A = 09;
              |           ^^

            error: this is not one character
             --> test.x:2:11
              |
            2 | const B = 'ab';
              |           ^^^^
              = hint: write a single character or one of \n \t \r \0 \\ \' between the quotes

            error: this string is not closed on its line
             --> test.x:3:11
              |
            3 | const C = "open;
              |           ^^^^^^

            error: expected `;`, found `D`
             --> test.x:4:7
              |
            4 | const D = 0xg; @
              |       ^

            error: `@` does not belong into an interface
             --> test.x:4:16
              |
            4 | const D = 0xg; @
              |                ^

            error: this comment is not closed
             --> test.x:5:1
              |
            5 | /* open
              | ^^^^^^^

        "#]],
    );
}

#[test]
fn rendering_is_safe_for_a_terminal() {
    check(
        "const A\x1b[31m = 1;\n",
        expect![[r#"
        error: `\u{1b}` does not belong into an interface
         --> test.x:1:8
          |
        1 | const A�[31m = 1;
          |        ^

        error: expected `=` and the value of the constant, found `[`
         --> test.x:1:9
          |
        1 | const A�[31m = 1;
          |         ^

    "#]],
    );
}

#[test]
fn colors_on_request() {
    let parsed = parse_text("test.x", "const = 1;\n", &Options::default());
    assert!(!parsed.render(Style::Plain).contains('\x1b'));
    assert!(
        parsed
            .render(Style::Colored)
            .contains("\x1b[1;31merror\x1b[0m")
    );
}

#[test]
fn reports_are_for_machines() {
    let parsed = parse_text("test.x", "struct a {\n  int 5;\n};\n", &Options::default());
    let [report] = &parsed.reports()[..] else {
        panic!("{}", parsed.render(Style::Plain))
    };
    assert_eq!(
        (report.severity, report.line, report.column),
        ("error", 2, 7)
    );
    assert_eq!(report.file, "test.x");
    assert_eq!(report.message, "expected the name of the field, found `5`");
}

#[test]
fn missing_file_is_reported() {
    let parsed = parse_file(Path::new("/nonexistent/a.x"), &Options::default());
    assert!(parsed.schema.is_none());
    assert_eq!(
        parsed.render(Style::Plain),
        "error: there is no file `/nonexistent/a.x`\n\n"
    );
}

#[test]
fn docs_are_kept() {
    let text = "/* not about a */\n\n/*\n * About a.\n * More.\n */\nstruct a {\n    int x; /* the x */\n    /** the y */\n    int y;\n};\n\
                /* About P. */\nprogram P {\n    version V {\n        int F(void) = 1; // the f\n    } = 1;\n} = 5;\n\
                enum e {\n    A = 1, /* the a */\n    /* the b */\n    B = 2 /* and last */\n};\n#define N 5 /* the n */\n";
    let schema = parse_text("test.x", text, &Options::default())
        .schema
        .expect("no errors");
    assert_eq!(schema.types[0].doc, "About a.\nMore.");
    let tenon_schema::TypeKind::Struct(fields) = &schema.types[0].kind else {
        panic!()
    };
    assert_eq!([&fields[0].doc, &fields[1].doc], ["the x", "the y"]);
    let tenon_schema::TypeKind::Enum(members) = &schema.types[1].kind else {
        panic!()
    };
    assert_eq!(
        [&members[0].doc, &members[1].doc],
        ["the a", "the b\nand last"]
    );
    assert_eq!(schema.programs[0].doc, "About P.");
    assert_eq!(schema.programs[0].versions[0].procedures[0].doc, "the f");
    assert_eq!(schema.constants[0].doc, "the n");
}

/// Text that asks for more than any interface needs: an error, soon, and no crash.
#[test]
fn hostile_text_is_refused() {
    let many = |part: &str| part.repeat(100_000);
    let chain: String = (0..1000)
        .map(|n| format!("struct s{} {{ s{} x; }};\n", n + 1, n))
        .collect();
    let constants: String = (0..1000)
        .map(|n| format!("const C{n} = C{};\n", n + 1))
        .collect();
    let macros: String = (1..60)
        .map(|n| format!("#define M{n} M{0} M{0}\n", n - 1))
        .collect();
    let texts = [
        many("struct a { struct { "),
        format!("const A = {};", many("(")),
        format!("const A = {}1;", many("-")),
        format!("const A = 1{};", many("+1")),
        format!("#if {}\n#endif", many("(")),
        format!("struct s0 {{ int x; }};\n{chain}"),
        format!("{constants}const C1000 = 1;"),
        format!("#define M0 x\n{macros}M59"),
        many("{"),
        many("@"),
        many("#if 1\n"),
        "\"".repeat(100_000),
        format!("struct {0} {{ {0} x; }};", many("long")),
        format!(
            "struct {} {{ {} {{",
            many("long"),
            many("struct { int x; } y; ")
        ),
        format!("/*{}", many("*")),
    ];
    for text in texts {
        let parsed = parse_text("test.x", &text, &Options::default());
        let start: String = text.chars().take(40).collect();
        assert!(parsed.schema.is_none(), "{start}");
        assert!(parsed.render(Style::Plain).len() < 100_000, "{start}");
    }
}

#[test]
fn procedure_0_is_the_null_procedure() {
    check(
        "program P { version V { void NULL(void) = 0; } = 1; version W { int NOT(int) = 0; } = 2; } = 7;",
        expect![[r#"
            warning: procedure 0 takes nothing and returns nothing in every program
             --> test.x:1:80
              |
            1 | program P { version V { void NULL(void) = 0; } = 1; version W { int NOT(int) = 0; } = 2; } = 7;
              |                                                                                ^ servers answer it by themselves
              = hint: give this procedure another number

            program P = 7
                version V = 1
                    0 NULL() -> void
                version W = 2
                    0 NOT(arg1: int) -> int
        "#]],
    );
}

#[test]
fn long_text_is_refused() {
    let limits = ParseLimits {
        text_bytes_max: 100,
        tokens_max: 10,
        ..ParseLimits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    check_with(
        &" ".repeat(101),
        &options,
        expect![[r#"
        error: `test.x` is too long

    "#]],
    );
    check_with(
        "struct a { int x; int y; int z; };",
        &options,
        expect![[r#"
            error: expected the name of the field, found the end
             --> test.x:1:26
              |
            1 | struct a { int x; int y; int z; };
              |                          ^^^

            error: the interface is too long
             --> test.x:1:30
              |
            1 | struct a { int x; int y; int z; };
              |                              ^
              = hint: split it, or raise the limit of words

        "#]],
    );
}

#[test]
fn long_honest_text_is_taken() {
    let fields: String = (0..100_000).map(|n| format!("int m{n};\n")).collect();
    let members: String = (0..100_000).map(|n| format!("M{n},\n")).collect();
    let text = format!("struct a {{ {fields} }};\nconst LAST = M99999;\nenum e {{ {members} }};");
    let schema = parse_text("test.x", &text, &Options::default())
        .schema
        .expect("no errors");
    assert_eq!(
        schema.constants[0].value,
        tenon_schema::ConstantValue::Number(99_999)
    );
}

/// How `text` is written, in C's order and words.
fn check_written(text: &str, expect: Expect) {
    let parsed = parse_text("test.x", text, &Options::default());
    let said = parsed.render(Style::Plain);
    let written = parsed.written.unwrap_or_else(|| panic!("{said}"));
    expect.assert_debug_eq(&written);
}

#[test]
fn words_and_numbers_are_kept_as_they_are_written() {
    check_written(
        "#define FOUR 4\nconst MAX = 0x10;\nstruct s {\n%in front\nunsigned  long a; struct s *b; \
         opaque c[FOUR]; string d<MAX>; };\n%behind\nenum e { A = 010, B };",
        expect![[r#"
            Written {
                items: [
                    Constant {
                        name: "MAX",
                        value: "0x10",
                    },
                    Passthrough(
                        Passthrough {
                            text: "in front",
                            origin: Origin {
                                file: "test.x",
                                line: 4,
                                included: false,
                            },
                            after_definitions: 2,
                        },
                    ),
                    Type(
                        TypeId(
                            0,
                        ),
                    ),
                    Passthrough(
                        Passthrough {
                            text: "behind",
                            origin: Origin {
                                file: "test.x",
                                line: 6,
                                included: false,
                            },
                            after_definitions: 3,
                        },
                    ),
                    Type(
                        TypeId(
                            1,
                        ),
                    ),
                ],
                types: [
                    Struct(
                        [
                            Spelling {
                                tag: None,
                                base: "unsigned long",
                                bound: None,
                                foreign: false,
                            },
                            Spelling {
                                tag: Some(
                                    "struct",
                                ),
                                base: "s",
                                bound: None,
                                foreign: false,
                            },
                            Spelling {
                                tag: None,
                                base: "opaque",
                                bound: Some(
                                    "4",
                                ),
                                foreign: false,
                            },
                            Spelling {
                                tag: None,
                                base: "string",
                                bound: Some(
                                    "MAX",
                                ),
                                foreign: false,
                            },
                        ],
                    ),
                    Enum(
                        [
                            Some(
                                "010",
                            ),
                            None,
                        ],
                    ),
                ],
                procedures: [],
                programs: [],
            }
        "#]],
    );
}

#[test]
fn only_the_numbers_of_libtirpc_are_known_to_it() {
    let options = Options {
        undeclared: Undeclared::OfLibtirpc,
        ..Options::default()
    };
    check_with(
        "struct s { uint32_t a; uint32 b; foreign c; };",
        &options,
        expect![[r#"
            struct s
                a: uint
                b: uint32
                c: foreign
            external uint32
            external foreign
        "#]],
    );
}

/// A name may be long, and as many definitions have it as a file holds: a copy for each took gigabytes.
#[test]
fn what_stands_behind_one_line_marker_has_one_name() {
    let text = "#line 7 \"other.x\"\nconst A = 1;\n#line 50\nconst B = 2;\n#line 1 \"third.x\"\nconst C = 3;";
    let parsed = parse_text("test.x", text, &Options::default());
    let origins = parsed.schema.unwrap().constants;
    let [a, b, c] = &origins[..] else {
        panic!("{origins:?}")
    };
    assert!(Arc::ptr_eq(&a.origin.file, &b.origin.file));
    let places = [a, b, c].map(|constant| (constant.origin.to_string(), constant.origin.included));
    assert_eq!(
        places,
        [
            ("other.x:7".to_owned(), false),
            ("other.x:50".to_owned(), false),
            ("third.x:1".to_owned(), true),
        ]
    );
}

#[test]
fn a_name_that_no_file_has_is_refused() {
    let name = "a".repeat(4097);
    let parsed = parse_text(
        "test.x",
        &format!("#line 7 \"{name}\"\nconst A = 1;"),
        &Options::default(),
    );
    let said = parsed.render(Style::Plain);
    assert!(
        said.starts_with("error: no file has so long a name"),
        "{said}"
    );
    assert!(said.contains("--> test.x:1:1"), "{said}");
}

#[test]
fn words_of_macros_count() {
    let limits = ParseLimits {
        tokens_max: 10,
        ..ParseLimits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let few = "#define A 1 + 2\nconst C = 5;";
    let line = "#define A 1 + 2 + 3 + 4 + 5 + 6 + 7\nconst C = 5;";
    let lines = "#define A 1 + 2 + 3 + 4\n#define B 5 + 6 + 7\nconst C = 5;";
    for (text, place) in [(few, None), (line, Some("1:31")), (lines, Some("2:17"))] {
        let said = parse_text("test.x", text, &options).render(Style::Plain);
        match place {
            None => assert_eq!(said, ""),
            Some(place) => {
                assert!(said.contains("the interface is too long"), "{said}");
                assert!(said.contains(&format!("--> test.x:{place}")), "{said}");
            }
        }
    }
}

#[test]
fn bytes_that_are_not_utf8_matter_outside_of_comments() {
    let name = format!("tenon-idl-latin-{}.x", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(
        &path,
        b"/* caf\xe9 */\nconst A = 1;\n%/* caf\xe9 */\n%/* caf\xe9 */\n",
    )
    .unwrap();
    let parsed = parse_file(&path, &Options::default());
    std::fs::remove_file(&path).unwrap();
    let [report] = &parsed.reports()[..] else {
        panic!("{}", parsed.render(Style::Plain))
    };
    assert_eq!(
        (report.line, report.column, &*report.message),
        (3, 8, "this is not UTF-8")
    );
    assert_eq!(report.severity, "warning");
}
