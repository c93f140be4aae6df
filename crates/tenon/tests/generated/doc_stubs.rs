//! The stubs of the examples of the documentation are what the generator makes of the tutorial's interface today, and
//! those of the library's own interface of health what it makes of that.
//! `UPDATE_EXPECT=1 cargo test -p tenon-rpc --test generated` writes them anew.

use std::path::Path;

use expect_test::{ExpectFile, expect_file};
use tenon_gen::rust::{self, Form};
use tenon_plan::{Pass, Plans, Representation};

/// Checks that `stubs` are what `tenon-build` makes of the tutorial's interface with `options`.
fn check(stubs: ExpectFile, options: rust::Options) {
    let options = rust::Options {
        for_include: true,
        ..options
    };
    check_of("examples/greeter/greeter.x", stubs, options);
}

fn check_of(interface: &str, stubs: ExpectFile, options: rust::Options) {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let interface = root.join(interface);
    let name = interface.file_name().unwrap().to_string_lossy();
    let parsed = tenon_idl::parse_file(&interface, &tenon_idl::Options::default());
    let complaints = parsed.render(tenon_idl::Style::default());
    let schema = parsed.schema.expect(&complaints);
    let plans = [Representation::XDR, Representation::LEAN]
        .map(|representation| Plans::new(&schema, representation, Pass::ALL).unwrap());
    let forms: Vec<_> = plans.iter().filter_map(Form::of).collect();
    let options = rust::Options {
        source: name.into_owned(),
        ..options
    };
    stubs.assert_eq(&rust::generate(&schema, &forms, &options).unwrap());
}

#[test]
fn the_stubs_of_tenon_are_up_to_date() {
    check(
        expect_file!["../../docs/greeter.rs"],
        rust::Options::default(),
    );
}

#[test]
fn the_stubs_of_health_are_up_to_date() {
    let options = rust::Options {
        tenon: "crate".to_owned(),
        ..rust::Options::default()
    };
    let stubs = expect_file!["../../src/health/generated.rs"];
    check_of("interfaces/health.x", stubs, options);
}

#[test]
fn the_stubs_of_tenon_tokio_are_up_to_date() {
    let options = rust::Options {
        tokio: Some("::tenon_tokio".to_owned()),
        ..rust::Options::default()
    };
    check(
        expect_file!["../../../tenon-tokio/docs/greeter.rs"],
        options,
    );
}
