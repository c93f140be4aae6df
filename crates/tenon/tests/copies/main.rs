//! Copies of what a call carries, counted in front of the C library: each direction is encoded once at the one end, and
//! decoded once at the other. What a transport copies beside is here in numbers. Copies by the kernel, and those into
//! and out of shared memory, which are not the C library's, come on top: one for each end and direction.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)]

mod counter;
#[path = "../common/place.rs"]
mod place;

use std::path::Path;
use std::sync::Arc;
use std::{env, fs, thread};

use place::fresh_path;
use tenon::lean::Interface;
use tenon::wire::{Decoder, Encoder, Lean, Representation};
use tenon::{
    CallInfo, ChannelOptions, Client, LeanInput, LeanService, Protocol, Refusal, Server,
    ServerLimits, Service,
};

const PROGRAM: u32 = 0x2000_0c0c;
const ECHO: u32 = 1;

/// Bytes that a call carries, each way.
const BYTES: usize = 1 << 20;

/// Says to [`child`] which address to use.
const ADDRESS: &str = "TENON_COPIES_ADDRESS";
/// Says how many calls it makes.
const CALLS: &str = "TENON_COPIES_CALLS";

/// Returns its argument, which it owns in between.
struct Echo;

fn echo<R: Representation>(
    input: &mut Decoder<'_, R>,
    out: &mut Encoder<'_, R>,
) -> Result<(), Refusal> {
    let owned = input.get_opaque(u32::MAX)?;
    Ok(out.put_opaque(&owned, u32::MAX)?)
}

impl Service for Echo {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _: &CallInfo<'_>,
        input: &mut Decoder<'_>,
        out: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        echo(input, out)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Echo {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(Interface::unknown(PROGRAM, 1))
    }

    fn call_lean(
        &self,
        _: &CallInfo<'_>,
        input: LeanInput<'_>,
        out: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        match input {
            LeanInput::Native(mut input) => echo(&mut input, out),
            LeanInput::Swapped(_) => Err(Refusal::ProcedureUnavailable),
        }
    }
}

/// Makes calls, if the process is told to.
#[test]
fn child() {
    let (Ok(address), Ok(calls)) = (env::var(ADDRESS), env::var(CALLS)) else {
        return;
    };
    let limits = ServerLimits {
        message_bytes: 2 * BYTES,
        ..ServerLimits::default()
    };
    let listened = address.strip_prefix("lean+").unwrap_or(&address);
    let builder = Server::builder().listen(listened).unwrap();
    let server = builder.limits(limits).service(Echo).start().unwrap();
    let at = server.addresses()[0].to_string();
    let prefix = &address[..address.len() - listened.len()];
    let at = format!("{prefix}{at}");
    let calls: usize = calls.parse().unwrap();
    let caller = thread::Builder::new().name("client".to_owned());
    let made = caller.spawn(move || call(&at, calls)).unwrap();
    made.join().unwrap();
    server.shutdown(std::time::Duration::from_secs(10));
}

fn call(address: &str, calls: usize) {
    let client = Client::connect_with(address, PROGRAM, 1, ChannelOptions::default()).unwrap();
    let bytes: Vec<u8> = (0..BYTES).map(|at| at as u8).collect();
    for _ in 0..calls {
        let echoed = if client.protocol() == Protocol::Lean {
            (client.lean()).call(
                ECHO,
                |out| out.put_opaque(&bytes, u32::MAX),
                |input| match input {
                    LeanInput::Native(input) => input.get_opaque(u32::MAX),
                    LeanInput::Swapped(input) => input.get_opaque(u32::MAX),
                },
            )
        } else {
            (client.onc()).call(
                ECHO,
                |out| out.put_opaque(&bytes, u32::MAX),
                |input| input.get_opaque(u32::MAX),
            )
        };
        assert!(echoed.unwrap() == bytes);
    }
}

/// Returns how often a byte is copied by a client and by a server, in hundredths, there and back.
fn copies(counter: &Path, address: &str) -> (usize, usize) {
    let [(client, server), (more_client, more_server)] =
        [4, 24].map(|calls| run(counter, address, calls));
    let a_byte = |few: usize, many: usize| (many - few) * 100 / (20 * BYTES);
    (a_byte(client, more_client), a_byte(server, more_server))
}

/// Bytes that a process copies for so many calls, at the client and at the server.
fn run(counter: &Path, address: &str, calls: usize) -> (usize, usize) {
    counter::run_child(counter, &[(ADDRESS, address), (CALLS, &calls.to_string())])
}

#[test]
fn what_a_call_carries_is_copied_as_often_as_is_said() {
    let counter = counter::build();
    let path = fresh_path();
    let unix = format!("unix://{}", path.display());
    // One end's encoding and decoding.
    let once = (200, 200);
    // Fragments are copied into packets, and put together out of them; at a server the arguments are copied once more
    // for the thread that a slow call is handed to.
    let in_packets = (400, 500);
    let addresses = [
        ("tcp://127.0.0.1:0".to_owned(), once),
        ("lean+tcp://127.0.0.1:0".to_owned(), once),
        (unix.clone(), once),
        (format!("lean+{unix}"), once),
        (format!("shm://{}", path.display()), once),
        ("lean+udp://127.0.0.1:0".to_owned(), in_packets),
    ];
    for (address, most) in addresses {
        let (client, server) = copies(&counter, &address);
        println!("{address}: {client} and {server} copies in a hundred calls");
        assert!(
            client >= 190 && server >= 190,
            "{address}: {client} {server}"
        );
        assert!(client <= most.0 + 10, "{address}: {client} at the client");
        assert!(server <= most.1 + 10, "{address}: {server} at the server");
    }
    fs::remove_file(counter).unwrap();
}
