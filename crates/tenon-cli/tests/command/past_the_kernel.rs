//! The command at `xdp://` and `onc+xdp://`: in networks of its own where this process may make some, and without the capabilities
//! that it takes.

#[path = "../../../tenon-xdp/tests/common/pair.rs"]
#[allow(
    clippy::unwrap_used,
    dead_code,
    reason = "as in the tests it comes from, which use all of it"
)]
mod pair;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{tenon, tenon_within};
use pair::Pair;
use serde_json::Value as Json;
use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallInfo, LeanInput, LeanService, Refusal, Server, Service};

const NUMBERS: &str = "program NUMBERS { version V {
    int TWICE(int) = 1;
    int COUNT(int<>) = 2;
} = 1; } = 0x2000d3ab;\n";

/// The service of [`NUMBERS`], of which it has TWICE.
struct Numbers;

impl Service for Numbers {
    fn program(&self) -> u32 {
        0x2000_d3ab
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        if call.procedure() != 1 {
            return Err(Refusal::ProcedureUnavailable);
        }
        result.put(2 * arguments.get::<i32>()?);
        Ok(())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Numbers {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(self.program(), self.version()))
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let number: i32 = match (call.procedure(), arguments) {
            (1, LeanInput::Native(mut arguments)) => arguments.get()?,
            (1, LeanInput::Swapped(mut arguments)) => arguments.get()?,
            _ => return Err(Refusal::ProcedureUnavailable),
        };
        result.put(2 * number);
        Ok(())
    }
}

/// The file with [`NUMBERS`].
fn interface(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, NUMBERS).expect("the interface can be written");
    file
}

#[test]
fn calls_pings_and_accounts_go_past_the_kernel() {
    let Some(pair) = Pair::make("the command at xdp:// and onc+xdp://") else {
        return;
    };
    // It is called by either protocol.
    let builder = Server::builder().listen(&format!("onc+xdp://{}:0", pair.server_at));
    let builder = builder.expect("an address").service(Numbers);
    let server = pair.in_server(|| builder.start().expect("a server"));
    let onc = server.addresses()[0].to_string();
    let lean = onc.strip_prefix("onc+").expect("an address of ONC RPC");
    let file = interface("numbers_xdp.x");
    let file = file.to_str().expect("the path is text");
    call_and_ping(&pair, &onc, file, "client");
    call_and_ping(&pair, lean, file, "whole");

    // The call is one frame: what is larger is told, and where it can go.
    let numbers = serde_json::to_string(&vec![1; 400]).expect("JSON");
    let call =
        |address: &str| pair.in_client(|| tenon(&["call", address, file, "COUNT", &numbers]));
    let stderr = call(&onc).fails_with(1);
    let told = "a call of 1644 bytes is over the limit of 1472; use a stream, tcp:// or unix://";
    assert!(stderr.contains(told), "{stderr}");
    let stderr = call(lean).fails_with(1);
    assert!(!stderr.contains("limit"), "{stderr}");
    let hint = pair.in_client(|| {
        let arguments = ["call", &onc, file, "TWICE", "21", "--metadata", "key=value"];
        tenon(&arguments).fails_with(2)
    });
    assert!(hint.contains(&format!("takes it at {lean}")), "{hint}");
}

#[test]
fn past_the_kernel_no_port_is_asked_for() {
    let file = interface("numbers_portless.x");
    let file = file.to_str().expect("the path is text");
    for address in ["xdp://198.18.255.1", "onc+xdp://198.18.255.1"] {
        let stderr = tenon(&["call", address, file, "TWICE", "21"]).fails_with(2);
        assert!(stderr.contains("the port is missing"), "{stderr}");
    }
}

/// Calls, pings and takes an account of calls, of which that much is known.
fn call_and_ping(pair: &Pair, address: &str, file: &str, known: &str) {
    let answer = pair.in_client(|| tenon(&["call", address, file, "TWICE", "21"]).ok());
    assert_eq!(answer, "42\n");
    let answer = pair.in_client(|| tenon(&["ping", address, "0x2000d3ab"]).ok());
    assert!(answer.contains("version 1 answers: "), "{answer}");
    let arguments = [
        "account", address, file, "TWICE", "4", "--json", "--calls", "50",
    ];
    let account = pair.in_client(|| tenon(&arguments).ok());
    let account: Json = serde_json::from_str(&account).expect("JSON");
    assert_eq!(account["address"], address);
    assert_eq!(
        (&account["way"], &account["calls"]),
        (&known.into(), &50.into())
    );
}

/// A user who lacks a capability is told which, and what to do instead.
#[test]
fn a_capability_that_is_missing_is_named() {
    const RAW: &str = "CAP_NET_RAW";
    const ADMIN: &str = "CAP_NET_ADMIN";
    const BPF: &str = "CAP_BPF";
    let file = interface("numbers_denied.x");
    let file = file.to_str().expect("the path is text");
    let arguments = ["call", "xdp://198.18.255.1:9", file, "TWICE", "21"];
    let check = |stderr: &str, missing: &[&str]| {
        for name in [RAW, ADMIN, BPF] {
            let is_named = stderr.contains(name);
            assert_eq!(is_named, missing.contains(&name), "{name}: {stderr}");
        }
        assert!(stderr.contains("lean+udp://"), "{stderr}");
    };
    if let Err(error) = tenon_xdp::check_privileges() {
        // There is nothing to take away, but what is lacking already.
        let why = "this process lacks capabilities, so none are taken away";
        let _ = writeln!(io::stderr(), "\nSKIPPED: one by one: {why}: {error}\n");
        let stderr = tenon(&arguments).fails_with(1);
        let named = [RAW, ADMIN, BPF].map(|name| error.to_string().contains(name).then_some(name));
        return check(&stderr, &named.into_iter().flatten().collect::<Vec<_>>());
    }
    for (bounds, missing) in [
        ("-all", &[RAW, ADMIN, BPF][..]),
        ("-net_raw", &[RAW]),
        ("-net_admin", &[ADMIN]),
        ("-bpf,-sys_admin", &[BPF]),
    ] {
        check(&tenon_within(bounds, &arguments).fails_with(1), missing);
    }
    // What is not needed is not asked for: this one fails for another reason.
    let stderr = tenon_within("-bpf,-chown", &arguments).fails_with(1);
    assert!(!stderr.contains("CAP_"), "{stderr}");
}
