//! What the C back end writes for a few interfaces, to be read: `tests/golden/c`. To accept a change,
//! run with `TENON_BLESS=1` and look at the difference. That it is right, `tenon-interop` shows.

mod common;

use std::path::{Path, PathBuf};

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
    hold(&golden(&format!("{name}{ending}")), &make(of, &options));
}

/// Holds a text to the golden file at `path`.
fn hold(path: &Path, text: &str) {
    if std::env::var_os("TENON_BLESS").is_some() {
        std::fs::write(path, text).expect("the golden file can be written");
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        known == text,
        "{} differs from what is generated now; see it with TENON_BLESS=1 and git diff",
        path.display()
    );
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
        "directions",
        "in_place",
        "lists",
        "namespaces",
        "service",
        "unions",
    ] {
        let parsed = parsed(name);
        let both = parsed.schema.zip(parsed.written);
        let (schema, written) = both.expect("an interface");
        let stubs = stubs::generate(&schema, &written, &format!("{name}.x")).expect("stubs");
        hold(&golden(&format!("stubs/{name}.h")), &stubs.header);
        hold(&golden(&format!("stubs/{name}.c")), &stubs.source);
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

#[test]
fn what_c_has_no_word_for_is_refused() {
    for (text, why) in [
        (
            "struct s { int register; };",
            "`register` is a word of C or of Tenon's header",
        ),
        (
            "struct tenon_s { int a; };",
            "`tenon_s` is a word of C or of Tenon's header",
        ),
        (
            "struct malloc { int a; };",
            "`malloc` is a name of C's library",
        ),
        ("struct s { int EOF; };", "`EOF` is a name of C's library"),
        (
            "struct value { int a; };",
            "`value` is a variable of C's stubs where they need what the interface calls so",
        ),
        (
            "struct i { int a; }; struct s { i x<>; };",
            "`i` is a variable of C's stubs where they need what the interface calls so",
        ),
        (
            "enum e { A = 1 }; typedef e number;",
            "`number` is a variable of C's stubs where they need what the interface calls so",
        ),
        (
            "struct count { int a; count *next; };",
            "`count` is a variable of C's stubs where they need what the interface calls so",
        ),
        (
            "struct at { int a; at *next; };",
            "`at` is a variable of C's stubs where they need what the interface calls so",
        ),
        (
            "enum e { A = 1 }; struct A { int a; };",
            "two things would be called `A` in C",
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
            "const TENON_OK = 5;",
            "`TENON_OK` is a word of C or of Tenon's header",
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
    }
}
