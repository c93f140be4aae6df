//! The stubs of the binding protocols are what the generator makes of `interfaces/rpcbind.x` today.
//! `UPDATE_EXPECT=1 cargo test -p tenon-rpc --test generated` writes them anew.

use std::path::Path;

use expect_test::expect_file;
use tenon_gen::rust::{self, Form};
use tenon_plan::{Pass, Representation, lower, specialize};

#[test]
fn the_stubs_of_rpcbind_are_up_to_date() {
    let interface = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interfaces/rpcbind.x");
    let parsed = tenon_idl::parse_file(Path::new(interface), &tenon_idl::Options::default());
    let complaints = parsed.render(tenon_idl::Style::default());
    let schema = parsed.schema.expect(&complaints);
    let mut plans = lower(&schema, Representation::XDR).unwrap();
    let passes = Pass::ALL;
    specialize(&schema, &mut plans, passes).unwrap();
    let options = rust::Options {
        source: "rpcbind.x".to_owned(),
        tenon: "crate".to_owned(),
        ..rust::Options::default()
    };
    let generated = rust::generate(&schema, &[Form::of(&plans).unwrap()], &options).unwrap();
    expect_file!["../../src/rpcbind/generated.rs"].assert_eq(&generated);
}
