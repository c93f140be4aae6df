//! Annotations, `/*@ ... */`: what is wrong with one is said with its place.

use expect_test::{Expect, expect};
use tenon_idl::{Options, Style, parse_text};

/// Holds what is said of an interface, without the lines that show the source.
fn check(text: &str, expect: Expect) {
    let parsed = parse_text("test.x", text, &Options::default());
    let said = parsed.render(Style::Plain);
    let kept = said.lines().filter(|line| !line.trim_start().contains('|'));
    let kept: Vec<&str> = kept.filter(|line| !line.is_empty()).collect();
    expect.assert_eq(&(kept.join("\n") + "\n"));
    assert!(parsed.schema.is_none(), "it is an error");
}

fn of_procedure(annotation: &str) -> String {
    format!(
        "program P {{ version V {{ /*@ {annotation} */ void F(void) = 1; }} = 1; }} = 0x20000001;\n"
    )
}

fn of_field(ty: &str, annotation: &str) -> String {
    format!("enum e {{ A = 1 }};\nstruct s {{\n    {ty} x; /*@ {annotation} */\n}};\n")
}

#[test]
fn words_are_known() {
    check(
        &of_procedure("idempotnt"),
        expect![[r#"
            error: there is no annotation called `idempotnt`
             --> test.x:1:29
              = hint: did you mean `idempotent`?
        "#]],
    );
    check(
        &of_procedure("fast"),
        expect![[r#"
            error: there is no annotation called `fast`
             --> test.x:1:29
              = hint: there are: idempotent, raises, stream, deprecated, sensitive, alias, default
        "#]],
    );
    check(
        &of_procedure("idempotent raises e"),
        expect![[r#"
            error: expected `;` or the end of the comment, found `raises`
             --> test.x:1:40
        "#]],
    );
    check(
        &of_procedure("7"),
        expect![[r#"
            error: expected an annotation, found `7`
             --> test.x:1:29
        "#]],
    );
    check(
        &of_procedure("idempotent; idempotent"),
        expect![[r#"
            error: `idempotent` is there twice
             --> test.x:1:41
             --> test.x:1:29
        "#]],
    );
    check(
        &of_procedure("deprecated \"not closed"),
        expect![[r#"
            error: expected `;` or the end of the comment, found `"not closed `
             --> test.x:1:40
        "#]],
    );
}

#[test]
fn what_belongs_to_something_else_is_misplaced() {
    check(
        &of_procedure("sensitive"),
        expect![[r#"
            error: `sensitive` says nothing of a procedure
             --> test.x:1:29
              = hint: it belongs to a field
        "#]],
    );
    check(
        &of_field("int", "idempotent"),
        expect![[r#"
        error: `idempotent` says nothing of a field
         --> test.x:3:16
          = hint: it belongs to a procedure
    "#]],
    );
    check(
        "/*@ alias a */\nconst A = 1;\n",
        expect![[r#"
        error: `alias` says nothing of a constant
         --> test.x:1:5
          = hint: it belongs to a type, a field or a member of an enum
    "#]],
    );
    check(
        "/*@ stream result */\ntypedef int a;\n",
        expect![[r#"
        error: `stream` says nothing of a type
         --> test.x:1:5
          = hint: it belongs to a procedure
    "#]],
    );
}

#[test]
fn what_belongs_to_nothing_is_an_error() {
    check(
        "typedef int a;\n\n/*@ deprecated */\n\ntypedef int b;\n",
        expect![[r#"
            error: this annotation belongs to nothing
             --> test.x:3:1
              = hint: write it on the line in front of what it is about, or on the same line
        "#]],
    );
    check(
        "typedef /*@ deprecated */ int\na;\n",
        expect![[r#"
        error: this annotation belongs to nothing
         --> test.x:1:9
          = hint: write it on the line in front of what it is about, or on the same line
    "#]],
    );
    check(
        "typedef int a;\n/*@ deprecated */\n",
        expect![[r#"
        error: this annotation belongs to nothing
         --> test.x:2:1
          = hint: write it on the line in front of what it is about, or on the same line
    "#]],
    );
}

#[test]
fn errors_are_types() {
    check(
        &of_procedure("raises"),
        expect![[r#"
            error: expected the type of an error, found the end of the comment
             --> test.x:1:36
        "#]],
    );
    check(
        &of_procedure("raises missing"),
        expect![[r#"
            error: the error `missing` is no type of this interface
             --> test.x:1:36
              = hint: define a struct of this name, which is what the error carries
        "#]],
    );
    let text = format!("struct a {{ int x; }};\n{}", of_procedure("raises a, a"));
    check(
        &text,
        expect![[r#"
            error: there are two errors called `a`
             --> test.x:2:39
             --> test.x:2:36
        "#]],
    );
    let text = format!("typedef string a<>;\n{}", of_procedure("raises a"));
    check(
        &text,
        expect![[r#"
            error: the error `a` is no struct, union or enum
             --> test.x:2:36
              = hint: define a struct that holds it, and raise that
        "#]],
    );
    let text = format!(
        "struct a {{ int x; a *next; }};\n{}",
        of_procedure("raises a")
    );
    check(
        &text,
        expect![[r#"
            error: the error `a` is an element of a linked list
             --> test.x:2:36
              = hint: define a struct that holds it, and raise that
        "#]],
    );
}

#[test]
fn streams_have_items() {
    check(
        &of_procedure("stream"),
        expect![[r#"
            error: expected `arguments` or `result`, each once, found the end of the comment
             --> test.x:1:36
        "#]],
    );
    check(
        &of_procedure("stream result, result"),
        expect![[r#"
            error: expected `arguments` or `result`, each once, found `result`
             --> test.x:1:44
        "#]],
    );
    check(
        &of_procedure("stream arguments, result"),
        expect![[r#"
            error: a procedure without arguments has no stream of them
             --> test.x:1:29
              = hint: the last argument is the item of the stream
            error: a procedure without a result has no stream of results
             --> test.x:1:29
              = hint: the result is the item of the stream
        "#]],
    );
}

#[test]
fn former_names_are_free() {
    check(
        "struct s { int a; /*@ alias b */\nint b; };\n",
        expect![[r#"
            error: a field has the name `b` already
             --> test.x:1:29
             --> test.x:2:5
        "#]],
    );
    check(
        "enum e { A = 1, /*@ alias C */\nB = 2 /*@ alias C */ };\n",
        expect![[r#"
            error: a member has the name `C` already
             --> test.x:2:17
             --> test.x:1:27
        "#]],
    );
    check(
        "typedef int a;\n/*@ alias a */\ntypedef int b;\n",
        expect![[r#"
            error: a type has the name `a` already
             --> test.x:2:11
             --> test.x:1:13
        "#]],
    );
}

#[test]
fn defaults_fit_their_types() {
    check(
        &of_field("int", "default"),
        expect![[r#"
        error: the default of a field has a value
         --> test.x:3:16
          = hint: write `default 7`
    "#]],
    );
    check(
        &of_field("int", "default 1 +"),
        expect![[r#"
        error: expected a number or a name, found the end
         --> test.x:3:28
    "#]],
    );
    check(
        &of_field("int", "default missing"),
        expect![[r#"
        error: `missing` is not defined, but this default has to be known
         --> test.x:3:24
          = hint: give it a value with `const missing = ..;` or `-D missing=..`; `tenon rpcgen` leaves it to C
    "#]],
    );
    check(
        &of_field("int", "default 0x80000000"),
        expect![[r#"
        error: the default is 2147483648, not -2147483648 to 2147483647
         --> test.x:3:24
    "#]],
    );
    check(
        &of_field("unsigned", "default -1"),
        expect![[r#"
        error: the default is -1, not 0 to 4294967295
         --> test.x:3:29
    "#]],
    );
    check(
        &of_field("bool", "default 2"),
        expect![[r#"
        error: the default is 2, not 0 to 1
         --> test.x:3:25
    "#]],
    );
    check(
        &of_field("e", "default 2"),
        expect![[r#"
        error: no member of this enum is 2
         --> test.x:3:22
    "#]],
    );
    check(
        &of_field("int", "default \"text\""),
        expect![[r#"
        error: only a string has a default that is a string
         --> test.x:3:24
    "#]],
    );
    check(
        "struct s { string x<3>; /*@ default \"text\" */\n};\n",
        expect![[r#"
            error: the default is longer than 3 bytes
             --> test.x:1:37
        "#]],
    );
    check(
        "struct s { string x<3>; /*@ default 7 */\n};\n",
        expect![[r#"
            error: the default of a string is a string
             --> test.x:1:37
        "#]],
    );
    check(
        "struct s { opaque x[4]; /*@ default 7 */\n};\n",
        expect![[r#"
            error: only numbers, booleans, enums and strings have defaults
             --> test.x:1:37
        "#]],
    );
    check(
        "enum e { A = 1, /*@ default 7 */\nB = 2 };\n",
        expect![[r#"
            error: a member of an enum is the default, and has no other one
             --> test.x:1:21
              = hint: write `default` alone
        "#]],
    );
    check(
        "enum e { A = 1, /*@ default */\nB = 2 /*@ default */ };\n",
        expect![[r#"
            error: an enum has one default
             --> test.x:2:11
             --> test.x:1:21
        "#]],
    );
}
