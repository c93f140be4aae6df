//! A program without clients and servers of threads, as those of tasks are: stubs compile, and say what is lacking.
//! `cargo test -p tenon-rpc --no-default-features --features lean --test no_threads`
#![cfg(not(feature = "threads"))]
#![allow(clippy::unwrap_used)]

use tenon::ConnectError;

#[allow(dead_code, missing_docs, reason = "the example has more")]
mod greeter {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/greeter.rs"));
}
use greeter::{GreeterV1, GreeterV1Calls, GreeterV1Client, GreeterV1InProcess, Greeting, Visitor};

#[test]
fn a_client_of_threads_says_which_feature_is_lacking() {
    let error = GreeterV1Client::connect("lean+tcp://127.0.0.1:9").unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("lean+tcp://127.0.0.1:9"), "{error}");
    assert!(error.contains("needs the feature `threads`"), "{error}");
    let error = GreeterV1Client::connect("nowhere").unwrap_err();
    assert!(matches!(error, ConnectError::Address(_)), "{error}");
}

struct Host;

impl GreeterV1 for Host {
    fn greet(
        &self,
        _call: &tenon::CallInfo<'_>,
        visitor: Visitor,
    ) -> Result<Greeting, tenon::Refusal> {
        Ok(Greeting::Text(visitor.name))
    }
}

#[test]
fn calls_within_the_process_need_no_threads() {
    let visitor = Visitor {
        name: "Ada".into(),
        visits: 0,
    };
    let greeted = GreeterV1InProcess(Host).greet(&visitor).unwrap();
    assert_eq!(greeted, Greeting::Text("Ada".into()));
}
