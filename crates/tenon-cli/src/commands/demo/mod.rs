//! `tenon demo`: a server process and a client process that know their interface only from a file
//! read at run time.

mod client;
mod process;
mod service;

use std::io::{self, Read};

use serde_json::{Value as Json, json};
use tenon_exec::Interface;
use tenon_idl::Options;

use self::client::Figure;
use self::process::ServerProcess;
use crate::args::DemoArgs;
use crate::commands::table::{in_micros, micros, render};
use crate::failure::Failure;
use crate::output;

const FILE: &str = "demo.x";
const TEXT: &str = include_str!("../../../../../interfaces/demo.x");

pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    match args.serve {
        true => serve(),
        false => demonstrate(args),
    }
}

/// Reads the bundled file, as any other file would be read.
fn interface() -> Result<Interface, Failure> {
    let parsed = tenon_idl::parse_text(FILE, TEXT, &Options::default());
    let schema = parsed.schema.ok_or_else(Failure::explained)?;
    Interface::new(schema).map_err(Failure::new)
}

/// The server process: prints its addresses, serves until the end of input.
fn serve() -> Result<(), Failure> {
    let directory = process::private_directory()?;
    let server = service::start(interface()?, &directory.path().join("demo.sock"))?;
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
    let interface = interface()?;
    let server = ServerProcess::start()?;
    eprintln!(
        "{FILE} read; server process {} serves it, client process {} calls it",
        server.id(),
        std::process::id()
    );
    let mut figures = Vec::new();
    for address in server.addresses() {
        eprintln!("  {address}: {} calls of each procedure", args.calls);
        figures.extend(client::measure(&interface, address, args.calls)?);
    }
    server.stop()?;
    match args.json {
        true => output::print_json(&as_json(&figures), false),
        false => output::print(&as_table(&figures)),
    }
}

fn as_table(figures: &[Figure]) -> String {
    let row = |figure: &Figure| {
        let times = [micros(figure.median), micros(figure.p99)];
        let words = [figure.procedure.clone(), figure.transport.clone()];
        words.into_iter().chain(times).collect()
    };
    let rows: Vec<Vec<String>> = figures.iter().map(row).collect();
    let table = render(&["procedure", "transport", "median us", "p99 us"], &rows, 2);
    format!("\n{table}\nevery answer was checked\n")
}

fn as_json(figures: &[Figure]) -> Json {
    let row = |figure: &Figure| {
        json!({
            "procedure": figure.procedure,
            "transport": figure.transport,
            "calls": figure.calls,
            "median_us": in_micros(figure.median),
            "p99_us": in_micros(figure.p99),
        })
    };
    Json::Array(figures.iter().map(row).collect())
}
