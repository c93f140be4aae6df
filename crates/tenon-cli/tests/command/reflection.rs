//! Commands that have no interface file, but ask the server for its interface.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::common::{command, tenon, tenon_reading};

/// `tenon serve`, which ends with this value.
struct MockServer {
    process: Child,
    address: String,
}

impl MockServer {
    fn start(arguments: &[&str]) -> Self {
        let mut serving = command(&[&["serve", "--quiet"], arguments].concat());
        let serving = serving.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = serving.spawn().expect("it starts");
        let stdout = process.stdout.take().expect("it is a pipe");
        let mut address = String::new();
        let read = BufReader::new(stdout).read_line(&mut address);
        read.expect("it says where it listens");
        Self {
            process,
            address: address.trim_end().to_owned(),
        }
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_server_that_tells_of_its_interface_is_called_without_a_file() {
    let server = MockServer::start(&["interfaces/demo.x", "--reflection"]);
    for address in [server.address.clone(), format!("lean+{}", server.address)] {
        let address = address.as_str();
        let listed = tenon(&["list", address]).ok();
        assert_eq!(listed, "DEMO_PROGRAM.DEMO_V1  0x2000d340.1\n");
        let identity = tenon(&["descriptor", "--identity", "interfaces/demo.x"]).ok();
        let listed = tenon(&["list", address, "--json"]).ok();
        assert!(listed.contains(identity.trim()), "{listed}");

        let described = tenon(&["describe", address]).ok();
        let again = tenon_reading(&["descriptor", "--identity", "-"], described.as_bytes());
        assert_eq!(again.ok(), identity);
        let shown = tenon(&["describe", address, "AVERAGE"]).ok();
        assert_eq!(shown, "double AVERAGE(numbers) = 2;\n");
        let shown = tenon(&["describe", address, "kind"]).ok();
        assert_eq!(shown, "enum kind {\n    PERSON = 1,\n    MACHINE = 2\n};\n");
        let said = tenon(&["describe", address, "nothing"]).fails_with(1);
        assert!(said.contains("nothing is called nothing"), "{said}");

        for arguments in [
            &["SAY_HELLO", "\"Ada\""][..],
            &["DEMO_PROGRAM.SAY_HELLO", "\"Ada\""],
            &["interfaces/demo.x", "SAY_HELLO", "\"Ada\""],
        ] {
            let called = tenon(&[&["call", address], arguments].concat()).ok();
            assert!(called.starts_with('"'), "{called}");
        }
        assert_eq!(tenon(&["call", address, "DEMO_NULL"]).ok(), "null\n");
        tenon_reading(&["call", address, "COUNT_TO", "-"], b"-3").ok();
        tenon(&["call", address, "COUNT_TO", "-3"]).ok();
        let said = tenon(&["call", address, "COUNT_TO"]).fails_with(1);
        assert!(
            said.contains(&format!("tenon describe {address}")),
            "{said}"
        );
        let said = tenon(&["call", address, "COUNT"]).fails_with(1);
        assert!(
            said.contains("the interface has: DEMO_NULL, SAY_HELLO"),
            "{said}"
        );
        let said = tenon(&["call", address, "interfaces/demo.x"]).fails_with(2);
        assert!(
            said.contains("is a file: name the procedure behind it"),
            "{said}"
        );
        let said = tenon(&["call", address, "[1]", "[2]"]).fails_with(2);
        assert!(said.contains("`[1]` is no name of a procedure"), "{said}");
    }
}

#[test]
fn a_server_that_does_not_tell_needs_a_file() {
    let server = MockServer::start(&["interfaces/demo.x"]);
    let address = server.address.as_str();
    for arguments in [
        &["list", address][..],
        &["describe", address],
        &["call", address, "AVERAGE"],
    ] {
        let said = tenon(arguments).fails_with(1);
        assert!(said.contains("the server has no reflection"), "{said}");
        assert!(said.contains("--reflection"), "{said}");
    }
}

#[test]
fn a_file_is_described_too() {
    let described = tenon(&["describe", "interfaces/health.x"]).ok();
    assert!(
        described.contains("/* Returns the status of a service. */"),
        "{described}"
    );
    let shown = tenon(&["describe", "interfaces/health.x", "HEALTH_V1.HEALTH_CHECK"]).ok();
    let expected = "/* Returns the status of a service. */\n/*@ idempotent */\nhealth_status HEALTH_CHECK(health_name) = 1;\n";
    assert_eq!(shown, expected);
}
