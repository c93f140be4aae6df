//! An object store, served by tasks.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tenon::health::Health;
use tenon_example_store::exit_code;
use tenon_example_store::server_options::{ServerOptions, limits};
use tenon_example_store::store::StoreV1AsyncService;
use tenon_example_store::tasks::TaskedStore;
use tenon_middleware::Metrics;
use tenon_tokio::Server;
use tokio::signal::unix::{SignalKind, signal};

/// Serves an object store by tasks until SIGTERM or Ctrl-C
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    server: ServerOptions,
}

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(Options::parse()).await)
}

async fn run(Options { server: options }: Options) -> Result<(), Box<dyn Error>> {
    options.init_log();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let store = options.open_store()?;
    let (metrics, health) = (Arc::new(Metrics::new()), Health::new());
    let service = StoreV1AsyncService(TaskedStore(Arc::clone(&store)));

    let mut builder = Server::builder().limits(limits());
    for address in options.addresses() {
        builder = builder.listen(&address)?;
    }
    let builder = builder.service(options.around(service, &metrics)?);
    let server = builder.health(&health).start().await?;
    for address in server.addresses() {
        println!("listening at {address}");
    }
    let _metrics = options.serve_metrics(metrics)?;

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Watchers have no end of their own: the shutdown would wait for them.
    store.stop_watchers();
    server.shutdown(options.drain()).await;
    println!("stopped after {} calls", server.counters().calls);
    Ok(())
}
