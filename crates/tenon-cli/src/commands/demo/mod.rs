//! `tenon demo`: a server process and a client process that know their interface only from a file
//! read at run time.

mod client;
mod process;
mod report;
mod service;

use std::io::{self, Read};

use tenon::{Address, Protocol, Waiting};
use tenon_exec::Interface;
use tenon_idl::Options;

use self::process::ServerProcess;
use crate::args::DemoArgs;
use crate::commands::{connect, dynamic};
use crate::failure::Failure;
use crate::output;

const FILE: &str = "demo.x";
const TEXT: &str = include_str!("../../../../../interfaces/demo.x");

pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    match args.serve {
        true => serve(args.wait.policy()),
        false => demonstrate(args),
    }
}

/// The interface of the demonstration, ready for either protocol.
pub struct Interfaces {
    onc: Interface,
    lean: Interface,
}

impl Interfaces {
    /// Reads the bundled file, as any other file would be read.
    fn read() -> Result<Self, Failure> {
        let parsed = tenon_idl::parse_text(FILE, TEXT, &Options::default());
        let schema = parsed.schema.ok_or_else(Failure::explained)?;
        let of = |protocol| {
            let representation = dynamic::representation(protocol);
            Interface::with_representation(schema.clone(), representation).map_err(Failure::new)
        };
        Ok(Self {
            onc: of(Protocol::Onc)?,
            lean: of(Protocol::Lean)?,
        })
    }

    fn of(&self, protocol: Protocol) -> &Interface {
        match protocol {
            Protocol::Onc => &self.onc,
            Protocol::Lean => &self.lean,
        }
    }
}

/// The server process: prints its addresses, serves until the end of input.
fn serve(waiting: Waiting) -> Result<(), Failure> {
    let directory = process::private_directory()?;
    let socket = directory.path().join("demo.sock");
    let server = service::start(Interfaces::read()?, &socket, waiting)?;
    for address in server.addresses() {
        output::print(&format!("{address}\n"))?;
    }
    wait_for_end_of_input()?;
    server.shutdown(std::time::Duration::from_secs(1));
    Ok(())
}

/// Until Enter or the end of input.
fn wait_for_end_of_input() -> io::Result<()> {
    let mut byte = [0];
    io::stdin().read(&mut byte).map(|_| ())
}

fn demonstrate(args: &DemoArgs) -> Result<(), Failure> {
    let interfaces = Interfaces::read()?;
    let waiting = args.wait.policy();
    let server = ServerProcess::start(waiting)?;
    eprintln!(
        "{FILE} read; server process {} serves it, client process {} calls it",
        server.id(),
        std::process::id()
    );
    let mut figures = Vec::new();
    for address in server.addresses() {
        let addresses = by_both_protocols(connect::address(address)?);
        for address in &addresses {
            eprintln!("  {address}: {} calls of each procedure", args.calls);
        }
        figures.extend(client::measure(
            &interfaces,
            &addresses,
            args.calls,
            waiting,
        )?);
    }
    server.stop()?;
    match args.json {
        true => output::print_json(&report::as_json(&figures), false),
        false => output::print(&report::as_table(&figures)),
    }
}

/// The addresses of one place by the protocols that lead there.
fn by_both_protocols(address: Address) -> Vec<Address> {
    let lean = address.clone().over_lean();
    address.over_onc().into_iter().chain([lean]).collect()
}
