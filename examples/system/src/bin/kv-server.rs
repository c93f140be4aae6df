//! A key-value store, served by threads.

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tenon::Server;
use tenon_example_system::exit_code;
use tenon_example_system::kv::{KvV1Service, VALUE_MAX};
use tenon_example_system::server_options::{ServerOptions, limits};
use tenon_example_system::store::Store;

/// Serves a key-value store until SIGTERM or Ctrl-C
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    server: ServerOptions,
}

fn main() -> ExitCode {
    exit_code(run(Options::parse()))
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let Options { server: options } = options;
    // From here on a signal waits until it is asked for.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let store = Store::open(&options.data("kv.journal")?, options.sync)?;

    let mut builder = Server::builder().limits(limits(VALUE_MAX));
    for address in options.addresses("tcp://127.0.0.1:4721") {
        builder = builder.listen(&address)?;
    }
    let server = builder.service(KvV1Service(store)).start()?;
    for address in server.addresses() {
        println!("listening at {address}");
    }

    signals.forever().next();
    server.shutdown(options.drain());
    println!("stopped after {} calls", server.counters().calls);
    Ok(())
}
