//! `tenon demo`: a server process and a client process that know their interface only from a file
//! read at run time.

mod account;
mod client;
#[cfg_attr(not(target_os = "linux"), path = "networks_portable.rs")]
mod networks;
mod process;
mod report;
mod service;

use std::io::{self, Read};

use tenon::Address;
use tenon_dynamic::DynamicInterface;
use tenon_idl::Options;

use self::client::LatencyFigure;
use self::networks::NetworkPair;
use self::process::{ListenAddresses, ServerProcess};
use crate::args::DemoArgs;
use crate::commands::connect;
use crate::failure::CommandFailure;
use crate::output;

const FILE: &str = "demo.x";
const TEXT: &str = include_str!("demo.x");

pub fn run(args: &DemoArgs) -> Result<(), CommandFailure> {
    match args.serve {
        true => serve(args),
        false => demonstrate(args),
    }
}

/// Reads the bundled file, as any other file would be read, and makes it ready for either protocol.
fn interface() -> Result<DynamicInterface, CommandFailure> {
    let parsed = tenon_idl::parse_text(FILE, TEXT, &Options::default());
    let schema = parsed.schema.ok_or_else(CommandFailure::explained)?;
    DynamicInterface::new(schema).map_err(CommandFailure::new)
}

/// Runs the server process: prints its addresses, serves until the end of input.
fn serve(args: &DemoArgs) -> Result<(), CommandFailure> {
    let directory = process::private_directory()?;
    let addresses = match &args.at {
        Some(address) => vec![address.clone()],
        None => service::addresses(directory.path()),
    };
    let server = service::start(interface()?, &addresses, args.wait.policy())?;
    for address in server.addresses() {
        output::print(&format!("{address}\n"))?;
    }
    wait_for_end_of_input()?;
    server.shutdown(std::time::Duration::from_secs(1));
    Ok(())
}

/// Waits until Enter or the end of input.
fn wait_for_end_of_input() -> io::Result<()> {
    let mut byte = [0];
    io::stdin().read(&mut byte).map(|_| ())
}

fn demonstrate(args: &DemoArgs) -> Result<(), CommandFailure> {
    let interface = interface()?;
    let waiting = args.wait.policy();
    let server = ServerProcess::start(waiting, ListenAddresses::Usual)?;
    eprintln!(
        "{FILE} read; server process {} serves it, client process {} calls it",
        server.id(),
        std::process::id()
    );
    let mut figures = call(&interface, &server, args)?;
    eprintln!(
        "  {} calls with an account, and as many without",
        args.calls
    );
    let addresses = addresses(&server)?.concat();
    let accounts = account::take(&interface, &addresses, args.calls, waiting)?;
    server.stop()?;
    figures.extend(call_past_the_kernel(&interface, args)?);
    match args.json {
        true => output::print_json(&report::as_json(&figures, &accounts), false),
        false => output::print(&report::as_tables(&figures, &accounts)),
    }
}

/// Returns the addresses of a server: at each place by the protocols that lead there.
fn addresses(server: &ServerProcess) -> Result<Vec<Vec<Address>>, CommandFailure> {
    let addresses = server.addresses().iter();
    addresses
        .map(|address| connect::address(address).map(by_both_protocols))
        .collect()
}

/// Calls a server at all its addresses.
fn call(
    interface: &DynamicInterface,
    server: &ServerProcess,
    args: &DemoArgs,
) -> Result<Vec<LatencyFigure>, CommandFailure> {
    let mut figures = Vec::new();
    for addresses in addresses(server)? {
        for address in &addresses {
            eprintln!("  {address}: {} calls of each procedure", args.calls);
        }
        let waiting = args.wait.policy();
        let measured = client::measure(interface, &addresses, args.calls, waiting);
        figures.extend(measured?);
    }
    Ok(figures)
}

/// Calls another server from one network to another, both of this process's own. Where that is not allowed it is
/// left out, and why is said.
fn call_past_the_kernel(
    interface: &DynamicInterface,
    args: &DemoArgs,
) -> Result<Vec<LatencyFigure>, CommandFailure> {
    let waiting = args.wait.policy();
    let there = NetworkPair::make()
        .map_err(CommandFailure::from)
        .and_then(|networks| {
            let address = NetworkPair::server_address();
            let start = || ServerProcess::start(waiting, ListenAddresses::Only(&address));
            let server = networks.at_server(start)??;
            Ok((networks, server))
        });
    let (networks, server) = match there {
        Ok(there) => there,
        Err(failure) => {
            eprintln!("  xdp is left out: {}", failure.message());
            return Ok(Vec::new());
        }
    };
    let figures = networks.at_client(|| call(interface, &server, args))??;
    server.stop()?;
    Ok(figures)
}

/// Returns the addresses of one place by the protocols that lead there.
fn by_both_protocols(address: Address) -> Vec<Address> {
    let lean = address.clone().over_lean();
    address.over_onc().into_iter().chain([lean]).collect()
}
