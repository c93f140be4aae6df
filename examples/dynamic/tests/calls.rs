//! The greeter of the tutorial, called by a program that has none of its stubs.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tenon::{CallInfo, Refusal, Server};
use tenon_example_dynamic::Remote;
use tenon_example_greeter::greeter::{GreeterV1, GreeterV1Service, Greeting, Visitor};
use tenon_exec::{Union, Value};

struct Host;

impl GreeterV1 for Host {
    fn greet(&self, _call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
        Ok(match visitor.visits {
            0 => Greeting::Void,
            _ => Greeting::Text(format!("Welcome back, {}", visitor.name).into()),
        })
    }
}

fn interface_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../greeter/greeter.x")
}

/// Runs `check` with a client by each protocol.
fn for_each_protocol(check: impl Fn(Remote)) {
    let builder = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .expect("a port");
    let server = builder
        .service(GreeterV1Service(Host))
        .start()
        .expect("a server");
    let address = server.addresses()[0].to_string();
    for address in [address.clone(), format!("lean+{address}")] {
        check(Remote::open(&address, &interface_file()).expect("an interface and a server"));
    }
}

#[test]
fn json_in_and_json_out() {
    for_each_protocol(|remote| {
        let greet = |arguments| remote.call_json("GREET", &arguments);
        let known = greet(json!({ "name": "Ada", "visits": 1 })).expect("an answer");
        assert_eq!(known, json!({ "known": true, "text": "Welcome back, Ada" }));
        let stranger = greet(json!({ "name": "Ada", "visits": 0 })).expect("an answer");
        assert_eq!(stranger, json!({ "known": false }));
        let unfit = greet(json!({ "name": "Ada", "visits": "often" })).expect_err("no number");
        assert!(unfit.to_string().contains("visits"), "{unfit}");
        let unknown = remote
            .call_json("MEET", &json!([]))
            .expect_err("no such procedure");
        assert!(unknown.to_string().contains("GREET"), "{unknown}");
    });
}

#[test]
fn typed_values_in_and_out() {
    for_each_protocol(|remote| {
        let procedure = remote.interface().procedures().next().expect("a procedure");
        assert_eq!(
            (procedure.name(), procedure.parameters().len()),
            ("GREET", 1)
        );
        let visitor = Value::Struct(vec![Value::String("Ada".into()), Value::Int(2)]);
        let answer = remote.call(procedure, &Value::Struct(vec![visitor]));
        let Ok(Value::Union(greeting)) = answer else {
            panic!("{answer:?}");
        };
        let text = Value::String("Welcome back, Ada".into());
        assert_eq!(
            *greeting,
            Union {
                discriminant: 1,
                value: text
            }
        );
        let answer = remote.call(procedure, &Value::Struct(vec![Value::Int(2)]));
        assert!(answer.is_err(), "{answer:?}");
    });
}

/// Who calls by the command line reads what went wrong, not how the program keeps it.
#[test]
fn errors_are_told_in_words() {
    let file = interface_file();
    let output = Command::new(env!("CARGO_BIN_EXE_tenon-example-dynamic"))
        .arg("tcp:/127.0.0.1:1")
        .arg(&file)
        .args(["GREET", "{}"])
        .output()
        .expect("the program was built");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        said.contains("is not an address: write tcp://host:port"),
        "{said}"
    );
}
