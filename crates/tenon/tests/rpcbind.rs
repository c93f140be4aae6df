//! The binding protocols against the machine's own rpcbind, in a network and a /run of their own.
//! Needs root for that, and rpcbind with rpcinfo (`apt-get install rpcbind`).
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};

use common::caller::*;
use rustix::process::{Pid, Signal, kill_process};
use tenon::resolve::Resolver;
use tenon::rpcbind::{HostRpcbind, Rpcbind, RpcbindError, RpcbindVersion};
use tenon::{Address, Client, ConnectError, Host, Server, StartError};

const VERSIONS: [RpcbindVersion; 3] = [RpcbindVersion::V4, RpcbindVersion::V3, RpcbindVersion::V2];

/// A program that nobody serves.
const PHANTOM: u32 = 0x2000_0077;

/// Starts this test binary again where it cannot disturb the machine.
#[test]
fn in_a_private_network() {
    if !rustix::process::geteuid().is_root() {
        // Not by eprintln!, which the harness hides when a test passes.
        let notice = "SKIPPED: in_a_private_network needs the rights of root\n";
        io::stderr().write_all(notice.as_bytes()).unwrap();
        return;
    }
    let private = ["180", "unshare", "-n", "-m", "-p", "-f", "--mount-proc"];
    let output = Command::new("timeout")
        .args(private)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "inside", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let told = text(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}

/// Nothing runs at the address that could be asked.
#[test]
fn past_the_kernel_no_port_is_asked_for() {
    let host = Host {
        name: "192.0.2.1".to_owned(),
        port: None,
    };
    let lean = Address::xdp(host);
    let onc = lean.clone().over_onc().unwrap();
    for address in [lean, onc] {
        let found = HostRpcbind.resolve(&address, PROGRAM, VERSION, PATIENCE);
        assert_eq!(found.unwrap(), None, "{address}");
    }
}

#[test]
#[ignore = "not a test of its own: it wants a private network and /run"]
fn inside() {
    run("mount", &["-t", "tmpfs", "tmpfs", "/run"]);
    run("mkdir", &["/run/rpcbind"]);
    run("ip", &["link", "set", "lo", "up"]);

    without_rpcbind_nothing_is_registered();
    let _rpcbind = RunningRpcbind::start(&[]);
    what_is_set_is_found_until_it_is_unset();
    version_2_asks_for_ports();
    another_address_is_declined();
    a_server_registers_itself_and_is_found_without_a_port();
    addresses_past_the_kernel_are_not_registered();
    a_server_that_starts_again_at_other_ports_is_found();
    rpcinfo_finds_a_server_that_registered();
    a_server_that_is_terminated_unregisters();
    drop(_rpcbind);
    let _insecure = RunningRpcbind::start(&["-i"]);
    version_2_registers_too();
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

/// Runs a command that must succeed; what it printed.
#[track_caller]
fn run(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().unwrap();
    let told = text(&output);
    assert!(output.status.success(), "{command} {arguments:?}: {told}");
    told
}

struct RunningRpcbind(Child);

impl RunningRpcbind {
    fn start(options: &[&str]) -> Self {
        let mut command = Command::new("rpcbind");
        let process = command.args(["-f", "-w", "-r"]).args(options).spawn();
        let process = process.expect("this test needs rpcbind: apt-get install rpcbind");
        eventually("rpcbind answers", || {
            UnixStream::connect("/run/rpcbind.sock").is_ok()
        });
        Self(process)
    }
}

impl Drop for RunningRpcbind {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        std::fs::remove_file("/run/rpcbind.sock").unwrap();
    }
}

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

/// Where rpcbind says that `program` is, as the text of addresses.
fn known(program: u32) -> Vec<String> {
    let registrations = Rpcbind::local().unwrap().dump().unwrap();
    let of_program = registrations
        .iter()
        .filter(|entry| entry.program == program);
    of_program
        .map(|entry| entry.address().unwrap().to_string())
        .collect()
}

fn without_rpcbind_nothing_is_registered() {
    let server = builder_at(Ipv4Addr::LOCALHOST)
        .register_with(tenon::rpcbind::LocalRpcbind)
        .start();
    assert!(matches!(server, Err(StartError::Register(_))));
    let client = Client::connect("tcp://127.0.0.1", PROGRAM, VERSION);
    assert!(matches!(client, Err(ConnectError::Unresolved { .. })));
}

fn what_is_set_is_found_until_it_is_unset() {
    for version in [RpcbindVersion::V4, RpcbindVersion::V3] {
        let rpcbind = Rpcbind::local().unwrap().beginning_with(version);
        for place in ["tcp://127.0.0.1:2049", "udp://127.0.0.1:2050"] {
            let at = address(place);
            rpcbind.set(PHANTOM, 1, &at).unwrap();
            assert_eq!(known(PHANTOM), [place]);
            let asked = if place.starts_with("tcp") {
                "tcp://127.0.0.1"
            } else {
                "udp://127.0.0.1"
            };
            for asked_in in VERSIONS {
                let there = Rpcbind::connect(asked).unwrap().beginning_with(asked_in);
                let found = there.getaddr(PHANTOM, 1).unwrap();
                assert_eq!(found, Some(at.clone()), "in {asked_in:?}");
            }
            assert!(rpcbind.unset(PHANTOM, 1, &at).unwrap());
            assert_eq!(known(PHANTOM), [""; 0]);
        }
    }
}

fn version_2_asks_for_ports() {
    let local = Rpcbind::local().unwrap();
    local
        .set(PHANTOM, 1, &address("udp://127.0.0.1:700"))
        .unwrap();
    let in_v2 = Rpcbind::connect("tcp://127.0.0.1:111").unwrap();
    let in_v2 = in_v2.beginning_with(RpcbindVersion::V2);
    assert_eq!(in_v2.getaddr(PHANTOM, 1).unwrap(), None);
    let all = in_v2.dump().unwrap();
    let own = all.iter().filter(|entry| entry.program == PHANTOM);
    let own: Vec<_> = own.map(|entry| entry.universal.to_string()).collect();
    assert_eq!(own, ["0.0.0.0.2.188"]);
    assert!(all.iter().any(|entry| entry.program == 100_000));
    local
        .unset(PHANTOM, 1, &address("udp://127.0.0.1:0"))
        .unwrap();
    let unix = local.beginning_with(RpcbindVersion::V2);
    assert!(matches!(
        unix.getaddr(PHANTOM, 1),
        Err(RpcbindError::Transport)
    ));
}

fn another_address_is_declined() {
    let rpcbind = Rpcbind::local().unwrap();
    let first = address("tcp://127.0.0.1:1000");
    rpcbind.set(PHANTOM, 1, &first).unwrap();
    let second = rpcbind.set(PHANTOM, 1, &address("tcp://127.0.0.1:1001"));
    assert!(matches!(second, Err(RpcbindError::Declined { .. })));
    rpcbind.unset(PHANTOM, 1, &first).unwrap();
}

fn registered() -> Server {
    builder_at(Ipv4Addr::LOCALHOST)
        .register_with(tenon::rpcbind::LocalRpcbind)
        .start()
        .unwrap()
}

fn a_server_registers_itself_and_is_found_without_a_port() {
    let server = registered();
    // One that follows takes over, as after a crash.
    let follower = registered();
    server.shutdown(PATIENCE);
    drop(server);
    drop(follower);
    assert_eq!(known(PROGRAM), [""; 0]);

    let server = registered();
    let mut expected: Vec<_> = server.addresses().iter().map(ToString::to_string).collect();
    // Both versions of the program.
    expected.extend_from_within(..);
    expected.sort();
    let mut told = known(PROGRAM);
    told.sort();
    assert_eq!(told, expected);
    for place in ["tcp://127.0.0.1", "udp://127.0.0.1", "tcp://localhost"] {
        let client = Client::connect(place, PROGRAM, VERSION).unwrap();
        client.onc().call(0, |_| Ok(()), |_| Ok(())).unwrap();
    }
    let stranger = Client::connect("tcp://127.0.0.1", PROGRAM + 1, 1);
    assert!(matches!(stranger, Err(ConnectError::NotRegistered { .. })));
    server.shutdown(PATIENCE);
    assert_eq!(known(PROGRAM), [""; 0]);
}

/// RFC 1833 has no name for them, and under that of UDP they would take the place of an address that everybody reaches.
fn addresses_past_the_kernel_are_not_registered() {
    // Two ends of an Ethernet, of which the server has one.
    let ends = [
        "link", "add", "left", "type", "veth", "peer", "name", "right",
    ];
    run("ip", &ends);
    run("ip", &["address", "add", "198.18.255.1/24", "dev", "left"]);
    run("ip", &["link", "set", "left", "up"]);
    run("ip", &["link", "set", "right", "up"]);
    let builder = builder_at(Ipv4Addr::LOCALHOST).register_with(tenon::rpcbind::LocalRpcbind);
    let builder = builder.listen("onc+xdp://198.18.255.1:0").unwrap();
    let server = match builder.start() {
        Ok(server) => server,
        Err(StartError::Listen { cause, .. })
            if cause.kind() == io::ErrorKind::PermissionDenied =>
        {
            let notice =
                format!("SKIPPED: addresses_past_the_kernel_are_not_registered: {cause}\n");
            io::stderr().write_all(notice.as_bytes()).unwrap();
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let addresses = server.addresses().iter().map(ToString::to_string);
    let (past, mut expected): (Vec<_>, Vec<_>) =
        addresses.partition(|address| address.starts_with("onc+xdp://"));
    assert_eq!(past.len(), 1);
    // Both versions of the program.
    expected.extend_from_within(..);
    expected.sort();
    let mut told = known(PROGRAM);
    told.sort();
    assert_eq!(told, expected);
    server.shutdown(PATIENCE);
    assert_eq!(known(PROGRAM), [""; 0]);
}

/// Tells a child of this test that it is the server.
const SERVES: &str = "TENON_TEST_RPCBIND_SERVES";

/// The server process. Run as a test of its own, it does nothing.
#[test]
fn serve_registered_until_a_signal() {
    if std::env::var_os(SERVES).is_some() {
        registered().serve_until_signal(PATIENCE).unwrap();
    }
}

fn a_server_that_is_terminated_unregisters() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serve_registered_until_a_signal"])
        .env(SERVES, "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it is registered", || !known(PROGRAM).is_empty());
    // The last thing that it does before it waits is to catch the signal.
    let status = format!("/proc/{}/status", child.id());
    eventually("it catches SIGTERM", || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        caught >> (Signal::TERM.as_raw() - 1) & 1 == 1
    });
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(known(PROGRAM), [""; 0]);
}

fn a_server_that_starts_again_at_other_ports_is_found() {
    for place in ["tcp://127.0.0.1", "udp://127.0.0.1"] {
        let server = registered();
        let client = Client::connect(place, PROGRAM, VERSION).unwrap();
        client.ping().unwrap();
        let before = client.channel().located();
        // The one that follows gets other ports: the system takes what is free at random.
        drop(server);
        let follower = registered();
        eventually("rpcbind is asked again", || client.ping().is_ok());
        assert_ne!(client.channel().located(), before);
        drop(follower);
    }
}

fn rpcinfo_finds_a_server_that_registered() {
    let _server = registered();
    let options: [&[&str]; 4] = [&["-t"], &["-u"], &["-T", "tcp"], &["-T", "udp"]];
    for option in options {
        for version in [VERSION, VERSION_HIGH] {
            let (program, version) = (PROGRAM.to_string(), version.to_string());
            let asked = [option, &["127.0.0.1", &program, &version]].concat();
            assert!(run("rpcinfo", &asked).contains("ready and waiting"));
        }
    }
}

/// Only an rpcbind that was told to trust everybody takes registrations in version 2 from a port
/// that is not privileged.
fn version_2_registers_too() {
    let rpcbind = Rpcbind::connect("tcp://127.0.0.1").unwrap();
    let rpcbind = rpcbind.beginning_with(RpcbindVersion::V2);
    let at = address("tcp://127.0.0.1:4000");
    rpcbind.set(PHANTOM, 1, &at).unwrap();
    assert_eq!(rpcbind.getaddr(PHANTOM, 1).unwrap(), Some(at.clone()));
    assert!(rpcbind.unset(PHANTOM, 1, &at).unwrap());
    assert_eq!(rpcbind.getaddr(PHANTOM, 1).unwrap(), None);
}
