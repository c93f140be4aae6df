//! `tenon ping` of a program whose ports the machine's own rpcbind is asked for, in a network and a `/run` of the
//! test's own: port 111 is nobody's there. Needs root for that, and rpcbind (`apt-get install rpcbind`).

mod common;
#[path = "../../tenon-interop/src/private_network.rs"]
#[allow(dead_code, reason = "the tests that it comes from use all of it")]
mod private_network;
#[path = "../../tenon-interop/src/process.rs"]
#[allow(
    clippy::unwrap_used,
    dead_code,
    reason = "as in the tests it comes from, which use all of it"
)]
mod process;

use std::io::{self, Write};

use common::tenon;
use tenon::rpcbind::LocalRpcbind;
use tenon::wire::{Decoder, Encoder};
use tenon::{CallInfo, Refusal, Server, Service};

const PROGRAM: u32 = 0x2000_d3ac;

/// A version of [`PROGRAM`] without procedures, but for the one that every server answers.
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

/// A server of one version, at a port of its own that rpcbind is told of.
fn serve(transport: &str, version: u32) -> Server {
    Server::builder()
        .listen(&format!("{transport}://127.0.0.1:0"))
        .expect("an address")
        .service(Bare(version))
        .register_with(LocalRpcbind)
        .start()
        .expect("a server that rpcbind knows")
}

fn in_private_network(test: &str, body: impl FnOnce()) {
    if rustix::process::geteuid().is_root() {
        return private_network::in_private_network(test, body);
    }
    // Not by `eprintln!`: what it says of a test that passes is kept back.
    let _ = writeln!(io::stderr(), "\nSKIPPED: {test} needs the rights of root\n");
}

#[test]
fn every_version_that_is_registered_is_found_at_its_own_port() {
    in_private_network(
        "every_version_that_is_registered_is_found_at_its_own_port",
        || {
            let _rpcbind = private_network::start_rpcbind();
            let _servers = [serve("tcp", 5), serve("udp", 3), serve("tcp", 2)];

            let ping =
                |address: &str, program: u32| tenon(&["ping", address, &program.to_string()]);
            let lines = |text: String| -> Vec<String> {
                let before = |line: &str| line.split_once(':').expect("a time").0.to_owned();
                text.lines().map(before).collect()
            };
            let answers = |version: u32| format!("program {PROGRAM} version {version} answers");
            let tcp = ping("tcp://127.0.0.1", PROGRAM).ok();
            assert_eq!(lines(tcp), [answers(2), answers(5)]);
            let udp = ping("udp://127.0.0.1", PROGRAM).ok();
            assert_eq!(lines(udp), [answers(3)]);
            let unknown = ping("tcp://127.0.0.1", PROGRAM + 1).fails_with(1);
            let expected = format!("program {} is not registered there", PROGRAM + 1);
            assert!(unknown.contains(&expected), "{unknown}");
        },
    );
}

/// With nobody at port 111 the reason is said.
#[test]
fn a_host_without_rpcbind_is_said_to_be_one() {
    in_private_network("a_host_without_rpcbind_is_said_to_be_one", || {
        let stderr = tenon(&["ping", "tcp://127.0.0.1", "100003"]).fails_with(1);
        assert!(stderr.contains("rpcbind cannot be asked"), "{stderr}");
        assert!(stderr.contains("say it: tcp://127.0.0.1:PORT"), "{stderr}");
    });
}
