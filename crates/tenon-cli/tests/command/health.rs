//! `tenon health` against a server of this process.

use std::process::Stdio;
use std::time::Duration;

use crate::common::{command, tenon};
use tenon::Server;
use tenon::health::{Health, HealthStatus};

fn start(health: Option<&Health>) -> (Server, String) {
    let builder = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .expect("the address is right");
    let builder = match health {
        Some(health) => builder.health(health),
        None => builder,
    };
    let server = builder.start().expect("a port is free");
    let address = server.addresses()[0].to_string();
    (server, address)
}

#[test]
fn the_exit_status_says_whether_a_server_serves() {
    let health = Health::new();
    health.set("GREETER_V1", HealthStatus::NotServing);
    let (server, address) = start(Some(&health));
    for address in [address.clone(), format!("lean+{address}")] {
        assert_eq!(tenon(&["health", &address]).ok(), "serving\n");
        let asked = tenon(&["health", &address, "GREETER_V1"]);
        assert_eq!(asked.stdout, "not serving\n");
        let said = asked.fails_with(1);
        assert!(said.contains("`GREETER_V1` does not serve"), "{said}");
        let said = tenon(&["health", &address, "other"]).fails_with(1);
        assert!(said.contains("no service of the name `other`"), "{said}");
        let listed = tenon(&["health", &address, "--list"]);
        let expected = "(the server)  serving\nGREETER_V1    not serving\n";
        assert_eq!(listed.stdout, expected);
        listed.fails_with(1);
        let listed = tenon(&["health", &address, "--list", "--json"]);
        let expected = r#"[{"service":"","status":"serving"},{"service":"GREETER_V1","status":"not serving"}]"#;
        assert_eq!(listed.stdout.trim(), expected);
    }
    drop(server);
    let said = tenon(&["health", &address]).fails_with(1);
    assert!(said.contains("nobody listens there"), "{said}");
    let (_server, address) = start(None);
    let said = tenon(&["health", &address]).fails_with(1);
    assert!(said.contains("does not say how it is"), "{said}");
}

#[test]
fn a_watch_shows_each_change() {
    let health = Health::new();
    let (server, address) = start(Some(&health));
    let mut watching = command(&["health", &address, "--watch"]);
    let watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped());
    let watching = watching.spawn().expect("it starts");
    while server.counters().calls < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    health.set("", HealthStatus::NotServing);
    while server.counters().calls < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The connection ends, and with it the command.
    server.shutdown(Duration::from_secs(30));
    let output = watching.wait_with_output().expect("it ends");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(shown, "serving\nnot serving\n");
    assert!(!output.status.success());
}
