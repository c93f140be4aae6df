//! `tenon health` against a server of this process.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{command, tenon};
use tenon::health::{HEALTH, HEALTH_V1, Health, HealthStatus};
use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallInfo, LeanInput, LeanService, Refusal, Server, ServerLimits, Service};

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
    assert!(said.contains("nothing listens there"), "{said}");
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

/// Starts to watch; the output is to be read while it runs.
fn start_watch(address: &str) -> Child {
    let mut watching = command(&["health", address, "--watch"]);
    let watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped());
    watching.spawn().expect("it starts")
}

/// Changes the health of a server whose watcher is shown each change, and shuts it down when it has made so many `calls`;
/// returns what the watcher has written to stderr.
fn expect_each_change(
    mut watching: Child,
    health: &Health,
    (server, calls): (&Server, u64),
) -> String {
    let stdout = watching.stdout.take().expect("stdout is a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let mut next = || lines.next().map(|line| line.expect("stdout is UTF-8"));
    assert_eq!(next().as_deref(), Some("serving"));
    for (status, name) in [
        (HealthStatus::NotServing, "not serving"),
        (HealthStatus::Serving, "serving"),
    ] {
        health.set("", status);
        assert_eq!(next().as_deref(), Some(name));
    }
    // One that asks again has to be there.
    let begun = Instant::now();
    while server.counters().calls < calls {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    let begun = Instant::now();
    server.shutdown(Duration::from_secs(600));
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(next().as_deref(), Some("not serving"));
    assert_eq!(next(), None);
    assert!(!watching.wait().expect("it ends").success());
    let mut said = String::new();
    let mut stderr = watching.stderr.take().expect("stderr is a pipe");
    stderr.read_to_string(&mut said).expect("stderr is UTF-8");
    said
}

#[test]
fn a_watch_follows_by_a_stream_where_there_is_one() {
    let path = std::env::temp_dir().join(format!("tenon-cli-follow-{}", std::process::id()));
    for listen in [
        "tcp://127.0.0.1:0".to_owned(),
        format!("unix://{}-unix", path.display()),
        format!("shm://{}-shm", path.display()),
    ] {
        let health = Health::new();
        let builder = Server::builder().listen(&listen).expect("an address");
        let server = builder.health(&health).start().expect("it starts");
        let address = server.addresses()[0].to_string();
        let address = match address.starts_with("shm") {
            true => address,
            false => format!("lean+{address}"),
        };
        let watching = start_watch(&address);
        let said = expect_each_change(watching, &health, (&server, 1));
        assert!(said.contains("the server stops"), "{said}");
        assert_eq!(server.counters().calls, 1, "{address}");
    }
}

#[test]
fn a_watch_asks_a_server_that_takes_no_streams_again_and_again() {
    let health = Health::new();
    let limits = ServerLimits {
        connection_streams: 0,
        ..ServerLimits::default()
    };
    let builder = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .expect("an address");
    let server = builder.limits(limits).health(&health).start();
    let server = server.expect("it starts");
    let address = format!("lean+{}", server.addresses()[0]);
    // It checks, and has asked for three changes.
    expect_each_change(start_watch(&address), &health, (&server, 4));
}

/// The service of a server that was built before there were streams of statuses.
struct OlderHealth<S>(S);

impl<S: Service> OlderHealth<S> {
    fn present(&self) -> &dyn LeanService {
        self.0.lean().expect("it is one for both protocols")
    }
}

impl<S: Service> Service for OlderHealth<S> {
    fn program(&self) -> u32 {
        HEALTH
    }

    fn version(&self) -> u32 {
        HEALTH_V1
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        self.0.call(call, arguments, result)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl<S: Service> LeanService for OlderHealth<S> {
    fn interface(&self) -> Arc<Interface> {
        let mut interface = Interface::clone(&self.present().interface());
        interface.parts.retain(|part| part.procedure != 4);
        interface.fingerprint = 0xcbad_141c_cc67_34e5;
        Arc::new(interface)
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        self.present().call_lean(call, arguments, result)
    }
}

#[test]
fn a_watch_asks_an_older_server_again_and_again() {
    let health = Health::new();
    let builder = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .expect("an address");
    let service = OlderHealth(health.service());
    let server = builder.service(service).register_with(health.clone());
    let server = server.start().expect("it starts");
    let address = format!("lean+{}", server.addresses()[0]);
    // Beside those the stream is refused.
    expect_each_change(start_watch(&address), &health, (&server, 5));
}
