//! What the C back end writes for a few interfaces: `tests/golden/c`. That it is right, `tenon-interop` shows.

use std::path::{Path, PathBuf};

use crate::common::{self, expect_golden};
use tenon_gen::c::{Dialect, Interface, Options, Server, Transport, stubs};
use tenon_idl::{Output, Parsed, Style, Undeclared};

/// An interface of the corpus, read for C.
fn parsed(name: &str) -> Parsed {
    let found = common::corpus()
        .into_iter()
        .find(|path| common::file_name(path) == format!("{name}.x"));
    let options = tenon_idl::Options {
        output: Output::Nothing,
        undeclared: Undeclared::OfLibtirpc,
        ..tenon_idl::Options::default()
    };
    tenon_idl::parse_file(&found.expect("in the corpus"), &options)
}

fn golden(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/c");
    folder.join(name)
}

fn check(name: &str, ending: &str, make: impl Fn(Interface<'_>, &Options) -> String) {
    let parsed = parsed(name);
    let said = parsed.render(Style::Plain);
    let of = Interface {
        schema: parsed.schema.as_ref().unwrap_or_else(|| panic!("{said}")),
        written: parsed.written.as_ref().expect("beside the schema"),
        dialect: Dialect::Libtirpc,
    };
    let options = Options {
        header: format!("{name}.h"),
        source: format!("{name}.x"),
        by_value: true,
        server: Server {
            transports: vec![Transport::Udp, Transport::Tcp],
            ..Server::default()
        },
        ..Options::default()
    };
    expect_golden(&golden(&format!("{name}{ending}")), &make(of, &options));
}

#[test]
fn headers_are_as_they_were() {
    for name in ["lists", "unions", "external", "service"] {
        check(name, ".h", |of, options| of.header(options));
    }
}

#[test]
fn routines_are_as_they_were() {
    for name in ["lists", "unions", "external", "arrays"] {
        check(name, "_xdr.c", |of, options| {
            of.xdr(options).expect("plans")
        });
    }
}

#[test]
fn clients_and_servers_are_as_they_were() {
    check("service", "_clnt.c", |of, options| of.client(options));
    check("service", "_svc.c", |of, options| of.server(options));
}

#[test]
fn reentrant_servers_are_as_they_were() {
    check("service", "_mt_svc.c", |of, options| {
        let mut options = options.clone();
        options.reentrant = true;
        options.server.inetd = true;
        options.server.idle_seconds = Some(120);
        of.server(&options)
    });
}

#[test]
fn tables_and_samples_are_as_they_were() {
    check("service", "_tbl.i", |of, options| of.table(options));
    check("service", "_server.c", |of, options| {
        of.sample_server(options)
    });
    check("service", "_client.c", |of, options| {
        of.sample_client(options)
    });
    check("service", ".mk", |of, options| {
        of.makefile(options, "-N", true)
    });
}

#[test]
fn stubs_are_as_they_were() {
    for name in [
        "deprecated",
        "directions",
        "in_place",
        "lists",
        "namespaces",
        "raises",
        "results",
        "service",
        "streams",
        "unions",
    ] {
        let parsed = parsed(name);
        let both = parsed.schema.zip(parsed.written);
        let (schema, written) = both.expect("an interface");
        let stubs = stubs::generate(&schema, &written, &format!("{name}.x")).expect("stubs");
        expect_golden(&golden(&format!("stubs/{name}.h")), &stubs.header);
        expect_golden(&golden(&format!("stubs/{name}.c")), &stubs.source);
    }
}

#[test]
fn numbers_are_computed_from_macros() {
    let text = "const A = 1 << 4; const B = A + 1; struct s { opaque x[A * 2]; int y[2 * B]; }; \
                enum e { Q = A, R = 2 * B }; \
                union u switch (int q) { case A: void; case (A + 1): int v; case 3 * A: e w; };";
    let parsed = tenon_idl::parse_text("it.x", text, &tenon_idl::Options::default());
    let (schema, written) = parsed.schema.zip(parsed.written).expect("an interface");
    let stubs = stubs::generate(&schema, &written, "it.x").expect("stubs");
    assert!(stubs.header.contains("uint8_t x[(A * 2)];"));
    assert!(stubs.source.contains("case (3 * A):"));
}

/// Items of every kind of type, without a name as well, and names that functions for streams have themselves.
#[test]
fn items_are_passed_as_arguments_are() {
    let text = "
        struct stream { int item; };
        struct pair { int a; int b; };
        typedef opaque digest[4];
        program P { version V {
            void ROWS(stream, int stream, int row[3]) = 1; /*@ stream arguments */
            hyper LISTS(int list<9>) = 2; /*@ stream arguments, result */
            pair PAIRS(pair *) = 3; /*@ stream arguments, result */
            opaque<> SUMS(digest) = 4; /*@ stream arguments, result */
            opaque<100> BYTES(void) = 5; /*@ stream result */
        } = 1; } = 0x20000001;";
    let parsed = tenon_idl::parse_text("it.x", text, &tenon_idl::Options::default());
    let said = parsed.render(Style::Plain);
    let both = parsed.schema.zip(parsed.written);
    let (schema, written) = both.unwrap_or_else(|| panic!("{said}"));
    let stubs = stubs::generate(&schema, &written, "it.x").expect("stubs");
    for line in [
        "tenon_stream *rows_1_open (tenon_channel *channel, const stream_ *arg1, int32_t stream_, tenon_error *error);",
        "bool (*rows_1) (void *context, stream_ *arg1, int32_t stream_, tenon_stream *stream, tenon_request *request);",
        "typedef int32_t rows_1_argument_item[3];",
        "bool rows_1_send (tenon_stream *stream, const rows_1_argument_item item, tenon_error *error);",
        "bool lists_1_send (tenon_stream *stream, const lists_1_argument_item *item, tenon_error *error);",
        "int lists_1_receive (tenon_stream *stream, int64_t *item, tenon_error *error);",
        "bool lists_1_svc_send (tenon_stream *stream, int64_t item, tenon_error *error);",
        "int pairs_1_svc_receive (tenon_stream *stream, pair **item, tenon_error *error);",
        "bool sums_1_send (tenon_stream *stream, const digest item, tenon_error *error);",
        "int bytes_1_receive (tenon_stream *stream, bytes_1_result_item *item, tenon_error *error);",
    ] {
        assert!(stubs.header.contains(line), "{line}: {}", stubs.header);
    }
    // A call without streams would be refused.
    assert!(!stubs.header.contains("tenon_pending"));
    let bytes = "\"BYTES\", NULL, NULL, NULL, &tenon_message_own_bytes_1_result_item, 0x0, 0x64 },";
    assert!(stubs.source.contains(bytes), "{}", stubs.source);
}

#[test]
fn what_c_has_no_word_for_is_refused() {
    for (text, why) in [
        (
            "enum e { A = 1 }; struct A { int a; };",
            "two things would be called `A` in C",
        ),
        (
            "const TENON_OK = 5;",
            "`TENON_OK` begins as the names of `tenon.h` do",
        ),
        (
            "struct tenon_s { int a; };",
            "`tenon_s` begins as the names of `tenon.h` do",
        ),
        (
            "struct s { int TENON_LEAN; };",
            "`TENON_LEAN` begins as the names of `tenon.h` do",
        ),
        (
            "program P { version V { int F(int tenon_call) = 1; } = 1; } = 1;",
            "`tenon_call` begins as the names of `tenon.h` do",
        ),
        (
            "struct s { quadruple q; };",
            "s: C has no type for `quadruple`",
        ),
        (
            "program P { version V { int F(quadruple) = 1; } = 1; } = 1;",
            "F: C has no type for `quadruple`",
        ),
        (
            "const value = 5; struct s { int x<>; };",
            "`value` would be a number wherever C's stubs have that name for something else",
        ),
        (
            "const x = 5; struct s { int y[2 * x]; int x; };",
            "`x` would be a number wherever C's stubs have that name for something else",
        ),
        (
            "const x_len = 5; struct s { int x<>; };",
            "`x_len` would be a number wherever C's stubs have that name for something else",
        ),
        (
            "program P { version V { int context(int) = 1; } = 1; } = 1;",
            "`context` would be a number wherever C's stubs have that name for something else",
        ),
        (
            "struct s { int a; }; struct s_message { int a; };",
            "two things would be called `s_message` in C",
        ),
        (
            "program P { version V { int F(int) = 1; } = 1; } = 1; \
             program Q { version W { int F(int) = 1; } = 1; } = 2;",
            "two things would be called `f_1` in C",
        ),
    ] {
        let parsed = tenon_idl::parse_text("it.x", text, &tenon_idl::Options::default());
        let both = parsed.schema.zip(parsed.written);
        let (schema, written) = both.expect("an interface");
        let refused = stubs::generate(&schema, &written, "it.x").expect_err(text);
        assert_eq!(refused.to_string(), why);
        assert!(
            refused.origin.is_some_and(|origin| origin.line == 1),
            "{text}"
        );
        assert!(!refused.why.hint().is_empty());
    }
}

#[test]
fn names_that_c_has_get_a_line_behind_them() {
    let text = "struct malloc { int errno; int errno_; int NULL; }; struct value { malloc volatile; }; \
                enum e { EOF = 1, second = 2 }; const SIZE_MAX = 5; typedef hyper int32_t; typedef int int64_t; \
                typedef int size_t; union u switch (int default_) { case 0: size_t void_; }; \
                program P { version V { int static(int for, value in) = 1; } = 1; } = 1;";
    let parsed = tenon_idl::parse_text("it.x", text, &tenon_idl::Options::default());
    let (schema, written) = parsed.schema.zip(parsed.written).expect("an interface");
    let header = stubs::generate(&schema, &written, "it.x")
        .expect("stubs")
        .header;
    for expected in [
        "struct malloc_ {\n\tint32_t errno__;\n\tint32_t errno_;\n\tint32_t NULL_;\n};",
        "struct value_ {\n\tmalloc_ volatile_;\n};",
        "enum e {\n\tEOF_ = 1,\n\tsecond = 2,\n};",
        "#define SIZE_MAX_ 5",
        "typedef int64_t int32_t_;",
        "typedef int32_t int64_t_;",
        "typedef int32_t size_t_;",
        "#define static_ 1",
    ] {
        assert!(header.contains(expected), "{expected}\n{header}");
    }
}

#[test]
fn types_that_c_has_are_its_own() {
    let text = "typedef int int32_t; typedef unsigned hyper uint64_t; struct s { int32_t a; uint64_t b; };";
    let parsed = tenon_idl::parse_text("it.x", text, &tenon_idl::Options::default());
    let (schema, written) = parsed.schema.zip(parsed.written).expect("an interface");
    let stubs = stubs::generate(&schema, &written, "it.x").expect("stubs");
    assert!(
        !stubs.header.contains("typedef int32_t"),
        "{}",
        stubs.header
    );
    assert!(
        stubs
            .header
            .contains("extern const tenon_message int32_t_message;")
    );
}
