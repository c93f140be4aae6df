//! An object store, served by threads.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tenon::Server;
use tenon::health::Health;
use tenon_example_store::exit_code;
use tenon_example_store::server_options::{ServerOptions, limits};
use tenon_example_store::store::StoreV1Service;
use tenon_example_store::threads::ThreadedStore;
use tenon_middleware::Metrics;

/// Serves an object store by threads until SIGTERM or Ctrl-C
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    server: ServerOptions,
}

fn main() -> ExitCode {
    exit_code(run(Options::parse()))
}

fn run(Options { server: options }: Options) -> Result<(), Box<dyn Error>> {
    options.init_log();
    // From here on a signal waits until it is asked for.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let store = options.open_store()?;
    let (metrics, health) = (Arc::new(Metrics::new()), Health::new());
    let service = StoreV1Service(ThreadedStore(Arc::clone(&store)));

    let mut builder = Server::builder().limits(limits());
    for address in options.addresses() {
        builder = builder.listen(&address)?;
    }
    let builder = builder.service(options.around(service, &metrics)?);
    let server = builder.health(&health).start()?;
    for address in server.addresses() {
        println!("listening at {address}");
    }
    let _metrics = options.serve_metrics(metrics)?;

    signals.forever().next();
    // Watchers have no end of their own: the shutdown would wait for them.
    store.stop_watchers();
    server.shutdown(options.drain());
    println!("stopped after {} calls", server.counters().calls);
    Ok(())
}
