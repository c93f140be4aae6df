//! `rpcinfo` finds our servers and gets their answers.

use std::process::Command;
use std::time::Duration;

use tenon::rpcbind::LocalRpcbind;
use tenon::wire::{Decoder, Encoder};
use tenon::{Address, CallInfo, Refusal, Server, Service};
use tenon_interop::{in_private_network, run, start_rpcbind};

const PROGRAM: u32 = 0x2000_5249;

/// A version of a program without procedures, but for the one that every server answers.
struct Bare(u32);

impl Service for Bare {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        self.0
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        _: &mut Decoder<'_>,
        _: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        Err(Refusal::ProcedureUnavailable)
    }
}

fn serve(is_registered: bool) -> Server {
    let mut builder = Server::builder()
        .listen("tcp://127.0.0.1:0")
        .and_then(|builder| builder.listen("udp://127.0.0.1:0"))
        .expect("these are addresses")
        .service(Bare(2))
        .service(Bare(5));
    if is_registered {
        builder = builder.register_with(LocalRpcbind);
    }
    builder.start().expect("the server starts")
}

/// `127.0.0.1.4.210`: the port as two numbers behind the host (RFC 5665 section 5.2.3.1).
fn universal(address: &Address) -> String {
    let text = address.to_string();
    let (_, port) = text.rsplit_once(':').expect("an address with a port");
    let port: u16 = port.parse().expect("a port");
    format!("127.0.0.1.{}.{}", port >> 8, port & 255)
}

#[test]
fn rpcinfo_calls_a_version_at_an_address() {
    let server = serve(false);
    for (address, transport) in server.addresses().iter().zip(["tcp", "udp"]) {
        for version in ["2", "5"] {
            let program = PROGRAM.to_string();
            let said = rpcinfo(&[
                "-a",
                &universal(address),
                "-T",
                transport,
                &program,
                version,
            ]);
            assert!(said.contains("ready and waiting"), "{said}");
        }
    }
}

/// Without a version, rpcinfo asks for one that does not exist and believes the range that the
/// refusal names.
#[test]
fn rpcinfo_learns_the_versions_from_a_refusal() {
    let server = serve(false);
    for (address, transport) in server.addresses().iter().zip(["tcp", "udp"]) {
        let script = format!(
            "rpcinfo -a {} -T {transport} {PROGRAM} || true",
            universal(address)
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script]);
        let said = run(command);
        for version in [2, 5] {
            let expected = format!("program {PROGRAM} version {version} ready and waiting");
            assert!(said.contains(&expected), "{said}");
        }
    }
}

/// With a real rpcbind: `-t` and `-u` find the ports that the server registered, and `-s` lists the
/// program no more once the server has shut down.
#[test]
fn rpcinfo_finds_what_is_registered() {
    in_private_network("rpcinfo::rpcinfo_finds_what_is_registered", || {
        let _rpcbind = start_rpcbind();
        let server = serve(true);
        for transport in ["-t", "-u"] {
            for version in ["2", "5"] {
                let said = rpcinfo(&[transport, "127.0.0.1", &PROGRAM.to_string(), version]);
                assert!(said.contains("ready and waiting"), "{said}");
            }
        }
        assert!(rpcinfo(&["-s", "127.0.0.1"]).contains(&PROGRAM.to_string()));
        server.shutdown(Duration::from_secs(60));
        assert!(!rpcinfo(&["-s", "127.0.0.1"]).contains(&PROGRAM.to_string()));
    });
}

fn rpcinfo(arguments: &[&str]) -> String {
    let mut command = Command::new("rpcinfo");
    command.args(arguments);
    run(command)
}
